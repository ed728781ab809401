/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cq.c - completion queues alone: the order of completions, room, notification, and
 * resizing. Progress is replaced by a script of the test, which runs during a poll. */
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/verbs/post.h"
#include "test/unit/unit.h"

static struct dapl_device dev;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq, *other;
static void (*script)(void);		/* runs in the next call of soft_progress_poll() */

REPLACE(soft_progress_poll)
bool __wrap_soft_progress_poll(const struct soft_cq *polled)
{
	void (*now)(void) = script;

	assert_ptr_equal(polled->dev, &dev);
	script = NULL;
	if (now)
		now();
	return now != NULL;
}

static int fresh(void **state)
{
	script = NULL;
	dapl_mutex_init(&dev.async.lock, RANK_SOFT_EVENTS);
	TAILQ_INIT(&dev.async.list);
	return soft_cq_channel_create(&dev, &channel) || soft_cq_create(&dev, 16, NULL, channel, &cq) ||
	       soft_cq_create(&dev, 16, NULL, NULL, &other);
}

static int gone(void **state)
{
	assert_true(TAILQ_EMPTY(&dev.async.list));
	return soft_cq_destroy(cq) || soft_cq_destroy(other) || soft_cq_channel_destroy(channel);
}

static void add(struct ibv_cq *to, uint64_t id)
{
	struct ibv_wc wc = { .wr_id = id };

	soft_cq_add((struct soft_cq *)to, &wc, false);
}

static void adds_1_to_6(void)
{
	for (uint64_t id = 1; id <= 6; id++)
		add(cq, id);
}

static void *adds_7(void *arg)
{
	add(cq, 7);
	return NULL;
}

/* Adds completions as another thread does that posts to a queue before the polling thread gets
 * its lock. */
static void adds_7_elsewhere_then_8_and_9(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, adds_7, NULL), 0);
	pthread_join(thread, NULL);
	add(cq, 8);
	add(cq, 9);
}

static void adds_5_then_to_the_other(void)
{
	add(cq, 5);
	add(other, 6);
}

/* Polls once for at most `entries` completions, and expects exactly [first, last]. */
static void expect(struct ibv_cq *from, int entries, uint64_t first, uint64_t last)
{
	struct ibv_wc wc[32];
	int n = soft_cq_poll(from, entries, wc);

	assert_int_equal(n, last - first + 1);
	for (int i = 0; i < n; i++)
		assert_int_equal(wc[i].wr_id, first + i);
}

#define T(name) UNIT_TEST_WITH(name, fresh, gone)

T(a_poll_returns_the_completions_it_caused)
{
	script = adds_1_to_6;
	expect(cq, 8, 1, 6);
	expect(cq, 8, 1, 0);
}

T(completions_beyond_the_room_are_polled_next)
{
	script = adds_1_to_6;
	expect(cq, 4, 1, 4);
	script = adds_5_then_to_the_other;	/* does not run before the ring is empty */
	expect(cq, 8, 5, 6);
	assert_ptr_equal(script, adds_5_then_to_the_other);
}

T(completions_of_other_threads_keep_their_order)
{
	script = adds_7_elsewhere_then_8_and_9;
	expect(cq, 8, 7, 9);
	expect(cq, 8, 1, 0);
}

T(each_cq_gets_its_own_completions)
{
	script = adds_5_then_to_the_other;
	expect(cq, 8, 5, 5);
	expect(other, 8, 6, 6);
}

/* A thread that armed the CQ is notified while another thread polls. */
T(an_armed_cq_notifies_during_a_poll)
{
	struct ibv_cq *ack = NULL;

	assert_int_equal(soft_cq_arm(cq, 0), 0);
	script = adds_1_to_6;
	expect(cq, 8, 1, 6);
	assert_int_equal(soft_cq_channel_get(channel, &ack), 0);
	assert_ptr_equal(ack, cq);
	assert_int_equal(soft_cq_channel_get(channel, &ack), EAGAIN);
}

/* The counters of the CQ may have any value. */
T(resizing_keeps_the_order)
{
	static const int sizes[] = { 16, 64, 16, 256, 32 };
	uint64_t first = 0, last = 0;

	for (unsigned i = 0; i < 100; i++) {
		while (last - first < 11)
			add(cq, last++);
		assert_int_equal(soft_cq_resize(cq, sizes[i % 5]), 0);
		expect(cq, 7, first, first + 6);
		first += 7;
	}
	add(cq, last++);
	while (last - first < 17)
		assert_int_equal(soft_cq_resize(cq, 64), 0), add(cq, last++);
	assert_int_equal(soft_cq_resize(cq, 16), EINVAL);	/* it holds 17 */
	expect(cq, 32, first, last - 1);
}

T(resizing_has_limits)
{
	add(cq, 1);
	assert_int_equal(soft_cq_resize(cq, 0), EINVAL);
	assert_int_equal(soft_cq_resize(cq, SOFT_MAX_CQE + 1), EINVAL);
	assert_int_equal(soft_cq_resize(cq, SOFT_MAX_CQE), 0);
	expect(cq, 2, 1, 1);
}

UNIT_MAIN(NULL, NULL)
