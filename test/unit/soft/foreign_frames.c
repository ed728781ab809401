/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign_frames.c - bad frames and requests: each must end in the right Terminate. */
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/soft/foreign_tests.h"
#include "test/unit/unit.h"

/* What the bad frames are made of: each is right until a case spoils it. */
struct parts {
	struct wire_segment write, read, send;
	uint8_t ulpdu[64], body[64];
};

static void unknown_stag(struct parts *p)
{
	p->write.stag ^= 0x100;
	put_segment(p->write, "12345678", 8);
}

static void out_of_bounds(struct parts *p)
{
	p->write.to += BUFFER - 7;
	put_segment(p->write, "12345678", 8);
}

static void address_that_wraps(struct parts *p)
{
	p->write.to = UINT64_MAX - 2;
	put_segment(p->write, "12345678", 8);
}

static void version_of_ddp_tagged(struct parts *p)
{
	unsigned n = wire_segment_put(p->ulpdu, &p->write);

	p->ulpdu[0] ^= 3;
	put_fpdu(p->ulpdu, n);
}

static void version_of_ddp_untagged(struct parts *p)
{
	unsigned n = wire_segment_put(p->ulpdu, &p->send);

	p->ulpdu[0] ^= 3;
	put_fpdu(p->ulpdu, n);
}

static void version_of_rdmap(struct parts *p)
{
	unsigned n = wire_segment_put(p->ulpdu, &p->send);

	p->ulpdu[1] ^= 0xc0;
	put_fpdu(p->ulpdu, n);
}

static void opcode_of_this_implementation(struct parts *p)
{
	p->send.op = WIRE_IMMEDIATE;
	put_segment(p->send, "12345678", 8);
}

static void atomic_that_was_not_agreed(struct parts *p)
{
	p->send.op = WIRE_ATOMIC_REQUEST;
	p->send.qn = 1;
	put_segment(p->send, p->body, 52);
}

static void tagged_send(struct parts *p)
{
	p->write.op = WIRE_SEND;
	put_segment(p->write, "", 0);
}

static void send_on_the_read_queue(struct parts *p)
{
	p->send.qn = 1;
	put_segment(p->send, "", 0);
}

static void message_out_of_order(struct parts *p)
{
	p->send.msn = 2;
	put_segment(p->send, "", 0);
}

static void offset_at_the_beginning(struct parts *p)
{
	p->send.mo = 4;
	put_segment(p->send, "", 0);
}

static void hole_in_a_message(struct parts *p)
{
	p->send.last = false;
	put_segment(p->send, "1234", 4);
	p->send.mo = 8;
	put_segment(p->send, "1234", 4);
}

static void longer_than_the_receive(struct parts *p) { put_segment(p->send, p->body, 64); }
static void shorter_than_any_header(struct parts *p) { put_fpdu(p->ulpdu, 3); }

static void shorter_than_its_header(struct parts *p)
{
	p->ulpdu[0] = 0x41;
	p->ulpdu[1] = 0x43;
	put_fpdu(p->ulpdu, 17);
}

static void read_request_of_a_wrong_length(struct parts *p) { put_segment(p->read, p->body, 27); }

static void read_of_an_unknown_stag(struct parts *p)
{
	wire_put32(p->body + 12, 8);
	wire_put32(p->body + 16, we.mr->rkey ^ 0x10000);
	put_segment(p->read, p->body, 28);
}

static void read_out_of_bounds(struct parts *p)
{
	wire_put32(p->body + 12, BUFFER + 1);
	wire_put32(p->body + 16, we.mr->rkey);
	wire_put64(p->body + 20, (uintptr_t)we.buf);
	put_segment(p->read, p->body, 28);
}

static void response_without_a_request(struct parts *p)
{
	p->write.op = WIRE_READ_RESPONSE;
	put_segment(p->write, "12345678", 8);
}

static void invalidation_that_is_not_permitted(struct parts *p)
{
	p->send.op = WIRE_SEND_INV;
	p->send.stag = we.mr->rkey;
	put_segment(p->send, "", 0);
}

static void wrong_crc(struct parts *p) { put("\0\x12\x41\x43" "................" "\0\0" "....", 26); }

struct bad_frame {
	const char *name;
	void (*put)(struct parts *p);
	int term;			/* of the Terminate that it gets */
	bool only_with_crc;
	enum ibv_wc_status receive;	/* status of the receive that was posted; 0: flushed */
};

#define BAD(how, code, ...) { .name = #how, .put = how, .term = code, ##__VA_ARGS__ }

static const struct bad_frame bad_frames[] = {
	BAD(unknown_stag, WIRE_TERM_DDP_STAG),
	BAD(out_of_bounds, WIRE_TERM_DDP_BOUNDS),
	BAD(address_that_wraps, WIRE_TERM_DDP_WRAP),
	BAD(version_of_ddp_tagged, WIRE_TERM_TAGGED_VERSION),
	BAD(version_of_ddp_untagged, WIRE_TERM_UNTAGGED_VERSION),
	BAD(version_of_rdmap, WIRE_TERM_RDMAP_VERSION),
	BAD(opcode_of_this_implementation, WIRE_TERM_OPCODE),
	BAD(atomic_that_was_not_agreed, WIRE_TERM_OPCODE),
	BAD(tagged_send, WIRE_TERM_OPCODE),
	BAD(send_on_the_read_queue, WIRE_TERM_QN),
	BAD(message_out_of_order, WIRE_TERM_MSN),
	BAD(offset_at_the_beginning, WIRE_TERM_MO),
	BAD(hole_in_a_message, WIRE_TERM_MO),
	BAD(longer_than_the_receive, WIRE_TERM_TOO_LONG, .receive = IBV_WC_LOC_LEN_ERR),
	BAD(shorter_than_any_header, WIRE_TERM_LENGTH),
	BAD(shorter_than_its_header, WIRE_TERM_LENGTH),
	BAD(read_request_of_a_wrong_length, WIRE_TERM_LENGTH),
	BAD(read_of_an_unknown_stag, WIRE_TERM_STAG),
	BAD(read_out_of_bounds, WIRE_TERM_BOUNDS),
	BAD(response_without_a_request, WIRE_TERM_OPCODE),
	BAD(invalidation_that_is_not_permitted, WIRE_TERM_INVALIDATE),
	BAD(wrong_crc, WIRE_TERM_CRC, .only_with_crc = true),
};

static void put_bad_frame(const struct bad_frame *bad)
{
	struct parts p = {
		.write = { .tagged = true, .last = true, .op = WIRE_WRITE, .stag = we.mr->rkey,
			   .to = (uintptr_t)we.buf },
		.read = { .last = true, .op = WIRE_READ_REQUEST, .qn = 1, .msn = 1 },
		.send = send_seg(1, 0, true),
	};

	bad->put(&p);
}

void each_bad_frame_gets_its_terminate(void **state)
{
	uint8_t ulpdu[65536];
	uint16_t n;

	for (int crc = 0; crc < 2; crc++)
		for (size_t i = 0; i < sizeof bad_frames / sizeof *bad_frames; i++) {
			const struct bad_frame *bad = &bad_frames[i];

			if (bad->only_with_crc && !crc)
				continue;
			foreign_peer_up(crc);
			post_recv(1, 0, 32);
			put_bad_frame(bad);
			assert_true(get_fpdu(ulpdu, &n));
			assert_int_equal(ulpdu[1], 0x47);
			assert_int_equal(wire_get32(ulpdu + 6), 2);
			assert_int_equal(wire_get32(ulpdu + 10), 1);
			if (wire_get16(ulpdu + 18) != bad->term)
				print_message("%s, crc %d\n", bad->name, crc);
			assert_int_equal(wire_get16(ulpdu + 18), bad->term);
			assert_int_equal(n, 22);
			assert_false(get(ulpdu, 1));
			await(BROKEN);
			completion(1, bad->receive ? bad->receive : IBV_WC_WR_FLUSH_ERR);
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
