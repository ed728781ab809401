/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_control_verbs.c - what the control socket tells of a program, what it changes, and why it refuses: each verb,
 * called as the socket calls it (ia/control_*.c). doc/design/control.md has the members. */
#include <dat/dat_trace.h>
#include "common/control.h"
#include "common/trace.h"
#include "dapl/core/base/control.h"
#include "dapl/core/base/registry.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/event/async.h"
#include "dapl/core/ia/control_verbs.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

static dapl_control_verb *const *verbs;
static unsigned verb_count;
static char answer[1 << 16];		/* of the last request */
static bool foreign_registry;		/* it has no function of this project's */
static DAT_RETURN reread_result;
static unsigned registry_level;

REPLACE(dapl_control_serve)
void __wrap_dapl_control_serve(dapl_control_verb *const *table, unsigned count)
{
	verbs = table;
	verb_count = count;
}

static DAT_RETURN reread(DAT_COUNT *entries)
{
	*entries = 12;
	return reread_result;
}

static DAT_RETURN modify_level(DAT_TRC_COMPONENT component, DAT_UINT32 level)
{
	assert_int_equal(component, DAT_TRC_DAT);
	registry_level = level;
	return DAT_SUCCESS;
}

REPLACE(dapl_registry_function)
void *__wrap_dapl_registry_function(const char *name)
{
	static DAT_RETURN (*const rereads)(DAT_COUNT *) = reread;
	static const DAT_TRCLVL_MODIFY_FUNC modifies = modify_level;

	if (foreign_registry)
		return NULL;
	if (!strcmp(name, "dats_reread"))
		return *(void *const *)&rereads;
	assert_string_equal(name, "dat_trclvl_modify");
	return *(void *const *)&modifies;
}

UNIT_FIXTURE(set_up)
{
	struct sockaddr_in *address;

	dapl_control_verbs_init();
	dapl_settings_read();
	foreign_registry = false;
	reread_result = DAT_SUCCESS;
	registry_level = 99;
	core_endpoint_open(16, DAT_EVD_DTO_FLAG, 16);
	strcpy(ia->ia_attr.adapter_name, "ofa-v2-test");
	strcpy(ia->attr.device, "rxe7");
	strcpy(ia->attr.netdev, "eth7");
	ia->attr.port = 2;
	address = (struct sockaddr_in *)&ia->attr.address;
	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(0x0a000001) } };
	dapl_async_join(ia);
}

/* No verb has left an object entered. */
static int tear_down(void **state)
{
	assert_int_equal(ia->obj.calls + ep->obj.calls + evd->obj.calls, 0);
	dapl_async_leave(ia);
	return core_endpoint_close(state);
}

/* Runs a verb as the socket does. Returns NULL, or why it failed. */
static const char *ask(int verb, const char *text)
{
	static char why[256];
	struct json_writer json = { .text = NULL };
	struct json_object request;
	const char *failed;
	size_t at = 0;

	assert_null(json_read(text, strlen(text), &request, &at));
	assert_true((unsigned)verb < verb_count && verbs[verb]);
	json_write_open(&json, NULL, '{');
	failed = verbs[verb](&request, &json, why, sizeof why);
	json_write_close(&json, '}');
	assert_false(json.failed);
	assert_true(json.length < sizeof answer);
	memcpy(answer, json.text, json.length);
	answer[json.length] = '\0';
	json_write_free(&json);
	return failed;
}

static void expect(const char *text)
{
	if (!strstr(answer, text))
		fail_msg("%s is not in %s", text, answer);
}

static void expect_not(const char *text)
{
	if (strstr(answer, text))
		fail_msg("%s is in %s", text, answer);
}

static void expect_object(const void *object)
{
	char text[64];

	snprintf(text, sizeof text, "\"object\":\"%p\"", object);
	expect(text);
}

UNIT_CASE(each_verb_has_its_place)
{
	assert_int_equal(verb_count, CONTROL_VERBS);
	assert_null(verbs[CONTROL_NEXT]);
	for (unsigned i = CONTROL_NEXT + 1; i < verb_count; i++)
		assert_non_null(verbs[i]);
}

UNIT_CASE(addresses_of_every_family_are_told)
{
	*(struct sockaddr_in6 *)&ia->attr.address = (struct sockaddr_in6){ .sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	assert_null(ask(CONTROL_LIST, "{}"));
	expect("\"address\":\"::1\"");
	ia->attr.address.ss_family = AF_UNSPEC;
	assert_null(ask(CONTROL_LIST, "{}"));
	expect("\"address\":null");
}

UNIT_CASE(get_tells_one_parameter_or_all)
{
	assert_null(ask(CONTROL_GET, "{}"));
	expect("\"name\":\"DAPL_ACK_RETRY\",\"value\":7,\"default\":7,\"min\":0,\"max\":7,\"when\":\"now\","
	       "\"from\":\"default\"");
	expect("\"name\":\"DAPL_IB_PKEY\",\"value\":null,\"default\":null");	/* unset */
	expect("\"when\":\"next IA\"");
	expect("\"when\":\"never\"");
	expect("\"TEST_PARAMETER\"");	/* of the device */
	assert_null(ask(CONTROL_GET, "{\"name\":\"TEST_PARAMETER\"}"));
	expect("\"name\":\"TEST_PARAMETER\",\"value\":4,\"default\":4,\"min\":2,\"max\":9");
	expect_not("DAPL_");
	assert_string_equal(ask(CONTROL_GET, "{\"name\":\"COLOUR\"}"), "provider test has no parameter COLOUR");
}

UNIT_CASE(bad_set_changes_nothing)
{
	static const char *const bad[] = { "{\"name\":\"DAPL_ACK_RETRY\",\"value\":8}",
		"{\"name\":\"DAPL_ACK_RETRY\",\"value\":\"many\"}", "{\"name\":\"COLOUR\",\"value\":1}",
		"{\"name\":\"DAPL_MAX_CM_RETRIES\",\"value\":1}" };

	assert_string_equal(ask(CONTROL_SET, "{}"), "the request has no member \"name\"");
	assert_string_equal(ask(CONTROL_SET, "{\"value\":5}"), "the request has no member \"name\"");
	assert_string_equal(ask(CONTROL_SET, "{\"name\":\"DAPL_ACK_RETRY\"}"), "the request has no member \"value\"");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!ask(CONTROL_SET, bad[i]))
			fail_msg("%s", bad[i]);
	assert_int_equal(dapl_settings.ack_retry, 7);
}

UNIT_CASE(trace_level_is_set_here_and_in_the_registry)
{
	assert_null(ask(CONTROL_TRACE, "{\"level\":3}"));
	assert_int_equal(trace_level, 3);
	assert_int_equal(registry_level, 3);
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", ep, NULL, "it was traced");
	assert_null(ask(CONTROL_DUMP, "{}"));
	expect("\"level\":3");
	expect("it was traced");
	foreign_registry = true;	/* has no such function */
	assert_null(ask(CONTROL_TRACE, "{\"level\":0}"));
	expect("\"was\":3,\"level\":0");
	assert_int_equal(trace_level, 0);
	assert_int_equal(registry_level, 3);
}

UNIT_CASE(bad_trace_level_changes_nothing)
{
	unsigned before = trace_level;

	assert_string_equal(ask(CONTROL_TRACE, "{}"), "the request has no member \"level\"");
	assert_non_null(ask(CONTROL_TRACE, "{\"level\":11}"));
	assert_non_null(ask(CONTROL_TRACE, "{\"level\":\"high\"}"));
	assert_int_equal(trace_level, before);
	assert_int_equal(registry_level, 99);
}

/* --- objects --------------------------------------------------------------------------- */

UNIT_CASE(counters_that_are_0_are_left_out)
{
	dapl_count(ia, DCNT_IA_PZ_CREATE);
	ep->counters[DCNT_EP_POST_SEND] = 5;
	evd->counters[DCNT_EVD_DEQUEUE_NOT_FOUND] = 6;
	assert_null(ask(CONTROL_COUNTERS, "{}"));
	expect("\"name\":\"ofa-v2-test\"");
	expect("\"PZ_CREATE\":1");
	expect("\"POST_SEND\":5");
	expect_not("PZ_FREE");
	expect_not(":0,");
	expect_object(ia);
	expect_object(ep);
	expect_object(evd);
}

UNIT_CASE(posts_that_waited_for_another_thread_are_counted)
{
	struct dapl_post_lock lock = DAPL_POST_LOCK_INIT(RANK_SQ, true);
	char expected[40];

	dapl_post_lock_wait(&lock);
	snprintf(expected, sizeof expected, "\"post_waits\":%llu",
		 (unsigned long long)dapl_post_lock_waits().waits);
	assert_null(ask(CONTROL_COUNTERS, "{}"));
	expect(expected);
	expect_not("post_sleeps");
}

UNIT_CASE(endpoint_tells_its_connection_and_traffic)
{
	((struct sockaddr_in *)&ep->local)->sin_family = AF_INET;
	((struct sockaddr_in *)&ep->local)->sin_port = htons(1234);
	ep->counters[DCNT_EP_POST_SEND_DATA] = 100;
	ep->counters[DCNT_EP_POST_SEND_UD_DATA] = 20;
	ep->counters[DCNT_EP_POST_WRITE_DATA] = 3;
	ep->counters[DCNT_EP_POST_WRITE_IMM_DATA] = 4000;
	ep->counters[DCNT_EP_RECV_DATA] = 50;
	ep->counters[DCNT_EP_RECV_UD_DATA] = 6;
	ep->counters[DCNT_EP_RECV_IMM_DATA] = 700;
	ep->counters[DCNT_EP_POST_READ_DATA] = 8;
	assert_null(ask(CONTROL_ENDPOINTS, "{}"));
	expect("\"ia\":\"ofa-v2-test\",\"device\":\"rxe7\"");
	expect_object(ep);
	expect("\"type\":\"RC\",\"state\":\"connected\",\"seconds\":0,\"qp\":null,\"local\":\"0.0.0.0:1234\","
	       "\"remote\":null,\"carrier\":null,\"bytes_sent\":4123,\"bytes_received\":756,\"bytes_read\":8");
	ep->is_ud = true;
	ep->qp = core_qp();
	*(struct sockaddr_in6 *)&ep->remote = (struct sockaddr_in6){ .sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(77) };
	assert_null(ask(CONTROL_ENDPOINTS, "{}"));
	expect("\"type\":\"UD\"");
	expect("\"qp\":17");
	expect("\"remote\":\"[::1]:77\"");
	ep->is_raw = true;
	assert_null(ask(CONTROL_ENDPOINTS, "{}"));
	expect("\"type\":\"raw\"");
	ep->qp = NULL;
}

UNIT_CASE(reread_tells_the_entries_or_the_reason)
{
	static const struct { DAT_RETURN ret; const char *why; } rows[] = {
		{ BAD_PARAM(1), "a file cannot be read" },
		{ DAT_ERROR(DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE), "libraries are being loaded" },
		{ NO_RESOURCE(MEMORY), "the registry lacks memory" },
	};

	assert_null(ask(CONTROL_REREAD, "{}"));
	assert_string_equal(answer, "{\"entries\":12}");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *why;

		reread_result = rows[i].ret;
		why = ask(CONTROL_REREAD, "{}");
		assert_non_null(why);
		assert_memory_equal(why, rows[i].why, strlen(rows[i].why));
	}
	foreign_registry = true;
	assert_non_null(strstr(ask(CONTROL_REREAD, "{}"), "not this project's"));
}

UNIT_MAIN(NULL, NULL)
