/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_recv.c - receives of raw QPs: posted ones, and those of a ring, whose memory is the provider's.
 *
 * To a device a frame that is longer than its receive is an error that ends the QP. So each receive has one more
 * segment for the rest, whose content is not looked at. Receives of one QP complete in order, so a counter says which
 * one it was. */
#include "eth_clock.h"
#include "eth_recv.h"
#include "eth_rule.h"
#include "hw.h"
#include "common/bits.h"
#include "common/clock.h"
#include "common/growth.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOT_ALIGN = 64 };		/* bytes of a cache line */

/* --- memory and CQ -------------------------------------------------------------------------- */

static int memory_open(struct ibv_pd *pd, size_t size, struct hw_eth_memory *m)
{
	m->at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->at == MAP_FAILED) {
		m->at = NULL;
		return errno;
	}
	m->size = size;
	m->mr = ibv_reg_mr(pd, m->at, size, IBV_ACCESS_LOCAL_WRITE);
	return m->mr ? 0 : hw_null_errno();
}

static void memory_close(struct hw_eth_memory *m)
{
	if (m->mr)
		ibv_dereg_mr(m->mr);
	if (m->at)
		munmap(m->at, m->size);
	*m = (struct hw_eth_memory){ .at = NULL };
}

static uint32_t receives(const struct hw_eth *q)
{
	return q->config.ring_frames ? q->config.ring_frames : q->init.cap.max_recv_wr ? q->init.cap.max_recv_wr : 1;
}

static bool try_cq(struct hw_eth *q, uint64_t flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = receives(q), .cq_context = q->init.recv_cq->cq_context,
		.channel = q->init.recv_cq->channel, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | flags };

	q->cq_ex = ibv_create_cq_ex(q->eth->dev->verbs, &attr);
	if (!q->cq_ex)
		return false;
	q->cq = ibv_cq_ex_to_cq(q->cq_ex);
	q->wc_flags = attr.wc_flags;
	q->rules.tagged = attr.wc_flags & IBV_WC_EX_WITH_FLOW_TAG;
	return true;
}

/* Opens a CQ with time stamps and flow tags, or with what the device has of them. */
static int open_cq(struct hw_eth *q)
{
	uint64_t stamps = hw_eth_clock_works(q->eth) ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP : 0;
	uint64_t tags = q->eth->caps.tags ? IBV_WC_EX_WITH_FLOW_TAG : 0;

	if (try_cq(q, stamps | tags) || try_cq(q, tags) || try_cq(q, stamps) || try_cq(q, 0))
		return 0;
	q->cq = ibv_create_cq(q->eth->dev->verbs, (int)receives(q), q->init.recv_cq->cq_context,
			      q->init.recv_cq->channel, 0);
	return q->cq ? 0 : hw_null_errno();
}

/* Bytes of the longest frame that may come. */
static uint32_t longest(const struct hw_eth *q)
{
	return q->max_frame + HW_ETH_TAGS + (q->config.fcs ? HW_ETH_FCS : 0);
}

static int open_ring(struct hw_eth *q)
{
	uint32_t whole = longest(q);
	uint32_t snap = q->config.snap && q->config.snap < whole ? q->config.snap : whole;

	q->slot = (snap + SLOT_ALIGN - 1) & ~(uint32_t)(SLOT_ALIGN - 1);
	q->config.snap = snap;
	q->config.ring_frames = round_up_power_of_two(q->config.ring_frames);
	q->config.mask = q->config.ring_frames - 1;
	q->ready = calloc((size_t)q->config.mask + 1, sizeof *q->ready);
	if (!q->ready)
		return ENOMEM;
	return memory_open(q->qp.pd, (size_t)q->slot * q->config.ring_frames, &q->ring);
}

int hw_eth_recv_open(struct hw_eth *q)
{
	int err = memory_open(q->qp.pd, longest(q), &q->spill);

	if (!err && q->config.ring_frames)
		err = open_ring(q);
	if (!err)
		err = open_cq(q);
	if (err)
		return err;
	q->rooms = calloc((size_t)q->config.mask + 1, sizeof *q->rooms);
	return q->rooms ? 0 : ENOMEM;
}

void hw_eth_recv_close(struct hw_eth *q)
{
	if (q->cq)
		ibv_destroy_cq(q->cq);
	q->cq = NULL;
	memory_close(&q->spill);
	memory_close(&q->ring);
	free(q->ready);
	free(q->rooms);
	q->ready = NULL;
	q->rooms = NULL;
}

/* --- posting; q->lock held -------------------------------------------------------------------- */

/* Posts one receive, with the segment for the rest. `room`: bytes of the segments. */
static int post_one(struct hw_eth *q, uint64_t wr_id, struct ibv_sge *sge, int n, uint32_t room)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = n }, *bad;
	int err;

	assert_held(&q->lock);
	if (room < q->spill.size) {
		sge[wr.num_sge++] = (struct ibv_sge){ .addr = (uintptr_t)q->spill.at,
			.length = (uint32_t)q->spill.size - room, .lkey = q->spill.mr->lkey };
	}
	err = hw_errno(q->wq ? ibv_post_wq_recv(q->wq, &wr, &bad) : ibv_post_recv(q->hw, &wr, &bad));
	if (!err)
		q->rooms[q->posted++ & q->config.mask] = room;
	return err;
}

static int post_copy(struct hw_eth *q, const struct ibv_recv_wr *wr)
{
	struct ibv_sge sge[HW_ETH_MAX_SGE + 1];
	uint32_t room = 0;
	int n = 0;

	assert_held(&q->lock);
	for (int i = 0; i < wr->num_sge; i++)
		if (wr->sg_list[i].length) {
			sge[n++] = wr->sg_list[i];
			room += wr->sg_list[i].length;
		}
	return post_one(q, wr->wr_id, sge, n, room);
}

int hw_eth_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct hw_eth *q = hw_eth_of(qp);
	int err = 0;

	*bad = wr;
	if (q->config.ring_frames || !q->hw)
		return EOPNOTSUPP;
	dapl_mutex_lock(&q->lock);
	for (; wr && !err; wr = wr->next) {
		*bad = wr;
		err = (uint32_t)wr->num_sge > q->init.cap.max_recv_sge || wr->num_sge > HW_ETH_MAX_SGE ?
			EINVAL : post_copy(q, wr);
	}
	dapl_mutex_unlock(&q->lock);
	return err;
}

static uint8_t *slot_at(const struct hw_eth *q, uint32_t n)
{
	return q->ring.at + (size_t)(n & q->config.mask) * q->slot;
}

static int post_slot(struct hw_eth *q)
{
	struct ibv_sge sge[2] = { { .addr = (uintptr_t)slot_at(q, q->posted), .length = q->config.snap,
		.lkey = q->ring.mr->lkey } };

	assert_held(&q->lock);
	return post_one(q, 0, sge, 1, q->config.snap);
}

int hw_eth_recv_fill(struct hw_eth *q)
{
	int err = 0;

	dapl_mutex_lock(&q->lock);
	while (!err && q->posted - q->released < q->config.ring_frames)
		err = post_slot(q);
	dapl_mutex_unlock(&q->lock);
	return err;
}

/* --- completions; q->lock held ------------------------------------------------------------------ */

/* A completion, whether it comes from an extended CQ or from a plain one. */
struct done {
	uint64_t wr_id, stamp;
	enum ibv_wc_status status;
	uint32_t vendor_err, length, tag;
	bool checksums_right;
};

static void read_extended(struct hw_eth *q, struct done *d)
{
	struct ibv_cq_ex *cq = q->cq_ex;

	assert_held(&q->lock);
	*d = (struct done){ .wr_id = cq->wr_id, .status = cq->status };
	if (d->status != IBV_WC_SUCCESS) {
		d->vendor_err = ibv_wc_read_vendor_err(cq);
		return;
	}
	d->length = ibv_wc_read_byte_len(cq);
	d->checksums_right = ibv_wc_read_wc_flags(cq) & IBV_WC_IP_CSUM_OK;
	if (q->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		d->stamp = ibv_wc_read_completion_ts(cq);
	if (q->wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		d->tag = ibv_wc_read_flow_tag(cq);
}

static int poll_extended(struct hw_eth *q, struct done *done, int n)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	int taken = 0;

	assert_held(&q->lock);
	if (ibv_start_poll(q->cq_ex, &attr))
		return 0;
	do {
		read_extended(q, &done[taken++]);
	} while (taken < n && !ibv_next_poll(q->cq_ex));
	ibv_end_poll(q->cq_ex);
	return taken;
}

enum { BATCH = 16 };

static int poll_done(struct hw_eth *q, struct done *done, int n)
{
	struct ibv_wc wc[BATCH];
	int taken;

	assert_held(&q->lock);
	if (q->cq_ex)
		return poll_extended(q, done, n);
	taken = q->eth->poll_cq(q->cq, n, wc);
	for (int i = 0; i < taken; i++)
		done[i] = (struct done){ .wr_id = wc[i].wr_id, .status = wc[i].status, .vendor_err = wc[i].vendor_err,
			.length = wc[i].byte_len, .checksums_right = wc[i].wc_flags & IBV_WC_IP_CSUM_OK };
	return taken > 0 ? taken : 0;
}

static uint64_t time_of(struct hw_eth *q, const struct done *d)
{
	if (!(q->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP))
		return 0;
	/* the conversion may have been fitted again meanwhile */
	q->last_time = frame_time_even_out(hw_eth_clock_convert(q->eth, d->stamp), q->last_time);
	return q->last_time;
}

/* ETH-8, 39 */
static void describe(struct hw_eth *q, const struct done *d, uint32_t room, struct dapl_eth_frame *frame)
{
	uint32_t counted = q->config.fcs ? d->length - HW_ETH_FCS : d->length;

	*frame = (struct dapl_eth_frame){ .length = d->length < room ? d->length : room, .wire_length = d->length,
		.time = time_of(q, d), .tag = hw_eth_rule_hit(q, d->tag, counted) };
	if (q->config.fcs)
		frame->flags |= ETH_FRAME_FCS;
	if (frame->time)
		frame->flags |= ETH_FRAME_HW_TIME;
	if (d->checksums_right)
		frame->flags |= ETH_FRAME_IP_OK | ETH_FRAME_L4_OK;
	q->stats.received++;
	q->stats.received_bytes += counted;
}

/* --- for the EVD --------------------------------------------------------------------------------- */

static void fill_wc(struct hw_eth *q, const struct done *d, struct ibv_wc *wc)
{
	uint32_t at = q->received & q->config.mask;
	struct dapl_eth_frame *frame = &q->config.frames[at];

	*wc = (struct ibv_wc){ .wr_id = d->wr_id, .status = d->status, .opcode = IBV_WC_RECV,
		.vendor_err = d->vendor_err, .qp_num = q->qp.qp_num, .src_qp = q->received };
	if (d->status == IBV_WC_SUCCESS) {
		describe(q, d, q->rooms[at], frame);
		wc->byte_len = frame->length;
	}
	q->received++;
}

static int poll_posted(struct hw_eth *q, int n, struct ibv_wc *wc)
{
	struct done done[BATCH];
	int taken = poll_done(q, done, n < BATCH ? n : BATCH);

	assert_held(&q->lock);
	for (int i = 0; i < taken; i++)
		fill_wc(q, &done[i], &wc[i]);
	return taken;
}

/* Moves completions of the ring to `ready`, which has room for all. A receive that failed is no frame: it
 * has ended the QP. */
static void pull_ring(struct hw_eth *q)
{
	struct done done[BATCH];
	int taken;

	assert_held(&q->lock);
	do {
		taken = poll_done(q, done, BATCH);
		for (int i = 0; i < taken; i++) {
			struct dapl_eth_frame *frame = &q->ready[q->received & q->config.mask];

			if (done[i].status != IBV_WC_SUCCESS)
				continue;
			describe(q, &done[i], q->rooms[q->received & q->config.mask], frame);
			frame->data = slot_at(q, q->received++);
		}
	} while (taken == BATCH);
}

/* The completion for dat_eth_arm(). */
static int poll_armed(struct hw_eth *q, struct ibv_wc *wc)
{
	assert_held(&q->lock);
	if (!q->armed)
		return 0;
	pull_ring(q);
	if (q->taken == q->received)
		return 0;
	__atomic_store_n(&q->armed, false, __ATOMIC_RELAXED);
	*wc = (struct ibv_wc){ .wr_id = q->armed_wr, .opcode = IBV_WC_RECV, .qp_num = q->qp.qp_num };
	return 1;
}

int hw_eth_poll_frames(struct hw_eth *q, int n, struct ibv_wc *wc)
{
	int taken;

	dapl_mutex_lock(&q->lock);
	taken = q->config.ring_frames ? poll_armed(q, wc) : poll_posted(q, n, wc);
	dapl_mutex_unlock(&q->lock);
	return taken;
}

void hw_eth_recv_empty(struct hw_eth *q)
{
	struct done done[BATCH];

	dapl_mutex_lock(&q->lock);
	while (poll_done(q, done, BATCH) > 0)
		;
	q->posted = q->received = q->taken = q->released = 0;
	q->armed = false;
	dapl_mutex_unlock(&q->lock);
}

/* --- the ring --------------------------------------------------------------------------------------- */

int hw_eth_ring_poll(struct ibv_qp *qp, struct dapl_eth_frame *frames, int max)
{
	struct hw_eth *q = hw_eth_of(qp);
	int n = 0;

	dapl_mutex_lock(&q->lock);
	if (q->taken == q->received)
		pull_ring(q);
	while (n < max && q->taken != q->received)
		frames[n++] = q->ready[q->taken++ & q->config.mask];
	dapl_mutex_unlock(&q->lock);
	return n;
}

int hw_eth_ring_release(struct ibv_qp *qp, uint32_t oldest)
{
	struct hw_eth *q = hw_eth_of(qp);
	int err = 0;

	dapl_mutex_lock(&q->lock);
	if (oldest > q->taken - q->released)
		err = EINVAL;
	for (; oldest && !err; oldest--) {
		q->released++;
		err = post_slot(q);
	}
	dapl_mutex_unlock(&q->lock);
	return err;
}

int hw_eth_ring_arm(struct ibv_qp *qp, uint64_t wr_id)
{
	struct hw_eth *q = hw_eth_of(qp);
	int err;

	dapl_mutex_lock(&q->lock);
	q->armed_wr = wr_id;
	__atomic_store_n(&q->armed, true, __ATOMIC_RELAXED);
	err = hw_errno(q->eth->req_notify_cq(q->cq, 0));
	if (err)
		__atomic_store_n(&q->armed, false, __ATOMIC_RELAXED);
	pull_ring(q);			/* frames that came before make no event */
	if (!err && q->taken != q->received)
		err = EALREADY;
	dapl_mutex_unlock(&q->lock);
	return err;
}
