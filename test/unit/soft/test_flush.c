/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_flush.c - in which order a flush revokes access and completes requests, and what it records as the cause. */
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/flush.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"
#include "test/unit/unit.h"

static struct soft_qp qp;
static struct dapl_conn conn;
static struct shm_segment segment;
static struct shm_conn rings = { .segment = &segment };
static char order[8];		/* of the calls below: revoke, cancel, end, wait */
static bool within_a_write;	/* the peer */

REPLACE(shm_grant_revoke, rndv_cancel, revoke_before_flush, soft_qp_end_flush)

static void note(char call)
{
	assert_int_equal(qp.state, IBV_QPS_ERR);	/* nothing is posted or sent meanwhile */
	order[strlen(order)] = call;
}

bool __wrap_shm_grant_revoke(struct dapl_conn *c)
{
	assert_ptr_equal(c, &conn);
	note('r');
	return !within_a_write;
}

void __wrap_rndv_cancel(struct dapl_conn *c)
{
	assert_ptr_equal(c, &conn);
	note('c');
}

void __wrap_revoke_before_flush(struct soft_qp *q, struct shm_access *access)
{
	assert_ptr_equal(q, &qp);
	assert_ptr_equal(access, &segment.access[conn.passive]);
	note('w');
}

void __wrap_soft_qp_end_flush(struct soft_qp *q)
{
	assert_ptr_equal(q, &qp);
	note('e');
}

UNIT_FIXTURE(set_up)
{
	memset(&qp, 0, sizeof qp);
	memset(&conn, 0, sizeof conn);
	memset(order, 0, sizeof order);
	dapl_mutex_init(&qp.lock, RANK_SOFT_QP);
	soft_qp_set_state(&qp, IBV_QPS_RTS);
	qp.conn = &conn;
	conn.shm = &rings;
	conn.state = SOFT_OPEN;
	within_a_write = false;
}

static void flush(uint32_t culprit, enum ibv_wc_status status)
{
	dapl_mutex_lock(&qp.lock);
	soft_flush_qp(&qp, culprit, status);
	dapl_mutex_unlock(&qp.lock);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, NULL)

CASE(access_ends_before_requests_complete)
{
	flush(7, IBV_WC_LOC_PROT_ERR);
	assert_string_equal(order, "rce");
	assert_int_equal(qp.flush_culprit, 7);
	assert_int_equal(qp.flush_status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(qp.qp.state, IBV_QPS_ERR);
}

CASE(queue_pair_without_a_connection_is_flushed)
{
	qp.conn = NULL;
	flush(7, IBV_WC_LOC_PROT_ERR);
	assert_string_equal(order, "e");
	assert_false(conn.caused);
}

CASE(failed_request_is_the_cause_of_the_end)
{
	flush(7, IBV_WC_LOC_PROT_ERR);
	assert_true(conn.caused);
	assert_int_equal(conn.cause.code_kind, DAPL_CODE_COMPLETION);
	assert_int_equal(conn.cause.code, IBV_WC_LOC_PROT_ERR);
	set_up(state);
	flush(0, IBV_WC_SUCCESS);	/* none of them failed */
	assert_false(conn.caused);
}

UNIT_MAIN(NULL, NULL)
