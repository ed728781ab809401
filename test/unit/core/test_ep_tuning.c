/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep_tuning.c - named attributes of an endpoint that set limits of its connection. */
#include "dapl/core/ep/ep_attr.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_conn_tuning tuning;

UNIT_FIXTURE(set_up)
{
	ia = core_ia_new();
	ia->attr.tunes = DAPL_TUNES_ACK | DAPL_TUNES_RNR | DAPL_TUNES_CLASS;
	memset(&tuning, 0, sizeof tuning);
}

UNIT_FIXTURE(tear_down) { core_ia_free(ia); }

static DAT_RETURN tune(const char *name, const char *value)
{
	DAT_NAMED_ATTR attr = { (char *)name, (char *)value };

	return dapl_ep_tune(ia, &attr, &tuning, BAD_PARAM(3));
}

/* Kept plus one: 0 is "not set". */
UNIT_CASE(each_name_sets_its_own_limit)
{
	assert_int_equal(tune("ack_timeout", "1"), DAT_SUCCESS);
	assert_int_equal(tune("ack_retry", "2"), DAT_SUCCESS);
	assert_int_equal(tune("rnr_timer", "3"), DAT_SUCCESS);
	assert_int_equal(tune("rnr_retry", "4"), DAT_SUCCESS);
	assert_int_equal(tune("traffic_class", "0"), DAT_SUCCESS);
	assert_int_equal(tuning.ack_timeout, 2);
	assert_int_equal(tuning.ack_retry, 3);
	assert_int_equal(tuning.rnr_timer, 4);
	assert_int_equal(tuning.rnr_retry, 5);
	assert_int_equal(tuning.traffic_class, 1);
}

UNIT_CASE(largest_value_is_taken_and_the_next_refused)
{
	static const struct {
		const char *name, *max, *more;
	} rows[] = { { "ack_timeout", "31", "32" }, { "ack_retry", "7", "8" }, { "rnr_timer", "31", "32" },
		{ "rnr_retry", "7", "8" }, { "traffic_class", "255", "256" } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(tune(rows[i].name, rows[i].max), DAT_SUCCESS);
		assert_int_equal(tune(rows[i].name, rows[i].more), BAD_PARAM(3));
	}
	assert_int_equal(tuning.traffic_class, 256);	/* the refused one has changed nothing */
}

UNIT_CASE(only_decimal_digits_are_a_number)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "0x1", "1.0", "0001", "one" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (tune("ack_retry", bad[i]) != BAD_PARAM(3))
			fail_msg("\"%s\" is taken", bad[i]);
	assert_int_equal(tune("ack_retry", NULL), BAD_PARAM(3));
	assert_int_equal(tuning.ack_retry, 0);
}

UNIT_CASE(device_must_know_the_limit)
{
	static const struct {
		const char *name;
		unsigned needs;
	} rows[] = { { "ack_timeout", DAPL_TUNES_ACK }, { "ack_retry", DAPL_TUNES_ACK },
		{ "rnr_timer", DAPL_TUNES_RNR }, { "rnr_retry", DAPL_TUNES_RNR },
		{ "traffic_class", DAPL_TUNES_CLASS } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		ia->attr.tunes = rows[i].needs;
		assert_int_equal(tune(rows[i].name, "1"), DAT_SUCCESS);
		ia->attr.tunes = ~rows[i].needs;
		assert_int_equal(tune(rows[i].name, "1"), NOT_SUPPORTED);
		assert_int_equal(tune(rows[i].name, "x"), BAD_PARAM(3));
	}
}

UNIT_MAIN(NULL, NULL)
