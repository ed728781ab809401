/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* moderate.c - a thread that waits for frames is woken after so many, or so long after the first. */
#include "wire.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 100, FRAMES = 4 };
#define FOR_EVER_US 3600000000u		/* longer than the test */

static struct wire w;

struct waiter {
	pthread_t thread;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN ret;
	bool woken;		/* atomic */
};

static void *wait_for_frames(void *arg)
{
	struct waiter *waiter = arg;

	waiter->ret = dat_evd_wait(w.recv, DAT_TIMEOUT_INFINITE, 1, &waiter->event, &waiter->more);
	__atomic_store_n(&waiter->woken, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Starts a thread that waits. It sleeps when the call returns. If it does not yet, it finds the frames
 * without a wake-up, and the test checks less. */
static void begin_wait(struct waiter *waiter)
{
	*waiter = (struct waiter){ .woken = false };
	if (pthread_create(&waiter->thread, NULL, wait_for_frames, waiter))
		fail("no thread");
	usleep(100000);
}

static void open_receiver(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_ATTR attr = { .size = sizeof attr };

	wire_open(&w);
	OK(dat_eth_query(w.ia, &attr));
	EXPECT(attr.caps & DAT_ETH_CAP_MODERATE);
	wire_endpoint(&w, "", NULL);
	wire_rule(&w, &any);
	for (unsigned i = 0; i < 3 * FRAMES; i++)
		wire_post(&w, i * LENGTH, LENGTH, i);
}

static void send_frames(unsigned n)
{
	uint8_t frame[LENGTH];

	while (n--)
		wire_send(&w, frame, wire_frame(&w, frame, LENGTH, n));
}

static void await_received(DAT_UINT64 n)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };
	double end = life_now() + 10;

	do {
		OK(dat_eth_stats(w.ep, &stats));
		if (life_now() > end)
			fail("%llu frames instead of %llu", (unsigned long long)stats.received, (unsigned long long)n);
	} while (stats.received < n);
}

static void await_woken(struct waiter *waiter)
{
	for (double end = life_now() + 10; !__atomic_load_n(&waiter->woken, __ATOMIC_ACQUIRE);) {
		if (life_now() > end)
			fail("the thread still waits");
		usleep(1000);
	}
	pthread_join(waiter->thread, NULL);
	OK(waiter->ret);
}

static void sleeps(struct waiter *waiter)
{
	usleep(50000);
	EXPECT(!__atomic_load_n(&waiter->woken, __ATOMIC_ACQUIRE));
}

static void ETH_35_a_waiter_is_woken_after_so_many(void)
{
	struct waiter waiter;
	DAT_EVENT event;

	open_receiver();
	OK(dat_eth_moderate(w.recv, FRAMES, FOR_EVER_US));
	begin_wait(&waiter);
	send_frames(FRAMES - 1);
	await_received(FRAMES - 1);
	sleeps(&waiter);
	send_frames(1);
	await_woken(&waiter);
	EXPECT(waiter.event.event_number == DAT_ETH_DTO_EVENT && waiter.more == FRAMES - 1);
	for (int i = 1; i < FRAMES; i++)
		OK(dat_evd_dequeue(w.recv, &event));
	begin_wait(&waiter);		/* again */
	send_frames(FRAMES - 1);
	await_received(2 * FRAMES - 1);
	sleeps(&waiter);
	OK(dat_eth_moderate(w.recv, 0, 0));	/* what is held back comes now */
	await_woken(&waiter);
	EXPECT(waiter.more == FRAMES - 2);
	for (int i = 2; i < FRAMES; i++)
		OK(dat_evd_dequeue(w.recv, &event));
	begin_wait(&waiter);
	send_frames(1);
	await_woken(&waiter);
	wire_close(&w);
}

static void ETH_35_a_waiter_is_woken_after_so_long(void)
{
	struct waiter waiter;

	open_receiver();
	OK(dat_eth_moderate(w.recv, FRAMES, 20000));
	for (int i = 0; i < 3; i++) {
		begin_wait(&waiter);
		send_frames(1);
		await_woken(&waiter);
	}
	wire_close(&w);
}

/* Neither a poll nor a wait for events that are there waits. */
static void ETH_35_events_are_there_at_once(void)
{
	struct waiter waiter;
	double end = life_now() + 10;
	DAT_EVENT event;

	open_receiver();
	OK(dat_eth_moderate(w.recv, FRAMES, FOR_EVER_US));
	send_frames(2);
	while (dat_evd_dequeue(w.recv, &event) != DAT_SUCCESS)
		if (life_now() > end)
			fail("no event");
	await_received(2);
	begin_wait(&waiter);
	await_woken(&waiter);
	wire_close(&w);
}

/* Flushed receives are errors, which are not held back. */
static void ETH_35_errors_are_not_held_back(void)
{
	struct waiter waiter;

	open_receiver();
	OK(dat_eth_moderate(w.recv, 1000, FOR_EVER_US));
	begin_wait(&waiter);
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	await_woken(&waiter);
	wire_close(&w);
}

static void ETH_35_an_evd_is_freed_while_it_holds_back(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	open_receiver();
	OK(dat_eth_moderate(w.recv, FRAMES, 5000));
	send_frames(1);
	await_received(1);
	OK(dat_ep_free(w.ep));
	OK(dat_evd_free(w.recv));
	OK(dat_evd_create(w.ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	usleep(20000);		/* beyond the time of the one that was freed */
	wire_close(&w);
}

static void ETH_35_wrong_arguments_are_refused(void)
{
	DAT_EVD_HANDLE software;

	open_receiver();
	FAILS(dat_eth_moderate(w.ep, FRAMES, 100), DAT_INVALID_HANDLE);
	FAILS(dat_eth_moderate(DAT_HANDLE_NULL, FRAMES, 100), DAT_INVALID_HANDLE);
	OK(dat_evd_create(w.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &software));
	FAILS(dat_eth_moderate(software, FRAMES, 100), DAT_INVALID_HANDLE);
	FAILS(dat_eth_moderate(w.recv, -1, 100), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_moderate(w.recv, FRAMES, 0), DAT_INVALID_PARAMETER);
	OK(dat_eth_moderate(w.recv, 0, 0));
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_35_a_waiter_is_woken_after_so_many),
		CASE(ETH_35_a_waiter_is_woken_after_so_long),
		CASE(ETH_35_events_are_there_at_once),
		CASE(ETH_35_errors_are_not_held_back),
		CASE(ETH_35_an_evd_is_freed_while_it_holds_back),
		CASE(ETH_35_wrong_arguments_are_refused),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
