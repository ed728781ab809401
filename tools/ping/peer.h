/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.h - an endpoint for one peer, with its memory, and what a side of rping posts on it. Each
 * completion carries in its cookie the peer's number and which operation it was. */
#ifndef DATPING_PEER_H
#define DATPING_PEER_H
#include "adapter.h"
#include "message.h"
#include <stdbool.h>

enum operation { OPERATION_RECEIVE, OPERATION_SEND, OPERATION_READ, OPERATION_WRITE, OPERATIONS };

/* The registered memory of an endpoint: messages received and sent, and the data of a round. */
struct memory {
	uint8_t heard[MESSAGE_SIZE], said[MESSAGE_SIZE];
	char data[DATA_MAX + 1], echo[DATA_MAX + 1];
};

struct peer {
	uint64_t number; /* no other peer of this process has or had it */
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	struct memory *memory;
};

/* Creates an endpoint and its memory, and posts a receive into memory->heard. `exposed`: the peer may read
 * and write the memory. */
void peer_open(struct peer *p, struct adapter *a, bool exposed);
/* Works in any state of the endpoint, and after a peer_open() that failed. */
void peer_close(struct peer *p);

/* Returns the number of the peer that a completion belongs to, and stores the operation. */
uint64_t peer_number_of(const DAT_EVENT *completion, enum operation *operation);

/* These post operations. They have no effect if the connection has ended. */
void peer_receive(struct peer *p);
/* Sends the message in memory->said. */
void peer_send(struct peer *p);
/* Move `size` bytes between memory->data and the peer's memory. */
void peer_read(struct peer *p, const struct message *from, uint32_t size);
void peer_write(struct peer *p, const struct message *to, uint32_t size);

#endif
