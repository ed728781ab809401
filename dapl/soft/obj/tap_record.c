/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_record.c - see tap_record.h. Writes and reads of a peer are not recorded here, since they may not involve this
 * process: the capture of the peer has them. Datagrams are left out: their QPs have no connection. */
#include "dapl/soft/obj/tap_record.h"
#include <sys/uio.h>
#include "common/lock.h"
#include "dapl/core/base/tap_posts.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/srq.h"

static uint32_t least(uint32_t a, uint64_t b)
{
	return a < b ? a : (uint32_t)b;
}

/* Finds the memory of the first bytes of a message, at most those that a record has. The memory stays registered until
 * qp->lock is released. Returns the number of bytes. */
static uint32_t find_payload(const struct soft_qp *qp, const struct ibv_pd *pd, const struct ibv_sge *sge,
			     uint32_t sges, uint32_t length, struct iovec pieces[SOFT_MAX_SGE])
{
	uint32_t done = 0, room = least(dapl_tap_snap(), length);

	assert_held(&qp->lock);
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

static void put_payload(struct tap_entry *to, uint32_t captured, uint32_t behind, const struct iovec *from)
{
	uint8_t *at = behind ? (uint8_t *)(to + 1) : to->message.payload;

	to->message.captured = captured;
	for (; captured; captured -= (uint32_t)(from++)->iov_len) {
		memcpy(at, from->iov_base, from->iov_len);
		at += from->iov_len;
	}
}

/* Called with qp->lock held. */
static COLD bool show_connection(const struct soft_qp *qp)
{
	struct dapl_conn *conn = qp->conn;
	struct tap_ends ends = { .mtu = 0 };

	assert_held(&qp->lock);
	dapl_tap_put_address(&ends.local, &conn->local);
	dapl_tap_put_address(&ends.remote, &conn->remote);
	return dapl_tap_show(qp->qp.qp_num, (uint8_t)((conn->shm ? TAP_MEMORY : 0) | (conn->passive ? 0 : TAP_ACTIVE)),
			     &ends, &conn->tap_shown);
}

/* Called with qp->lock held. Returns true if the QP has a connection whose ends the reader has. */
static bool is_shown(const struct soft_qp *qp)
{
	assert_held(&qp->lock);
	return qp->conn && (dapl_tap_is_shown(qp->conn->tap_shown) || show_connection(qp));
}

static void put_head(struct tap_entry *to, const struct soft_qp *qp, uint64_t now)
{
	to->time = now;
	to->qpn = qp->qp.qp_num;
	to->state = TAP_VALID;
}

/* Records a request, or its answer. Called with qp->lock held. */
static bool record(const struct soft_qp *qp, const struct ibv_send_wr *wr, enum tap_kind kind, uint64_t now,
		   struct tap_place *place)
{
	uint8_t op = dapl_tap_operation(wr->opcode);
	struct iovec payload[SOFT_MAX_SGE];
	uint32_t length, captured = 0, behind;
	struct tap_entry *entry;

	assert_held(&qp->lock);
	if (op == DAPL_TAP_NO_MESSAGE || !is_shown(qp))
		return false;
	length = dapl_tap_length(wr);
	if ((kind == TAP_ANSWERED || !tap_fetches(op)) && wr->num_sge > 0)
		captured = find_payload(qp, qp->qp.pd, wr->sg_list, (uint32_t)wr->num_sge, length, payload);
	behind = tap_payload_size(op, captured);
	entry = dapl_tap_reserve(TAP_LINE + behind, qp->conn->tap_shown);
	if (!entry)
		return false;
	put_head(entry, qp, now);
	dapl_tap_describe(entry, wr, op, length);
	entry->kind = kind;
	put_payload(entry, captured, behind, payload);
	*place = dapl_tap_publish(TAP_LINE + behind);
	return true;
}

bool tap_record_request(const struct soft_qp *qp, const struct ibv_send_wr *wr, struct tap_place *place)
{
	assert_held(&qp->lock);
	return record(qp, wr, TAP_POSTED, dapl_tap_now(), place);
}

void tap_record_answer(const struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	struct tap_place unused;

	assert_held(&qp->lock);
	record(qp, wr, TAP_ANSWERED, dapl_tap_found(), &unused);
}

void tap_record_answered(const struct soft_qp *qp, const struct soft_swqe *wqe)
{
	struct ibv_send_wr wr = {
		.opcode = wqe->opcode, .sg_list = (struct ibv_sge *)wqe->sge, .num_sge = wqe->sges,
		.wr.rdma = { .remote_addr = wqe->remote, .rkey = wqe->rkey },
	};

	assert_held(&qp->lock);
	if (wqe->opcode != IBV_WR_RDMA_READ) {
		wr.wr.atomic.remote_addr = wqe->remote;
		wr.wr.atomic.compare_add = wqe->atomic.compare_add;
		wr.wr.atomic.swap = wqe->atomic.swap;
		wr.wr.atomic.rkey = wqe->rkey;
	}
	tap_record_answer(qp, &wr);
}

void tap_record_receive(const struct soft_qp *qp, const struct ibv_wc *wc, const struct soft_rwqe *rwqe)
{
	const uint64_t now = dapl_tap_found();
	uint32_t length, captured, behind;
	struct iovec payload[SOFT_MAX_SGE];
	struct tap_entry *entry;
	uint8_t op;

	assert_held(&qp->lock);
	if (wc->status != IBV_WC_SUCCESS || !is_shown(qp))
		return;
	op = dapl_tap_completed(wc);
	length = dapl_tap_came(wc, NULL);
	captured = find_payload(qp, soft_receive_pd(qp), rwqe->sge, rwqe->sges, length, payload);
	behind = tap_payload_size(op, captured);
	entry = dapl_tap_reserve(TAP_LINE + behind, qp->conn->tap_shown);
	if (!entry)
		return;
	put_head(entry, qp, now);
	dapl_tap_describe_completion(entry, wc, op, length, NULL);
	put_payload(entry, captured, behind, payload);
	dapl_tap_publish(TAP_LINE + behind);
}
