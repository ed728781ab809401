/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_offers.c - offers to share memory: each is taken once, by its key, and keeps what its taker left until it
 * ends. The devices and their processes are real, no peer is. */
#include "dapl/core/base/settings.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/shm_segment.h"
#include "test/unit/child.h"
#include "test/unit/soft/ends.h"
#include "test/unit/unit.h"

static struct dapl_device *devices[2];
static struct dapl_conn conn;		/* that offers */
static struct attach_offer *offer;	/* of devices[0] */
static uint64_t key;

static unsigned references(void) { return devices[0]->shm.process->refs; }

static int open_devices(void **state)
{
	use_shared_memory(state);
	dapl_settings_read();
	for (int i = 0; i < 2; i++) {
		OK(ops->open("lo 0", &devices[i], &devices[i]));
		soft_progress_lock(devices[i]);
		if (!shm_process_own(devices[i]))
			return -1;
		soft_progress_unlock(devices[i]);
	}
	return 0;
}

UNIT_FIXTURE(close_devices)
{
	ops->close(devices[0]);
	ops->close(devices[1]);
}

static int set_up(void **state)
{
	offer = offer_new(devices[0], &conn, &key);
	return offer ? 0 : -1;
}

/* No test leaves a reference. */
UNIT_FIXTURE(tear_down)
{
	if (offer)
		assert_null(attach_offer_end(offer));
	assert_int_equal(references(), 1);
}

static struct shm_segment *new_segment(void)
{
	shm_process_get(devices[0]->shm.process);
	shm_process_get(devices[0]->shm.process);
	return shm_segment_new(-1, devices[0]->shm.process, devices[0]->shm.process);
}

static void end_it(struct shm_segment *expected)
{
	struct shm_segment *segment = attach_offer_end(offer);

	offer = NULL;
	assert_ptr_equal(segment, expected);
	shm_segment_put(segment);
}

/* The caller has a reference to the process. */
static void expect_taken(uint64_t by_key, const struct dapl_device *dev, struct dapl_conn *offering)
{
	struct dapl_conn *told = NULL;
	struct shm_process *process = offer_take(by_key, dev, &told);

	assert_ptr_equal(process, devices[0]->shm.process);
	assert_ptr_equal(told, offering);
	shm_process_put(process);
}

static void expect_not_taken(uint64_t by_key)
{
	struct dapl_conn *told = NULL;

	assert_null(offer_take(by_key, devices[0], &told));
	assert_null(told);
}

UNIT_CASE(offer_is_taken_once)
{
	expect_taken(key, NULL, NULL);
	expect_not_taken(key);
}

UNIT_CASE(other_keys_take_nothing)
{
	expect_not_taken(key ^ 1 << 5);
	expect_not_taken(0);
	expect_taken(key, NULL, NULL);
}

/* In the Reply, key 0 means that there is no offer. */
UNIT_CASE(keys_differ_and_are_never_0)
{
	uint64_t keys[64];
	struct attach_offer *more[64];

	for (int i = 0; i < 64; i++) {
		more[i] = offer_new(devices[0], &conn, &keys[i]);
		assert_non_null(more[i]);
		assert_true(keys[i] & 1);
		assert_true(keys[i] != (i ? keys[i - 1] : key));
	}
	expect_taken(keys[30], NULL, NULL);
	expect_taken(key, NULL, NULL);
	for (int i = 0; i < 64; i++)
		assert_null(attach_offer_end(more[i]));
}

UNIT_CASE(offer_that_has_ended_is_not_taken)
{
	end_it(NULL);
	expect_not_taken(key);
}

UNIT_CASE(offer_holds_its_process)
{
	assert_int_equal(references(), 2);
	end_it(NULL);
	assert_int_equal(references(), 1);
}

UNIT_CASE(end_returns_the_segment_that_was_given)
{
	struct shm_segment *segment = new_segment();

	assert_non_null(segment);
	expect_taken(key, NULL, NULL);
	offer_give(key, segment);
	assert_int_equal(segment->refs, 2);
	end_it(segment);
	assert_int_equal(segment->refs, 1);
	shm_segment_put(segment);
}

/* The taker keeps its own reference only. */
UNIT_CASE(nothing_is_given_to_an_offer_that_has_ended)
{
	struct shm_segment *segment = new_segment();

	expect_taken(key, NULL, NULL);
	end_it(NULL);
	offer_give(key, segment);
	assert_int_equal(segment->refs, 1);
	shm_segment_put(segment);
}

UNIT_CASE(refusal_is_told_with_the_process)
{
	uint64_t peer = 1;

	assert_int_equal(attach_offer_error(offer, &peer), 0);
	expect_taken(key, NULL, NULL);
	offer_refuse(key ^ 1 << 5, 77, ENOMEM);
	assert_int_equal(attach_offer_error(offer, &peer), 0);
	assert_int_equal(peer, 0);
	offer_refuse(key, 88, EMFILE);
	assert_int_equal(attach_offer_error(offer, &peer), EMFILE);
	assert_int_equal(peer, 88);
}

UNIT_CASE(no_offer_has_no_error_and_no_segment)
{
	uint64_t peer = 5;

	assert_int_equal(attach_offer_error(NULL, &peer), 0);
	assert_null(attach_offer_end(NULL));
}

UNIT_MAIN(open_devices, close_devices)
