/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_evq.c - the event ring of an EVD: order, room, wrap-around, and a producer beside a
 * consumer. */
#include "dapl/core/event/evq.h"
#include "test/unit/unit.h"
#include <sched.h>

enum { SLOTS = 8, ROOM = 6 };

static DAT_EVENT slots[SLOTS];

/* An empty ring for ROOM events whose counters are at `count`. */
static struct dapl_evq ring_at(uint32_t count)
{
	memset(slots, 0, sizeof slots);
	return (struct dapl_evq){ .slot = slots, .size = ROOM, .mask = SLOTS - 1, .head = count,
				   .tail = count };
}

/* Events are recognised by this pointer. */
static bool put(struct dapl_evq *r, uintptr_t n)
{
	DAT_EVENT *event = evq_reserve(r);

	if (!event)
		return false;
	event->evd_handle = (DAT_EVD_HANDLE)n;
	event->event_number = (DAT_EVENT_NUMBER)n;
	evq_commit(r);
	return true;
}

static void take(struct dapl_evq *r, uintptr_t n)
{
	const DAT_EVENT *event = evq_peek(r);

	assert_non_null(event);
	assert_ptr_equal(event->evd_handle, (DAT_EVD_HANDLE)n);
	evq_drop(r);
}

UNIT_TEST(empty_ring_has_no_event)
{
	struct dapl_evq r = ring_at(0);

	assert_null(evq_peek(&r));
	assert_int_equal(evq_count(&r), 0);
}

UNIT_TEST(reserved_event_is_invisible_until_committed)
{
	struct dapl_evq r = ring_at(0);

	assert_non_null(evq_reserve(&r));
	assert_null(evq_peek(&r));
	assert_int_equal(evq_count(&r), 0);
	evq_commit(&r);
	assert_non_null(evq_peek(&r));
	assert_int_equal(evq_count(&r), 1);
}

/* The size is what the consumer asked for, not the number of slots. */
UNIT_TEST(full_ring_refuses_events_and_keeps_its_own)
{
	static const uint32_t starts[] = { 0, 5, UINT32_MAX - 2 };

	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		struct dapl_evq r = ring_at(starts[i]);

		for (uintptr_t n = 0; n < ROOM; n++)
			assert_true(put(&r, n));
		assert_false(put(&r, 99));
		assert_int_equal(evq_count(&r), ROOM);
		take(&r, 0);
		assert_true(put(&r, ROOM));
		assert_false(put(&r, 99));
		for (uintptr_t n = 1; n <= ROOM; n++)
			take(&r, n);
		assert_null(evq_peek(&r));
	}
}

UNIT_TEST(order_is_kept_over_many_wraps)
{
	struct dapl_evq r = ring_at(UINT32_MAX - 100);
	uintptr_t in = 0, out = 0;

	for (unsigned round = 0; round < 1000; round++) {
		for (unsigned n = round % (ROOM + 1); n && put(&r, in); n--)
			in++;
		for (unsigned n = round % 5; n && out < in; n--)
			take(&r, out++);
		assert_int_equal(evq_count(&r), in - out);
	}
	assert_true(out > 1000);
}

enum { EVENTS = 200000 };

static void *produce(void *ring)
{
	for (uintptr_t n = 0; n < EVENTS; n++)
		while (!put(ring, n))
			sched_yield();
	return NULL;
}

UNIT_TEST(concurrent_consumer_sees_whole_events_in_order)
{
	struct dapl_evq r = ring_at(UINT32_MAX - EVENTS / 2);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, produce, &r), 0);
	for (uintptr_t n = 0; n < EVENTS; n++) {
		const DAT_EVENT *event;

		while (!(event = evq_peek(&r)))
			sched_yield();
		assert_ptr_equal(event->evd_handle, (DAT_EVD_HANDLE)n);
		assert_int_equal(event->event_number, (DAT_EVENT_NUMBER)n);
		evq_drop(&r);
	}
	pthread_join(thread, NULL);
	assert_null(evq_peek(&r));
}

UNIT_MAIN(NULL, NULL)
