/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.c - puts a flush behind each RDMA write of some queue pairs, and makes one completion of both (flush.h).
 *
 * The write is unsignaled. If it succeeds, the completion of the flush is the only one. If it fails, its own completion
 * is handed out, and that of the flush, which follows in any case, is not. */
#include "flush.h"
#include "common/lock.h"
#include "hw.h"
#include "object_table.h"
#include "segments.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* Of rdma-core 46 and newer, whose interface to programs of older headers is the same. */
enum {
	QP_EX_WITH_FLUSH = 1 << 11,
	FLUSH_GLOBAL = 1 << 0,		/* visible to all that read the peer's memory */
	FLUSH_RANGE = 0,
};

/* Marks in a wr_id of the device, which is an address of user space or the number of a frame without them. */
static const uint64_t PAIR_FLUSH = UINT64_C(1) << 63, PAIR_WRITE = UINT64_C(1) << 62, PAIR = UINT64_C(3) << 62;

typedef void flush_function(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type,
			    uint8_t level);

struct flushed_qp {
	struct object_entry entry;	/* first; of key_of() the queue pair */
	struct flushed_qp *next;
	uint32_t qpn;
	uint64_t failed;		/* wr_id of the write whose failure was handed out last; 0: none */
};

struct flusher {
	struct object_entry entry;	/* first; of key_of_context() */
	struct ibv_context_ops below;
	struct dapl_mutex lock;		/* guards qps and what they hold */
	struct flushed_qp *qps;
};

/* Addresses within the objects: those of the objects are keys of siw.c and segments.c. */
static const void *key_of(const struct ibv_qp *qp)
{
	return &qp->qp_context;
}

static const void *key_of_context(const struct ibv_context *verbs)
{
	return &verbs->ops;
}

/* Returns NULL for a context that was not adopted. */
static struct flusher *flusher_of(const struct ibv_context *verbs)
{
	return (struct flusher *)object_table_find(key_of_context(verbs));
}

/* What rdma-core 46 put behind the members that its older headers know. The library made the queue pair with
 * QP_EX_WITH_FLUSH, so the function exists. */
struct newer_members {
	void (*wr_abort)(struct ibv_qp_ex *qp);		/* the last one of older headers */
	void (*wr_atomic_write)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *value);
	flush_function *wr_flush;
};

static flush_function *flush_of(struct ibv_qp_ex *qp)
{
	const struct newer_members *m = (const void *)((const char *)qp + offsetof(struct ibv_qp_ex, wr_abort));

	return m->wr_flush;
}

/* --- posting --------------------------------------------------------------------------------- */

static uint64_t length_of(const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length;
}

static bool needs_flush(const struct ibv_send_wr *wr)
{
	return (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) &&
	       wr->send_flags & IBV_SEND_SIGNALED && length_of(wr);
}

/* Posts both requests or, after an error, none. Nothing is sent inline: rxe sends zeros in place of a list of inline
 * data (findings/rxe-inline-data-list.sh). */
static int post_pair(struct ibv_qp *qp, const struct ibv_send_wr *posted)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_send_wr copy = *posted, *wr = &copy;
	int err;

	wr->send_flags &= ~(IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	err = hw_segments_check(qp, wr);
	if (err)
		return err;
	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id | PAIR_WRITE;
	ex->wr_flags = wr->send_flags;
	if (wr->opcode == IBV_WR_RDMA_WRITE)
		ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	else
		ibv_wr_rdma_write_imm(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
	ibv_wr_set_sge_list(ex, wr->num_sge, wr->sg_list);
	ex->wr_id = wr->wr_id | PAIR_FLUSH;
	ex->wr_flags = IBV_SEND_SIGNALED;
	flush_of(ex)(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, length_of(wr), FLUSH_GLOBAL, FLUSH_RANGE);
	return hw_errno(ibv_wr_complete(ex));
}

static int flush_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct flusher *f = flusher_of(qp->context);
	int err = 0;

	if (!object_table_find(key_of(qp)))
		return f->below.post_send(qp, wr, bad);
	for (; wr && !err; wr = wr->next) {
		struct ibv_send_wr one = *wr, *refused;

		one.next = NULL;
		err = needs_flush(wr) ? post_pair(qp, wr) : f->below.post_send(qp, &one, &refused);
		if (err)
			*bad = wr;
	}
	return err;
}

/* --- completions ----------------------------------------------------------------------------- */

/* f->lock held. Returns NULL after the queue pair was removed. */
static struct flushed_qp *find_qp(struct flusher *f, uint32_t qpn)
{
	struct flushed_qp *q = f->qps;

	assert_held(&f->lock);
	while (q && q->qpn != qpn)
		q = q->next;
	return q;
}

/* Of a failed request of a pair: returns true if it is the flush behind a write whose failure was handed out. */
static bool is_repeated(struct flusher *f, const struct ibv_wc *wc)
{
	uint64_t wr_id = wc->wr_id & ~PAIR;
	struct flushed_qp *q;
	bool repeated;

	dapl_mutex_lock(&f->lock);
	q = find_qp(f, wc->qp_num);
	repeated = q && wc->wr_id & PAIR_FLUSH && q->failed == wr_id;
	if (q)
		q->failed = wc->wr_id & PAIR_WRITE ? wr_id : 0;
	dapl_mutex_unlock(&f->lock);
	return repeated;
}

/* Makes completions of writes from those of pairs. Returns how many remain. */
static int join_pairs(struct flusher *f, int n, struct ibv_wc *wc)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		struct ibv_wc *to = &wc[kept];

		if (kept != i)
			*to = wc[i];
		if (to->wr_id & PAIR) {
			if (to->status != IBV_WC_SUCCESS && is_repeated(f, to))
				continue;
			to->wr_id &= ~PAIR;
			to->opcode = IBV_WC_RDMA_WRITE;
		}
		kept++;
	}
	return kept;
}

/* Returns 0 only if the CQ is empty: the caller may sleep then. */
static int flush_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	struct flusher *f = flusher_of(cq->context);
	int n, kept;

	do {
		n = f->below.poll_cq(cq, entries, wc);
		kept = n > 0 ? join_pairs(f, n, wc) : n;
	} while (n > 0 && !kept);
	return kept;
}

/* --- life ------------------------------------------------------------------------------------ */

bool hw_flush_is_offered(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = hw_flush_make_qp(pd, &attr);

	if (qp)
		ibv_destroy_qp(qp);
	return qp != NULL;
}

int hw_flush_adopt(struct ibv_context *verbs)
{
	struct flusher *f = calloc(1, sizeof *f);

	if (!f)
		return ENOMEM;
	f->below = verbs->ops;
	dapl_mutex_init(&f->lock, RANK_OBJECT_TABLE);	/* never held with the table's */
	object_table_add(&f->entry, key_of_context(verbs));
	verbs->ops.post_send = flush_post_send;
	verbs->ops.poll_cq = flush_poll_cq;
	return 0;
}

void hw_flush_release(struct ibv_context *verbs)
{
	free(object_table_remove(key_of_context(verbs)));
}

struct ibv_qp *hw_flush_make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
		.cap = attr->cap, .qp_type = attr->qp_type, .sq_sig_all = attr->sq_sig_all, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | QP_EX_WITH_FLUSH,
	};
	struct ibv_qp *qp;

	ex.cap.max_send_wr *= 2;
	qp = ibv_create_qp_ex(pd->context, &ex);
	if (qp) {
		attr->cap = ex.cap;
		attr->cap.max_send_wr /= 2;
	}
	return qp;
}

int hw_flush_qp_add(struct ibv_qp *qp)
{
	struct flusher *f = flusher_of(qp->context);
	struct flushed_qp *q = calloc(1, sizeof *q);

	if (!q)
		return ENOMEM;
	q->qpn = qp->qp_num;
	dapl_mutex_lock(&f->lock);
	q->next = f->qps;
	f->qps = q;
	dapl_mutex_unlock(&f->lock);
	object_table_add(&q->entry, key_of(qp));
	return 0;
}

static void forget_qp(struct flusher *f, struct flushed_qp *q)
{
	struct flushed_qp **at;

	dapl_mutex_lock(&f->lock);
	for (at = &f->qps; *at != q; at = &(*at)->next)
		;
	*at = q->next;
	dapl_mutex_unlock(&f->lock);
	free(q);
}

/* Until the queue pair is gone, its completions may be polled. */
int hw_flush_qp_destroy(struct ibv_qp *qp, int (*destroy)(struct ibv_qp *qp))
{
	struct flusher *f = flusher_of(qp->context);
	struct flushed_qp *q = f ? (struct flushed_qp *)object_table_remove(key_of(qp)) : NULL;
	int rc = destroy(qp);

	if (q && rc)
		object_table_add(&q->entry, key_of(qp));
	else if (q)
		forget_qp(f, q);
	return rc;
}
