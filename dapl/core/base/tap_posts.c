/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_posts.c - see tap_posts.h. */
#include "dapl/core/base/tap_posts.h"
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include "common/lock.h"
#include "dapl/core/base/fork.h"

enum { SINKS = 1 << 12 };		/* posts whose memory is remembered until they complete; sink_of()
					 * makes an index of 12 bits */

static struct dapl_spin lock = DAPL_SPIN_INIT(RANK_TAP_POSTS);	/* guards the sinks */
static struct dapl_tap_sink sinks[SINKS];

static void before_fork(void)
{
	dapl_spin_lock(&lock);
}

static void after_fork(void)
{
	dapl_spin_unlock(&lock);
}

void dapl_tap_posts_init(void)
{
	static struct dapl_fork_part part = { .rank = RANK_TAP_POSTS, .before = before_fork,
		.parent = after_fork, .child = after_fork };

	dapl_fork_register(&part);
}

void dapl_tap_put_address(struct tap_address *to, const struct sockaddr_storage *from)
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

/* --- memory of posts ---------------------------------------------------------------------------- */

static struct dapl_tap_sink *sink_of(uint64_t wr_id)
{
	return &sinks[(wr_id >> 4) * 0x9e3779b97f4a7c15u >> 52];
}

void dapl_tap_remember(uint64_t wr_id, const struct ibv_sge *sge, int sges, const struct tap_record *request)
{
	struct dapl_tap_sink *sink = sink_of(wr_id);

	dapl_spin_lock(&lock);
	sink->wr_id = wr_id;
	sink->sges = sges < DAPL_TAP_SGES ? (uint32_t)sges : DAPL_TAP_SGES;
	if (sink->sges)
		memcpy(sink->sge, sge, sink->sges * sizeof *sge);
	if (request)
		sink->request = *request;
	dapl_spin_unlock(&lock);
}

void dapl_tap_remember_receives(const struct ibv_recv_wr *wr)
{
	for (; wr; wr = wr->next)
		if (wr->num_sge >= 0)
			dapl_tap_remember(wr->wr_id, wr->sg_list, wr->num_sge, NULL);
}

/* Copies an entry and frees it: for a receive the memory, otherwise the request, too. Returns false if
 * there is none. */
static bool recall(uint64_t wr_id, bool receive, struct dapl_tap_sink *copy)
{
	struct dapl_tap_sink *sink = sink_of(wr_id);
	bool found;

	dapl_spin_lock(&lock);
	found = sink->wr_id == wr_id;
	if (found) {
		memcpy(copy, sink, receive ? offsetof(struct dapl_tap_sink, request) : sizeof *sink);
		sink->wr_id = 0;
	}
	dapl_spin_unlock(&lock);
	return found;
}

/* --- requests ------------------------------------------------------------------------------------ */

static void put_flags(struct tap_record *to, const struct ibv_send_wr *wr)
{
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
}

static bool put_operation(struct tap_record *to, const struct ibv_send_wr *wr)
{
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

bool dapl_tap_describe(struct tap_record *to, const struct ibv_send_wr *wr)
{
	to->kind = TAP_POSTED;
	put_flags(to, wr);
	if (!put_operation(to, wr))
		return false;
	for (int i = 0; i < wr->num_sge; i++)
		to->length += wr->sg_list[i].length;
	if (dapl_tap_fetches(to) && wr->num_sge > 0) {
		to->memory.sink_stag = wr->sg_list->lkey;
		to->memory.sink = wr->sg_list->addr;
	}
	return true;
}

/* --- completions ---------------------------------------------------------------------------------- */

bool dapl_tap_is_recorded(const struct ibv_wc *wc)
{
	return (wc->opcode & IBV_WC_RECV) || wc->opcode == IBV_WC_RDMA_READ || wc->opcode == IBV_WC_COMP_SWAP ||
	       wc->opcode == IBV_WC_FETCH_ADD;
}

bool dapl_tap_describe_completion(struct tap_record *to, struct dapl_tap_sink *sink, const struct ibv_wc *wc)
{
	bool received = wc->opcode & IBV_WC_RECV;

	sink->sges = 0;
	if ((!recall(wc->wr_id, received, sink) && !received) || wc->status != IBV_WC_SUCCESS)
		return false;
	*to = received ? (struct tap_record){ .op = TAP_SEND } : sink->request;
	to->kind = received ? TAP_RECEIVED : TAP_ANSWERED;
	to->flags = 0;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)	/* the memory that the peer wrote to is unknown */
		to->op = TAP_WRITE;
	else if (received)
		to->length = wc->byte_len;
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		to->flags = TAP_IMMEDIATE;
		to->word = ntohl(wc->imm_data);
	} else if (wc->wc_flags & IBV_WC_WITH_INV) {
		to->flags = TAP_INVALIDATE;
		to->word = wc->invalidated_rkey;
	}
	return true;
}
