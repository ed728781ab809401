/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sockring_fuzz.c - any bytes as what a peer stores in the shared memory of a connection of libdatsock (sock/ring.h),
 * between the calls of this end, which sends in one ring and receives from another: no access outside of the rings'
 * memory, no more bytes than were asked for, and an error is told instead of a wrong number.
 *
 * An input is a series of records of 10 bytes: what to do, its argument, and a number of 64 bits. */
#include "sock/ring.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 2 * RING_MIN, BUFFER = 5000, RECORD = 10, PATTERN = 0x5a };
enum action { STORE, WRITE, READ, PEEK, DROP, REVOKE, BEGIN, ENTER, ROOM, GROW, ACTIONS };

static struct ring rings[2];
static struct ring_sender s;
static struct ring_receiver r;
static char *memory[2]; /* of exactly MAX bytes, so that an access beyond them shows */
static char *buffer;

static void demand(bool good)
{
	if (!good)
		abort();
}

/* A word of one ring, as the peer stores it. Near values reach more than any number does. */
static void store(uint8_t which, uint64_t value)
{
	struct ring *ring = &rings[which & 1];
	uint64_t *wide[] = { &ring->tail, &ring->start, &ring->base, &ring->claim, &ring->head };
	uint32_t *narrow[] = { &ring->size, &ring->epoch, &ring->ack, &ring->asleep, &ring->full };
	unsigned word = (which >> 1) % 10;

	if (which & 0x80)
		value = (word < 5 ? *wide[word] : *narrow[word - 5]) + (int8_t)value;
	if (word < 5)
		*wide[word] = value;
	else
		*narrow[word - 5] = (uint32_t)value;
}

static void read_some(bool peek, uint8_t parts, size_t length)
{
	size_t n, first = parts % BUFFER;
	struct iovec iov[2] = { { buffer, first }, { buffer + first, BUFFER - first } };
	bool broken = false;

	length %= BUFFER + 1;
	memset(buffer, PATTERN, BUFFER);
	n = peek ? ring_peek(&r, iov, 2, 0, length, &broken) : ring_read(&r, iov, 2, 0, length, &broken);
	demand(n <= length && !(n && broken));
	for (size_t i = n; i < BUFFER; i++)
		demand(buffer[i] == PATTERN);
}

static void write_some(uint8_t parts, size_t length)
{
	size_t n, first = parts % BUFFER;
	struct iovec iov[2] = { { buffer, first }, { buffer + first, BUFFER - first } };
	bool broken = false;

	length %= BUFFER + 1;
	n = ring_write(&s, iov, 2, 0, length, &broken);
	demand(n <= length && n <= s.size);
}

static void revoke(void)
{
	struct iovec pieces[2];
	bool broken = false;
	size_t n;

	if (!s.active)
		return;
	n = ring_revoke(&s, pieces, &broken);
	demand(n == pieces[0].iov_len + pieces[1].iov_len && n <= s.size && !(n && broken));
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < pieces[i].iov_len; k++)
			buffer[k % BUFFER] ^= ((char *)pieces[i].iov_base)[k];
}

static void enter_or_leave(void)
{
	bool broken = false;

	if (!r.active && ring_has_epoch(&r))
		ring_enter(&r, &broken);
	else if (r.active && ring_is_revoked(&r))
		ring_leave(&r, &broken);
}

static void act(const uint8_t *record)
{
	uint64_t value;
	bool broken = false;

	memcpy(&value, record + 2, sizeof value);
	switch ((enum action)(record[0] % ACTIONS)) {
	case STORE:
		store(record[1], value);
		break;
	case WRITE:
		if (s.active)
			write_some(record[1], value);
		break;
	case READ:
	case PEEK:
		if (r.active)
			read_some(record[0] % ACTIONS == PEEK, record[1], value);
		break;
	case DROP:
		if (r.active)
			demand(ring_read(&r, NULL, 0, 0, value % MAX, &broken) <= value % MAX);
		break;
	case REVOKE:
		revoke();
		break;
	case BEGIN:
		if (ring_can_begin(&s))
			ring_begin(&s, value);
		break;
	case ENTER:
		enter_or_leave();
		break;
	case ROOM:
		demand(ring_room(&s, &broken) <= s.size);
		ring_is_writable(&s);
		ring_take_room_wish(&r);
		break;
	case GROW:
		s.wish = s.size < MAX ? 2 * s.size : s.size / 2;
		break;
	default:
		break;
	}
	demand(s.size <= MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(rings, 0, sizeof rings);
	for (int i = 0; i < 2; i++)
		memory[i] = calloc(1, MAX);
	buffer = calloc(1, BUFFER);
	demand(memory[0] && memory[1] && buffer);
	ring_sender_init(&s, &rings[0], memory[0], MAX);
	ring_receiver_init(&r, &rings[1], memory[1], MAX);
	rings[1].size = RING_MIN;
	for (; size >= RECORD; data += RECORD, size -= RECORD)
		act(data);
	free(memory[0]), free(memory[1]), free(buffer);
	return 0;
}
