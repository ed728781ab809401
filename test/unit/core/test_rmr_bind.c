/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rmr_bind.c - binds of memory windows: the range, the rights and the protection zone that are needed, and what
 * is posted. The window of these tests is of type 2, which is bound by a work request. */
#include "dapl/core/ep/calls.h"
#include "dapl/core/mem/rmr.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

enum { READ = DAT_MEM_PRIV_REMOTE_READ_FLAG, WRITE = DAT_MEM_PRIV_REMOTE_WRITE_FLAG, START = 0x1000, SIZE = 0x100,
	CONTEXT = 9 };

static struct dapl_pz *pz, *other_pz;
static struct dapl_lmr *lmr;
static struct dapl_rmr *rmr;
static struct ibv_mr mr;
static int posts, error;
static struct ibv_send_wr posted[4];

static int note_post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	assert_ptr_equal(qp, core_qp());
	if (error)
		return error;
	posted[posts++ % 4] = *wr;
	return 0;
}

static struct dapl_pz *pz_new(void)
{
	struct dapl_pz *new = dapl_object_new(DAPL_PZ, sizeof *new, ia, NULL);

	dapl_object_publish(&new->obj);
	return new;
}

static void end(struct dapl_object *obj)
{
	assert_true(dapl_object_kill(obj));
	dapl_object_bury(obj);
}

UNIT_FIXTURE(set_up)
{
	DAT_RMR_HANDLE handle;

	posts = error = 0;
	core_endpoint_open(16, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, 16);
	core_device.post_send = note_post;
	ia->attr.windows_2 = true;
	pz = pz_new();
	other_pz = pz_new();
	ep->pz = pz;
	ep->qp = core_qp();
	lmr = dapl_object_new(DAPL_LMR, sizeof *lmr, ia, NULL);
	lmr->mr = &mr;
	lmr->pz = pz;
	lmr->param = (DAT_LMR_PARAM){ .registered_address = START, .registered_size = SIZE, .lmr_context = CONTEXT,
		.mem_priv = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG };
	dapl_object_publish(&lmr->obj);
	assert_int_equal(dapl_rmr_create_for_ep((DAT_PZ_HANDLE)pz, &handle), DAT_SUCCESS);
	rmr = (struct dapl_rmr *)handle;
}

static int tear_down(void **state)
{
	assert_int_equal(dapl_rmr_free((DAT_RMR_HANDLE)rmr), DAT_SUCCESS);
	assert_false(dapl_in_use(&lmr->obj));
	assert_int_equal(lmr->obj.calls, 0);
	end(&lmr->obj);
	end(&pz->obj);
	end(&other_pz->obj);
	return core_endpoint_close(state);
}

static DAT_RETURN bind_flagged(DAT_VADDR at, DAT_VLEN length, DAT_LMR_CONTEXT context, int rights, int flags)
{
	const DAT_LMR_TRIPLET range = { .virtual_address = at, .segment_length = length, .lmr_context = context };
	DAT_RMR_CONTEXT made = 0;
	DAT_RETURN ret = dapl_rmr_bind((DAT_RMR_HANDLE)rmr, (DAT_LMR_HANDLE)lmr, &range,
				       (DAT_MEM_PRIV_FLAGS)rights, DAT_VA_TYPE_VA, (DAT_EP_HANDLE)ep,
				       (DAT_RMR_COOKIE){ .as_64 = 3 }, (DAT_COMPLETION_FLAGS)flags, &made);

	if (!ret)
		assert_int_equal(made, rmr->mw->rkey);
	return ret;
}

static DAT_RETURN bind_range(DAT_VADDR at, DAT_VLEN length, DAT_LMR_CONTEXT context, int rights)
{
	return bind_flagged(at, length, context, rights, 0);
}

static DAT_RETURN bind_all(int rights) { return bind_range(START, SIZE, CONTEXT, rights); }

UNIT_CASE(window_gives_no_right_that_the_region_lacks)
{
	lmr->param.mem_priv = DAT_MEM_PRIV_LOCAL_READ_FLAG;
	assert_int_equal(bind_all(READ), DAT_SUCCESS);
	assert_int_equal(bind_all(WRITE), DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE));
	lmr->param.mem_priv = DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	assert_int_equal(bind_all(WRITE), DAT_SUCCESS);
	assert_int_equal(bind_all(READ | WRITE), DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ));
	assert_int_equal(bind_all(DAT_MEM_PRIV_LOCAL_READ_FLAG), BAD_PARAM(4));
}

UNIT_CASE(rights_are_those_of_the_request)
{
	assert_int_equal(bind_all(READ | WRITE), DAT_SUCCESS);
	assert_int_equal(posts, 1);
	assert_int_equal(posted[0].opcode, IBV_WR_BIND_MW);
	assert_ptr_equal(posted[0].bind_mw.bind_info.mr, &mr);
	assert_int_equal(posted[0].bind_mw.bind_info.addr, START);
	assert_int_equal(posted[0].bind_mw.bind_info.length, SIZE);
	assert_int_equal(posted[0].bind_mw.bind_info.mw_access_flags,
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

UNIT_CASE(what_is_written_through_a_window_may_be_flushed)
{
	ia->attr.flush_global = true;
	assert_int_equal(bind_all(WRITE), DAT_SUCCESS);
	assert_int_equal(posted[0].bind_mw.bind_info.mw_access_flags, IBV_ACCESS_REMOTE_WRITE | 1 << 8);
}

UNIT_CASE(evd_of_requests_must_take_binds)
{
	evd->flags = DAT_EVD_DTO_FLAG;
	assert_int_equal(bind_all(READ), BAD_STATE(EP_EVD_REQUEST));
	assert_int_equal(posts, 0);
}

/* A window of type 2 can be bound only while it is not. */
UNIT_CASE(second_bind_invalidates_first)
{
	uint32_t rkey;

	assert_int_equal(bind_all(READ), DAT_SUCCESS);
	rkey = rmr->mw->rkey;
	assert_int_equal(bind_range(START, 8, CONTEXT, WRITE), DAT_SUCCESS);
	assert_int_equal(posts, 3);
	assert_int_equal(posted[1].opcode, IBV_WR_LOCAL_INV);
	assert_int_equal(posted[1].invalidate_rkey, rkey);
	assert_int_equal(posted[2].opcode, IBV_WR_BIND_MW);
	assert_int_not_equal(rmr->mw->rkey, rkey);
}

/* The window needs no invalidate before its next bind, and does not use the region until then. RMR-15. */
UNIT_CASE(window_that_the_peer_invalidated_is_unbound)
{
	assert_int_equal(bind_all(READ), DAT_SUCCESS);
	dapl_rmr_invalidated(ia, rmr->param.rmr_context + 1);
	assert_true(dapl_in_use(&lmr->obj));
	dapl_rmr_invalidated(ia, rmr->param.rmr_context);
	assert_false(dapl_in_use(&lmr->obj));
	assert_int_equal(bind_all(READ), DAT_SUCCESS);
	assert_int_equal(posts, 2);
	assert_int_equal(posted[1].opcode, IBV_WR_BIND_MW);
}

/* The invalidate is a part of the bind: it waits with it, and is silent whatever the flags are. */
UNIT_CASE(fence_holds_the_invalidate_of_a_bind_back)
{
	enum { FLAGS = DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_SUPPRESS_FLAG };

	assert_int_equal(bind_all(READ), DAT_SUCCESS);
	assert_int_equal(bind_flagged(START, 8, CONTEXT, WRITE, FLAGS), DAT_SUCCESS);
	assert_int_equal(posted[1].opcode, IBV_WR_LOCAL_INV);
	assert_int_equal(posted[1].send_flags, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	assert_int_equal(posted[2].opcode, IBV_WR_BIND_MW);
	assert_int_equal(posted[2].send_flags, IBV_SEND_FENCE);
}

UNIT_CASE(refused_flags_leave_the_window_bound)
{
	assert_int_equal(bind_all(READ), DAT_SUCCESS);
	assert_int_equal(bind_flagged(START, 8, CONTEXT, WRITE, 0x100), BAD_PARAM(8));
	assert_int_equal(posts, 1);
	assert_ptr_equal(rmr->lmr, lmr);
}

UNIT_CASE(empty_range_unbinds)
{
	assert_int_equal(bind_all(READ), DAT_SUCCESS);
	assert_true(dapl_in_use(&lmr->obj));
	assert_int_equal(bind_range(0, 0, 0, 0), DAT_SUCCESS);
	assert_int_equal(posted[1].opcode, IBV_WR_LOCAL_INV);
	assert_null(rmr->lmr);
	assert_false(dapl_in_use(&lmr->obj));
}

UNIT_CASE(refused_post_leaves_the_region_unused)
{
	error = ENOMEM;
	assert_int_not_equal(bind_all(READ), DAT_SUCCESS);
	assert_null(rmr->lmr);
	assert_false(dapl_in_use(&lmr->obj));
}

UNIT_CASE(arguments_are_checked)
{
	const DAT_LMR_TRIPLET range = { .virtual_address = START, .segment_length = 1, .lmr_context = CONTEXT };
	DAT_RMR_COOKIE cookie = { .as_64 = 0 };
	DAT_RMR_CONTEXT made;
#define BIND(rmr, lmr, range, type, ep, context) \
	dapl_rmr_bind((DAT_RMR_HANDLE)(rmr), (DAT_LMR_HANDLE)(lmr), range, DAT_MEM_PRIV_REMOTE_READ_FLAG, type, \
		      (DAT_EP_HANDLE)(ep), cookie, DAT_COMPLETION_DEFAULT_FLAG, context)

	assert_int_equal(BIND(pz, lmr, &range, DAT_VA_TYPE_VA, ep, &made), BAD_HANDLE(RMR));
	assert_int_equal(BIND(rmr, lmr, NULL, DAT_VA_TYPE_VA, ep, &made), BAD_PARAM(3));
	assert_int_equal(BIND(rmr, pz, &range, DAT_VA_TYPE_VA, ep, &made), BAD_HANDLE(LMR));
	assert_int_equal(BIND(rmr, lmr, &range, (DAT_VA_TYPE)7, ep, &made), BAD_PARAM(5));
	assert_int_equal(BIND(rmr, lmr, &range, DAT_VA_TYPE_ZB, ep, &made), NOT_SUPPORTED);
	assert_int_equal(BIND(rmr, lmr, &range, DAT_VA_TYPE_VA, pz, &made), BAD_HANDLE(EP));
	assert_int_equal(BIND(rmr, lmr, &range, DAT_VA_TYPE_VA, ep, NULL), BAD_PARAM(9));
	assert_int_equal(posts, 0);
}

UNIT_MAIN(NULL, NULL)
