/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.c - see peer.h. */
#include "peer.h"
#include "../call.h"
#include "../cli.h"
#include <stdlib.h>

enum {
	REQUESTS = 4,
	RECEIVES = 2
}; /* of an endpoint; at most a receive, a send and an RDMA operation are outstanding at a time */

static void register_memory(struct peer *p, struct adapter *a, bool exposed)
{
	DAT_MEM_PRIV_FLAGS privileges = DAT_MEM_PRIV_LOCAL_READ_FLAG | a->read_sink;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN length;
	DAT_VADDR start;

	p->memory = calloc(1, sizeof *p->memory);
	if (!p->memory)
		fail("no memory for %zu bytes", sizeof *p->memory);
	region.for_va = p->memory;
	if (exposed)
		privileges |= DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	good_call(dat_lmr_create(a->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof *p->memory, a->pz,
				 privileges, DAT_VA_TYPE_VA, &p->lmr, &p->lmr_context,
				 &p->rmr_context, &length, &start),
		  "dat_lmr_create");
}

void peer_open(struct peer *p, struct adapter *a, bool exposed)
{
	static uint64_t peers;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = DATA_MAX,
		.max_rdma_size = DATA_MAX,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = RECEIVES,
		.max_request_dtos = REQUESTS,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = 1,
		.max_rdma_read_out = 1,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	*p = (struct peer){ .number = ++peers };
	register_memory(p, a, exposed);
	good_call(dat_ep_create(a->ia, a->pz, a->dto, a->dto, a->conn, &attr, &p->ep),
		  "dat_ep_create");
	peer_receive(p);
}

void peer_close(struct peer *p)
{
	if (p->ep)
		good(dat_ep_free(p->ep), "dat_ep_free");
	if (p->lmr)
		good(dat_lmr_free(p->lmr), "dat_lmr_free");
	free(p->memory);
	*p = (struct peer){ 0 };
}

uint64_t peer_number_of(const DAT_EVENT *completion, enum operation *operation)
{
	uint64_t cookie = completion->event_data.dto_completion_event_data.user_cookie.as_64;

	*operation = (enum operation)(cookie % OPERATIONS);
	return cookie / OPERATIONS;
}

static DAT_DTO_COOKIE cookie(const struct peer *p, enum operation operation)
{
	return (DAT_DTO_COOKIE){ .as_64 = p->number * OPERATIONS + operation };
}

/* Checks the result of a post. A connection that has just ended refuses it, and an event reports why. */
static void posted(DAT_RETURN rc, const char *call)
{
	if (DAT_GET_TYPE(rc) != DAT_INVALID_STATE)
		good(rc, call);
}

static DAT_LMR_TRIPLET segment(const struct peer *p, const void *at, size_t size)
{
	return (DAT_LMR_TRIPLET){ .lmr_context = p->lmr_context,
				  .virtual_address = (uintptr_t)at,
				  .segment_length = size };
}

void peer_receive(struct peer *p)
{
	DAT_LMR_TRIPLET into = segment(p, p->memory->heard, MESSAGE_SIZE);

	posted(dat_ep_post_recv(p->ep, 1, &into, cookie(p, OPERATION_RECEIVE),
				DAT_COMPLETION_DEFAULT_FLAG),
	       "dat_ep_post_recv");
}

void peer_send(struct peer *p)
{
	DAT_LMR_TRIPLET from = segment(p, p->memory->said, MESSAGE_SIZE);

	posted(dat_ep_post_send(p->ep, 1, &from, cookie(p, OPERATION_SEND),
				DAT_COMPLETION_DEFAULT_FLAG),
	       "dat_ep_post_send");
}

static DAT_RMR_TRIPLET remote(const struct message *m, uint32_t size)
{
	return (DAT_RMR_TRIPLET){ .rmr_context = m->key,
				  .virtual_address = m->address,
				  .segment_length = size };
}

void peer_read(struct peer *p, const struct message *from, uint32_t size)
{
	DAT_LMR_TRIPLET into = segment(p, p->memory->data, size);
	DAT_RMR_TRIPLET there = remote(from, size);

	posted(dat_ep_post_rdma_read(p->ep, 1, &into, cookie(p, OPERATION_READ), &there,
				     DAT_COMPLETION_DEFAULT_FLAG),
	       "dat_ep_post_rdma_read");
}

void peer_write(struct peer *p, const struct message *to, uint32_t size)
{
	DAT_LMR_TRIPLET from = segment(p, p->memory->data, size);
	DAT_RMR_TRIPLET there = remote(to, size);

	posted(dat_ep_post_rdma_write(p->ep, 1, &from, cookie(p, OPERATION_WRITE), &there,
				      DAT_COMPLETION_DEFAULT_FLAG),
	       "dat_ep_post_rdma_write");
}
