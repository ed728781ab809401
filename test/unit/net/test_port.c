/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_port.c - which service points dat_net_port() leaves when an IA refuses, and when it stops looking for a
 * number. The service points are the test's; test/life/net_port.c is about real ones. */
#include <dat/dat_net_port.h>
#include "test/unit/unit.h"

enum { IAS = 3, TRIES = 64, FIRST = 1000, POINTS = 256 };

#define IN_USE (DAT_CLASS_ERROR | DAT_CONN_QUAL_IN_USE)
#define NO_ROOM (DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES)

/* An IA refuses numbers below `lowest`, with `error`. */
static struct ia {
	DAT_CONN_QUAL lowest;
	DAT_RETURN error;
} ias[IAS];
static struct point {
	struct ia *ia;
	DAT_CONN_QUAL qual;
	DAT_EVD_HANDLE evd;
	DAT_PSP_FLAGS flags;
	int frees;
} points[POINTS];
static size_t made;
static DAT_CONN_QUAL next;		/* number that dat_psp_create_any() gives */

static const DAT_IA_HANDLE ia_handles[IAS] = { &ias[0], &ias[1], &ias[2] };
static char evds[IAS];
static const DAT_EVD_HANDLE evd_handles[IAS] = { &evds[0], &evds[1], &evds[2] };
static const struct dat_net_port_list list = { ia_handles, evd_handles, IAS };
static DAT_PSP_HANDLE psps[IAS];
static DAT_COUNT failed;

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
			  DAT_PSP_HANDLE *psp)
{
	struct ia *at = ia;

	if (qual < at->lowest)
		return at->error;
	assert_true(made < POINTS);
	points[made] = (struct point){ at, qual, evd, flags, 0 };
	*psp = &points[made++];
	return DAT_SUCCESS;
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
			      DAT_PSP_HANDLE *psp)
{
	DAT_RETURN ret = dat_psp_create(ia, next, evd, flags, psp);

	if (ret == DAT_SUCCESS)
		*qual = next++;
	return ret;
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp)
{
	((struct point *)psp)->frees++;
	return DAT_SUCCESS;
}

UNIT_FIXTURE(set_up)
{
	memset(ias, 0, sizeof ias);
	memset(points, 0, sizeof points);
	memset(psps, 0, sizeof psps);
	made = 0;
	next = FIRST;
	failed = -1;
}

static void assert_frees(size_t from, size_t to, int frees)
{
	for (size_t i = from; i < to; i++)
		assert_int_equal(points[i].frees, frees);
}

/* psps[] are points with this number, one on each IA, and only they are left. */
static void assert_on_all(DAT_CONN_QUAL qual)
{
	for (int i = 0; i < IAS; i++) {
		struct point *point = psps[i];

		assert_ptr_equal(point->ia, &ias[i]);
		assert_ptr_equal(point->evd, &evds[i]);
		assert_int_equal(point->qual, qual);
		assert_int_equal(point->flags, DAT_PSP_PROVIDER_FLAG);
		assert_int_equal(point->frees, 0);
		point->frees = 1;
	}
	assert_frees(0, made, 1);
}

static DAT_RETURN port(DAT_CONN_QUAL *qual) { return dat_net_port(&list, DAT_PSP_PROVIDER_FLAG, qual, psps, &failed); }

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(given_number_is_on_all)
{
	DAT_CONN_QUAL qual = 7;

	assert_int_equal(port(&qual), DAT_SUCCESS);
	assert_int_equal(qual, 7);
	assert_on_all(7);
}

TEST(refusal_undoes_the_points_before_it)
{
	for (int i = 0; i < IAS; i++) {
		DAT_CONN_QUAL qual = 7;

		set_up(NULL);
		ias[i] = (struct ia){ 8, i ? NO_ROOM : IN_USE };
		assert_int_equal(port(&qual), i ? NO_ROOM : IN_USE);
		assert_int_equal(failed, i);
		assert_int_equal(made, i);
		assert_frees(0, made, 1);
	}
}

/* The number of the last try is the last that can be found. */
TEST(numbers_are_tried_up_to_the_limit)
{
	DAT_CONN_QUAL qual = 0;

	ias[2] = (struct ia){ FIRST + TRIES - 1, IN_USE };
	assert_int_equal(port(&qual), DAT_SUCCESS);
	assert_int_equal(qual, FIRST + TRIES - 1);
	assert_on_all(FIRST + TRIES - 1);
}

TEST(tries_beyond_the_limit_leave_none)
{
	DAT_CONN_QUAL qual = 0;

	ias[2] = (struct ia){ FIRST + TRIES, IN_USE };
	assert_int_equal(port(&qual), IN_USE);
	assert_int_equal(qual, 0);
	assert_int_equal(failed, 2);
	assert_int_equal(next, FIRST + TRIES);
	assert_frees(0, made, 1);
}

TEST(other_errors_end_the_search)
{
	for (int i = 0; i < IAS; i++) {
		DAT_CONN_QUAL qual = 0;

		set_up(NULL);
		ias[i] = (struct ia){ FIRST + 1, NO_ROOM };
		assert_int_equal(port(&qual), NO_ROOM);
		assert_int_equal(qual, 0);
		assert_int_equal(failed, i);
		assert_int_equal(made, i);
		assert_frees(0, made, 1);
	}
}

TEST(index_of_the_refusing_ia_is_optional)
{
	DAT_CONN_QUAL qual = 7;

	ias[1] = (struct ia){ 8, IN_USE };
	assert_int_equal(dat_net_port(&list, DAT_PSP_PROVIDER_FLAG, &qual, psps, NULL), IN_USE);
	assert_frees(0, made, 1);
}

UNIT_MAIN(NULL, NULL)
