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
#include "common/clock.h"
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
	uint32_t sges;
	struct ibv_sge sge[SINK_SGES];
	struct tap_record request;	/* of a read or an atomic */
} __attribute__((aligned(64)));

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

/* Copies what a receive has, or all. */
static bool recall(uint64_t wr_id, bool receive, struct sink *copy)
{
	struct sink *sink = sink_of(wr_id);
	bool found;

	dapl_spin_lock(&lock);
	found = sink->wr_id == wr_id;
	if (found) {
		memcpy(copy, sink, receive ? offsetof(struct sink, request) : sizeof *sink);
		sink->wr_id = 0;
	}
	dapl_spin_unlock(&lock);
	return found;
}

static uint32_t least(uint32_t a, uint64_t b)
{
	return a < b ? a : (uint32_t)b;
}

/* Finds the memory of the first bytes of a message, at most those that a record has. Called with qp->lock held, so
 * the memory stays registered until that is released. Returns the number of bytes. */
static uint32_t find_payload(const struct soft_qp *qp, const struct ibv_pd *pd, const struct ibv_sge *sge, uint32_t sges,
			     uint32_t length, struct iovec pieces[SOFT_MAX_SGE])
{
	uint32_t done = 0, room = least(dapl_tap_snap(), length);

	for (uint32_t i = 0; i < sges && i < SOFT_MAX_SGE && done < room; i++) {
		uint32_t n = least(room - done, sge[i].length);
		char *at;

		if (soft_mem_local(qp->dev, pd, &sge[i], 0, &at) != SOFT_FINE)
			break;
		pieces[i] = (struct iovec){ at, n };
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
	if (likely(conn->tap_shown == dapl_tap_capture()))
		return;
	put_address(&to->ends.local, &conn->local);
	put_address(&to->ends.remote, &conn->remote);
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
		to->memory.stag = wr->wr.rdma.rkey;
		to->memory.remote = wr->wr.rdma.remote_addr;
		return true;
	case IBV_WR_ATOMIC_CMP_AND_SWP: case IBV_WR_ATOMIC_FETCH_AND_ADD:
		to->op = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? TAP_CMP_SWAP : TAP_FETCH_ADD;
		to->memory.stag = wr->wr.atomic.rkey;
		to->memory.remote = wr->wr.atomic.remote_addr;
		to->atomic = (struct tap_atomic){ wr->wr.atomic.compare_add, wr->wr.atomic.swap };
		return true;
	default:
		return false;
	}
}

static void put_sink(struct tap_record *to, const struct ibv_send_wr *wr)
{
	if (wr->num_sge < 1)
		return;
	to->memory.sink_stag = wr->sg_list->lkey;
	to->memory.sink = wr->sg_list->addr;
}

/* Called with qp->lock held. Returns false if the request is not recorded. */
static bool record_request(struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t now, struct tap_place *place)
{
	struct tap_record is = { .time = now };
	uint32_t sges = wr->num_sge > 0 ? (uint32_t)wr->num_sge : 0;
	struct iovec payload[SOFT_MAX_SGE];
	bool fetches, put;

	if (qp->qp.qp_type != IBV_QPT_RC || !qp->conn || !describe(&is, wr))
		return false;
	for (uint32_t i = 0; i < sges; i++)
		is.length += wr->sg_list[i].length;
	fetches = is.op != TAP_SEND && is.op != TAP_WRITE;
	if (fetches)
		put_sink(&is, wr);
	else
		is.captured = find_payload(qp, qp->qp.pd, wr->sg_list, sges, is.length, payload);
	put_connection(&is, qp);
	put = dapl_tap_put(&is, &qp->conn->tap_shown, payload, place);
	if (put && fetches)
		remember(wr->wr_id, wr->sg_list, wr->num_sge, &is);
	return put;
}

/* Called with qp->lock held. A request that is refused is not shown. */
static int record_and_post(struct soft_qp *qp, struct ibv_send_wr *wr, uint64_t now)
{
	struct ibv_send_wr *bad;
	struct tap_place place;
	bool recorded = record_request(qp, wr, now, &place);
	int err = soft_qp_post_send_locked(qp, wr, &bad);

	if (recorded && err)
		dapl_tap_cancel(&place);
	return err;
}

/* A list is taken apart, since each request of it may be refused. */
static int record_and_post_list(struct soft_qp *qp, struct ibv_send_wr *wr, uint64_t now, struct ibv_send_wr **bad)
{
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		struct ibv_send_wr one = *wr;

		one.next = NULL;
		err = record_and_post(qp, &one, now);
		*bad = wr;
	}
	return err;
}

static int tap_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = (struct soft_qp *)ibqp;
	uint64_t now = clock_read_ns(CLOCK_REALTIME);
	int err;

	dapl_mutex_lock(&qp->lock);
	if (likely(wr && !wr->next)) {
		err = record_and_post(qp, wr, now);
		*bad = wr;
	} else {
		err = record_and_post_list(qp, wr, now, bad);
	}
	dapl_mutex_unlock(&qp->lock);
	return err;
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
static void record_completion(const struct soft_qp *qp, const struct ibv_wc *wc, const struct sink *sink, uint64_t now)
{
	bool received = wc->opcode & IBV_WC_RECV;
	const struct ibv_pd *pd = received && qp->srq ? qp->srq->srq.pd : qp->qp.pd;
	struct tap_record is = received ? (struct tap_record){ .op = TAP_SEND } : sink->request;
	struct iovec payload[SOFT_MAX_SGE];
	struct tap_place place;

	is.kind = received ? TAP_RECEIVED : TAP_ANSWERED;
	is.flags = 0;
	is.time = now;
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
	is.captured = find_payload(qp, pd, sink->sge, sink->sges, is.length, payload);
	put_connection(&is, qp);
	dapl_tap_put(&is, &qp->conn->tap_shown, payload, &place);
}

/* Called with dev->qps_lock held, so that the QP stays. */
static void tap_completion(struct dapl_device *dev, const struct ibv_wc *wc, uint64_t now)
{
	bool received = wc->opcode & IBV_WC_RECV;
	struct sink sink;
	struct soft_qp *qp;

	sink.sges = 0;
	if ((!recall(wc->wr_id, received, &sink) && !received) || wc->status != IBV_WC_SUCCESS)
		return;
	qp = soft_qp_by_number(dev, wc->qp_num);
	if (!qp || qp->qp.qp_type != IBV_QPT_RC)
		return;
	dapl_mutex_lock(&qp->lock);
	if (qp->conn)
		record_completion(qp, wc, &sink, now);
	dapl_mutex_unlock(&qp->lock);
}

static bool is_recorded(const struct ibv_wc *wc)
{
	return (wc->opcode & IBV_WC_RECV) || wc->opcode == IBV_WC_RDMA_READ || wc->opcode == IBV_WC_COMP_SWAP ||
	       wc->opcode == IBV_WC_FETCH_ADD;
}

/* One look at the clock, and one lock of the table of QPs, for all completions. */
static int tap_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	struct dapl_device *dev = soft_device(cq->context);
	int n = soft_cq_poll(cq, entries, wc), i = 0;
	uint64_t now;

	while (i < n && !is_recorded(&wc[i]))
		i++;
	if (i >= n)
		return n;
	now = clock_read_ns(CLOCK_REALTIME);
	dapl_mutex_lock(&dev->qps_lock);
	for (; i < n; i++)
		if (is_recorded(&wc[i]))
			tap_completion(dev, &wc[i], now);
	dapl_mutex_unlock(&dev->qps_lock);
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
