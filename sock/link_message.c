/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_message.c - messages between two processes on the wire. See link_message.h. */
#include "sock/link_message.h"
#include <endian.h>
#include <string.h>

void link_message_encode(const struct link_message *m, unsigned char wire[LINK_MESSAGE])
{
	uint16_t credits = htobe16(m->credits);
	uint32_t stream = htobe32(m->stream);
	uint64_t words[3] = { htobe64(m->a), htobe64(m->b), htobe64(m->c) };

	wire[0] = m->type, wire[1] = m->flags;
	memcpy(wire + 2, &credits, 2), memcpy(wire + 4, &stream, 4), memcpy(wire + 8, words, 24);
}

bool link_message_decode(const unsigned char *wire, size_t size, struct link_message *m)
{
	uint16_t credits;
	uint32_t stream;
	uint64_t words[3];

	if (size < LINK_MESSAGE || size > LINK_MESSAGE + LINK_INLINE)
		return false;
	memcpy(&credits, wire + 2, 2), memcpy(&stream, wire + 4, 4), memcpy(words, wire + 8, 24);
	*m = (struct link_message){ wire[0], wire[1], be16toh(credits), be32toh(stream),
				    be64toh(words[0]), be64toh(words[1]), be64toh(words[2]),
				    wire + LINK_MESSAGE, size - LINK_MESSAGE };
	return true;
}
