/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_post_slow.c - the slow path of requests: what is refused, and what the device and the record of the post are
 * given (post_slow.c). */
#include "dapl/core/ep/post.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/ep/sge_list.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

enum { LIMIT = 16, SEGMENTS = 3, SEGMENTS_OF_WRITE = 4, SEGMENTS_OF_READ = 2, MESSAGE = 100, RDMA = 200, INLINE = 32,
	CONTEXT = 5, KEY = 9, AT = 0x2000 };

static const DAT_DTO_COOKIE cookie = { .as_64 = 77 };
static const DAT_RMR_TRIPLET remote = { .virtual_address = AT, .segment_length = 150, .rmr_context = KEY };
static struct ibv_send_wr posted;	/* the last one */
static struct ibv_sge sge[DAPL_SGE_MAX];	/* its segments */
static struct dapl_dto *record;
static int posts, error;

static int note_post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	assert_ptr_equal(qp, core_qp());
	assert_null(wr->next);
	posted = *wr;
	record = (struct dapl_dto *)(uintptr_t)wr->wr_id;
	for (int i = 0; i < wr->num_sge; i++)
		sge[i] = wr->sg_list[i];
	posts++;
	return error;
}

UNIT_FIXTURE(set_up)
{
	posts = error = 0;
	core_endpoint_open(64, DAT_EVD_DTO_FLAG, LIMIT);
	core_device.post_send = note_post;
	ep->qp = core_qp();
	ep->max_send_iov = SEGMENTS;
	ep->max_write_iov = SEGMENTS_OF_WRITE;
	ep->max_read_iov = SEGMENTS_OF_READ;
	ep->max_message = MESSAGE;
	ep->max_rdma = RDMA;
	ep->max_inline = INLINE;
}

static DAT_LMR_TRIPLET segment(uint32_t length)
{
	static char memory[RDMA * 2];

	return (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)memory, .segment_length = length,
		.lmr_context = CONTEXT };
}

static DAT_RETURN send_flagged(uint32_t length, int flags)
{
	DAT_LMR_TRIPLET one = segment(length);

	return dapl_send_any(ep, 1, &one, cookie, (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN send_bytes(uint32_t length) { return send_flagged(length, 0); }

static DAT_RETURN write_bytes(uint32_t length)
{
	DAT_LMR_TRIPLET one = segment(length);

	return dapl_write_any(ep, 1, &one, cookie, &remote, 0);
}

static DAT_RETURN read_bytes(uint32_t length, uint32_t of)
{
	DAT_RMR_TRIPLET from = { .virtual_address = AT, .segment_length = of, .rmr_context = KEY };
	DAT_LMR_TRIPLET one = segment(length);

	return dapl_read_any(ep, 1, &one, cookie, &from, 0);
}

static const DAT_RETURN too_long = DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close_unused)

CASE(lengths_are_limited)
{
	const DAT_LMR_TRIPLET wrapping[] = { segment(1u << 31), segment(1u << 31) };

	assert_int_equal(send_bytes(MESSAGE + 1), too_long);
	assert_int_equal(dapl_send_any(ep, 2, wrapping, cookie, 0), too_long);
	assert_int_equal(write_bytes(remote.segment_length + 1), too_long);
	assert_int_equal(dapl_write_any(ep, 2, wrapping, cookie, &remote, 0), too_long);
	ep->max_rdma = 149;
	assert_int_equal(write_bytes(150), too_long);
	assert_int_equal(read_bytes(150, 150), too_long);
	assert_int_equal(read_bytes(99, 100), too_long);
	ep->min_message = 14;
	assert_int_equal(send_bytes(13), too_long);
	assert_int_equal(posts, 0);
	assert_int_equal(send_bytes(14), DAT_SUCCESS);
	assert_int_equal(send_bytes(MESSAGE), DAT_SUCCESS);
	assert_int_equal(write_bytes(149), DAT_SUCCESS);
	assert_int_equal(read_bytes(149, 149), DAT_SUCCESS);
	ep->max_rdma = RDMA;
	assert_int_equal(write_bytes(150), DAT_SUCCESS);
}

CASE(segments_that_the_device_refuses_have_errors_of_their_own)
{
	error = EKEYREJECTED;
	assert_int_equal(send_bytes(1), DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE));
	error = ERANGE;
	assert_int_equal(send_bytes(1), DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE));
}

CASE(read_takes_as_much_as_the_remote_segment_holds)
{
	static const struct {
		uint32_t first, second, remote;
		int segments;
		uint32_t last;		/* length of the last one */
	} rows[] = {
		{ 8, 8, 16, 2, 8 }, { 8, 8, 12, 2, 4 }, { 8, 8, 8, 1, 8 }, { 8, 8, 3, 1, 3 }, { 0, 8, 8, 1, 8 },
		{ 8, 0, 8, 1, 8 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const DAT_LMR_TRIPLET iov[] = { segment(rows[i].first), segment(rows[i].second) };
		const DAT_RMR_TRIPLET from = { .virtual_address = AT, .segment_length = rows[i].remote,
			.rmr_context = KEY };

		assert_int_equal(dapl_read_any(ep, 2, iov, cookie, &from, 0), DAT_SUCCESS);
		if (posted.num_sge != rows[i].segments || sge[posted.num_sge - 1].length != rows[i].last)
			fail_msg("row %zu: %d segments, the last of %u bytes", i, posted.num_sge,
				 sge[posted.num_sge - 1].length);
		assert_int_equal(record->length, rows[i].remote);
	}
}

CASE(request_is_what_the_call_asked_for)
{
	DAT_LMR_TRIPLET one = segment(40);

	assert_int_equal(send_bytes(40), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_SEND);
	assert_int_equal(record->op, DAT_DTO_SEND);
	assert_int_equal(record->cookie.as_64, 77);
	assert_ptr_equal(record->ep, ep);
	assert_int_equal(record->flags, 0);
	assert_int_equal(write_bytes(40), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(posted.wr.rdma.remote_addr, AT);
	assert_int_equal(posted.wr.rdma.rkey, KEY);
	assert_int_equal(record->op, DAT_DTO_RDMA_WRITE);
	assert_int_equal(read_bytes(40, 40), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_RDMA_READ);
	assert_int_equal(posted.wr.rdma.remote_addr, AT);
	assert_int_equal(posted.wr.rdma.rkey, KEY);
	assert_int_equal(record->op, DAT_DTO_RDMA_READ);
	assert_int_equal(dapl_ep_post_send_immed(ep, 1, &one, cookie, 0x1234, 0), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_SEND_WITH_IMM);
	assert_int_equal(posted.imm_data, 0x1234);
	assert_int_equal(record->op, DAT_DTO_SEND);
	assert_int_equal(dapl_ep_post_write_immed(ep, 1, &one, cookie, &remote, 0x5678, 0), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(posted.imm_data, 0x5678);
	assert_int_equal(posted.wr.rdma.rkey, KEY);
	assert_int_equal(record->op, DAT_IB_DTO_RDMA_WRITE_IMMED);
	assert_int_equal(record->flags, REQ_EXTENSION);
	assert_int_equal(ep->counters[DCNT_EP_POST_SEND], 2);
	assert_int_equal(ep->counters[DCNT_EP_POST_SEND_DATA], 80);
	assert_int_equal(ep->counters[DCNT_EP_POST_WRITE], 1);
	assert_int_equal(ep->counters[DCNT_EP_POST_WRITE_DATA], 40);
	assert_int_equal(ep->counters[DCNT_EP_POST_READ_DATA], 40);
	assert_int_equal(ep->counters[DCNT_EP_POST_WRITE_IMM_DATA], 40);
	assert_int_equal(dapl_queue_count(&ep->sq), 5);
}

/* Operations without a meaningful length have a single counter. */
CASE(atomics_are_counted_without_their_length)
{
	static const struct dapl_post_kind kinds[] = {
		{ DAT_IB_DTO_CMP_SWAP, REQ_EXTENSION, DCNT_EP_POST_CMP_SWAP },
		{ DAT_IB_DTO_CMP_SWAP, REQ_EXTENSION, DAPL_NOT_COUNTED },
	};

	for (int i = 0; i < 2; i++) {
		struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP };

		assert_int_equal(dapl_ep_post_request(ep, &wr, 8, cookie, 0, &kinds[i]), DAT_SUCCESS);
	}
	assert_int_equal(ep->counters[DCNT_EP_POST_CMP_SWAP], 1);
	assert_int_equal(ep->counters[DCNT_EP_POST_FETCH_ADD], 0);
}

CASE(completion_flags_are_translated)
{
	static const struct { int flags; unsigned to, record; } rows[] = {
		{ 0, IBV_SEND_SIGNALED, 0 },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, IBV_SEND_SIGNALED, REQ_NO_NOTIFY },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, 0 },
		{ DAT_COMPLETION_BARRIER_FENCE_FLAG, IBV_SEND_SIGNALED | IBV_SEND_FENCE, 0 },
		{ DAT_COMPLETION_SUPPRESS_FLAG, 0, REQ_SUPPRESS | REQ_UNSIGNALED },
		{ DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
		  DAT_COMPLETION_SOLICITED_WAIT_FLAG, IBV_SEND_FENCE | IBV_SEND_SOLICITED,
		  REQ_SUPPRESS | REQ_UNSIGNALED },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(send_flagged(INLINE + 1, rows[i].flags), DAT_SUCCESS);
		if (posted.send_flags != rows[i].to || record->flags != rows[i].record)
			fail_msg("row %zu: send flags 0x%x, record 0x%x", i, posted.send_flags, record->flags);
	}
}

CASE(flags_that_the_endpoint_excludes_are_refused)
{
	DAT_LMR_TRIPLET one = segment(1);

	assert_int_equal(send_flagged(1, 0x80), BAD_PARAM(5));
	assert_int_equal(dapl_write_any(ep, 1, &one, cookie, &remote, 0x80), BAD_PARAM(6));
	assert_int_equal(dapl_read_any(ep, 1, &one, cookie, &(DAT_RMR_TRIPLET){ .segment_length = 1 }, 0x80),
			 BAD_PARAM(6));
	ep->obj.ia->attr.send_invalidate = true;
	assert_int_equal(dapl_ep_post_send_with_invalidate((DAT_EP_HANDLE)ep, 1, &one, cookie, 0x80, DAT_TRUE, 1),
			 BAD_PARAM(5));
	ep->request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	assert_int_equal(send_flagged(1, DAT_COMPLETION_UNSIGNALLED_FLAG), BAD_PARAM(5));
	assert_int_equal(posts, 0);
	assert_int_equal(send_flagged(1, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
}

/* Else the records of suppressed requests would never be given back. */
CASE(one_suppressed_request_in_half_a_queue_is_signaled)
{
	unsigned signaled = 0;

	for (int i = 1; i <= LIMIT; i++) {
		assert_int_equal(send_flagged(1, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
		if (!(posted.send_flags & IBV_SEND_SIGNALED))
			continue;
		assert_int_equal(record->flags, REQ_SUPPRESS);
		assert_int_equal(i, LIMIT / 2 + 1);
		signaled++;
	}
	assert_int_equal(signaled, 1);
}

CASE(payload_goes_inline_if_it_fits)
{
	assert_int_equal(send_bytes(INLINE), DAT_SUCCESS);
	assert_true(posted.send_flags & IBV_SEND_INLINE);
	assert_int_equal(write_bytes(1), DAT_SUCCESS);
	assert_true(posted.send_flags & IBV_SEND_INLINE);
	assert_int_equal(send_bytes(INLINE + 1), DAT_SUCCESS);
	assert_false(posted.send_flags & IBV_SEND_INLINE);
	assert_int_equal(send_bytes(0), DAT_SUCCESS);
	assert_false(posted.send_flags & IBV_SEND_INLINE);
	assert_int_equal(read_bytes(8, 8), DAT_SUCCESS);
	assert_false(posted.send_flags & IBV_SEND_INLINE);
}

static DAT_RETURN post_fenced(int kind, uint32_t length)
{
	static const DAT_COMPLETION_FLAGS fence = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	DAT_LMR_TRIPLET one = segment(length);

	switch (kind) {
	case 0:
		return dapl_send_any(ep, 1, &one, cookie, fence);
	case 1:
		return dapl_write_any(ep, 1, &one, cookie, &remote, fence);
	case 2:
		return dapl_ep_post_send_immed(ep, 1, &one, cookie, 1, fence);
	case 3:
		return dapl_ep_post_write_immed(ep, 1, &one, cookie, &remote, 1, fence);
	default:
		ia->attr.send_invalidate = true;
		return dapl_ep_post_send_with_invalidate((DAT_EP_HANDLE)ep, 1, &one, cookie, fence, DAT_TRUE, KEY);
	}
}

/* Inline data is copied before the reads in front of the fence have brought it. */
CASE(payload_behind_a_fence_is_not_inline)
{
	static const uint32_t lengths[] = { 1, 8, INLINE };

	for (int kind = 0; kind < 5; kind++)
		for (int i = 0; i < 3; i++) {
			assert_int_equal(post_fenced(kind, lengths[i]), DAT_SUCCESS);
			if (posted.send_flags != (IBV_SEND_SIGNALED | IBV_SEND_FENCE))
				fail_msg("kind %d, %u bytes: send flags 0x%x", kind, lengths[i], posted.send_flags);
		}
}

static DAT_RETURN send_by_call(uint32_t length, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET one = segment(length);

	return dapl_ep_post_send((DAT_EP_HANDLE)ep, 1, &one, cookie, flags);
}

/* Requests begin in the order of their posts, so those behind the fence wait with it. */
CASE(requests_are_inline_again_when_the_fenced_one_has_completed)
{
	struct dapl_dto *fenced;

	assert_int_equal(send_by_call(8, DAT_COMPLETION_BARRIER_FENCE_FLAG), DAT_SUCCESS);
	fenced = record;
	assert_int_equal(send_by_call(8, 0), DAT_SUCCESS);
	assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(send_by_call(8, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
	assert_int_equal(posted.send_flags, 0);
	assert_int_equal(write_bytes(8), DAT_SUCCESS);
	assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED);
	dapl_queue_retire(&ep->sq, fenced);
	for (int i = 0; i < 2; i++) {	/* the first ends the fence, the second takes the fast path */
		assert_int_equal(send_by_call(8, 0), DAT_SUCCESS);
		assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
		assert_int_equal(ep->sq.room, LIMIT);
	}
}

CASE(reset_ends_a_fence)
{
	assert_int_equal(send_by_call(8, DAT_COMPLETION_BARRIER_FENCE_FLAG), DAT_SUCCESS);
	dapl_queue_empty(&ep->sq);
	assert_int_equal(send_by_call(8, 0), DAT_SUCCESS);
	assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
}

CASE(full_queue_gives_suppressed_successes_back)
{
	for (int i = 0; i < LIMIT; i++) {
		assert_int_equal(send_flagged(1, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
		if (posted.send_flags & IBV_SEND_SIGNALED)
			core_complete(evd, &(struct ibv_wc){ .wr_id = (uintptr_t)record });
	}
	assert_int_equal(send_bytes(1), DAT_SUCCESS);
	assert_int_equal(record->end, LIMIT + 1);
	assert_int_equal(dapl_queue_count(&ep->sq), LIMIT / 2);
	assert_int_equal(evd->obj.refs, 1);
}

CASE(refused_post_leaves_no_record)
{
	error = ENOMEM;
	assert_int_equal(send_bytes(1), NO_RESOURCE(MEMORY));
	error = -EINVAL;
	assert_int_equal(DAT_GET_TYPE(send_bytes(1)), DAT_INTERNAL_ERROR);
	error = -1;
	assert_int_not_equal(send_bytes(1), DAT_SUCCESS);
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
	assert_int_equal(ep->counters[DCNT_EP_POST_SEND], 0);
}

/* The device of such an IA returns -1 for a request that it has queued. */
CASE(reported_error_of_a_queued_request_is_success)
{
	ia->attr.no_late_flush = true;
	error = -1;
	assert_int_equal(send_bytes(1), DAT_SUCCESS);
	assert_int_equal(dapl_queue_count(&ep->sq), 1);
	assert_int_equal(ep->counters[DCNT_EP_POST_SEND], 1);
	error = ENOMEM;
	assert_int_not_equal(send_bytes(1), DAT_SUCCESS);
	assert_int_equal(dapl_queue_count(&ep->sq), 1);
}

CASE(freed_endpoint_is_a_bad_handle)
{
	ep->qp = NULL;
	assert_true(dapl_object_kill(&ep->obj));
	assert_int_equal(send_bytes(1), BAD_HANDLE(EP));
	dapl_object_bury(&ep->obj);
	ep = core_ep_new(ia, evd, LIMIT);
}

/* An address handle comes with a datagram; a send without one goes nowhere. */
CASE(datagram_endpoint_takes_only_datagrams)
{
	static const struct dapl_post_kind kind = { DAT_IB_DTO_SEND_UD, REQ_EXTENSION, DCNT_EP_POST_SEND_UD };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	ep->is_ud = true;
	assert_int_equal(DAT_GET_TYPE(send_bytes(1)), DAT_INVALID_STATE);
	assert_int_equal(dapl_ep_post_request(ep, &wr, 1, cookie, 0, &kind), DAT_SUCCESS);
	ep->qp = NULL;
	assert_int_equal(DAT_GET_TYPE(dapl_ep_post_request(ep, &wr, 1, cookie, 0, &kind)), DAT_INVALID_STATE);
}

UNIT_MAIN(NULL, NULL)
