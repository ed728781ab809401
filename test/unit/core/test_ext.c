/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ext.c - extension operations: which handles, endpoints and arguments each one refuses, what the device is given,
 * and that every argument reaches its place (ia/ext.c). Open-query is in test_open_query.c. */
#include <dat/dat_diag_extensions.h>
#include <dat/dat_dm_extensions.h>
#include <dat/dat_mcast_extensions.h>
#include <dat/dat_net_extensions.h>
#include <dat/dat_send_extensions.h>
#include "dapl/core/conn/ud.h"
#include "dapl/core/ia/ext.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/pz.h"
#include "test/unit/core/core_dm.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/core/core_queues.h"
#include "test/unit/unit.h"

enum { POSTS = 16, AT = 0x2000, KEY = 9, CONTEXT = 5, DM_SIZE = 4096, NO_FLAGS = 0 };

#define NOT_IMPLEMENTED DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE)
#define TOO_LONG DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE)

static const DAT_DTO_COOKIE cookie = { .as_64 = 77 };
static uint64_t word;
static DAT_LMR_TRIPLET local;
static DAT_RMR_TRIPLET remote;
static struct ibv_send_wr posted;	/* the last one */
static struct ibv_sge sge;		/* its first segment */
static struct dapl_dto *record;
static int posts, error;

/* The operations of core_device.c, which a test may change. */
extern const struct dapl_device_ops __real_dapl_device_ops;
extern struct dapl_device_ops __wrap_dapl_device_ops;
struct dapl_device_ops __wrap_dapl_device_ops;

static int note_post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	assert_ptr_equal(qp, core_qp());
	posted = *wr;
	sge = wr->num_sge ? *wr->sg_list : (struct ibv_sge){ .length = 0 };
	record = (struct dapl_dto *)(uintptr_t)wr->wr_id;
	posts++;
	return error;
}

UNIT_FIXTURE(set_up)
{
	posts = error = 0;
	__wrap_dapl_device_ops = __real_dapl_device_ops;
	core_endpoint_open(64, DAT_EVD_DTO_FLAG, POSTS);
	core_device.post_send = note_post;
	ia->attr.atomics = ia->attr.write_immediate = true;
	ep->qp = core_qp();
	ep->max_send_iov = ep->max_write_iov = 1;
	ep->max_message = ep->max_rdma = 4096;
	local = (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)&word, .segment_length = sizeof word,
		.lmr_context = CONTEXT };
	remote = (DAT_RMR_TRIPLET){ .virtual_address = AT, .segment_length = sizeof word, .rmr_context = KEY };
}

/* dat_extension_op() as the registry hands it to the provider. */
static DAT_RETURN call(void *handle, int op, ...)
{
	DAT_RETURN ret;
	va_list args;

	va_start(args, op);
	ret = dapl_extension_op((DAT_HANDLE)handle, (DAT_EXTENDED_OP)op, args);
	va_end(args);
	return ret;
}

/* --- atomics --------------------------------------------------------------------------- */

static DAT_RETURN add(const DAT_LMR_TRIPLET *to, const DAT_RMR_TRIPLET *at, int flags)
{
	return call(ep, DAT_IB_FETCH_AND_ADD_OP, (DAT_UINT64)3, to, cookie, at, flags);
}

static DAT_RETURN swap(const DAT_LMR_TRIPLET *to, const DAT_RMR_TRIPLET *at, int flags)
{
	return call(ep, DAT_IB_CMP_AND_SWAP_OP, (DAT_UINT64)8, (DAT_UINT64)20, to, cookie, at, flags);
}

static DAT_RETURN (*const atomics[])(const DAT_LMR_TRIPLET *, const DAT_RMR_TRIPLET *, int) = { add, swap };
enum { ATOMICS = sizeof atomics / sizeof *atomics };

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close_unused)

CASE(atomic_needs_both_segments_of_8_bytes)
{
	DAT_LMR_TRIPLET buffer = local;
	DAT_RMR_TRIPLET target = remote;

	for (int i = 0; i < ATOMICS; i++) {
		bool swaps = atomics[i] == swap;

		assert_int_equal(atomics[i](NULL, &remote, NO_FLAGS), swaps ? BAD_PARAM(4) : BAD_PARAM(3));
		assert_int_equal(atomics[i](&local, NULL, NO_FLAGS), swaps ? BAD_PARAM(6) : BAD_PARAM(5));
		assert_int_equal(atomics[i](&local, &remote, 0x80), swaps ? BAD_PARAM(7) : BAD_PARAM(6));
		buffer.segment_length = 7;
		assert_int_equal(atomics[i](&buffer, &remote, NO_FLAGS), TOO_LONG);
		buffer.segment_length = 9;
		assert_int_equal(atomics[i](&buffer, &remote, NO_FLAGS), TOO_LONG);
		target.segment_length = 7;
		assert_int_equal(atomics[i](&local, &target, NO_FLAGS), TOO_LONG);
	}
	assert_int_equal(posts, 0);
	target.segment_length = 9;	/* a larger window onto the word */
	assert_int_equal(add(&local, &target, NO_FLAGS), DAT_SUCCESS);
}

CASE(endpoint_without_atomics_refuses)
{
	for (int i = 0; i < ATOMICS; i++) {
		ia->attr.atomics = false;
		assert_int_equal(atomics[i](&local, &remote, NO_FLAGS), NOT_IMPLEMENTED);
		ia->attr.atomics = true;
		ep->is_raw = ep->is_ud = true;
		assert_int_equal(atomics[i](&local, &remote, NO_FLAGS), NOT_SUPPORTED);
		ep->is_raw = false;
		assert_int_equal(atomics[i](&local, &remote, NO_FLAGS), BAD_PARAM(1));
		ep->is_ud = false;
		ep->state = DAT_EP_STATE_UNCONNECTED;
		assert_int_equal(atomics[i](&local, &remote, NO_FLAGS), BAD_STATE(EP_UNCONNECTED));
		ep->state = DAT_EP_STATE_CONNECTED;
	}
	assert_int_equal(posts, 0);
}

CASE(refused_atomic_leaves_no_record)
{
	error = ENOMEM;
	for (int i = 0; i < ATOMICS; i++)
		assert_int_equal(atomics[i](&local, &remote, NO_FLAGS), NO_RESOURCE(MEMORY));
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
	assert_int_equal(ep->counters[DCNT_EP_POST_FETCH_ADD], 0);
	error = 0;
	for (int i = 0; i < POSTS; i++)
		assert_int_equal(add(&local, &remote, NO_FLAGS), DAT_SUCCESS);
	assert_int_equal(add(&local, &remote, NO_FLAGS), NO_RESOURCE(MEMORY));
	assert_int_equal(dapl_queue_count(&ep->sq), POSTS);
}

static DAT_RETURN write_immed(DAT_COUNT n, const DAT_RMR_TRIPLET *at)
{
	return call(ep, DAT_IB_RDMA_WRITE_IMMED_OP, n, &local, cookie, at, (DAT_UINT32)0x7777,
		    (int)DAT_COMPLETION_SOLICITED_WAIT_FLAG);
}

static DAT_RETURN send_immed(DAT_COUNT n)
{
	return call(ep, DAT_SEND_IMMED_OP, n, &local, cookie, (DAT_UINT32)0x7777,
		    (int)DAT_COMPLETION_SOLICITED_WAIT_FLAG);
}

CASE(endpoint_without_immediate_data_refuses)
{
	ia->attr.write_immediate = false;
	assert_int_equal(write_immed(1, &remote), NOT_IMPLEMENTED);
	assert_int_equal(send_immed(1), NOT_IMPLEMENTED);
	ia->attr.write_immediate = true;
	ep->is_raw = ep->is_ud = true;
	assert_int_equal(write_immed(1, &remote), NOT_SUPPORTED);
	assert_int_equal(send_immed(1), NOT_SUPPORTED);
	ep->is_raw = false;
	assert_int_equal(send_immed(1), BAD_PARAM(1));
	ep->is_ud = false;
	ep->state = DAT_EP_STATE_DISCONNECT_PENDING;
	assert_int_equal(write_immed(1, &remote), BAD_STATE(EP_DISCPENDING));
	assert_int_equal(send_immed(1), BAD_STATE(EP_DISCPENDING));
	assert_int_equal(posts, 0);
}

/* --- datagrams ------------------------------------------------------------------------- */

static DAT_RETURN send_ud(DAT_COUNT n, const DAT_LMR_TRIPLET *iov, const DAT_IB_ADDR_HANDLE *to)
{
	return call(ep, DAT_IB_UD_SEND_OP, n, iov, to, cookie, (int)NO_FLAGS);
}

/* The connection that was to be freed. */
EXTEND(dapl_ud_cm_free)
static void *freed_cm;

DAT_RETURN __wrap_dapl_ud_cm_free(struct dapl_ep *of, DAT_CONTEXT cm)
{
	freed_cm = cm.as_ptr;
	return __real_dapl_ud_cm_free(of, cm);
}

static int refuse_to_join(struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group, bool send_only,
			  void *owner, struct dapl_membership **membership)
{
	fail_msg("the device was asked");
	return EINVAL;
}

CASE(connected_endpoint_refuses_operations_of_datagrams)
{
	struct sockaddr group = { .sa_family = AF_INET };
	DAT_IB_ADDR_HANDLE to = { .ah = NULL };

	__wrap_dapl_device_ops.join = refuse_to_join;
	ia->attr.multicast = true;
	assert_int_equal(send_ud(1, &local, &to), BAD_PARAM(1));
	assert_int_equal(call(ep, DAT_IB_UD_CM_FREE_OP, (DAT_CONTEXT){ .as_ptr = NULL }), BAD_PARAM(1));
	assert_int_equal(call(ep, DAT_IB_UD_AH_FREE_OP, &to), BAD_PARAM(1));
	assert_int_equal(call(ep, DAT_MCAST_JOIN_OP, &group, 0, (DAT_CONTEXT){ .as_64 = 1 }), BAD_PARAM(1));
	assert_int_equal(call(ep, DAT_MCAST_LEAVE_OP, &group), BAD_PARAM(1));
	assert_int_equal(posts, 0);
}

CASE(device_without_multicast_has_no_groups)
{
	struct sockaddr group = { .sa_family = AF_INET };

	ep->is_ud = true;
	assert_int_equal(call(ep, DAT_MCAST_JOIN_OP, &group, 0, (DAT_CONTEXT){ .as_64 = 1 }), NOT_IMPLEMENTED);
	assert_int_equal(call(ep, DAT_MCAST_LEAVE_OP, &group), NOT_IMPLEMENTED);
}

CASE(device_without_memory_allocates_none)
{
	DAT_DM_HANDLE dm;

	assert_int_equal(call(ia, DAT_DM_ALLOC_OP, (DAT_VLEN)64, (DAT_UINT32)0, &dm), NOT_SUPPORTED);
}

/* --- other objects, other numbers ------------------------------------------------------ */

CASE(last_error_fills_as_much_as_the_caller_knows)
{
	struct {
		DAT_EVENT_NUMBER event;
		DAT_DIAG_STEP step;
	} old = { (DAT_EVENT_NUMBER)1, (DAT_DIAG_STEP)77 };

	assert_int_equal(call(ep, DAT_DIAG_LAST_ERROR_OP, NULL, (DAT_COUNT)sizeof(DAT_LAST_ERROR)), BAD_PARAM(2));
	assert_int_equal(call(ep, DAT_DIAG_LAST_ERROR_OP, &old, (DAT_COUNT)sizeof old.event), DAT_SUCCESS);
	assert_int_equal(old.event, 0);
	assert_int_equal(old.step, 77);
}

CASE(watch_of_the_network_takes_known_changes_only)
{
	assert_int_equal(call(ia, DAT_NET_WATCH_OP, (DAT_UINT32)0x80000000), BAD_PARAM(2));
	assert_int_equal(call(ia, DAT_NET_WATCH_OP, (DAT_UINT32)0), DAT_SUCCESS);
}

CASE(unknown_operations_are_not_implemented)
{
	static const int unknown[] = { -1, 30, 999, 0xfff, 0x1001, 0x7fffffff, DAT_MAP_UNMAP_OP + 1,
		DAT_NET_WATCH_OP + 1, DAT_ETH_QUERY_OP /* a device without raw Ethernet endpoints */ };

	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		assert_int_equal(call(ep, unknown[i], NULL, NULL, NULL), NOT_IMPLEMENTED);
	for (int op = DAT_IB_COLLECTIVE_CREATE_MEMBER_OP; op <= DAT_IB_COLLECTIVE_BARRIER_OP; op++)
		assert_int_equal(call(ep, op, NULL, NULL, NULL), NOT_IMPLEMENTED);
}

/* Wrong: freed, NULL, and an object of another kind. */
static void check_handles(const int *ops, size_t n, void *freed, void *other, DAT_RETURN wanted)
{
	void *const wrong[] = { freed, NULL, other };

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < 3; j++)
			if (call(wrong[j], ops[i], NULL, NULL, NULL, NULL, NULL, NULL, NULL) != wanted)
				fail_msg("operation %#x, handle %zu", ops[i], j);
}

CASE(each_operation_refuses_wrong_handles)
{
	static const int of_eps[] = { DAT_IB_FETCH_AND_ADD_OP, DAT_IB_CMP_AND_SWAP_OP, DAT_IB_RDMA_WRITE_IMMED_OP,
		DAT_SEND_IMMED_OP, DAT_IB_UD_SEND_OP, DAT_IB_UD_CM_FREE_OP, DAT_IB_UD_AH_FREE_OP, DAT_MCAST_JOIN_OP,
		DAT_MCAST_LEAVE_OP, DAT_MAP_RMR_OP, DAT_MAP_UNMAP_OP, DAT_DIAG_LAST_ERROR_OP };
	static const int of_dms[] = { DAT_DM_FREE_OP, DAT_DM_LMR_CREATE_OP, DAT_DM_COPY_TO_OP, DAT_DM_COPY_FROM_OP,
		DAT_DM_MAP_OP };
	static const int of_ias[] = { DAT_NET_WATCH_OP, DAT_DM_ALLOC_OP };
	static const int of_all[] = { DAT_IB_QUERY_COUNTERS_OP, DAT_IB_PRINT_COUNTERS_OP, DAT_IB_START_COUNTERS_OP,
		DAT_IB_STOP_COUNTERS_OP };
	const DAT_RETURN bad_handle = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	struct dapl_ep *freed = core_ep_new(ia, evd, 4);

	core_ep_free(freed);
	check_handles(of_eps, sizeof of_eps / sizeof *of_eps, freed, evd, BAD_HANDLE(EP));
	check_handles(of_dms, sizeof of_dms / sizeof *of_dms, freed, evd, bad_handle);
	check_handles(of_ias, sizeof of_ias / sizeof *of_ias, freed, evd, BAD_HANDLE(IA));
	check_handles(of_all, sizeof of_all / sizeof *of_all, freed, NULL, bad_handle);
	assert_int_equal(evd->obj.calls, 0);
	assert_int_equal(freed->obj.calls, 0);
}

UNIT_MAIN(NULL, NULL)
