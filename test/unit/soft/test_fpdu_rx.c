/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_fpdu_rx.c - what the receiver of the software RNIC refuses: each check has a Terminate and a trace line, and
 * ends the connection in the same way. */
#include "test/unit/device_harness.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/soft/peer_bytes.h"
#include "test/unit/unit.h"

/* The messages of a faulty peer, one for each check. */
struct bad {
	const char *check;
	int term;
	void (*send)(const struct stream *s);
	bool peer_is_dapl;
};

static void raw(const struct stream *s, const char *ulpdu, size_t n)
{
	peer_length += stream_frame(s, peer_bytes + peer_length, (const uint8_t *)ulpdu, n);
}

#define BAD(name) static void name(const struct stream *s)

BAD(too_short) { raw(s, "\x41\x43", 3); }
BAD(shorter_than_header) { raw(s, "\x41\x43\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16); }
BAD(version_tagged) { raw(s, "\xc2\x40\0\0\0\0\0\0\0\0\0\0\0", 14); }
BAD(version_untagged) { raw(s, "\x42\x43\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18); }
BAD(version_rdmap) { raw(s, "\x41\x83\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18); }
BAD(tagged_send) { raw(s, "\xc1\x43\0\0\0\0\0\0\0\0\0\0\0", 14); }
BAD(atomic_of_a_stranger) { add_atomic(s, 1, WIRE_ATOMIC_FETCH_ADD, stream_device.open->rkey, 0); }
BAD(close_from_other_implementation) { add(s, control(WIRE_CLOSE, WIRE_QN_DAPL, 1), "", 0); }
BAD(queue) { add(s, control(WIRE_SEND, 1, 1), "", 0); }
BAD(number) { add(s, send_of(WIRE_SEND, 2, 0, true), "", 0); }
BAD(offset) { add(s, send_of(WIRE_SEND, 1, 1, true), "", 0); }
BAD(hole)
{
	add(s, send_of(WIRE_SEND, 1, 0, false), "abcd", 4);
	add(s, send_of(WIRE_SEND, 1, 8, true), "abcd", 4);
}
BAD(overlap)
{
	add(s, send_of(WIRE_SEND, 1, 0, false), "abcd", 4);
	add(s, send_of(WIRE_SEND, 1, 2, true), "abcd", 4);
}
BAD(other_op)
{
	add(s, send_of(WIRE_SEND, 1, 0, false), "abcd", 4);
	add(s, send_of(WIRE_SEND_SE, 1, 4, true), "abcd", 4);
}
BAD(too_long) { add(s, send_of(WIRE_SEND, 1, 0, true), peer_bytes + 32768, 101); }
BAD(read_length) { add(s, control(WIRE_READ_REQUEST, 1, 1), peer_bytes + 32768, 29); }
BAD(read_in_two)
{
	struct wire_segment seg = control(WIRE_READ_REQUEST, 1, 1);

	seg.last = false;
	add(s, seg, peer_bytes + 32768, 28);
}
BAD(no_terminate_body) { add(s, control(WIRE_TERMINATE, WIRE_QN_TERMINATE, 1), "", 0); }
BAD(write_stag) { add(s, write_to(0x10203040, 0, true), "x", 1); }
BAD(write_bounds) { add(s, write_to(stream_device.open->rkey, STREAM_REGION - 1, true), "xy", 2); }
BAD(write_wrap) { add(s, write_to(stream_device.open->rkey, UINT64_MAX, true), "xy", 2); }
BAD(write_access) { add(s, write_to(stream_device.constant->rkey, 0, true), "x", 1); }
BAD(write_local) { add(s, write_to(stream_device.local->rkey, 0, true), "x", 1); }
BAD(write_foreign) { add(s, write_to(stream_device.foreign->rkey, 0, true), "x", 1); }
BAD(write_unbound) { add(s, write_to(s->window->mw.rkey, 0, true), "x", 1); }
BAD(read_stag) { add_read(s, 1, 0x10203040, 0, 1); }
BAD(read_bounds) { add_read(s, 1, stream_device.open->rkey, STREAM_REGION, 1); }
BAD(read_wrap) { add_read(s, 1, stream_device.open->rkey, UINT64_MAX, 2); }
BAD(read_access) { add_read(s, 1, stream_device.local->rkey, 0, 1); }
BAD(read_foreign) { add_read(s, 1, stream_device.foreign->rkey, 0, 1); }
BAD(unasked) { add_response(s, 0, 8, true); }
BAD(uninvited)
{
	struct wire_segment inv = send_of(WIRE_SEND_INV, 1, 0, true);

	inv.stag = stream_device.open->rkey;
	add(s, inv, "", 0);
}
BAD(atomic_unaligned) { add_atomic(s, 1, WIRE_ATOMIC_FETCH_ADD, stream_device.open->rkey, 4); }
BAD(atomic_code) { add_atomic(s, 1, 1, stream_device.open->rkey, 0); }
BAD(atomic_access) { add_atomic(s, 1, WIRE_ATOMIC_FETCH_ADD, stream_device.constant->rkey, 0); }
BAD(atomic_unasked) { add(s, control(WIRE_ATOMIC_RESPONSE, WIRE_QN_ATOMIC, 1), peer_bytes + 32768, 12); }
BAD(ack_of_the_future)
{
	uint8_t body[16] = { 0, 0, 0, 9 };

	add(s, control(WIRE_ACK, WIRE_QN_DAPL, 1), body, 16);
}
BAD(window_overrun)
{
	uint8_t ulpdu[4096] = { 0 };
	uint32_t msn = 1;

	/* far beyond the window of a megabyte */
	for (struct stream *w = (struct stream *)s; msn < 400 && w->alive; msn++) {
		uint8_t fpdu[4112];
		struct wire_segment seg = send_of(WIRE_SEND, msn, 0, true);

		wire_segment_put(ulpdu, &seg);
		stream_put(w, fpdu, stream_frame(w, fpdu, ulpdu, 4096), 0);
	}
}

static const struct bad bad[] = {
	{ "ULPDU length", WIRE_TERM_LENGTH, too_short, false },
	{ "ULPDU length", WIRE_TERM_LENGTH, shorter_than_header, false },
	{ "DDP version", WIRE_TERM_TAGGED_VERSION, version_tagged, false },
	{ "DDP version", WIRE_TERM_UNTAGGED_VERSION, version_untagged, false },
	{ "RDMAP version", WIRE_TERM_RDMAP_VERSION, version_rdmap, false },
	{ "opcode", WIRE_TERM_OPCODE, tagged_send, false },
	{ "opcode", WIRE_TERM_OPCODE, atomic_of_a_stranger, false },
	{ "opcode", WIRE_TERM_OPCODE, close_from_other_implementation, false },
	{ "queue number", WIRE_TERM_QN, queue, false },
	{ "message sequence number", WIRE_TERM_MSN, number, false },
	{ "message offset", WIRE_TERM_MO, offset, false },
	{ "message offset", WIRE_TERM_MO, hole, false },
	{ "message offset", WIRE_TERM_MO, overlap, false },
	{ "opcode within a message", WIRE_TERM_OPCODE, other_op, false },
	{ "receive for a send", WIRE_TERM_TOO_LONG, too_long, false },
	{ "ULPDU length", WIRE_TERM_LENGTH, read_length, false },
	{ "last flag of a message of one segment", WIRE_TERM_UNSPECIFIED, read_in_two, false },
	{ "ULPDU length", WIRE_TERM_LENGTH, no_terminate_body, false },
	{ "target of a write", WIRE_TERM_DDP_STAG, write_stag, false },
	{ "target of a write", WIRE_TERM_DDP_BOUNDS, write_bounds, false },
	{ "target of a write", WIRE_TERM_DDP_WRAP, write_wrap, false },
	{ "target of a write", WIRE_TERM_ACCESS, write_access, false },
	{ "target of a write", WIRE_TERM_ACCESS, write_local, false },
	{ "target of a write", WIRE_TERM_DDP_STREAM, write_foreign, false },
	{ "target of a write", WIRE_TERM_DDP_STAG, write_unbound, false },
	{ "read request", WIRE_TERM_STAG, read_stag, false },
	{ "read request", WIRE_TERM_BOUNDS, read_bounds, false },
	{ "read request", WIRE_TERM_WRAP, read_wrap, false },
	{ "read request", WIRE_TERM_ACCESS, read_access, false },
	{ "read request", WIRE_TERM_STREAM, read_foreign, false },
	{ "read response", WIRE_TERM_OPCODE, unasked, false },
	{ "delivery of a send", WIRE_TERM_INVALIDATE, uninvited, false },
	{ "atomic request", WIRE_TERM_CATASTROPHIC, atomic_unaligned, true },
	{ "atomic request", WIRE_TERM_UNSPECIFIED, atomic_code, true },
	{ "atomic request", WIRE_TERM_ACCESS, atomic_access, true },
	{ "atomic response", WIRE_TERM_OPCODE, atomic_unasked, true },
	{ "acknowledgement", WIRE_TERM_UNSPECIFIED, ack_of_the_future, true },
	{ "receive for a send", WIRE_TERM_NO_BUFFER, window_overrun, true },
};

/* The one trace line, which names the check. */
static void assert_traced(const struct bad *b)
{
	char text[8192] = "", line[128];
	FILE *f = tmpfile();
	size_t n;

	assert_non_null(f);
	trace_dump(fileno(f));
	rewind(f);
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	fclose(f);
	snprintf(line, sizeof line, "terminate %d/%d/%d: %s,", b->term >> 12, b->term >> 8 & 15,
		 b->term & 255, b->check);
	if (!strstr(text, line))
		print_message("expected \"%s\" in \"%s\"\n", line, text);
	assert_non_null(strstr(text, line));
}

/* The Terminate is the last frame. */
static void assert_terminated(const struct stream *s, const struct bad *b)
{
	const uint8_t *ulpdu, *last = NULL;
	int n, size = 0;
	size_t at = 0;

	while ((ulpdu = stream_next(s, &at, &n))) {
		last = ulpdu;
		size = n;
	}
	assert_non_null(last);
	assert_int_equal(wire_get16(last), 0x4147);
	assert_int_equal(wire_get32(last + 6), WIRE_QN_TERMINATE);
	assert_int_equal(wire_get32(last + 10), 1);
	assert_int_equal(wire_get32(last + 14), 0);
	assert_int_equal(wire_get16(last + 18), b->term);
	assert_int_equal(wire_get16(last + 20), 0);
	assert_int_equal(size, WIRE_UNTAGGED + 4 + (b->peer_is_dapl ? WIRE_TERMINATE_EXTRA : 0));
}

UNIT_TEST(each_check_has_its_terminate)
{
	struct stream s;
	struct ibv_wc wc[8];
	unsigned n;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		for (int crc = 0; crc < 2; crc++) {
			bool posts = bad[i].send != window_overrun;

			trace_fini();
			trace_set_level(TRC_LVL_ERROR);
			upcalls_drop(NULL);
			memset(peer_bytes, 0, sizeof peer_bytes);
			stream_open(&s, &(struct stream_options){ .peer_is_dapl = bad[i].peer_is_dapl,
								  .crc = crc });
			if (posts) {
				assert_true(stream_receive(&s, 1, 0, 100));
				assert_true(stream_receive(&s, 2, 100, 100));
			}
			peer_length = 0;
			bad[i].send(&s);
			stream_put(&s, peer_bytes, peer_length, 0);
			assert_traced(&bad[i]);
			trace_set_level(TRC_LVL_OFF);
			assert_terminated(&s, &bad[i]);
			assert_int_equal(s.qp->state, IBV_QPS_ERR);
			n = stream_poll(&s, wc, 8);
			assert_int_equal(n, posts ? 2 : 0);
			for (unsigned k = 0; k < n; k++)
				assert_int_equal(wc[k].status,
						 k == 0 && bad[i].send == too_long
							 ? IBV_WC_LOC_LEN_ERR
							 : IBV_WC_WR_FLUSH_ERR);
			dapl_service_flush();
			stream_close(&s);
			assert_int_equal(upcall_count(BROKEN, NULL), 1);
			assert_int_equal(upcall_count(CLOSED, NULL), 0);
		}
}

/* None of the reads is answered while the socket accepts nothing. */
UNIT_TEST(more_reads_than_agreed_are_refused)
{
	struct bad b = { "read request", WIRE_TERM_NO_BUFFER, NULL, false };
	struct stream s;

	trace_fini();
	trace_set_level(TRC_LVL_ERROR);
	stream_open(&s, &(struct stream_options){ 0 });
	peer_length = 0;
	for (int i = 1; i <= STREAM_READS + 1; i++)
		add_read(&s, i, stream_device.open->rkey, 0, STREAM_REGION);
	stream_put(&s, peer_bytes, peer_length, 0);
	assert_traced(&b);
	trace_set_level(TRC_LVL_OFF);
	assert_terminated(&s, &b);
	stream_close(&s);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
