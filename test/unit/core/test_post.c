/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_post.c - the calls that post: what the device, the record and the counters are given on the fast path, that a
 * refused post leaves none of them, and which posts take the slow path (post.c). The slow path is in test_post_slow.c
 * and test_post_recv.c. */
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/pz.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

enum { LIMIT = 16, MESSAGE = 100, RDMA = 200, INLINE = 32, CONTEXT = 5, KEY = 9, AT = 0x2000,
	SUPPRESS = DAT_COMPLETION_SUPPRESS_FLAG, FENCE = DAT_COMPLETION_BARRIER_FENCE_FLAG };

#define TOO_LONG DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE)
#define EP ((DAT_EP_HANDLE)ep)

static const DAT_DTO_COOKIE cookie = { .as_64 = 77 };
static char memory[2 * RDMA];
static struct ibv_send_wr posted;	/* the last request */
static struct ibv_sge sge;		/* the only segment of the last post */
static struct dapl_dto *record;
static int posts, receives, segments, error;

static void note(uint64_t wr_id, const struct ibv_sge *list, int n)
{
	record = (struct dapl_dto *)(uintptr_t)wr_id;
	segments = n;
	sge = n ? *list : (struct ibv_sge){ .length = 0 };
}

static int note_post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	assert_ptr_equal(qp, core_qp());
	assert_null(wr->next);
	posted = *wr;
	note(wr->wr_id, wr->sg_list, wr->num_sge);
	posts++;
	return error;
}

static int note_receive(struct ibv_recv_wr *wr)
{
	assert_null(wr->next);
	note(wr->wr_id, wr->sg_list, wr->num_sge);
	receives++;
	return error;
}

UNIT_FIXTURE(set_up)
{
	posts = receives = error = 0;
	core_endpoint_open(64, DAT_EVD_DTO_FLAG, LIMIT);
	core_device.post_send = note_post;
	core_device.post_recv = note_receive;
	ep->qp = core_qp();
	ep->max_send_iov = ep->max_write_iov = ep->max_read_iov = ep->max_recv_iov = 2;
	ep->max_message = MESSAGE;
	ep->max_rdma = RDMA;
	ep->max_inline = INLINE;
	ia->attr.send_invalidate = true;
}

static DAT_LMR_TRIPLET *segment(uint32_t length)
{
	static DAT_LMR_TRIPLET one;

	one = (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)memory, .segment_length = length,
		.lmr_context = CONTEXT };
	return &one;
}

static const DAT_RMR_TRIPLET *remote_of(uint32_t length)
{
	static DAT_RMR_TRIPLET one;

	one = (DAT_RMR_TRIPLET){ .virtual_address = AT, .segment_length = length, .rmr_context = KEY };
	return &one;
}

static DAT_RETURN send_bytes(uint32_t length, int flags)
{
	return dapl_ep_post_send(EP, 1, segment(length), cookie, (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN write_bytes(uint32_t length, int flags)
{
	return dapl_ep_post_rdma_write(EP, 1, segment(length), cookie, remote_of(150), (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN read_bytes(uint32_t length, int flags)
{
	return dapl_ep_post_rdma_read(EP, 1, segment(length), cookie, remote_of(length), (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN receive_bytes(uint32_t length, int flags)
{
	return dapl_ep_post_recv(EP, 1, segment(length), cookie, (DAT_COMPLETION_FLAGS)flags);
}

static const struct kind {
	DAT_RETURN (*post)(uint32_t length, int flags);
	int op, counter;
	enum ibv_wr_opcode opcode;
} kinds[] = {
	{ send_bytes, DAT_DTO_SEND, DCNT_EP_POST_SEND, IBV_WR_SEND },
	{ write_bytes, DAT_DTO_RDMA_WRITE, DCNT_EP_POST_WRITE, IBV_WR_RDMA_WRITE },
	{ read_bytes, DAT_DTO_RDMA_READ, DCNT_EP_POST_READ, IBV_WR_RDMA_READ },
	{ receive_bytes, DAT_DTO_RECEIVE, DCNT_EP_POST_RECV, (enum ibv_wr_opcode)0 },
};
enum { KINDS = sizeof kinds / sizeof *kinds, RECEIVE = KINDS - 1 };

static struct dapl_queue *queue_of(int kind) { return kind == RECEIVE ? &ep->rq : &ep->sq; }

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close_unused)

/* --- what is posted -------------------------------------------------------------------- */

CASE(plain_post_is_recorded_and_counted)
{
	for (int i = 0; i < KINDS; i++) {
		struct dapl_queue *q = queue_of(i);
		uint32_t before = q->head;

		q->ring[before].flags = REQ_SUPPRESS;	/* of an earlier post */
		assert_int_equal(kinds[i].post(40, 0), DAT_SUCCESS);
		assert_ptr_equal(record, &q->ring[before]);
		assert_int_equal(record->cookie.as_64, cookie.as_64);
		assert_int_equal(record->length, 40);
		assert_int_equal(record->op, kinds[i].op);
		assert_int_equal(record->flags, 0);
		assert_int_equal(record->end, before + 1);
		assert_int_equal(q->head, before + 1);
		assert_int_equal(segments, 1);
		assert_int_equal(sge.addr, (uintptr_t)memory);
		assert_int_equal(sge.length, 40);
		assert_int_equal(sge.lkey, CONTEXT);
		assert_int_equal(ep->counters[kinds[i].counter], 1);
		assert_int_equal(ep->counters[kinds[i].counter + 1], 40);
		if (i != RECEIVE)
			assert_int_equal(posted.opcode, kinds[i].opcode);
	}
	assert_int_equal(posts, 3);
	assert_int_equal(receives, 1);
}

CASE(completion_gives_the_record_back)
{
	DAT_EVENT event;

	for (int i = 0; i < 3 * LIMIT; i++) {
		const struct kind *kind = &kinds[i % KINDS];

		assert_int_equal(kind->post(40, 0), DAT_SUCCESS);
		core_complete(evd, &(struct ibv_wc){ .wr_id = (uintptr_t)record, .byte_len = 40 });
		assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
		assert_int_equal(event.event_data.dto_completion_event_data.operation, kind->op);
		assert_int_equal(event.event_data.dto_completion_event_data.transfered_length, 40);
		assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie.as_64);
	}
	assert_int_equal(dapl_queue_count(&ep->sq) + dapl_queue_count(&ep->rq), 0);
}

CASE(short_payloads_go_inline_but_not_into_reads)
{
	static const struct {
		uint32_t length;
		unsigned flags;
	} rows[] = { { 1, IBV_SEND_INLINE }, { INLINE, IBV_SEND_INLINE }, { INLINE + 1, 0 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(send_bytes(rows[i].length, 0), DAT_SUCCESS);
		assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED | rows[i].flags);
		assert_int_equal(write_bytes(rows[i].length, 0), DAT_SUCCESS);
		assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED | rows[i].flags);
		assert_int_equal(read_bytes(rows[i].length, 0), DAT_SUCCESS);
		assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED);
		assert_int_equal(send_bytes(rows[i].length, SUPPRESS), DAT_SUCCESS);
		assert_int_equal(posted.send_flags & IBV_SEND_INLINE, rows[i].flags);
	}
}

/* Otherwise their records would never be given back. */
CASE(suppressed_post_of_each_half_queue_is_signaled)
{
	for (int i = 0; i < LIMIT; i++) {
		bool signaled = i == LIMIT / 2;

		assert_int_equal(kinds[i % 2].post(40, SUPPRESS), DAT_SUCCESS);
		assert_int_equal(posted.send_flags, signaled ? IBV_SEND_SIGNALED : 0);
		assert_int_equal(record->flags, REQ_SUPPRESS | (signaled ? 0 : REQ_UNSIGNALED));
		assert_int_equal(record->op, kinds[i % 2].op);
	}
	assert_int_equal(ep->counters[DCNT_EP_POST_SEND] + ep->counters[DCNT_EP_POST_WRITE], LIMIT);
}

CASE(odd_posts_are_posted_all_the_same)
{
	DAT_LMR_TRIPLET two[2] = { *segment(8), *segment(4) };

	assert_int_equal(dapl_ep_post_send(EP, 2, two, cookie, 0), DAT_SUCCESS);
	assert_int_equal(segments, 2);
	assert_int_equal(dapl_ep_post_rdma_write(EP, 2, two, cookie, remote_of(12), 0), DAT_SUCCESS);
	assert_int_equal(segments, 2);
	assert_int_equal(dapl_ep_post_rdma_read(EP, 2, two, cookie, remote_of(12), 0), DAT_SUCCESS);
	assert_int_equal(segments, 2);
	assert_int_equal(dapl_ep_post_recv(EP, 2, two, cookie, 0), DAT_SUCCESS);
	assert_int_equal(segments, 2);
	for (int i = 0; i < KINDS; i++) {
		assert_int_equal(kinds[i].post(0, 0), DAT_SUCCESS);
		assert_int_equal(segments, 0);
		assert_int_equal(record->length, 0);
		if (i == RECEIVE)
			break;
		assert_int_equal(kinds[i].post(40, FENCE), DAT_SUCCESS);
		assert_int_equal(posted.send_flags, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	}
	assert_int_equal(read_bytes(40, SUPPRESS), DAT_SUCCESS);
	assert_int_equal(record->flags & REQ_SUPPRESS, REQ_SUPPRESS);
}

/* --- what is refused ------------------------------------------------------------------- */

CASE(lengths_are_limited)
{
	assert_int_equal(send_bytes(MESSAGE + 1, 0), TOO_LONG);
	assert_int_equal(send_bytes(MESSAGE + 1, SUPPRESS), TOO_LONG);
	assert_int_equal(write_bytes(151, 0), TOO_LONG);	/* beyond the memory of the peer */
	assert_int_equal(write_bytes(151, SUPPRESS), TOO_LONG);
	assert_int_equal(read_bytes(RDMA + 1, 0), TOO_LONG);
	assert_int_equal(dapl_ep_post_rdma_write(EP, 1, segment(RDMA + 1), cookie, remote_of(RDMA + 1), 0), TOO_LONG);
	assert_int_equal(dapl_ep_post_rdma_read(EP, 1, segment(39), cookie, remote_of(40), 0), TOO_LONG);
	assert_int_equal(posts, 0);
	assert_int_equal(send_bytes(MESSAGE, 0), DAT_SUCCESS);
	assert_int_equal(write_bytes(150, 0), DAT_SUCCESS);
	assert_int_equal(read_bytes(RDMA, 0), DAT_SUCCESS);
	assert_int_equal(receive_bytes(0x80000000, 0), DAT_SUCCESS);	/* a buffer may be larger */
	assert_int_equal(dapl_ep_post_rdma_read(EP, 1, segment(41), cookie, remote_of(40), 0), DAT_SUCCESS);
	assert_int_equal(sge.length, 40);
}

CASE(missing_arguments_are_refused)
{
	assert_int_equal(dapl_ep_post_send(EP, 1, NULL, cookie, 0), BAD_PARAM(3));
	assert_int_equal(dapl_ep_post_send(EP, 1, NULL, cookie, DAT_COMPLETION_SUPPRESS_FLAG), BAD_PARAM(3));
	assert_int_equal(dapl_ep_post_send(EP, -1, segment(1), cookie, 0), BAD_PARAM(2));
	assert_int_equal(dapl_ep_post_send(EP, 3, segment(1), cookie, 0), BAD_PARAM(2));
	assert_int_equal(send_bytes(40, 0x80), BAD_PARAM(5));
	assert_int_equal(dapl_ep_post_rdma_write(EP, 1, NULL, cookie, remote_of(40), 0), BAD_PARAM(3));
	assert_int_equal(dapl_ep_post_rdma_write(EP, 1, segment(40), cookie, NULL, 0), BAD_PARAM(5));
	assert_int_equal(write_bytes(40, 0x80), BAD_PARAM(6));
	assert_int_equal(dapl_ep_post_rdma_read(EP, 1, NULL, cookie, remote_of(40), 0), BAD_PARAM(3));
	assert_int_equal(dapl_ep_post_rdma_read(EP, 1, segment(40), cookie, NULL, 0), BAD_PARAM(5));
	assert_int_equal(read_bytes(40, 0x80), BAD_PARAM(6));
	assert_int_equal(dapl_ep_post_recv(EP, 1, NULL, cookie, 0), BAD_PARAM(3));
	assert_int_equal(dapl_ep_post_recv(EP, -1, segment(1), cookie, 0), BAD_PARAM(2));
	assert_int_equal(receive_bytes(40, SUPPRESS), BAD_PARAM(5));
	assert_int_equal(dapl_ep_post_send_with_invalidate(NULL, 1, segment(1), cookie, 0, DAT_TRUE, KEY),
			 BAD_HANDLE(EP));
	assert_int_equal(dapl_ep_post_rdma_read_to_rmr(NULL, remote_of(1), cookie, remote_of(1), 0), BAD_HANDLE(EP));
	assert_int_equal(posts + receives, 0);
}

CASE(post_that_the_device_refuses_is_taken_back)
{
	for (int i = 0; i < KINDS; i++) {
		error = ENOMEM;
		assert_int_equal(kinds[i].post(40, 0), NO_RESOURCE(MEMORY));
		error = -1;
		assert_int_not_equal(kinds[i].post(40, 0), DAT_SUCCESS);
		assert_int_equal(dapl_queue_count(queue_of(i)), 0);	/* and the lock is free */
		assert_int_equal(ep->counters[kinds[i].counter], 0);
		assert_int_equal(ep->counters[kinds[i].counter + 1], 0);
	}
	error = 0;
	assert_int_equal(send_bytes(40, 0), DAT_SUCCESS);
	assert_ptr_equal(record, &ep->sq.ring[0]);
}

/* Such a device reports -1 for a request that it has queued: a completion follows. */
CASE(post_that_was_queued_in_spite_of_an_error_stands)
{
	ia->attr.no_late_flush = true;
	error = -1;
	for (int i = 0; i < KINDS; i++) {
		uint32_t before = queue_of(i)->head;

		assert_int_equal(kinds[i].post(40, 0), DAT_SUCCESS);
		assert_int_equal(queue_of(i)->head, before + 1);
		assert_int_equal(ep->counters[kinds[i].counter], 1);
		assert_int_equal(ep->counters[kinds[i].counter + 1], 40);
	}
}

static void set_room(void)
{
	dapl_mutex_lock(&ep->lock);
	dapl_ep_set_room(ep);
	dapl_mutex_unlock(&ep->lock);
}

CASE(raw_endpoint_has_no_memory_of_a_peer)
{
	ep->is_raw = ep->is_ud = true;
	set_room();
	assert_int_equal(write_bytes(40, 0), NOT_SUPPORTED);
	assert_int_equal(read_bytes(40, 0), NOT_SUPPORTED);
	assert_int_equal(dapl_ep_post_send_with_invalidate(EP, 1, segment(40), cookie, 0, DAT_TRUE, KEY),
			 NOT_SUPPORTED);
	assert_int_equal(posts, 0);
	assert_int_equal(send_bytes(40, 0), DAT_SUCCESS);
}

/* --- DAT 2.0 --------------------------------------------------------------------------- */

static DAT_RETURN invalidate(DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_BOOLEAN flag)
{
	return dapl_ep_post_send_with_invalidate(EP, n, iov, cookie, 0, flag, KEY);
}

CASE(send_invalidates_if_asked_to)
{
	assert_int_equal(invalidate(1, segment(40), DAT_TRUE), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_SEND_WITH_INV);
	assert_int_equal(posted.invalidate_rkey, KEY);
	assert_int_equal(record->op, DAT_DTO_SEND);
	assert_int_equal(record->cookie.as_64, cookie.as_64);
	assert_int_equal(sge.length, 40);
	assert_int_equal(invalidate(0, NULL, DAT_TRUE), DAT_SUCCESS);
	assert_int_equal(segments, 0);
	assert_int_equal(invalidate(-1, segment(40), DAT_TRUE), BAD_PARAM(2));
	assert_int_equal(invalidate(3, segment(40), DAT_TRUE), BAD_PARAM(2));
	assert_int_equal(invalidate(1, NULL, DAT_TRUE), BAD_PARAM(3));
	assert_int_equal(invalidate(1, segment(MESSAGE + 1), DAT_TRUE), TOO_LONG);
	ia->attr.send_invalidate = false;
	assert_int_equal(invalidate(1, segment(40), DAT_TRUE), NOT_SUPPORTED);
	assert_int_equal(posts, 2);
	assert_int_equal(invalidate(1, segment(40), DAT_FALSE), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_SEND);
}

CASE(read_to_rmr_reads_into_the_lmr_of_the_context)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_CONTEXT lmr_context = 0;
	DAT_RMR_TRIPLET sink = { .virtual_address = (uintptr_t)memory, .segment_length = 40 };
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz, other;

	ia->ia_attr.max_lmr_block_size = 1 << 20;
	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, &pz), DAT_SUCCESS);
	assert_int_equal(dapl_pz_create((DAT_IA_HANDLE)ia, &other), DAT_SUCCESS);
	assert_int_equal(dapl_lmr_create((DAT_IA_HANDLE)ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, pz,
					 (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
							      DAT_MEM_PRIV_REMOTE_WRITE_FLAG), DAT_VA_TYPE_VA, &lmr,
					 &lmr_context, &sink.rmr_context, NULL, NULL), DAT_SUCCESS);
	ep->pz = (struct dapl_pz *)pz;
	assert_int_equal(dapl_ep_post_rdma_read_to_rmr(EP, NULL, cookie, remote_of(40), 0), BAD_PARAM(2));
	assert_int_equal(dapl_ep_post_rdma_read_to_rmr(EP, &sink, cookie, NULL, 0), BAD_PARAM(4));
	assert_int_equal(dapl_ep_post_rdma_read_to_rmr(EP, remote_of(40), cookie, remote_of(40), 0),
			 DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_RDMA_WRITE));
	ep->pz = (struct dapl_pz *)other;
	assert_int_equal(dapl_ep_post_rdma_read_to_rmr(EP, &sink, cookie, remote_of(40), 0),
			 DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_RDMA_WRITE));
	assert_int_equal(posts, 0);
	ep->pz = (struct dapl_pz *)pz;
	assert_int_equal(dapl_ep_post_rdma_read_to_rmr(EP, &sink, cookie, remote_of(40), 0), DAT_SUCCESS);
	assert_int_equal(posted.opcode, IBV_WR_RDMA_READ);
	assert_int_equal(sge.addr, (uintptr_t)memory);
	assert_int_equal(sge.lkey, lmr_context);
	assert_int_equal(posted.wr.rdma.rkey, KEY);
	ep->pz = NULL;
	assert_int_equal(dapl_lmr_free(lmr), DAT_SUCCESS);
	assert_int_equal(dapl_pz_free(pz), DAT_SUCCESS);
	assert_int_equal(dapl_pz_free(other), DAT_SUCCESS);
}

UNIT_MAIN(NULL, NULL)
