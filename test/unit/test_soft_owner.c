/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_soft_owner.c - that somebody serves a device at any time, whoever polls, sleeps or stops
 * to: threads hand over to each other at random. It looks into the device to see who serves. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "test/unit/soft_ends.h"

/* --- whoever sleeps is woken ------------------------------------------------------------------------------- */

static uint32_t seed;
static unsigned handovers;		/* there and back */
static bool restless;			/* nobody really sleeps, so they are many */
static unsigned slept[2];		/* restless: would have, */
static unsigned led_by_waiter[2];		/* ... or did, and served meanwhile */

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

/* Who sleeps watches these; the second only while he serves, the third while nobody really sleeps. */
enum { CHANNEL, DATA, SERVICE, WATCHED };

static void work(struct end *e, struct pollfd *p)
{
	if ((p[DATA].revents & POLLIN) && !ops->work(e->dev))
		p[DATA].fd = -1;
	if (p[SERVICE].revents & POLLIN)
		e->dev->data_watch.ready(&e->dev->data_watch);
}

/* Does what the service thread would, without being woken for it: that takes 100 times as long as
 * all else, and would hide who meets whom in between. */
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

/* Who slept long has not been forgotten if there is nothing for him: the other may have been kept
 * from the processor. */
static void fall_asleep(struct end *e, struct pollfd *p)
{
	struct ibv_wc wc;

	for (int slept = 0; !(p[CHANNEL].revents & POLLIN); slept++) {
		if (poll(p, SERVICE, LIMIT_S * 1000) > 0) {
			work(e, p);
			continue;
		}
		if (ibv_poll_cq(e->cq, 1, &wc))
			game_over("not woken for what is here");
		if (slept == 30)
			game_over("nothing comes");
	}
}

/* Sleeps until there may be something; and serves meanwhile, or leaves it to the service thread. */
static void sleep_on(struct end *e, bool serves)
{
	struct pollfd p[WATCHED] = {
		[CHANNEL] = { .fd = e->channel->fd, .events = POLLIN },
		[DATA] = { .fd = serves ? ops->sleep(e->dev, true) : -1, .events = POLLIN },
		[SERVICE] = { .fd = restless ? e->dev->service_epoll : -1, .events = POLLIN },
	};
	struct ibv_cq *cq;

	slept[e == &ends[1]]++;
	led_by_waiter[e == &ends[1]] += p[DATA].fd >= 0;
	(restless ? stay_awake : fall_asleep)(e, p);
	if (p[DATA].fd >= 0)
		ops->awake(e->dev);
	ops->get_cq_event(e->channel, &cq);
}

/* One completion, got in one of many ways. False: it is a send's. */
static bool take_somehow(struct end *e, uint32_t *random)
{
	struct timespec nap = { 0, next_random(random) % 64 * 1000 };
	unsigned proto = next_random(random) % 8, polls = next_random(random) % 300;
	struct ibv_wc wc;

	if (restless) {			/* one is late by about what the other takes to go to sleep */
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

/* Both ends have a device each, or share one: then one thread's sleep and polls are the other's
 * service. */
static void open_players(bool tcp, bool share)
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

/* A ball that goes to and fro between two threads, who poll, sleep or are busy elsewhere at
 * random: each time that it is not handed over, the game hangs. */
static void play_ball(unsigned times, bool tcp, bool share)
{
	const char *s = getenv("DAPL_TEST_SEED"), *n = getenv("DAPL_TEST_HANDOVERS");
	pthread_t thread[2];

	seed = s ? strtoul(s, NULL, 0) : (uint32_t)getpid() * 2654435761u;
	handovers = n ? strtoul(n, NULL, 0) : times;
	memset(slept, 0, sizeof slept);
	memset(led_by_waiter, 0, sizeof led_by_waiter);
	print_message("DAPL_TEST_SEED=%u\n", seed);
	open_players(tcp, share);
	for (int i = 0; restless && i < 2 - share; i++)
		dapl_watch_stop(&ends[i].dev->data_watch);
	for (int i = 0; i < 16; i++) {
		post_receive(&ends[0]);
		post_receive(&ends[1]);
	}
	for (int i = 0; i < 2; i++)
		OK(pthread_create(&thread[i], NULL, play, &ends[i]));
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	close_players(share);
	print_message("somebody slept%s %u times, and served in %u of them\n",
		      restless ? ", or would have," : "", slept[0] + slept[1], led_by_waiter[0] + led_by_waiter[1]);
	assert_true(led_by_waiter[0] + led_by_waiter[1] > handovers / 200);
}

static void nobody_sleeps_through_a_message(void **state)
{
	(void)state;
	restless = false;
	play_ball(2000, false, false);
	play_ball(1000, false, true);
	play_ball(500, true, false);
	play_ball(500, true, true);
}

static void nor_who_would_sleep(void **state)
{
	(void)state;
	restless = true;
	play_ball(50000, false, false);
	assert_true(slept[0] + slept[1] > handovers / 100);
}

static void nor_beside_another_of_the_same_device(void **state)
{
	(void)state;
	restless = true;
	play_ball(30000, false, true);
}

static void nor_over_tcp(void **state)
{
	(void)state;
	restless = true;
	play_ball(10000, true, false);
	play_ball(10000, true, true);
}

/* --- who serves ------------------------------------------------------------------------------------ */

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* Until its CQ has a completion; without a poll. */
static void await_completion(const struct end *e)
{
	const struct soft_cq *cq = (const struct soft_cq *)e->cq;
	time_t end = now() + LIMIT_S;

	while (__atomic_load_n(&cq->tail, __ATOMIC_RELAXED) == cq->head) {
		assert_true(now() <= end);
		usleep(100);
	}
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
	assert_int_equal(ops->sleep(e->dev, true), -1);
	message();
	while (!readable(e->channel->fd, 0)) {
		assert_true(readable(data, LIMIT_S * 1000));
		assert_false(readable(e->dev->service_epoll, 0));
		assert_true(ops->work(e->dev));
	}
	OK(ops->get_cq_event(e->channel, &cq));
	ops->awake(e->dev);
	done(e);
	done(&ends[0]);
	message();			/* nobody polls, and nobody sleeps: the service thread's */
	await_completion(e);
	close_two();
}

static void who_sleeps_serves(void **state)
{
	(void)state;
	a_sleeper_serves(false);
	a_sleeper_serves(true);
}

/* He is not to be woken for each message that another thread polls for. */
static void who_sleeps_gives_way_to_pollers(void **state)
{
	struct end *e = &ends[1];
	struct ibv_wc wc;
	int data;

	(void)state;
	open_two(3);
	data = ops->sleep(e->dev, true);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	message();
	assert_true(readable(data, LIMIT_S * 1000));
	assert_false(ops->work(e->dev));
	data = ops->sleep(e->dev, true);	/* anybody may */
	assert_true(data >= 0);
	ops->awake(e->dev);
	await_completion(e);
	close_two();
}

/* The service thread steps aside for who polls, for a millisecond at least. */
static void who_is_about_to_sleep_is_no_poller(void **state)
{
	struct end *e = &ends[1];
	struct ibv_wc wc;

	(void)state;
	open_two(0);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	assert_int_not_equal(e->dev->polls, e->dev->polls_seen);
	assert_true(ops->sleep(e->dev, true) >= 0);
	ops->awake(e->dev);
	assert_int_equal(e->dev->polls, e->dev->polls_seen);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	assert_int_not_equal(e->dev->polls, e->dev->polls_seen);
	OK(ibv_req_notify_cq(e->cq, 0));
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	assert_int_equal(e->dev->polls, e->dev->polls_seen);
	close_two();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_sleeps_serves),
		cmocka_unit_test(who_sleeps_gives_way_to_pollers),
		cmocka_unit_test(who_is_about_to_sleep_is_no_poller),
		cmocka_unit_test(nobody_sleeps_through_a_message),
		cmocka_unit_test(nor_who_would_sleep),
		cmocka_unit_test(nor_beside_another_of_the_same_device),
		cmocka_unit_test(nor_over_tcp),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	unsetenv("DAPL_SOFT_CRC");
	unsetenv("DAPL_SOFT_DIRECT");
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
