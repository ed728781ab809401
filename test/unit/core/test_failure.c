/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_failure.c - what an endpoint keeps of its last failure, and which failures are worth a line. */
#include "dapl/core/base/diag_limit.h"
#include "dapl/core/conn/failure.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

static struct dapl_diag said;		/* the last line */
static unsigned lines;
static struct dapl_conn *const conn = (struct dapl_conn *)&lines;

REPLACE(dapl_diag_say)
void __wrap_dapl_diag_say(const struct dapl_diag *diag)
{
	said = *diag;
	lines++;
}

static struct sockaddr_storage address(uint16_t port)
{
	struct sockaddr_storage storage = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&storage;

	*in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	return storage;
}

static unsigned port_of(const struct sockaddr_storage *storage)
{
	return ntohs(((const struct sockaddr_in *)storage)->sin_port);
}

UNIT_FIXTURE(set_up)
{
	core_endpoint_open(0, 0, 4);
	strcpy(ia->ia_attr.adapter_name, "ia0");
	lines = 0;
}

static void explain(struct dapl_conn *explained, struct dapl_conn_cause *cause)
{
	assert_ptr_equal(explained, conn);
	cause->err = ECONNRESET;
	cause->remote = address(9);
	cause->local = address(8);
}

static void explain_of(struct dapl_conn *of, struct dapl_conn_cause *cause)
{
	dapl_mutex_lock(&ep->lock);
	dapl_failure_explain(ep, of, cause);
	dapl_mutex_unlock(&ep->lock);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

TEST(device_comes_before_what_the_endpoint_knows)
{
	struct dapl_conn_cause cause;

	core_device.explain = explain;
	ep->remote = address(1);
	ep->local = address(2);
	explain_of(conn, &cause);
	assert_int_equal(cause.err, ECONNRESET);
	assert_int_equal(port_of(&cause.remote), 9);
	assert_int_equal(port_of(&cause.local), 8);
}

TEST(endpoint_knows_addresses_without_a_connection)
{
	struct dapl_conn_cause cause;

	ep->remote = address(1);
	ia->attr.address = address(3);
	explain_of(NULL, &cause);
	assert_int_equal(cause.err, 0);
	assert_int_equal(port_of(&cause.remote), 1);
	assert_int_equal(port_of(&cause.local), 3);	/* the IA's, while it has none of its own */
	ep->local = address(2);
	explain_of(NULL, &cause);
	assert_int_equal(port_of(&cause.local), 2);
}

TEST(step_follows_from_the_state)
{
	struct dapl_conn_cause cause;

	explain_of(NULL, &cause);
	assert_int_equal(cause.step, DAPL_STEP_TRANSFER);
	ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	explain_of(NULL, &cause);
	assert_int_equal(cause.step, DAPL_STEP_CONNECT);
}

TEST(first_cause_stays)
{
	struct dapl_conn_cause causes[] = { { .err = EPIPE }, { .text = "the device says" },
		{ .code_kind = DAPL_CODE_MPA } };
	struct dapl_conn_cause unknown = { 0 };

	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
		struct dapl_conn_cause before = causes[i];

		dapl_failure_code(&causes[i], DAPL_CODE_COMPLETION, 12, "core says");
		dapl_failure_time_limit(&causes[i]);
		assert_memory_equal(&causes[i], &before, sizeof before);
	}
	dapl_failure_code(&unknown, DAPL_CODE_COMPLETION, 12, "core says");
	assert_int_equal(unknown.code, 12);
	assert_int_equal(unknown.code_kind, DAPL_CODE_COMPLETION);
	unknown = (struct dapl_conn_cause){ 0 };
	dapl_failure_time_limit(&unknown);
	assert_int_equal(unknown.err, ETIMEDOUT);
}

static void report(DAT_EP_STATE before, DAT_EVENT_NUMBER event)
{
	static const struct dapl_conn_cause cause = { .err = ECONNREFUSED };

	dapl_mutex_lock(&ep->lock);
	dapl_failure_report(ep, before, event, &cause);
	dapl_mutex_unlock(&ep->lock);
}

TEST(state_before_says_what_failed)
{
	static const struct {
		DAT_EP_STATE before;
		enum dapl_diag_what what;
	} rows[] = { { DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DIAG_CONNECT },
		{ DAT_EP_STATE_COMPLETION_PENDING, DIAG_ACCEPT }, { DAT_EP_STATE_CONNECTED, DIAG_CONNECTION } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		report(rows[i].before, DAT_CONNECTION_EVENT_BROKEN);
		assert_int_equal(said.what, rows[i].what);
		assert_ptr_equal(said.ep, ep);
		assert_string_equal(said.ia, "ia0");
		assert_string_equal(said.result, "DAT_CONNECTION_EVENT_BROKEN");
	}
	assert_int_equal(lines, 3);
}

TEST(last_error_is_what_was_kept)
{
	struct dapl_conn_cause cause = { .step = DAPL_STEP_REPLY, .err = EIO, .code_kind = DAPL_CODE_MPA,
		.code = 0x20, .local = address(2), .remote = address(1) };
	DAT_LAST_ERROR error;

	memset(&error, 0xff, sizeof error);
	assert_int_equal(dapl_failure_get(ep, &error, sizeof error), DAT_SUCCESS);
	assert_int_equal(error.event, 0);
	assert_string_equal(error.text, "");
	dapl_mutex_lock(&ep->lock);
	dapl_failure_report(ep, DAT_EP_STATE_CONNECTED, DAT_CONNECTION_EVENT_BROKEN, &cause);
	dapl_mutex_unlock(&ep->lock);
	assert_int_equal(dapl_failure_get(ep, &error, sizeof error), DAT_SUCCESS);
	assert_int_equal(error.event, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(error.step, DAT_DIAG_STEP_REPLY);
	assert_int_equal(error.error, EIO);
	assert_int_equal(error.code_kind, DAT_DIAG_CODE_MPA);
	assert_int_equal(error.code, 0x20);
	assert_int_equal(port_of(&error.local), 2);
	assert_int_equal(port_of(&error.remote), 1);
	assert_non_null(strstr(error.text, "input/output error"));
}

/* A program may be built with an older, shorter structure, or with a longer one. */
TEST(callers_structure_is_not_exceeded)
{
	struct {
		DAT_LAST_ERROR error;
		char after;
	} room;

	report(DAT_EP_STATE_CONNECTED, DAT_CONNECTION_EVENT_BROKEN);
	memset(&room, '#', sizeof room);
	assert_int_equal(dapl_failure_get(ep, &room.error, offsetof(DAT_LAST_ERROR, step)), DAT_SUCCESS);
	assert_int_equal(room.error.event, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(*(char *)&room.error.step, '#');
	assert_int_equal(dapl_failure_get(ep, &room.error, sizeof room), DAT_SUCCESS);
	assert_int_equal(room.after, '#');
	assert_int_equal(dapl_failure_get(ep, NULL, sizeof room), BAD_PARAM(2));
	assert_int_equal(dapl_failure_get(ep, &room.error, 0), BAD_PARAM(2));
	assert_int_equal(dapl_failure_get(ep, &room.error, -1), BAD_PARAM(2));
}

UNIT_MAIN(NULL, NULL)
