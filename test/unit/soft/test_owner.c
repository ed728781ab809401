/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_owner.c - a device always has a progress owner, whether threads poll, sleep or
 * stop polling: threads hand over progress to each other at random. The tests read the owner
 * from the device. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/progress/owner_state.h"
#include "test/unit/soft/ends.h"
#include "test/unit/unit.h"
#include "test/variables.h"

/* --- a blocked thread is woken ------------------------------------------------------------ */

static uint32_t seed;
static unsigned handovers;		/* round trips */
static bool restless;			/* threads do not really sleep, so that there are many handovers */
static unsigned sleeps[2];		/* restless: times a thread would have sleeps */
static unsigned progress_by_waiter[2];		/* times a waiting thread drove progress */

static uint32_t next_random(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	return *random >> 8;
}

static void __attribute__((noreturn)) game_over(const char *why)
{
	fprintf(stderr, "%s, DAPL_TEST_SEED=%u\n", why, seed);
	abort();
}

/* A blocked thread watches these: the second only while it drives progress, the third only
 * while the threads are restless. */
enum { CHANNEL, DATA, SERVICE, WATCHED };

static void work(struct end *e, struct pollfd *p)
{
	if ((p[DATA].revents & POLLIN) && !ops->work(e->dev))
		p[DATA].fd = -1;
	if (p[SERVICE].revents & POLLIN)
		e->dev->progress.data_watch.ready(&e->dev->progress.data_watch);
}

/* Does what the service thread would do, without a wake-up. A wake-up takes 100 times as long
 * as all else, and would hide the races between the two threads. */
static void stay_awake(struct end *e, struct pollfd *p)
{
	time_t last = now() + LIMIT_S;

	for (unsigned vain = 0; !(p[CHANNEL].revents & POLLIN); vain++) {
		poll(p, WATCHED, 0);
		work(e, p);
		if (vain % 64 < 63)
			continue;
		sched_yield();		/* there may be one processor */
		if (now() > last)
			game_over("not woken");
	}
}

/* A thread that sleeps long is only an error if there is something for it: the other thread may
 * not have had a processor. */
static void fall_asleep(struct end *e, struct pollfd *p)
{
	struct ibv_wc wc;

	for (int sleeps = 0; !(p[CHANNEL].revents & POLLIN); sleeps++) {
		if (poll(p, SERVICE, LIMIT_S * 1000) > 0) {
			work(e, p);
			continue;
		}
		if (ibv_poll_cq(e->cq, 1, &wc))
			game_over("not woken for what is here");
		if (sleeps == 30)
			game_over("nothing comes");
	}
}

/* Sleeps until there may be something. Drives progress meanwhile, or leaves it to the service
 * thread. */
static void sleep_on(struct end *e, bool serves)
{
	struct pollfd p[WATCHED] = {
		[CHANNEL] = { .fd = e->channel->fd, .events = POLLIN },
		[DATA] = { .fd = serves ? ops->sleep(e->dev, true) : -1, .events = POLLIN },
		[SERVICE] = { .fd = restless ? e->dev->progress.service_epoll : -1, .events = POLLIN },
	};
	struct ibv_cq *cq;

	sleeps[e == &ends[1]]++;
	progress_by_waiter[e == &ends[1]] += p[DATA].fd >= 0;
	(restless ? stay_awake : fall_asleep)(e, p);
	if (p[DATA].fd >= 0)
		ops->awake(e->dev);
	ops->get_cq_event(e->channel, &cq);
}

/* Takes one completion, by polling, sleeping or waiting at random. Returns false for a send's. */
static bool take_somehow(struct end *e, uint32_t *random)
{
	struct timespec nap = { 0, next_random(random) % 64 * 1000 };
	unsigned proto = next_random(random) % 8, polls = next_random(random) % 300;
	struct ibv_wc wc;

	if (restless) {			/* delays this thread by about the time that the other takes to go to sleep */
		for (unsigned i = proto < 4 ? polls : 0; i; i--)
			dapl_pause();
		polls %= 4;
		proto = 3 + proto % 4;
	} else if (proto == 7) {
		nanosleep(&nap, NULL);
	}
	for (;;) {
		for (unsigned i = 0; i <= polls; i++)
			if (ibv_poll_cq(e->cq, 1, &wc))
				goto got;
		if (proto < 3)
			continue;
		ibv_req_notify_cq(e->cq, 0);
		if (ibv_poll_cq(e->cq, 1, &wc))
			goto got;
		sleep_on(e, next_random(random) % 2);
	}
got:
	if (wc.status != IBV_WC_SUCCESS)
		abort();
	return wc.opcode & IBV_WC_RECV;
}

static void *play(void *arg)
{
	struct end *e = arg;
	uint32_t random = seed + (e == &ends[1]);

	for (unsigned i = 0; i < handovers; i++) {
		if (i || e == &ends[0])
			post(e, IBV_WR_SEND, next_random(&random) % 100, 0, 0);
		while (!take_somehow(e, &random))
			;
		post_receive(e);
	}
	if (e == &ends[1])	/* the last answer */
		post(e, IBV_WR_SEND, 1, 0, 0);
	return NULL;
}

/* Opens a device for each end, or one that both share: then the sleep and the polls of one
 * thread drive the progress of the other. */
static void open_ends_for_ping_pong(bool tcp, bool share)
{
	struct dapl_listener *listener;
	uint16_t port = 0;

	if (!share) {
		open_two(tcp ? 3 : 0);
		return;
	}
	setenv("DAPL_SOFT_SHM", tcp ? "0" : "1", 1);
	open_end(&ends[0]);
	ends[1].dev = ends[0].dev;
	open_end(&ends[1]);
	OK(ops->listen(ends[1].dev, NULL, &port, false, 8, &ends[1], &listener));
	start_connect(&ends[0], port);
	accept_it(&ends[1]);
	wait_up(&ends[0], ESTABLISHED);
	ops->unlisten(listener);
}

static void close_players(bool share)
{
	if (!share) {
		close_two();
		return;
	}
	release_end(&ends[0]);
	release_end(&ends[1]);
	close_objects(&ends[1]);
	memset(&ends[1], 0, sizeof ends[1]);
	close_end(&ends[0]);
}

/* A message goes to and fro between two threads, which poll, sleep or are busy at random. If
 * one handover fails, the test hangs. */
static void ping_pong_at_random(unsigned times, bool tcp, bool share)
{
	pthread_t thread[2];

	seed = variable_seed("DAPL_TEST_SEED");
	handovers = variable_number("DAPL_TEST_HANDOVERS", times);
	memset(sleeps, 0, sizeof sleeps);
	memset(progress_by_waiter, 0, sizeof progress_by_waiter);
	print_message("DAPL_TEST_SEED=%u\n", seed);
	open_ends_for_ping_pong(tcp, share);
	for (int i = 0; restless && i < 2 - share; i++)
		dapl_watch_stop(&ends[i].dev->progress.data_watch);
	for (int i = 0; i < 16; i++) {
		post_receive(&ends[0]);
		post_receive(&ends[1]);
	}
	for (int i = 0; i < 2; i++)
		OK(pthread_create(&thread[i], NULL, play, &ends[i]));
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	close_players(share);
	print_message("waits%s: %u; with progress by the waiter: %u\n",
		      restless ? " (not slept)" : "", sleeps[0] + sleeps[1],
		      progress_by_waiter[0] + progress_by_waiter[1]);
	assert_true(progress_by_waiter[0] + progress_by_waiter[1] > handovers / 200);
}

UNIT_TEST(blocked_thread_is_woken_for_a_message)
{
	restless = false;
	ping_pong_at_random(2000, false, false);
	ping_pong_at_random(1000, false, true);
	ping_pong_at_random(500, true, false);
	ping_pong_at_random(500, true, true);
}

UNIT_TEST(thread_that_only_checks_finds_its_message)
{
	restless = true;
	ping_pong_at_random(50000, false, false);
	assert_true(sleeps[0] + sleeps[1] > handovers / 100);
}

UNIT_TEST(threads_of_one_device_wake_each_other)
{
	restless = true;
	ping_pong_at_random(30000, false, true);
}

UNIT_TEST(blocked_thread_is_woken_for_data_over_tcp)
{
	restless = true;
	ping_pong_at_random(10000, true, false);
	ping_pong_at_random(10000, true, true);
}

/* --- the progress owner ------------------------------------------------------------------- */

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* Waits until the CQ has a completion, without a poll. */
static void await_completion(const struct end *e)
{
	const struct soft_cq *cq = (const struct soft_cq *)e->cq;
	time_t end = now() + LIMIT_S;

	while (__atomic_load_n(&cq->tail, __ATOMIC_RELAXED) == cq->head) {
		assert_true(now() <= end);
		usleep(100);
	}
}

static enum progress_owner owner_of(const struct end *e)
{
	return __atomic_load_n(&e->dev->progress.owner, __ATOMIC_RELAXED);
}

static void await_owner(const struct end *e, enum progress_owner owner)
{
	time_t end = now() + LIMIT_S;

	while (owner_of(e) != owner) {
		assert_true(now() <= end);
		usleep(100);
	}
}

/* Waits until the thread that has made progress, or changed the owner, is done: until then polls are refused. */
static void await_progress(const struct end *e)
{
	soft_progress_lock(e->dev);
	soft_progress_unlock(e->dev);
}

static void message(void)
{
	post_receive(&ends[1]);
	post(&ends[0], IBV_WR_SEND, 8, 0, 0);
}

static void a_sleeper_serves(bool tcp)
{
	struct end *e = &ends[1];
	struct ibv_cq *cq;
	int data;

	open_two(tcp ? 3 : 0);
	OK(ibv_req_notify_cq(e->cq, 0));
	assert_int_equal(ops->sleep(e->dev, false), -1);
	data = ops->sleep(e->dev, true);
	assert_true(data >= 0);
	assert_int_equal(owner_of(e), OWNER_BLOCKED_THREAD);
	assert_int_equal(ops->sleep(e->dev, true), -1);
	message();
	while (!readable(e->channel->fd, 0)) {
		assert_true(readable(data, LIMIT_S * 1000));
		assert_false(readable(e->dev->progress.service_epoll, 0));
		assert_true(ops->work(e->dev));
	}
	OK(ops->get_cq_event(e->channel, &cq));
	ops->awake(e->dev);
	assert_int_equal(owner_of(e), OWNER_SERVICE_THREAD);
	done(e);
	done(&ends[0]);
	message();			/* no thread polls or sleeps: the service thread drives progress */
	await_completion(e);
	close_two();
}

UNIT_TEST(blocked_thread_drives_progress)
{
	a_sleeper_serves(false);
	a_sleeper_serves(true);
}

/* A blocked thread must not be woken for each message that another thread polls for. */
UNIT_TEST(blocked_thread_yields_progress_to_pollers)
{
	struct end *e = &ends[1];
	struct ibv_wc wc;
	int data, due = 0, tries = 3;	/* as many as there are receives */

	open_two(tries);
	data = ops->sleep(e->dev, true);
	do {	/* again if this thread lost its processor, so that the service thread missed its polls */
		assert_true(tries-- > 0);
		due -= ibv_poll_cq(e->cq, 1, &wc);
		message();
		due++;
		assert_true(readable(data, LIMIT_S * 1000));
	} while (ops->work(e->dev));
	data = ops->sleep(e->dev, true);	/* any thread may become the owner */
	assert_true(data >= 0);
	ops->awake(e->dev);
	while (due) {
		await_completion(e);
		due -= ibv_poll_cq(e->cq, 1, &wc);
	}
	close_two();
}

/* A thread has blocked, and another has polled. The test does what the service thread would do. */
static void open_with_blocked_thread(struct end *e)
{
	struct ibv_wc wc;

	open_two(0);
	dapl_watch_stop(&e->dev->progress.data_watch);
	assert_true(ops->sleep(e->dev, true) >= 0);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}

/* The service thread was woken for data, and runs when a thread has blocked and polls are counted: it hands over to
 * polling threads, and the blocked thread is to stop watching when it is woken. */
UNIT_TEST(service_thread_hands_over_while_a_thread_blocks)
{
	struct end *e = &ends[1];
	struct ibv_wc wc;

	open_with_blocked_thread(e);
	message();
	e->dev->progress.data_watch.ready(&e->dev->progress.data_watch);
	assert_int_not_equal(owner_of(e), OWNER_BLOCKED_THREAD);
	assert_false(ops->work(e->dev));
	await_owner(e, OWNER_SERVICE_THREAD);	/* no polls */
	ops->awake(e->dev);			/* the wait ended before the thread was woken: nothing changes */
	assert_int_equal(owner_of(e), OWNER_SERVICE_THREAD);
	await_progress(e);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
	close_two();
}

/* A thread that still watches when polling threads took over and another has blocked since: both may drive progress.
 * The first whose wait ends makes the service thread the owner, and the other stops. */
UNIT_TEST(second_blocked_thread_may_join_the_first)
{
	struct end *e = &ends[1];

	open_with_blocked_thread(e);
	e->dev->progress.data_watch.ready(&e->dev->progress.data_watch);
	await_owner(e, OWNER_SERVICE_THREAD);
	assert_true(ops->sleep(e->dev, true) >= 0);
	message();
	assert_true(ops->work(e->dev));		/* called by either */
	await_completion(e);
	ops->awake(e->dev);
	assert_int_equal(owner_of(e), OWNER_SERVICE_THREAD);
	assert_false(ops->work(e->dev));
	close_two();
}

/* Arming a CQ ends polling; a CQ that is armed while another thread blocks changes nothing. */
UNIT_TEST(armed_cq_ends_polling)
{
	struct end *e = &ends[1];
	int data;

	open_two(0);
	dapl_watch_stop(&e->dev->progress.data_watch);
	await_owner(e, OWNER_SERVICE_THREAD);	/* the timer is not due */
	dapl_mutex_lock(&e->dev->progress.owner_lock);
	soft_owner_set(e->dev, OWNER_POLLING_THREADS, "test");
	dapl_mutex_unlock(&e->dev->progress.owner_lock);
	OK(ibv_req_notify_cq(e->cq, 0));
	assert_int_equal(owner_of(e), OWNER_SERVICE_THREAD);
	data = ops->sleep(e->dev, true);
	assert_true(data >= 0);
	OK(ibv_req_notify_cq(e->cq, 0));
	assert_int_equal(owner_of(e), OWNER_BLOCKED_THREAD);
	ops->awake(e->dev);
	close_two();
}

/* The service thread leaves progress to a polling thread for a millisecond at least. */
UNIT_TEST(thread_about_to_sleep_is_no_poller)
{
	struct end *e = &ends[1];
	struct ibv_wc wc;

	open_two(0);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	assert_int_not_equal(e->dev->progress.polls, e->dev->progress.polls_seen);
	assert_true(ops->sleep(e->dev, true) >= 0);
	ops->awake(e->dev);
	assert_int_equal(e->dev->progress.polls, e->dev->progress.polls_seen);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	assert_int_not_equal(e->dev->progress.polls, e->dev->progress.polls_seen);
	OK(ibv_req_notify_cq(e->cq, 0));
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	assert_int_equal(e->dev->progress.polls, e->dev->progress.polls_seen);
	close_two();
}

UNIT_FIXTURE(init)
{
	unsetenv("DAPL_SOFT_CRC");
	unsetenv("DAPL_SOFT_DIRECT");
	signal(SIGPIPE, SIG_IGN);
}

UNIT_MAIN(init, NULL)
