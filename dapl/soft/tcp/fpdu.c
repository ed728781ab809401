/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fpdu.c - see fpdu.h. Frames segments into the FPDUs of a batch. rdmap/transmit.c sends the batch. */
#include "dapl/soft/tcp/fpdu.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/wire/wire.h"
#include <string.h>

static void push(struct soft_batch *b, void *p, size_t length)
{
	struct iovec *last = b->iovs ? &b->iov[b->iovs - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == p)
		last->iov_len += length;
	else
		b->iov[b->iovs++] = (struct iovec){ p, length };
	b->total += length;
}

void fpdu_put(struct soft_batch *b, bool crc_on, const struct wire_segment *seg, const void *body,
	      uint32_t body_length, const struct iovec *payload, int pieces, uint32_t length)
{
	uint8_t *start = b->bytes + b->used, *p = start + WIRE_FPDU_LENGTH;
	uint32_t crc = WIRE_CRC_START, ulpdu, pad;
	bool copy = length <= BATCH_COPY_MAX;

	p += wire_segment_put(p, seg);
	if (body_length)
		memcpy(p, body, body_length);
	p += body_length;
	ulpdu = p - start - WIRE_FPDU_LENGTH + length;
	pad = -(WIRE_FPDU_LENGTH + ulpdu) & 3;
	wire_put16(start, ulpdu);
	if (copy)
		p = copy_gather(p, payload, pieces);
	push(b, start, p - start);
	if (crc_on)
		crc = wire_crc(crc, start, p - start);
	for (int i = 0; !copy && i < pieces; i++) {
		push(b, payload[i].iov_base, payload[i].iov_len);
		if (crc_on)
			crc = wire_crc(crc, payload[i].iov_base, payload[i].iov_len);
	}
	start = p;
	memset(p, 0, pad + WIRE_CRC);
	p += pad;
	if (crc_on)
		wire_crc_put(p, wire_crc(crc, start, pad));
	p += WIRE_CRC;
	push(b, start, p - start);
	b->used = p - b->bytes;
}
