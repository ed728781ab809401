/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* message.h - what the two sides of rping send each other, and the data that they move. A
 * round is:
 *
 *	client				server
 *	message: where its data is	reads the data by RDMA
 *					message, whose contents mean nothing
 *	message: where the echo goes	writes the data there by RDMA
 *					message, whose contents mean nothing
 *
 * Connections are peer.h's job. */
#ifndef DATPING_MESSAGE_H
#define DATPING_MESSAGE_H
#include <stddef.h>
#include <stdint.h>

enum {
	MESSAGE_SIZE = 16, /* bytes on the wire: address, key and size, big-endian */
	DATA_MIN = 23,     /* bytes that rping takes at least: the longest head of its data */
	DATA_MAX = 65535,  /* bytes that rping takes at most */
	DATA_USUAL = 100,  /* rping's default */
	RPING_PORT = 7174, /* rping's TCP port */
};

/* Memory of the client. */
struct message {
	uint64_t address;
	uint32_t key, size;
};

void message_encode(const struct message *m, uint8_t to[MESSAGE_SIZE]);
struct message message_decode(const uint8_t from[MESSAGE_SIZE]);

/* The data of a round, from 0: "rdma-ping-3: DEFG...", letters that begin one later in each round, and
 * a NUL in the last byte. rping makes the same data. */
void make_data(char *to, size_t size, unsigned long round);

#endif
