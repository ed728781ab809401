/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cause.c - causes, steps and addresses in words. The whole line is test_diag's. */
#include "dapl/core/base/cause.h"
#include "test/unit/unit.h"

static const char *reason(struct dapl_conn_cause cause)
{
	static char text[DIAG_TEXT];

	return dapl_cause_reason(&cause, text);
}

UNIT_TEST(codes_of_each_transport_have_names)
{
	static const struct { enum dapl_code_kind kind; unsigned code; const char *text; } rows[] = {
		{ DAPL_CODE_IB_REJECT, 1, "rejected: no queue pair (1)" },
		{ DAPL_CODE_IB_REJECT, 28, "rejected: rejected by the peer's program (28)" },
		{ DAPL_CODE_IB_REJECT, 30, "rejected: code (30)" },
		{ DAPL_CODE_IB_REJECT, 0, "rejected: code (0)" },
		{ DAPL_CODE_SIDR, 1, "rejected: service ID not supported (1)" },
		{ DAPL_CODE_SIDR, 6, "rejected: code (6)" },
		{ DAPL_CODE_CM_STATUS, (unsigned)-5, "CM status -5" },
		{ DAPL_CODE_TERMINATE_SENT, 0x1202, "Terminate sent: no receive is posted (1/2/2)" },
		{ DAPL_CODE_TERMINATE_RECEIVED, 0x02ff, "Terminate received: unspecified error (0/2/255)" },
		{ DAPL_CODE_TERMINATE_RECEIVED, 0x2f09, "Terminate received: code (2/15/9)" },
		{ DAPL_CODE_COMPLETION, IBV_WC_RETRY_EXC_ERR, "transport retries exhausted (12)" },
		{ DAPL_CODE_COMPLETION, 99, "code (99)" },
		{ DAPL_CODE_ASYNC, IBV_EVENT_QP_FATAL, "the queue pair failed (1)" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(reason((struct dapl_conn_cause){ .code_kind = rows[i].kind,
			.code = rows[i].code }), rows[i].text);
}

UNIT_TEST(text_errno_and_code_stand_in_this_order)
{
	struct dapl_conn_cause cause = { .text = "the answer is bad", .err = EPROTO,
		.code_kind = DAPL_CODE_SIDR, .code = 5 };

	assert_string_equal(reason(cause), "the answer is bad: protocol error: rejected: unsupported version (5)");
	cause.err = 0;
	assert_string_equal(reason(cause), "the answer is bad: rejected: unsupported version (5)");
	cause.code_kind = DAPL_CODE_NONE;
	assert_string_equal(reason(cause), "the answer is bad");
	cause.text = NULL;
	assert_string_equal(reason(cause), "unknown cause");
}

UNIT_TEST(codes_that_say_no_more_are_left_out)
{
	assert_string_equal(reason((struct dapl_conn_cause){ .err = ECONNREFUSED,
		.code_kind = DAPL_CODE_CM_STATUS, .code = 111 }), "connection refused");
	assert_string_equal(reason((struct dapl_conn_cause){ .err = ECONNREFUSED,
		.code_kind = DAPL_CODE_MPA, .code = 0x20 }), "connection refused");
}

/* "RFS specific error" would be the wrong word with a small first letter. */
UNIT_TEST(acronyms_keep_their_capitals)
{
	assert_string_equal(reason((struct dapl_conn_cause){ .err = ENOMEM }), "cannot allocate memory");
	assert_string_equal(reason((struct dapl_conn_cause){ .err = EADV }), "advertise error");
	assert_string_equal(reason((struct dapl_conn_cause){ .err = EDOTDOT }), "RFS specific error");
}

UNIT_TEST(every_step_has_a_name)
{
	for (int step = 0; step < DAPL_STEPS; step++) {
		const char *name = dapl_cause_step((enum dapl_conn_step)step);

		assert_true(name && *name && *name != '?');
	}
	assert_string_equal(dapl_cause_step(DAPL_STEP_READY), "ready to use");
	assert_string_equal(dapl_cause_step(DAPL_STEPS), "?");
}

UNIT_MAIN(NULL, NULL)
