/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.c - see tap.h. During a capture the device's verbs are the functions here, which record and call the real
 * ones; otherwise the data path has no instruction for it. A thread that was within a verb when the
 * capture began or ended has its message recorded, or not.
 *
 * A request is recorded when it is posted. What arrives is recorded when its completion is polled: Sends of the
 * peer, and answers to reads and atomics. What a peer writes or reads here is not seen here, since
 * it may not involve this process: the capture of the peer shows it. Datagrams are left out. */
#include "dapl/soft/verbs/tap.h"
#include <arpa/inet.h>
#include <string.h>
#include "common/lock.h"
#include "dapl/core/base/fork.h"
#include "dapl/core/base/tap.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/verbs/poll.h"
#include "dapl/soft/verbs/post.h"

enum {
	SINKS = 1 << 12,		/* posts whose memory is remembered until they complete */
	SINK_SGES = 4,			/* segments of each */
};

/* Where payload that has not come yet will be. A later post may take the entry: then the payload is
 * not recorded. */
struct sink {
	uint64_t wr_id;			/* 0: free */
	struct tap_record request;	/* of a read or an atomic */
	struct ibv_sge sge[SINK_SGES];
	uint32_t sges;
};

static struct dapl_spin lock = DAPL_SPIN_INIT(RANK_SOFT_TAP);	/* guards the sinks */
static struct sink sinks[SINKS];

static struct sink *sink_of(uint64_t wr_id)
{
	return &sinks[(wr_id >> 4) * 0x9e3779b97f4a7c15u >> 52];
}

static void remember(uint64_t wr_id, const struct ibv_sge *sge, int sges, const struct tap_record *request)
{
	struct sink *sink = sink_of(wr_id);

	dapl_spin_lock(&lock);
	sink->wr_id = wr_id;
	sink->sges = sges < SINK_SGES ? (uint32_t)sges : SINK_SGES;
	if (sink->sges)
		memcpy(sink->sge, sge, sink->sges * sizeof *sge);
	if (request)
		sink->request = *request;
	dapl_spin_unlock(&lock);
}

static bool recall(uint64_t wr_id, struct sink *copy)
{
	struct sink *sink = sink_of(wr_id);
	bool found;

	dapl_spin_lock(&lock);
	found = sink->wr_id == wr_id;
	if (found)
		*copy = *sink;
	sink->wr_id = found ? 0 : sink->wr_id;
	dapl_spin_unlock(&lock);
	return found;
}

static uint32_t least(uint32_t a, uint64_t b)
{
	return a < b ? a : (uint32_t)b;
}

/* Called with qp->lock held, so the memory stays registered. Returns the number of bytes. */
static uint32_t copy_payload(const struct soft_qp *qp, const struct ibv_pd *pd, const struct ibv_sge *sge,
			     uint32_t sges, char *to, uint32_t room)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < sges && done < room; i++) {
		uint32_t n = least(room - done, sge[i].length);
		char *at;

		if (soft_mem_local(qp->dev, pd, &sge[i], 0, &at) != SOFT_FINE)
			break;
		memcpy(to + done, at, n);
		done += n;
	}
	return done;
}

static void put_address(struct tap_address *to, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *four = (const struct sockaddr_in *)from;

	if (from->ss_family == AF_INET6) {
		to->family = 6;
		to->port = ntohs(six->sin6_port);
		memcpy(to->ip, &six->sin6_addr, 16);
	} else {
		to->family = 4;
		to->port = ntohs(four->sin_port);
		memcpy(to->ip, &four->sin_addr, 4);
	}
}

/* Called with qp->lock held. */
static void put_connection(struct tap_record *to, const struct soft_qp *qp)
{
	const struct dapl_conn *conn = qp->conn;

	to->qpn = qp->qp.qp_num;
	to->flags |= (conn->shm ? TAP_MEMORY : 0) | (conn->passive ? 0 : TAP_ACTIVE);
	put_address(&to->local_address, &conn->local);
	put_address(&to->remote_address, &conn->remote);
}

/* --- requests ------------------------------------------------------------------------------- */

/* Returns false for what is no message. */
static bool describe(struct tap_record *to, const struct ibv_send_wr *wr)
{
	to->kind = TAP_POSTED;
	to->flags = wr->send_flags & IBV_SEND_SOLICITED ? TAP_SOLICITED : 0;
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM: case IBV_WR_RDMA_WRITE_WITH_IMM:
		to->flags |= TAP_IMMEDIATE;
		to->word = ntohl(wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		to->flags |= TAP_INVALIDATE;
		to->word = wr->invalidate_rkey;
		break;
	default:
		break;
	}
	switch (wr->opcode) {
	case IBV_WR_SEND: case IBV_WR_SEND_WITH_IMM: case IBV_WR_SEND_WITH_INV:
		to->op = TAP_SEND;
		return true;
	case IBV_WR_RDMA_WRITE: case IBV_WR_RDMA_WRITE_WITH_IMM: case IBV_WR_RDMA_READ:
		to->op = wr->opcode == IBV_WR_RDMA_READ ? TAP_READ : TAP_WRITE;
		to->stag = wr->wr.rdma.rkey;
		to->remote = wr->wr.rdma.remote_addr;
		return true;
	case IBV_WR_ATOMIC_CMP_AND_SWP: case IBV_WR_ATOMIC_FETCH_AND_ADD:
		to->op = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? TAP_CMP_SWAP : TAP_FETCH_ADD;
		to->stag = wr->wr.atomic.rkey;
		to->remote = wr->wr.atomic.remote_addr;
		to->compare_add = wr->wr.atomic.compare_add;
		to->swap = wr->wr.atomic.swap;
		return true;
	default:
		return false;
	}
}

static void put_sink(struct tap_record *to, const struct ibv_send_wr *wr)
{
	if (to->op == TAP_SEND || to->op == TAP_WRITE || wr->num_sge < 1)
		return;
	to->sink_stag = wr->sg_list->lkey;
	to->sink = wr->sg_list->addr;
}

/* Returns NULL if the request is not recorded. */
static struct tap_record *record_request(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	struct tap_record is = { .length = 0 }, *record = NULL;
	uint32_t snap, sges = wr->num_sge > 0 ? (uint32_t)wr->num_sge : 0;
	bool fetches;

	if (qp->qp.qp_type != IBV_QPT_RC || !describe(&is, wr))
		return NULL;
	for (uint32_t i = 0; i < sges; i++)
		is.length += wr->sg_list[i].length;
	fetches = is.op != TAP_SEND && is.op != TAP_WRITE;
	snap = fetches ? 0 : least(dapl_tap_snap(), is.length);
	put_sink(&is, wr);
	dapl_mutex_lock(&qp->lock);
	if (qp->conn && (record = dapl_tap_reserve(snap))) {
		is.size = record->size;
		is.time = record->time;
		put_connection(&is, qp);
		is.captured = copy_payload(qp, qp->qp.pd, wr->sg_list, sges, (char *)(record + 1), snap);
		memcpy((char *)record + 8, (char *)&is + 8, sizeof is - 8);
	}
	dapl_mutex_unlock(&qp->lock);
	if (record && fetches)
		remember(wr->wr_id, wr->sg_list, wr->num_sge, &is);
	return record;
}

static int tap_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		struct ibv_send_wr one = *wr;
		struct tap_record *record = record_request((struct soft_qp *)ibqp, wr);
		int err;

		one.next = NULL;
		err = soft_qp_post_send(ibqp, &one, bad);
		if (record)
			dapl_tap_commit(record, !err);
		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

/* --- receives and completions ----------------------------------------------------------------- */

static void remember_receives(const struct ibv_recv_wr *wr)
{
	for (; wr; wr = wr->next)
		if (wr->num_sge >= 0)
			remember(wr->wr_id, wr->sg_list, wr->num_sge, NULL);
}

static int tap_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	remember_receives(wr);
	return soft_qp_post_recv(qp, wr, bad);
}

static int tap_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	remember_receives(wr);
	return soft_srq_post(srq, wr, bad);
}

/* Called with qp->lock held. */
static void record_completion(const struct soft_qp *qp, const struct ibv_wc *wc, struct sink *sink)
{
	bool received = wc->opcode & IBV_WC_RECV;
	const struct ibv_pd *pd = received && qp->srq ? qp->srq->srq.pd : qp->qp.pd;
	struct tap_record is = received ? (struct tap_record){ .op = TAP_SEND } : sink->request, *record;
	uint32_t snap;

	is.kind = received ? TAP_RECEIVED : TAP_ANSWERED;
	is.flags = 0;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)	/* where the peer wrote is not known */
		is.op = TAP_WRITE;
	else if (received)
		is.length = wc->byte_len;
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		is.flags = TAP_IMMEDIATE;
		is.word = ntohl(wc->imm_data);
	} else if (wc->wc_flags & IBV_WC_WITH_INV) {
		is.flags = TAP_INVALIDATE;
		is.word = wc->invalidated_rkey;
	}
	snap = sink->sges ? least(dapl_tap_snap(), is.length) : 0;
	record = dapl_tap_reserve(snap);
	if (!record)
		return;
	is.size = record->size;
	is.time = record->time;
	put_connection(&is, qp);
	is.captured = copy_payload(qp, pd, sink->sge, sink->sges, (char *)(record + 1), snap);
	memcpy((char *)record + 8, (char *)&is + 8, sizeof is - 8);
	dapl_tap_commit(record, true);
}

static void tap_completion(struct dapl_device *dev, const struct ibv_wc *wc)
{
	struct sink sink = { .wr_id = 0 };
	bool known = recall(wc->wr_id, &sink);
	struct soft_qp *qp;

	if (wc->status != IBV_WC_SUCCESS || (!known && !(wc->opcode & IBV_WC_RECV)))
		return;
	dapl_mutex_lock(&dev->qps_lock);
	qp = soft_qp_by_number(dev, wc->qp_num);
	if (qp && qp->qp.qp_type == IBV_QPT_RC) {
		dapl_mutex_lock(&qp->lock);
		if (qp->conn)
			record_completion(qp, wc, &sink);
		dapl_mutex_unlock(&qp->lock);
	}
	dapl_mutex_unlock(&dev->qps_lock);
}

static int tap_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	int n = soft_cq_poll(cq, entries, wc);

	for (int i = 0; i < n; i++)
		if ((wc[i].opcode & IBV_WC_RECV) || wc[i].opcode == IBV_WC_RDMA_READ ||
		    wc[i].opcode == IBV_WC_COMP_SWAP || wc[i].opcode == IBV_WC_FETCH_ADD)
			tap_completion(soft_device(cq->context), &wc[i]);
	return n;
}

static void before_fork(void)
{
	dapl_spin_lock(&lock);
}

static void after_fork(void)
{
	dapl_spin_unlock(&lock);
}

void soft_tap_init(void)
{
	static struct dapl_fork_part part = { .rank = RANK_SOFT_TAP, .before = before_fork,
		.parent = after_fork, .child = after_fork };

	dapl_fork_register(&part);
}

/* The inline functions of verbs.h load these pointers without atomics, at the same time: a thread calls the old
 * function or the new one, and both work. A thread sanitizer must not compare such loads with these stores. */
__attribute__((no_sanitize_thread))
void soft_tap(struct dapl_device *dev, bool on)
{
	struct ibv_context_ops *ops = &dev->verbs.ops;

	__atomic_store_n(&ops->post_send, on ? tap_post_send : soft_qp_post_send, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_recv, on ? tap_post_recv : soft_qp_post_recv, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_srq_recv, on ? tap_post_srq_recv : soft_srq_post, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->poll_cq, on ? tap_poll_cq : soft_cq_poll, __ATOMIC_RELEASE);
}
