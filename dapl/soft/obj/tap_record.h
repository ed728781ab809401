/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_record.h - the records of a capture (core/base/tap.h): of a request when it is posted, of a Send when its receive
 * completes, of a read or an atomic when its answer has come. verbs/tap.c begins and ends captures.
 * HOT: a short Send or write is a few stores of what the post, or the receiver, has at hand. */
#ifndef SOFT_OBJ_TAP_RECORD_H
#define SOFT_OBJ_TAP_RECORD_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>
#include "common/compiler.h"
#include "dapl/core/base/tap.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/wire/message.h"

/* All functions are called with qp->lock held. */

/* Records a request as posted. Returns false if it is not recorded. */
bool tap_record_request(const struct soft_qp *qp, const struct ibv_send_wr *wr, struct tap_place *place);
/* Records a receive if it has succeeded. Called before the completion can be polled, so the record is before all that
 * follows from it. */
void tap_record_receive(const struct soft_qp *qp, const struct ibv_wc *wc, const struct soft_rwqe *rwqe);
/* Records a read or an atomic whose answer has come. */
void tap_record_answer(const struct soft_qp *qp, const struct ibv_send_wr *wr);
/* The same for a read or an atomic in the send queue. */
void tap_record_answered(const struct soft_qp *qp, const struct soft_swqe *wqe);

/* A read, an atomic or a write in the send queue has been executed. */
static inline void tap_record_executed(const struct soft_qp *qp, const struct soft_swqe *wqe)
{
	assert_held(&qp->lock);
	if (unlikely(soft_detours(qp->dev) & SOFT_TAPPED) && tap_fetches(wqe->opcode))
		tap_record_answered(qp, wqe);
}

/* Puts the record of a short message without immediate data, but for its time and, of a write, the peer's memory: the
 * caller adds these, and publishes it. Returns NULL if the record needs more than this: then nothing was recorded, or
 * counted. */
static ALWAYS_INLINE struct tap_entry *tap_record_line(const struct soft_qp *qp, enum tap_kind kind, enum tap_op op,
						       unsigned flags, uint32_t length, const char *payload)
{
	struct tap_entry *entry;

	if (unlikely(length > TAP_INLINE) || !dapl_tap_reserve_line(qp->conn->tap_shown))
		return NULL;
	entry = dapl_tap_at(dapl_tap.head);
	entry->qpn = qp->qp.qp_num;
	entry->state = TAP_VALID;
	entry->kind = kind;
	entry->op = op;
	entry->flags = (uint8_t)flags;
	entry->message.length = length;
	entry->message.captured = length;
	entry->message.word = 0;
	if (likely(length == 8))	/* the shortest messages are the most */
		memcpy(entry->message.payload, payload, 8);
	else
		copy_short(entry->message.payload, (const uint8_t *)payload, length);
	return entry;
}

/* Records a Send, or a write, of one segment whose payload was checked. Returns false if tap_record_request() is
 * needed. */
static ALWAYS_INLINE bool tap_record_plain_request(const struct soft_qp *qp, const struct ibv_send_wr *wr,
						   enum tap_op op, const char *payload, struct tap_place *place)
{
	struct tap_entry *entry;

	assert_held(&qp->lock);
	entry = tap_record_line(qp, TAP_POSTED, op, wr->send_flags & TAP_SOLICITED, wr->sg_list->length, payload);
	if (!entry)
		return false;
	entry->time = ticks_now();
	if (op == TAP_WRITE) {
		entry->message.stag = wr->wr.rdma.rkey;
		entry->message.remote = wr->wr.rdma.remote_addr;
	}
	*place = dapl_tap_publish(TAP_LINE);
	return true;
}

/* Records a Send that has come, whose payload was placed. Returns false if tap_record_receive() is needed. */
static ALWAYS_INLINE bool tap_record_plain_receive(const struct soft_qp *qp, uint32_t length, const char *payload)
{
	struct tap_entry *entry;

	assert_held(&qp->lock);
	entry = tap_record_line(qp, TAP_RECEIVED, TAP_SEND, 0, length, payload);
	if (!entry)
		return false;
	entry->time = ticks_after_loads();
	dapl_tap_publish(TAP_LINE);
	return true;
}

#endif
