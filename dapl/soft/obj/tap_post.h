/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_post.h - HOT: the record of a short Send or write during a capture (core/base/tap.h), as a few stores of what the
 * post has at hand. verbs/tap.c records all other messages. */
#ifndef SOFT_OBJ_TAP_POST_H
#define SOFT_OBJ_TAP_POST_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>
#include "common/compiler.h"
#include "dapl/core/base/tap.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/wire/message.h"

/* Fills what the entry of a short message without immediate data has of it. `length` is at most TAP_INLINE. */
static ALWAYS_INLINE void tap_fill_line(struct tap_entry *entry, enum tap_kind kind, uint8_t op, uint32_t length,
					const char *payload)
{
	entry->state = TAP_VALID;
	entry->kind = kind;
	entry->op = op;
	entry->message.length = length;
	entry->message.captured = length;
	entry->message.word = 0;
	if (likely(length == 8))	/* the shortest messages are the most */
		memcpy(entry->message.payload, payload, 8);
	else
		copy_short(entry->message.payload, (const uint8_t *)payload, length);
}

/* Records a Send or write of one segment, whose payload was checked, with qp->lock held. Returns false if the record
 * needs more than this: then nothing was recorded, or counted. */
static ALWAYS_INLINE bool tap_post_plain(const struct soft_qp *qp, const struct ibv_send_wr *wr, const char *payload,
					 struct tap_place *place)
{
	const uint32_t length = wr->sg_list->length;
	struct tap_entry *entry;

	assert_held(&qp->lock);
	if (unlikely(length > TAP_INLINE) || !dapl_tap_reserve_line(qp->conn->tap_shown))
		return false;
	entry = dapl_tap_at(dapl_tap.head);
	entry->time = ticks_now();
	entry->qpn = qp->qp.qp_num;
	entry->flags = wr->send_flags & TAP_SOLICITED;
	tap_fill_line(entry, TAP_POSTED, (uint8_t)wr->opcode, length, payload);
	if (wr->opcode == IBV_WR_RDMA_WRITE) {
		entry->message.stag = wr->wr.rdma.rkey;
		entry->message.remote = wr->wr.rdma.remote_addr;
	}
	*place = dapl_tap_publish(TAP_LINE);
	return true;
}

/* Records a Send that has come, whose payload was checked, in the same way. */
static ALWAYS_INLINE bool tap_receive_plain(const struct soft_qp *qp, const struct ibv_wc *wc, const char *payload,
					    uint64_t now)
{
	struct tap_entry *entry;

	assert_held(&qp->lock);
	if (unlikely(wc->byte_len > TAP_INLINE) || !dapl_tap_reserve_line(qp->conn->tap_shown))
		return false;
	entry = dapl_tap_at(dapl_tap.head);
	entry->time = now;
	entry->qpn = qp->qp.qp_num;
	entry->flags = 0;
	tap_fill_line(entry, TAP_RECEIVED, TAP_SEND, wc->byte_len, payload);
	dapl_tap_publish(TAP_LINE);
	return true;
}

#endif
