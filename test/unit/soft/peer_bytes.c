/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer_bytes.c - see peer_bytes.h. */
#include "test/unit/soft/peer_bytes.h"
#include "test/unit/unit.h"

uint8_t peer_bytes[65536];
size_t peer_length;

void add(const struct stream *s, struct wire_segment seg, const void *body, size_t n)
{
	uint8_t ulpdu[4096];
	unsigned head = wire_segment_put(ulpdu, &seg);

	if (n)
		memcpy(ulpdu + head, body, n);
	peer_length += stream_frame(s, peer_bytes + peer_length, ulpdu, head + n);
	assert_true(peer_length < sizeof peer_bytes - 8192);
}

struct wire_segment send_of(uint8_t op, uint32_t msn, uint32_t mo, bool last)
{
	return (struct wire_segment){ .op = op, .last = last, .msn = msn, .mo = mo };
}

struct wire_segment write_to(uint32_t stag, uint64_t to, bool last)
{
	return (struct wire_segment){ .tagged = true, .op = WIRE_WRITE, .last = last,
		.stag = stag, .to = to };
}

struct wire_segment control(uint8_t op, uint32_t qn, uint32_t msn)
{
	return (struct wire_segment){ .op = op, .last = true, .qn = qn, .msn = msn };
}

void add_read(const struct stream *s, uint32_t msn, uint32_t stag, uint64_t from, uint32_t size)
{
	uint8_t body[WIRE_READ_REQUEST_LENGTH] = { 0 };

	wire_put32(body, 0x7000 + msn);
	wire_put32(body + 12, size);
	wire_put32(body + 16, stag);
	wire_put64(body + 20, from);
	add(s, control(WIRE_READ_REQUEST, WIRE_QN_READ, msn), body, sizeof body);
}

void add_atomic(const struct stream *s, uint32_t msn, uint32_t code, uint32_t stag, uint64_t to)
{
	uint8_t body[WIRE_ATOMIC_REQUEST_LENGTH] = { 0 };

	wire_put32(body, code);
	wire_put32(body + 4, 0x123);
	wire_put32(body + 8, stag);
	wire_put64(body + 12, to);
	wire_put64(body + 20, 5);
	add(s, control(WIRE_ATOMIC_REQUEST, WIRE_QN_READ, msn), body, sizeof body);
}

void add_response(const struct stream *s, uint32_t offset, uint32_t size, bool last)
{
	uint8_t body[1024];

	for (uint32_t i = 0; i < size; i++)
		body[i] = (uint8_t)((offset + i) * 7);
	add(s, (struct wire_segment){ .tagged = true, .op = WIRE_READ_RESPONSE, .last = last,
		.stag = STREAM_SINK + 1, .to = offset }, body, size);
}
