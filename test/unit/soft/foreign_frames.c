/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign_frames.c - bad frames and requests: each must end in the right Terminate. */
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/soft/foreign_tests.h"
#include "test/unit/unit.h"

static void bad_frame(int kind)
{
	struct wire_segment write = { .tagged = true, .last = true, .op = WIRE_WRITE,
		.stag = we.mr->rkey, .to = (uintptr_t)we.buf };
	struct wire_segment read = { .last = true, .op = WIRE_READ_REQUEST, .qn = 1, .msn = 1 };
	struct wire_segment seg = send_seg(1, 0, true);
	uint8_t ulpdu[64] = { 0 }, body[64] = { 0 };
	unsigned n;

	switch (kind) {
	case 0:
		write.stag ^= 0x100;
		put_segment(write, "12345678", 8);
		break;
	case 1:
		write.to += BUFFER - 7;
		put_segment(write, "12345678", 8);
		break;
	case 2:
		write.to = UINT64_MAX - 2;
		put_segment(write, "12345678", 8);
		break;
	case 3:		/* DDP version */
		n = wire_segment_put(ulpdu, &write);
		ulpdu[0] ^= 3;
		put_fpdu(ulpdu, n);
		break;
	case 4:
		n = wire_segment_put(ulpdu, &seg);
		ulpdu[0] ^= 3;
		put_fpdu(ulpdu, n);
		break;
	case 5:		/* RDMAP version */
		n = wire_segment_put(ulpdu, &seg);
		ulpdu[1] ^= 0xc0;
		put_fpdu(ulpdu, n);
		break;
	case 6:		/* an opcode that only peers of this implementation use */
		seg.op = WIRE_IMMEDIATE;
		put_segment(seg, "12345678", 8);
		break;
	case 7:
		seg.op = WIRE_ATOMIC_REQUEST;
		seg.qn = 1;
		put_segment(seg, body, 52);
		break;
	case 8:		/* tagged send */
		write.op = WIRE_SEND;
		put_segment(write, "", 0);
		break;
	case 9:
		seg.qn = 1;
		put_segment(seg, "", 0);
		break;
	case 10:
		seg.msn = 2;
		put_segment(seg, "", 0);
		break;
	case 11:
		seg.mo = 4;
		put_segment(seg, "", 0);
		break;
	case 12:	/* a hole in a message */
		seg.last = false;
		put_segment(seg, "1234", 4);
		seg.mo = 8;
		put_segment(seg, "1234", 4);
		break;
	case 13:	/* longer than the receive */
		put_segment(seg, body, 64);
		break;
	case 14:	/* shorter than any header */
		put_fpdu(ulpdu, 3);
		break;
	case 15:
		ulpdu[0] = 0x41;
		ulpdu[1] = 0x43;
		put_fpdu(ulpdu, 17);
		break;
	case 16:	/* read request of a wrong length */
		put_segment(read, body, 27);
		break;
	case 17:	/* read of an unknown STag */
		wire_put32(body + 12, 8);
		wire_put32(body + 16, we.mr->rkey ^ 0x10000);
		put_segment(read, body, 28);
		break;
	case 18:
		wire_put32(body + 12, BUFFER + 1);
		wire_put32(body + 16, we.mr->rkey);
		wire_put64(body + 20, (uintptr_t)we.buf);
		put_segment(read, body, 28);
		break;
	case 19:	/* a response without a request */
		write.op = WIRE_READ_RESPONSE;
		put_segment(write, "12345678", 8);
		break;
	case 20:	/* invalidates an STag that must not be invalidated */
		seg.op = WIRE_SEND_INV;
		seg.stag = we.mr->rkey;
		put_segment(seg, "", 0);
		break;
	case 21:	/* wrong CRC (only with CRC) */
		n = 4;
		put("\0\x12\x41\x43" "................" "\0\0" "....", 26);
		break;
	}
}

static const struct {
	int term, crc;
} wants[] = {
	{ WIRE_TERM_DDP_STAG, -1 }, { WIRE_TERM_DDP_BOUNDS, -1 }, { WIRE_TERM_DDP_WRAP, -1 },
	{ WIRE_TERM_TAGGED_VERSION, -1 }, { WIRE_TERM_UNTAGGED_VERSION, -1 },
	{ WIRE_TERM_RDMAP_VERSION, -1 }, { WIRE_TERM_OPCODE, -1 }, { WIRE_TERM_OPCODE, -1 },
	{ WIRE_TERM_OPCODE, -1 }, { WIRE_TERM_QN, -1 }, { WIRE_TERM_MSN, -1 },
	{ WIRE_TERM_MO, -1 }, { WIRE_TERM_MO, -1 }, { WIRE_TERM_TOO_LONG, -1 },
	{ WIRE_TERM_LENGTH, -1 }, { WIRE_TERM_LENGTH, -1 }, { WIRE_TERM_LENGTH, -1 },
	{ WIRE_TERM_STAG, -1 }, { WIRE_TERM_BOUNDS, -1 }, { WIRE_TERM_OPCODE, -1 },
	{ WIRE_TERM_INVALIDATE, -1 }, { WIRE_TERM_CRC, 1 },
};

void each_bad_frame_gets_its_terminate(void **state)
{
	uint8_t ulpdu[65536];
	uint16_t n;

	for (int crc = 0; crc < 2; crc++)
		for (int kind = 0; kind < (int)(sizeof wants / sizeof wants[0]); kind++) {
			if (wants[kind].crc >= 0 && wants[kind].crc != crc)
				continue;
			foreign_peer_up(crc);
			post_recv(1, 0, 32);
			bad_frame(kind);
			assert_true(get_fpdu(ulpdu, &n));
			assert_int_equal(ulpdu[1], 0x47);
			assert_int_equal(wire_get32(ulpdu + 6), 2);
			assert_int_equal(wire_get32(ulpdu + 10), 1);
			if (wire_get16(ulpdu + 18) != wants[kind].term)
				print_message("bad frame %d, crc %d\n", kind, crc);
			assert_int_equal(wire_get16(ulpdu + 18), wants[kind].term);
			assert_int_equal(n, 22);
			assert_false(get(ulpdu, 1));
			await(BROKEN);
			completion(1, kind == 13 ? IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR);
			foreign_peer_down();
		}
}

void more_reads_than_agreed_are_refused(void **state)
{
	uint8_t ulpdu[65536], body[28] = { 0 };
	bool terminated = false;
	uint16_t n;

	foreign_peer_up(false);
	wire_put32(body + 12, BUFFER);		/* more than the socket takes at once */
	wire_put32(body + 16, we.mr->rkey);
	wire_put64(body + 20, (uintptr_t)we.buf);
	for (int i = 0; i < 40; i++)
		put_segment((struct wire_segment){ .last = true, .op = WIRE_READ_REQUEST,
			.qn = 1, .msn = i + 1 }, body, sizeof body);
	while (get_fpdu(ulpdu, &n) && !terminated)
		if (ulpdu[1] == 0x47) {
			assert_int_equal(wire_get16(ulpdu + 18), WIRE_TERM_NO_BUFFER);
			terminated = true;
		}
	assert_true(terminated);
	foreign_peer_down();
}
