/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_message.h - a message between two processes: its 32 bytes on the wire, and bytes of a stream behind them. Not
 * responsible for: what it means. */
#ifndef SOCK_LINK_MESSAGE_H
#define SOCK_LINK_MESSAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LINK_MESSAGE = 32, /* bytes on the wire */
	LINK_INLINE = 96,  /* bytes of a stream behind it, at most: one request of the adapter instead of two */
};

/* In host byte order; network byte order on the wire. */
struct link_message {
	uint8_t type, flags;
	uint16_t credits; /* the link's: messages of the peer taken since the last message to it */
	uint32_t stream;  /* number given by the end that opens the stream */
	uint64_t a, b, c;
	const unsigned char *bytes; /* of a stream, in the buffer that was decoded; `size` may be 0 */
	uint32_t size;
};

/* Without the bytes of a stream. */
void link_message_encode(const struct link_message *m, unsigned char wire[LINK_MESSAGE]);
/* Returns false for what is no message. */
bool link_message_decode(const unsigned char *wire, size_t size, struct link_message *m);

#endif
