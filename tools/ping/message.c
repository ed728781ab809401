/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* message.c - see message.h. */
#include "message.h"
#include <endian.h>
#include <stdio.h>
#include <string.h>

/* The numbers as they stand in the message. */
struct wire {
	uint64_t address;
	uint32_t key, size;
};
_Static_assert(sizeof(struct wire) == MESSAGE_SIZE, "no padding");

void message_encode(const struct message *m, uint8_t to[MESSAGE_SIZE])
{
	struct wire wire = { htobe64(m->address), htobe32(m->key), htobe32(m->size) };

	memcpy(to, &wire, sizeof wire);
}

struct message message_decode(const uint8_t from[MESSAGE_SIZE])
{
	struct wire wire;

	memcpy(&wire, from, sizeof wire);
	return (struct message){ be64toh(wire.address), be32toh(wire.key), be32toh(wire.size) };
}

void make_data(char *to, size_t size, unsigned long round)
{
	enum { LETTERS = 'z' - 'A' + 1 };
	/* rping counts in an int: the head of its data has 23 bytes at most, with the NUL */
	size_t head = (size_t)snprintf(to, size, "rdma-ping-%d: ", (int)(round & 0x7fffffff));

	for (size_t i = head; i + 1 < size; i++)
		to[i] = (char)('A' + (round + i - head) % LETTERS);
	to[size - 1] = '\0';
}
