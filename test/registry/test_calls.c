/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Every call goes to its own slot of the provider's table, with its own arguments, and
 * none crashes on a handle that is no object's: HND-3, HND-8 to HND-10, REG-46. */
#include "test/registry/scenario.h"
#include <dat/dat_trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* The calls: name, subtype for a handle that is none, arguments. `h` is the handle. */
#define IA_CALLS(X) \
	X(ia_query, _IA, h, 0, 0, 0, 0, 0) \
	X(cno_create, _IA, h, agent, 0) \
	X(cno_fd_create, _IA, h, 0, 0) \
	X(evd_create, _IA, h, 0, 0, 0, 0) \
	X(ep_create, _IA, h, 0, 0, 0, 0, 0, 0) \
	X(ep_create_with_srq, _IA, h, 0, 0, 0, 0, 0, 0, 0) \
	X(lmr_create, _IA, h, 0, region, 0, 0, 0, 0, 0, 0, 0, 0, 0) \
	X(lmr_sync_rdma_read, _IA, h, 0, 0) \
	X(lmr_sync_rdma_write, _IA, h, 0, 0) \
	X(psp_create, _IA, h, 0, 0, 0, 0) \
	X(psp_create_any, _IA, h, 0, 0, 0, 0) \
	X(rsp_create, _IA, h, 0, 0, 0, 0) \
	X(csp_create, _IA, h, 0, 0, 0, 0) \
	X(pz_create, _IA, h, 0) \
	X(srq_create, _IA, h, 0, 0, 0)

#define OBJECT_CALLS(X) \
	X(ep_post_send, _EP, h, 0, 0, cookie, 0) \
	X(ep_post_send_with_invalidate, _EP, h, 0, 0, cookie, 0, 0, 0) \
	X(ep_post_recv, _EP, h, 0, 0, cookie, 0) \
	X(ep_post_rdma_read, _EP, h, 0, 0, cookie, 0, 0) \
	X(ep_post_rdma_read_to_rmr, _EP, h, 0, cookie, 0, 0) \
	X(ep_post_rdma_write, _EP, h, 0, 0, cookie, 0, 0) \
	X(srq_post_recv, _SRQ, h, 0, 0, cookie) \
	X(rmr_bind, _RMR, h, 0, 0, 0, 0, 0, cookie, 0, 0) \
	X(evd_dequeue, _EVD_REQUEST, h, 0) \
	X(evd_wait, _EVD_REQUEST, h, 0, 0, 0, 0) \
	X(ep_query, _EP, h, 0, 0) \
	X(ep_modify, _EP, h, 0, 0) \
	X(ep_connect, _EP, h, 0, 0, 0, 0, 0, 0, 0) \
	X(ep_common_connect, _EP, h, 0, 0, 0, 0) \
	X(ep_dup_connect, _EP, h, 0, 0, 0, 0, 0) \
	X(ep_disconnect, _EP, h, 0) \
	X(ep_get_status, _EP, h, 0, 0, 0) \
	X(ep_recv_query, _EP, h, 0, 0) \
	X(ep_set_watermark, _EP, h, 0, 0) \
	X(ep_reset, _EP, h) \
	X(ep_free, _EP, h) \
	X(evd_query, _EVD_REQUEST, h, 0, 0) \
	X(evd_modify_cno, _EVD_REQUEST, h, 0) \
	X(evd_enable, _EVD_REQUEST, h) \
	X(evd_disable, _EVD_REQUEST, h) \
	X(evd_set_unwaitable, _EVD_REQUEST, h) \
	X(evd_clear_unwaitable, _EVD_REQUEST, h) \
	X(evd_resize, _EVD_REQUEST, h, 0) \
	X(evd_post_se, _EVD_REQUEST, h, 0) \
	X(evd_free, _EVD_REQUEST, h) \
	X(cno_query, _CNO, h, 0, 0) \
	X(cno_modify_agent, _CNO, h, agent) \
	X(cno_wait, _CNO, h, 0, 0) \
	X(cno_trigger, _CNO, h, 0) \
	X(cno_free, _CNO, h) \
	X(lmr_query, _LMR, h, 0, 0) \
	X(lmr_free, _LMR, h) \
	X(rmr_create, _PZ, h, 0) \
	X(rmr_create_for_ep, _PZ, h, 0) \
	X(rmr_query, _RMR, h, 0, 0) \
	X(rmr_free, _RMR, h) \
	X(pz_query, _PZ, h, 0, 0) \
	X(pz_free, _PZ, h) \
	X(srq_query, _SRQ, h, 0, 0) \
	X(srq_resize, _SRQ, h, 0) \
	X(srq_set_lw, _SRQ, h, 0) \
	X(srq_free, _SRQ, h) \
	X(psp_query, _PSP, h, 0, 0) \
	X(psp_free, _PSP, h) \
	X(rsp_query, _RSP, h, 0, 0) \
	X(rsp_free, _RSP, h) \
	X(csp_query, _CSP, h, 0, 0) \
	X(csp_free, _CSP, h) \
	X(cr_query, _CR, h, 0, 0) \
	X(cr_accept, _CR, h, 0, 0, 0) \
	X(cr_reject, _CR, h, 0, 0) \
	X(cr_handoff, _CR, h, 0)

#define ANY_CALLS(X) \
	X(get_handle_type, 1, h, 0) \
	X(set_consumer_context, 1, h, context) \
	X(get_consumer_context, 1, h, 0)

#define ALL_CALLS(X) IA_CALLS(X) OBJECT_CALLS(X) ANY_CALLS(X)

/* Each slot answers with its own number. */
#define NUMBER(name, ...) SLOT_##name,
enum { SLOT_FIRST = 0x1000, ALL_CALLS(NUMBER) };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wold-style-definition"
#define SLOT(name, ...) static DAT_RETURN slot_##name() { return SLOT_##name; }
ALL_CALLS(SLOT)
#pragma GCC diagnostic pop

static DAT_PROVIDER table;
static const DAT_PROVIDER_INFO info = { "calls", 2, 0, DAT_FALSE };
static struct { const DAT_PROVIDER *table; } ia = { &table }, object = { &table };

static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *out)
{
	(void)name, (void)qlen, (void)evd;
	*out = &ia;
	return DAT_SUCCESS;
}

static DAT_RETURN ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	(void)flags;
	return handle == &ia ? DAT_SUCCESS : SLOT_FIRST;
}

static DAT_RETURN ia_query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK ia_mask,
			   DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK mask,
			   DAT_PROVIDER_ATTR *attr)
{
	(void)evd, (void)ia_mask, (void)ia_attr;
	if (handle != &ia)
		return SLOT_FIRST;
	if (mask) {
		attr->dapl_version_major = 2;
		return DAT_SUCCESS;
	}
	return SLOT_ia_query;
}

static DAT_IA_HANDLE open_calls(void)
{
	DAT_IA_HANDLE handle;

	/* Each slot only tells its number, whatever it is given. */
#define FILL(name, ...) table.name##_func = (__typeof__(table.name##_func))(void *)slot_##name;
	ALL_CALLS(FILL)
	table.device_name = "calls";
	table.ia_open_func = ia_open;
	table.ia_close_func = ia_close;
	table.ia_query_func = ia_query;
	OK(dat_registry_add_provider(&table, &info));
	OK(open_ia("calls", &handle));
	return handle;
}

static void close_calls(DAT_IA_HANDLE handle)
{
	OK(dat_ia_close(handle, DAT_CLOSE_DEFAULT));
	OK(dat_registry_remove_provider(&table, &info));
}

static void call_with(DAT_HANDLE any, DAT_HANDLE ia_handle, DAT_HANDLE object_handle,
		      bool arrives)
{
	DAT_OS_WAIT_PROXY_AGENT agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
	DAT_REGION_DESCRIPTION region = { .for_va = NULL };
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	DAT_CONTEXT context = { .as_64 = 0 };
	DAT_HANDLE h;

#define CALL(name, subtype, ...) RETURNS(dat_##name(__VA_ARGS__), arrives ? SLOT_##name : \
	FAILURE(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE##subtype));
	h = ia_handle;
	IA_CALLS(CALL)
	h = object_handle;
	OBJECT_CALLS(CALL)
	h = any;
	ANY_CALLS(CALL)
}

static void right_slots(void)
{
	DAT_IA_HANDLE handle = open_calls();

	call_with(&object, handle, &object, true);
	call_with(handle, handle, &object, true);
	close_calls(handle);
}

static void every_call_has_its_own_slot(void **state)
{
	(void)state;
	silent("/dev/null", right_slots);
}

static void wrong_handles(void)
{
	DAT_IA_HANDLE handle = open_calls();
	DAT_HANDLE not_open = (DAT_HANDLE)(uintptr_t)2;
	DAT_HANDLE highest = (DAT_HANDLE)(uintptr_t)65535;

	call_with(DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, false);
	call_with(not_open, not_open, not_open, false);
	call_with(highest, highest, highest, false);
	call_with(not_open, &object, handle, false);	/* each where the other belongs */
	close_calls(handle);
	call_with(handle, handle, handle, false);
	RETURNS(dat_extension_op(DAT_HANDLE_NULL, 0),
		FAILURE(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));	/* EXT-2 */
}

static void HND_3_8_9_10_handles_that_are_none(void **state)
{
	(void)state;
	silent("/dev/null", wrong_handles);
}

/* Providers for older headers leave the slots of later calls empty. */
static void empty_slots(void)
{
	DAT_IA_HANDLE handle = open_calls();
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	table.cno_fd_create_func = NULL;
	table.cno_trigger_func = NULL;
	table.ep_post_send_with_invalidate_func = NULL;
	RETURNS(dat_cno_fd_create(handle, NULL, NULL), FAILURE(DAT_NOT_IMPLEMENTED, 0));
	RETURNS(dat_cno_trigger(&object, NULL), FAILURE(DAT_NOT_IMPLEMENTED, 0));
	RETURNS(dat_ep_post_send_with_invalidate(&object, 0, NULL, cookie, 0, 0, 0),
		FAILURE(DAT_NOT_IMPLEMENTED, 0));
	close_calls(handle);
}

static void an_empty_slot_is_not_implemented(void **state)
{
	(void)state;
	silent("/dev/null", empty_slots);
}

/* --- arguments ------------------------------------------------------------------------ */

static int lmr_marks[5];

static DAT_RETURN lmr_create(DAT_IA_HANDLE handle, DAT_MEM_TYPE type,
			     DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz,
			     DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
			     DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			     DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			     DAT_VADDR *registered_address)
{
	CHECK(handle == &ia && type == DAT_MEM_TYPE_SHARED_VIRTUAL);
	CHECK(region.for_shared_memory.virtual_address == &lmr_marks[0]);
	CHECK(region.for_shared_memory.shared_memory_id == (void *)&lmr_marks[1]);
	CHECK(length == 0x123456789abcull && pz == &lmr_marks[2] && privileges == 0x11);
	CHECK(va_type == DAT_VA_TYPE_ZB && lmr == (void *)&lmr_marks[3]);
	CHECK(!lmr_context && !rmr_context && !registered_length);
	CHECK(registered_address == (void *)&lmr_marks[4]);
	return SLOT_lmr_create;
}

static DAT_RETURN ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
			     DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data,
			     DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	CHECK(ep == &object && address == (void *)&lmr_marks[0] && qual == 0xabcdef012345ull);
	CHECK(timeout == 7 && size == 8 && data == &lmr_marks[1]);
	CHECK(qos == DAT_QOS_LOW_LATENCY && flags == DAT_CONNECT_MULTIPATH_FLAG);
	return SLOT_ep_connect;
}

static void many_arguments(void)
{
	DAT_IA_HANDLE handle = open_calls();
	DAT_REGION_DESCRIPTION region;

	table.lmr_create_func = lmr_create;
	table.ep_connect_func = ep_connect;
	region.for_shared_memory.virtual_address = &lmr_marks[0];
	region.for_shared_memory.shared_memory_id = (void *)&lmr_marks[1];
	RETURNS(dat_lmr_create(handle, DAT_MEM_TYPE_SHARED_VIRTUAL, region, 0x123456789abcull,
			       &lmr_marks[2], 0x11, DAT_VA_TYPE_ZB, (void *)&lmr_marks[3], NULL,
			       NULL, NULL, (void *)&lmr_marks[4]), SLOT_lmr_create);
	RETURNS(dat_ep_connect(&object, (void *)&lmr_marks[0], 0xabcdef012345ull, 7, 8,
			       &lmr_marks[1], DAT_QOS_LOW_LATENCY, DAT_CONNECT_MULTIPATH_FLAG),
		SLOT_ep_connect);
	close_calls(handle);
}

static void REG_46_many_arguments_arrive(void **state)
{
	(void)state;
	silent("/dev/null", many_arguments);
}

static void trace_levels(void)
{
	DAT_UINT32 level = 99;

	OK(dat_trclvl_query(DAT_TRC_DAT, &level));
	CHECK(level == 0);
	OK(dat_trclvl_modify(DAT_TRC_DAT, DAT_TRC_LVL_MAX));
	OK(dat_trclvl_query(DAT_TRC_DAT, &level));
	CHECK(level == 10);
	OK(dat_trclvl_modify(DAT_TRC_DAT, 0));
	RETURNS(dat_trclvl_modify(DAT_TRC_DAT, 11),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	RETURNS(dat_trclvl_query(DAT_TRC_DAT, NULL),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	RETURNS(dat_trclvl_query(DAT_TRC_DAPL, &level), FAILURE(DAT_MODEL_NOT_SUPPORTED, 0));
	RETURNS(dat_trclvl_modify(7, 0), FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
}

static void trace_levels_change_at_run_time(void **state)
{
	(void)state;
	silent("/dev/null", trace_levels);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_has_its_own_slot),
		cmocka_unit_test(HND_3_8_9_10_handles_that_are_none),
		cmocka_unit_test(an_empty_slot_is_not_implemented),
		cmocka_unit_test(REG_46_many_arguments_arrive),
		cmocka_unit_test(trace_levels_change_at_run_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
