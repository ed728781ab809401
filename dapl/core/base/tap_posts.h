/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_posts.h - records of verbs work requests and completions, for devices that show their messages
 * (tap.h): what a request does, and the memory for payload that comes with its completion. The device reads
 * that memory, and checks that a capture runs. */
#ifndef DAPL_CORE_TAP_POSTS_H
#define DAPL_CORE_TAP_POSTS_H
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include "common/compiler.h"
#include "common/lock.h"
#include "common/tap.h"

enum {
	DAPL_TAP_SGES = 4,		/* segments of a post that are remembered */
	DAPL_TAP_SINKS = 1 << 12,	/* posts whose memory is remembered until they complete;
					 * dapl_tap_sink_of() makes an index of 12 bits */
};

/* The memory for payload that has not arrived yet. */
struct dapl_tap_sink {
	uint64_t wr_id;			/* 0: the entry is free */
	uint32_t sges;
	uint32_t length;		/* of a read or an atomic: bytes of the message */
	struct ibv_sge sge[DAPL_TAP_SGES];
	uint32_t stag, sink_stag;	/* of a read or an atomic, as in its entry */
	uint64_t remote, sink, compare_add, swap;
} __attribute__((aligned(64)));

struct dapl_tap_posts {
	struct dapl_spin lock;		/* guards the sinks */
	struct dapl_tap_sink sinks[DAPL_TAP_SINKS];
};
extern struct dapl_tap_posts dapl_tap_posts;

/* Before the first use. */
void dapl_tap_posts_init(void);

/* Returns the entry that a post may have. */
static inline struct dapl_tap_sink *dapl_tap_sink_of(uint64_t wr_id)
{
	return &dapl_tap_posts.sinks[(wr_id >> 4) * 0x9e3779b97f4a7c15u >> 52];
}

enum { DAPL_TAP_NO_MESSAGE = 0xff };
_Static_assert((int)TAP_WRITE == IBV_WR_RDMA_WRITE && (int)TAP_SEND == IBV_WR_SEND &&
	       (int)TAP_READ == IBV_WR_RDMA_READ && (int)TAP_CMP_SWAP == IBV_WR_ATOMIC_CMP_AND_SWP &&
	       (int)TAP_FETCH_ADD == IBV_WR_ATOMIC_FETCH_AND_ADD && (int)TAP_SOLICITED == IBV_SEND_SOLICITED,
	       "posts store these numbers as they are");

/* Returns enum tap_op of the request, or DAPL_TAP_NO_MESSAGE. */
static ALWAYS_INLINE uint8_t dapl_tap_operation(enum ibv_wr_opcode opcode)
{
	static const uint8_t operations[] = {
		[IBV_WR_RDMA_WRITE] = TAP_WRITE, [IBV_WR_RDMA_WRITE_WITH_IMM] = TAP_WRITE,
		[IBV_WR_SEND] = TAP_SEND, [IBV_WR_SEND_WITH_IMM] = TAP_SEND, [IBV_WR_SEND_WITH_INV] = TAP_SEND,
		[IBV_WR_RDMA_READ] = TAP_READ, [IBV_WR_ATOMIC_CMP_AND_SWP] = TAP_CMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = TAP_FETCH_ADD, [IBV_WR_LOCAL_INV] = DAPL_TAP_NO_MESSAGE,
		[IBV_WR_BIND_MW] = DAPL_TAP_NO_MESSAGE,
	};

	return (unsigned)opcode < sizeof operations ? operations[opcode] : DAPL_TAP_NO_MESSAGE;
}

/* Returns the bytes of a message. */
static ALWAYS_INLINE uint32_t dapl_tap_length(const struct ibv_send_wr *wr)
{
	uint32_t length = 0;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length;
}

/* Fills the entry of a request with its data, except time, QP, flags of the connection and payload. `op` is its
 * operation, `length` that of the message. */
static ALWAYS_INLINE void dapl_tap_describe(struct tap_entry *to, const struct ibv_send_wr *wr, uint8_t op,
					    uint32_t length)
{
	struct tap_message *m = &to->message;

	to->kind = TAP_POSTED;
	to->op = op;
	to->flags = wr->send_flags & TAP_SOLICITED;
	m->length = length;
	m->word = 0;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		to->flags |= TAP_IMMEDIATE;
		m->word = ntohl(wr->imm_data);
	} else if (wr->opcode == IBV_WR_SEND_WITH_INV) {
		to->flags |= TAP_INVALIDATE;
		m->word = wr->invalidate_rkey;
	}
	m->stag = op == TAP_SEND ? 0 : wr->wr.rdma.rkey;
	m->remote = op == TAP_SEND ? 0 : wr->wr.rdma.remote_addr;
	if (likely(!tap_fetches(op)))
		return;
	m->sink = wr->num_sge > 0 ? wr->sg_list->addr : 0;
	m->word = wr->num_sge > 0 ? wr->sg_list->lkey : 0;
	m->compare_add = op == TAP_READ ? 0 : wr->wr.atomic.compare_add;
	m->swap = op == TAP_READ ? 0 : wr->wr.atomic.swap;
	if (op != TAP_READ)
		m->stag = wr->wr.atomic.rkey;
}

void dapl_tap_put_address(struct tap_address *to, const struct sockaddr_storage *from);

/* Remembers a read or an atomic, `request`, and its memory until it completes. A later post may take the entry: then
 * the payload is not recorded. Any locks may be held. */
void dapl_tap_remember(uint64_t wr_id, const struct ibv_sge *sge, int sges, const struct tap_message *request);
/* The same for the memory of receives. */
void dapl_tap_remember_receives(const struct ibv_recv_wr *wr);

/* Returns true for completions that bring payload or end a receive. */
static ALWAYS_INLINE bool dapl_tap_is_recorded(const struct ibv_wc *wc)
{
	return (wc->opcode & IBV_WC_RECV) || wc->opcode == IBV_WC_RDMA_READ || wc->opcode == IBV_WC_COMP_SWAP ||
	       wc->opcode == IBV_WC_FETCH_ADD;
}

/* Copies the memory of the payload that came with such a completion to *sink. Returns false if there is no message to
 * show: it failed, or is the answer to a request that was posted before the capture. */
bool dapl_tap_recall(const struct ibv_wc *wc, struct dapl_tap_sink *sink);
/* Returns the bytes of the message. */
static ALWAYS_INLINE uint32_t dapl_tap_came(const struct ibv_wc *wc, const struct dapl_tap_sink *sink)
{
	if (!(wc->opcode & IBV_WC_RECV))
		return sink->length;
	return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : wc->byte_len;
}
/* Returns enum tap_op. */
static ALWAYS_INLINE uint8_t dapl_tap_completed(const struct ibv_wc *wc)
{
	switch (wc->opcode) {
	case IBV_WC_RDMA_READ: return TAP_READ;
	case IBV_WC_COMP_SWAP: return TAP_CMP_SWAP;
	case IBV_WC_FETCH_ADD: return TAP_FETCH_ADD;
	case IBV_WC_RECV_RDMA_WITH_IMM: return TAP_WRITE;	/* the memory that the peer wrote to is unknown */
	default: return TAP_SEND;
	}
}
/* Fills the entry of a completion, except time, QP, flags of the connection and payload. */
static ALWAYS_INLINE void dapl_tap_describe_completion(struct tap_entry *to, const struct ibv_wc *wc, uint8_t op,
						       uint32_t length, const struct dapl_tap_sink *sink)
{
	struct tap_message *m = &to->message;

	to->kind = TAP_RECEIVED;
	to->op = op;
	to->flags = 0;
	m->length = length;
	m->word = m->stag = 0;
	m->remote = 0;
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		to->flags = TAP_IMMEDIATE;
		m->word = ntohl(wc->imm_data);
	} else if (wc->wc_flags & IBV_WC_WITH_INV) {
		to->flags = TAP_INVALIDATE;
		m->word = wc->invalidated_rkey;
	}
	if (likely(!tap_fetches(op)))
		return;
	to->kind = TAP_ANSWERED;
	to->flags = 0;
	m->word = sink->sink_stag;
	m->stag = sink->stag;
	m->remote = sink->remote;
	m->sink = sink->sink;
	m->compare_add = sink->compare_add;
	m->swap = sink->swap;
}

#endif
