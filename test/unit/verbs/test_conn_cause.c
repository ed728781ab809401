/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn_cause.c - what an event of the connection manager says of a failure, and that the first
 * cause stays. */
#include "dapl/verbs/conn_cause.h"
#include "test/unit/unit.h"

static const struct {
	const char *what;
	enum rdma_cm_event_type event;
	int status;
	enum hw_wire wire;
	bool ud;
	int err;
	enum dapl_code_kind kind;
	unsigned code;
	bool text;
} cases[] = {
	{ "TCP was refused", RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, HW_WIRE_IWARP, false,
	  ECONNREFUSED, DAPL_CODE_CM_STATUS, (unsigned)-ECONNREFUSED, false },
	{ "an errno of InfiniBand's CM", RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, HW_WIRE_IB, false,
	  ETIMEDOUT, DAPL_CODE_CM_STATUS, (unsigned)-ETIMEDOUT, true },
	{ "SIDR status", RDMA_CM_EVENT_UNREACHABLE, 1, HW_WIRE_UD, true, 0, DAPL_CODE_SIDR, 1,
	  false },
	{ "InfiniBand REJ", RDMA_CM_EVENT_REJECTED, 8, HW_WIRE_IB, false, 0, DAPL_CODE_IB_REJECT, 8,
	  false },
	{ "another status", RDMA_CM_EVENT_CONNECT_ERROR, 3, HW_WIRE_IB, false, 0,
	  DAPL_CODE_CM_STATUS, 3, true },
	{ "no status", RDMA_CM_EVENT_DEVICE_REMOVAL, 0, HW_WIRE_IB, false, 0, DAPL_CODE_NONE, 0,
	  true },
};

UNIT_TEST(each_status_becomes_its_cause)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct dapl_conn conn = { .lock = DAPL_MUTEX_INIT(RANK_VERBS_CONN),
			.state = CONN_CONNECTING, .wire = cases[i].wire, .ud = cases[i].ud };
		struct rdma_cm_event event = { .event = cases[i].event, .status = cases[i].status };

		dapl_mutex_lock(&conn.lock);
		hw_caused_by_event(&conn, &event);
		dapl_mutex_unlock(&conn.lock);
		if (!conn.caused || conn.cause.err != cases[i].err ||
		    conn.cause.code_kind != cases[i].kind || conn.cause.code != cases[i].code ||
		    (conn.cause.text != NULL) != cases[i].text ||
		    conn.cause.step != DAPL_STEP_CONNECT)
			fail_msg("%s: errno %d, kind %d, code %u, %s, step %d", cases[i].what,
				 conn.cause.err, conn.cause.code_kind, conn.cause.code,
				 conn.cause.text ? conn.cause.text : "no text", conn.cause.step);
	}
}

UNIT_TEST(the_first_cause_stays)
{
	struct dapl_conn conn = { .lock = DAPL_MUTEX_INIT(RANK_VERBS_CONN), .state = CONN_ESTABLISHED };

	dapl_mutex_lock(&conn.lock);
	hw_caused_by_errno(&conn, ECONNRESET);
	hw_caused_in(&conn, DAPL_STEP_ACCEPT, ETIMEDOUT, DAPL_CODE_NONE, 0, "later");
	dapl_mutex_unlock(&conn.lock);
	assert_int_equal(conn.cause.err, ECONNRESET);
	assert_int_equal(conn.cause.step, DAPL_STEP_TRANSFER);
	assert_null(conn.cause.text);
}

UNIT_MAIN(NULL, NULL)
