/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_offers.c - offers to share memory: each is taken once, by its key, and keeps what its taker left until it
 * ends. The devices and their processes are real, no peer is. */
#include <errno.h>
#include "dapl/core/base/settings.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/shm_segment.h"
#include "test/unit/child.h"
#include "test/unit/soft/ends.h"

static struct dapl_device *devices[2];
static struct dapl_conn conn;		/* that offers */
static struct attach_offer *offer;	/* of devices[0] */
static uint64_t key;

static unsigned references(void)
{
	return devices[0]->process->refs;
}

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

static int close_devices(void **state)
{
	(void)state;
	ops->close(devices[0]);
	ops->close(devices[1]);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	offer = offer_new(devices[0], &conn, &key);
	return offer ? 0 : -1;
}

/* No test leaves a reference. */
static int tear_down(void **state)
{
	(void)state;
	if (offer)
		assert_null(attach_offer_end(offer));
	assert_int_equal(references(), 1);
	return 0;
}

static struct shm_segment *new_segment(void)
{
	shm_process_get(devices[0]->process);
	shm_process_get(devices[0]->process);
	return shm_segment_new(-1, devices[0]->process, devices[0]->process);
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

	assert_ptr_equal(process, devices[0]->process);
	assert_ptr_equal(told, offering);
	shm_process_put(process);
}

static void expect_not_taken(uint64_t by_key)
{
	struct dapl_conn *told = NULL;

	assert_null(offer_take(by_key, devices[0], &told));
	assert_null(told);
}

static void offer_is_taken_once(void **state)
{
	(void)state;
	expect_taken(key, NULL, NULL);
	expect_not_taken(key);
}

static void other_keys_take_nothing(void **state)
{
	(void)state;
	expect_not_taken(key ^ 1 << 5);
	expect_not_taken(0);
	expect_taken(key, NULL, NULL);
}

/* In the Reply, key 0 means that there is no offer. */
static void keys_differ_and_are_never_0(void **state)
{
	uint64_t keys[64];
	struct attach_offer *more[64];

	(void)state;
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

static void connection_is_told_to_its_own_device_only(void **state)
{
	(void)state;
	expect_taken(key, devices[1], NULL);
	end_it(NULL);
	offer = offer_new(devices[0], &conn, &key);
	expect_taken(key, devices[0], &conn);
}

static void offer_that_has_ended_is_not_taken(void **state)
{
	(void)state;
	end_it(NULL);
	expect_not_taken(key);
}

static void offer_holds_its_process(void **state)
{
	(void)state;
	assert_int_equal(references(), 2);
	end_it(NULL);
	assert_int_equal(references(), 1);
}

static void end_returns_the_segment_that_was_given(void **state)
{
	struct shm_segment *segment = new_segment();

	(void)state;
	assert_non_null(segment);
	expect_taken(key, NULL, NULL);
	offer_give(key, segment);
	assert_int_equal(segment->refs, 2);
	end_it(segment);
	assert_int_equal(segment->refs, 1);
	shm_segment_put(segment);
}

/* The taker keeps its own reference only. */
static void nothing_is_given_to_an_offer_that_has_ended(void **state)
{
	struct shm_segment *segment = new_segment();

	(void)state;
	expect_taken(key, NULL, NULL);
	end_it(NULL);
	offer_give(key, segment);
	assert_int_equal(segment->refs, 1);
	shm_segment_put(segment);
}

static void refusal_is_told_with_the_process(void **state)
{
	uint64_t peer = 1;

	(void)state;
	assert_int_equal(attach_offer_error(offer, &peer), 0);
	expect_taken(key, NULL, NULL);
	offer_refuse(key ^ 1 << 5, 77, ENOMEM);
	assert_int_equal(attach_offer_error(offer, &peer), 0);
	assert_int_equal(peer, 0);
	offer_refuse(key, 88, EMFILE);
	assert_int_equal(attach_offer_error(offer, &peer), EMFILE);
	assert_int_equal(peer, 88);
}

static void no_offer_has_no_error_and_no_segment(void **state)
{
	uint64_t peer = 5;

	(void)state;
	assert_int_equal(attach_offer_error(NULL, &peer), 0);
	assert_null(attach_offer_end(NULL));
}

static void child_has_no_offers(void **state)
{
	struct dapl_conn *told = NULL;
	pid_t child;

	(void)state;
	child = fork_child();	/* core's handlers call those of this table */
	if (!child)
		_exit(offer_take(key, NULL, &told) != NULL);
	expect_success(child);
	expect_taken(key, NULL, NULL);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(offer_is_taken_once),
		T(other_keys_take_nothing),
		T(keys_differ_and_are_never_0),
		T(connection_is_told_to_its_own_device_only),
		T(offer_that_has_ended_is_not_taken),
		T(offer_holds_its_process),
		T(end_returns_the_segment_that_was_given),
		T(nothing_is_given_to_an_offer_that_has_ended),
		T(refusal_is_told_with_the_process),
		T(no_offer_has_no_error_and_no_segment),
		T(child_has_no_offers),
	};

	alarm(20);
	return cmocka_run_group_tests(tests, open_devices, close_devices);
}
