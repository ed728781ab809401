/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_stream.c - the stream of the software RNIC, byte by byte: it has the same effect wherever it is cut, it
 * acknowledges what was received, and ends with the status that a Terminate stands for. test_fpdu_rx.c tests
 * what is refused, test_foreign_peer.c the device over TCP, including the MPA handshake. */
#include "test/unit/device_harness.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/soft/peer_bytes.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

/* One message of each kind. Outstanding are receives 1 to 3, a read (id 10) and an atomic (id 11). */
static void compose(const struct stream *s, bool peer_is_dapl)
{
	struct wire_segment invalidate = send_of(WIRE_SEND_INV, 3, 0, true);
	uint32_t open = stream_device.open->rkey;
	uint8_t text[300], body[16] = { 0 };

	peer_length = 0;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)(i * 13 + 1);
	invalidate.stag = s->window->mw.rkey;
	add(s, send_of(WIRE_SEND, 1, 0, true), text, 11);
	add(s, write_to(open, 100, false), text, 37);
	add(s, write_to(open, 137, true), text, 48);	/* ends on a word that comes last */
	add(s, write_to(0, 0, true), "", 0);
	add(s, send_of(WIRE_SEND_SE, 2, 0, false), text, 1);
	add(s, send_of(WIRE_SEND_SE, 2, 1, false), text, 0);
	add(s, send_of(WIRE_SEND_SE, 2, 1, true), text + 1, 70);
	add_read(s, 1, open, 90, 120);
	add_response(s, 0, 50, false);
	add_response(s, 50, 250, true);
	add(s, invalidate, text, 3);
	if (!peer_is_dapl)
		return;
	add_atomic(s, 2, WIRE_ATOMIC_FETCH_ADD, open, 64);
	wire_put32(body, 2);
	wire_put64(body + 4, 777);
	add(s, control(WIRE_ATOMIC_RESPONSE, WIRE_QN_ATOMIC, 1), body, 12);
	memset(body, 0, sizeof body);
	wire_put32(body, 99);
	add(s, control(WIRE_IMMEDIATE, WIRE_QN_SEND, 4), body, 8);	/* no receive: unexpected */
	add(s, send_of(WIRE_SEND_SE_IMM, 5, 0, true), text, 20);
	memset(body, 0, sizeof body);
	add(s, control(WIRE_ACK, WIRE_QN_DAPL, 1), body, 16);
	add(s, control(WIRE_CLOSE, WIRE_QN_DAPL, 2), "", 0);
}

/* --- cut anywhere ------------------------------------------------------------------ */

enum { MOST_WCS = 16 };
struct outcome {
	struct ibv_wc wc[MOST_WCS];
	unsigned wcs;
	char open[STREAM_REGION], local[STREAM_LOCAL];
	uint8_t out[4096];		/* without acknowledgements, whose times vary */
	size_t out_length;
};

static void keep_frames(const struct stream *s, struct outcome *o)
{
	const uint8_t *ulpdu;
	size_t at = 0;
	int n;

	while ((ulpdu = stream_next(s, &at, &n))) {
		if ((ulpdu[1] & 15) == WIRE_ACK)
			continue;
		memcpy(o->out + o->out_length, ulpdu, n);
		o->out_length += n;
		/* message numbers of a private queue count acknowledgements */
		if ((ulpdu[1] & 15) == WIRE_CLOSE)
			memset(o->out + o->out_length - n + 10, 0, 4);
	}
	assert_int_equal(n, 0);
	assert_int_equal(at, s->out_length);
}

/* The stream in two parts, or with `cut` in pieces of that size. */
static struct outcome *run(const struct stream_options *options, size_t first, size_t cut)
{
	struct stream_memory *m = stream_device.memory;
	struct outcome *o = calloc(1, sizeof *o);
	struct stream s;

	memset(m->open, 0, sizeof m->open);
	memset(m->local, 0, sizeof m->local);
	stream_open(&s, options);
	for (int i = 1; i <= 3; i++)
		assert_true(stream_receive(&s, i, i * 1000, 100));
	assert_true(stream_bind(&s, 9, 0, 64));
	assert_true(stream_request(&s, 10, IBV_WR_RDMA_READ, 8000, 300, 1, 0));
	if (options->peer_is_dapl)
		assert_true(stream_request(&s, 11, IBV_WR_ATOMIC_FETCH_AND_ADD, 9000, 8, 1, 0));
	compose(&s, options->peer_is_dapl);
	stream_put(&s, peer_bytes, first, cut);
	stream_put(&s, peer_bytes + first, peer_length - first, cut);
	if (options->peer_is_dapl) {
		assert_true(stream_receive(&s, 4, 4000, 100));
		assert_true(stream_receive(&s, 5, 5000, 100));
	}
	stream_end(&s);
	o->wcs = stream_poll(&s, o->wc, MOST_WCS);
	memcpy(o->open, m->open, sizeof o->open);
	memcpy(o->local, m->local, sizeof o->local);
	keep_frames(&s, o);
	stream_close(&s);
	return o;
}

static void assert_same(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->wcs, b->wcs);
	for (unsigned i = 0; i < a->wcs; i++) {
		assert_int_equal(a->wc[i].wr_id, b->wc[i].wr_id);
		assert_int_equal(a->wc[i].status, b->wc[i].status);
		assert_int_equal(a->wc[i].byte_len, b->wc[i].byte_len);
		assert_int_equal(a->wc[i].wc_flags, b->wc[i].wc_flags);
	}
	assert_memory_equal(a->open, b->open, sizeof a->open);
	assert_memory_equal(a->local, b->local, sizeof a->local);
	assert_int_equal(a->out_length, b->out_length);
	assert_memory_equal(a->out, b->out, a->out_length);
}

UNIT_TEST(stream_may_be_cut_anywhere)
{
	for (int kind = 0; kind < 4; kind++) {
		struct stream_options options = { .peer_is_dapl = kind & 1, .crc = kind & 2 };
		struct outcome *whole = run(&options, 0, 0), *cut;

		/* all completed, none failed: a valid reference for the cuts */
		assert_int_equal(whole->wcs, options.peer_is_dapl ? 8 : 5);
		for (unsigned i = 0; i < whole->wcs; i++)
			assert_int_equal(whole->wc[i].status, IBV_WC_SUCCESS);
		for (size_t at = 1; at < peer_length; at++) {
			cut = run(&options, at, 0);
			assert_same(whole, cut);
			free(cut);
		}
		for (size_t piece = 1; piece <= 7; piece++) {
			cut = run(&options, 0, piece);
			assert_same(whole, cut);
			free(cut);
		}
		free(whole);
	}
}

/* Returns whether more of the scratch buffer was filled than the beginning of a large message
 * takes. */
static bool scratch_used(void)
{
	for (int i = 4096; i < SOFT_SCRATCH; i++)
		if (stream_device.dev->progress.scratch[i])
			return true;
	return false;
}

enum { LARGE = 12000 };

/* Puts a large message whose last segment is small. */
static void put_large(struct stream *s, uint32_t msn, uint8_t fill)
{
	enum { FIRST = LARGE - 1000 };
	static uint8_t ulpdu[WIRE_UNTAGGED + FIRST];
	struct wire_segment seg = send_of(WIRE_SEND, msn, 0, false);

	wire_segment_put(ulpdu, &seg);
	memset(ulpdu + WIRE_UNTAGGED, fill, FIRST);
	peer_length = stream_frame(s, peer_bytes, ulpdu, sizeof ulpdu);
	add(s, send_of(WIRE_SEND, msn, FIRST, true), ulpdu + WIRE_UNTAGGED, LARGE - FIRST);
	memset(stream_device.dev->progress.scratch, 0, SOFT_SCRATCH);
	stream_put(s, peer_bytes, peer_length, 0);
	for (int i = 0; i < LARGE; i++)
		assert_int_equal((uint8_t)stream_device.memory->local[i], fill);
}

/* The second of two large messages is received in place; small messages are read many at once. */
UNIT_TEST(large_messages_are_received_in_place)
{
	enum { SMALL = 61 };
	uint8_t text[100];
	struct stream s;

	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true });
	for (int i = 0; i < SMALL + 3; i++)
		assert_true(stream_receive(&s, i, 0, LARGE));
	put_large(&s, 1, 1);
	assert_true(scratch_used());
	put_large(&s, 2, 2);
	assert_false(scratch_used());
	peer_length = 0;
	memset(text, 3, sizeof text);
	add(&s, send_of(WIRE_SEND, 3, 0, true), text, sizeof text);
	stream_put(&s, peer_bytes, peer_length, 0);
	peer_length = 0;
	for (uint32_t i = 0; i < SMALL; i++)
		add(&s, send_of(WIRE_SEND, 4 + i, 0, true), text, sizeof text);
	stream_put(&s, peer_bytes, peer_length, 0);
	assert_true(scratch_used());
	stream_close(&s);
}

/* With CRC, a frame with any wrong byte has no effect. */
UNIT_TEST(crc_detects_any_wrong_byte)
{
	struct stream_options options = { .crc = true };
	struct stream s;

	for (int at = WIRE_FPDU_LENGTH; at < 2 + 14 + 40 + 4; at++) {
		struct ibv_wc wc;
		int n;
		size_t from = 0;
		const uint8_t *ulpdu;

		memset(stream_device.memory->open, 0, STREAM_REGION);
		stream_open(&s, &options);
		assert_true(stream_receive(&s, 1, 0, 100));
		peer_length = 0;
		add(&s, write_to(stream_device.open->rkey, 0, true),
		    "0123456789012345678901234567890123456789", 40);
		peer_bytes[at] ^= 1 << at % 8;
		stream_put(&s, peer_bytes, peer_length, 0);
		ulpdu = stream_next(&s, &from, &n);
		assert_non_null(ulpdu);
		assert_int_equal(wire_get16(ulpdu + WIRE_UNTAGGED), WIRE_TERM_CRC);
		assert_int_equal(stream_poll(&s, &wc, 1), 1);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		for (int i = 0; i < STREAM_REGION; i++)
			assert_int_equal(stream_device.memory->open[i], 0);
		stream_close(&s);
	}
}

/* --- acknowledgements ---------------------------------------------------------------- */

static void put_ack(struct stream *s, uint32_t msn, uint32_t ready)
{
	uint8_t body[WIRE_ACK_LENGTH] = { 0 };

	wire_put32(body + 4, ready);
	peer_length = 0;
	add(s, control(WIRE_ACK, WIRE_QN_DAPL, msn), body, sizeof body);
	stream_put(s, peer_bytes, peer_length, 0);
}

/* The number of Sends that were sent completely. */
static unsigned sends_out(const struct stream *s)
{
	const uint8_t *ulpdu;
	unsigned whole = 0;
	size_t at = 0;
	int n;

	while ((ulpdu = stream_next(s, &at, &n)))
		whole += (ulpdu[1] & 15) == WIRE_SEND && (ulpdu[0] & 0x40);
	assert_int_equal(n, 0);
	return whole;
}

/* Posts as many of the largest Sends as fit the window, and some more. */
enum { IN_WINDOW = SOFT_WINDOW / (STREAM_LOCAL + SOFT_CHARGE), ALL = IN_WINDOW + 20 };

/* An older device announces 0, which must not count even if the next Sends are near number 0. */
UNIT_TEST(unknown_receives_do_not_open_the_window)
{
	struct stream s;

	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true });
	s.conn->stream.tx.cursor.msn_send = -ALL;
	for (int i = 1; i <= ALL; i++)
		assert_true(stream_request(&s, i, IBV_WR_SEND, 0, STREAM_LOCAL, 0, 0));
	put_ack(&s, 1, 0);
	assert_int_equal(sends_out(&s), IN_WINDOW);
	stream_close(&s);
}

/* Sends with a receive at the peer are sent; the others wait while 1 MiB of them is unacknowledged. */
UNIT_TEST(window_counts_only_unexpected_sends)
{
	struct stream s;

	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true });
	for (int i = 1; i <= ALL; i++)
		assert_true(stream_request(&s, i, IBV_WR_SEND, 0, STREAM_LOCAL, 0, 0));
	put_ack(&s, 1, 0);
	assert_int_equal(sends_out(&s), IN_WINDOW);
	put_ack(&s, 2, 5);		/* these have been sent */
	assert_int_equal(sends_out(&s), IN_WINDOW);
	put_ack(&s, 3, IN_WINDOW + 7);
	assert_int_equal(sends_out(&s), IN_WINDOW + 7);
	put_ack(&s, 4, INT32_MAX);	/* more than any queue holds */
	assert_int_equal(sends_out(&s), IN_WINDOW + 7);
	put_ack(&s, 5, ALL);
	assert_int_equal(sends_out(&s), ALL);
	stream_close(&s);
}

/* Expects these contents of the last acknowledgement: messages delivered, and Sends that have
 * a receive. */
static void assert_acknowledged(const struct stream *s, uint32_t delivered, uint32_t ready)
{
	const uint8_t *ulpdu, *last = NULL;
	size_t at = 0;
	int n;

	while ((ulpdu = stream_next(s, &at, &n)))
		if ((ulpdu[1] & 15) == WIRE_ACK)
			last = ulpdu + WIRE_UNTAGGED;
	assert_non_null(last);
	assert_int_equal(wire_get32(last), delivered);
	assert_int_equal(wire_get32(last + 4), ready);
}

static void put_send(struct stream *s, uint32_t msn, uint32_t mo, bool last)
{
	peer_length = 0;
	add(s, send_of(WIRE_SEND, msn, mo, last), "0123456789", 10);
	stream_put(s, peer_bytes, peer_length, 0);
}

/* Acknowledgements announce only receives that no other QP can take. */
UNIT_TEST(acknowledgements_announce_receives)
{
	struct stream s;

	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true });
	for (int i = 1; i <= 3; i++)
		assert_true(stream_receive(&s, i, 0, 100));
	put_send(&s, 1, 0, true);
	assert_acknowledged(&s, 1, 3);
	put_send(&s, 2, 0, false);	/* takes a receive, and leaves one */
	assert_acknowledged(&s, 1, 3);
	put_send(&s, 2, 10, true);
	put_send(&s, 3, 0, true);
	assert_acknowledged(&s, 3, 3);
	put_send(&s, 4, 0, true);	/* finds no receive */
	put_send(&s, 5, 0, false);
	assert_true(stream_receive(&s, 4, 0, 100));
	stream_put(&s, peer_bytes, 0, 0);
	assert_acknowledged(&s, 4, 4);
	assert_true(stream_receive(&s, 5, 0, 100));
	assert_true(stream_receive(&s, 6, 0, 100));
	put_send(&s, 5, 10, true);
	assert_acknowledged(&s, 5, 6);
	stream_close(&s);

	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true, .srq = true });
	assert_true(stream_receive(&s, 1, 0, 100));
	assert_true(stream_receive(&s, 2, 0, 100));
	put_send(&s, 1, 0, true);
	assert_acknowledged(&s, 1, 1);		/* another QP may take the other */
	stream_close(&s);
}

/* Receives as the service thread does when bytes have arrived. Nothing else requests an
 * acknowledgement. */
static size_t sent_for(struct stream *s, const void *p, size_t n)
{
	uint8_t out[256];
	ssize_t got;

	assert_int_equal(send(s->peer, p, n, 0), n);
	soft_progress_lock(stream_device.dev);
	soft_progress_end(s->conn);
	soft_progress_unlock(stream_device.dev);
	got = recv(s->peer, out, sizeof out, MSG_DONTWAIT);
	return got > 0 ? got : 0;
}

/* A Send is acknowledged once, not for each of its segments. */
UNIT_TEST(a_send_is_acknowledged_once)
{
	size_t at[4] = { 0 };
	struct stream s;

	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true });
	assert_true(stream_receive(&s, 1, 0, 100));
	peer_length = 0;
	for (int i = 0; i < 3; i++) {
		add(&s, send_of(WIRE_SEND, 1, 10 * i, i == 2), "0123456789", 10);
		at[i + 1] = peer_length;
	}
	assert_int_equal(sent_for(&s, peer_bytes, at[1]), 0);
	s.conn->stream.consumed += SOFT_WINDOW / ACK_WINDOW_FRACTION;	/* as if that many bytes had arrived */
	assert_int_not_equal(sent_for(&s, peer_bytes + at[1], at[2] - at[1]), 0);
	assert_int_not_equal(sent_for(&s, peer_bytes + at[2], at[3] - at[2]), 0);
	stream_close(&s);
}

/* --- the peer's Terminate ---------------------------------------------------------- */

/* The status of a read, for each Terminate code that a peer may send. */
UNIT_TEST(each_terminate_code_has_its_status)
{
	static const struct { uint8_t layer_type, code, status; } terms[] = {
		{ 0x00, 0, IBV_WC_REM_OP_ERR },
		{ 0x01, 0, IBV_WC_REM_ACCESS_ERR }, { 0x01, 1, IBV_WC_REM_ACCESS_ERR },
		{ 0x01, 2, IBV_WC_REM_ACCESS_ERR }, { 0x01, 3, IBV_WC_REM_ACCESS_ERR },
		{ 0x01, 4, IBV_WC_REM_ACCESS_ERR }, { 0x01, 9, IBV_WC_REM_ACCESS_ERR },
		{ 0x02, 5, IBV_WC_REM_OP_ERR }, { 0x02, 6, IBV_WC_REM_OP_ERR },
		{ 0x02, 7, IBV_WC_REM_INV_REQ_ERR }, { 0x02, 0xff, IBV_WC_REM_INV_REQ_ERR },
		{ 0x11, 0, IBV_WC_REM_ACCESS_ERR }, { 0x11, 1, IBV_WC_REM_ACCESS_ERR },
		{ 0x11, 2, IBV_WC_REM_ACCESS_ERR }, { 0x11, 3, IBV_WC_REM_ACCESS_ERR },
		{ 0x11, 4, IBV_WC_REM_ACCESS_ERR },
		{ 0x12, 1, IBV_WC_REM_INV_REQ_ERR }, { 0x12, 2, IBV_WC_REM_INV_REQ_ERR },
		{ 0x12, 3, IBV_WC_REM_INV_REQ_ERR }, { 0x12, 4, IBV_WC_REM_INV_REQ_ERR },
		{ 0x12, 5, IBV_WC_REM_INV_REQ_ERR }, { 0x12, 6, IBV_WC_REM_INV_REQ_ERR },
		{ 0x20, 2, IBV_WC_REM_OP_ERR }, { 0x20, 3, IBV_WC_REM_OP_ERR },
		{ 0x20, 6, IBV_WC_REM_OP_ERR },
	};
	struct stream s;
	struct ibv_wc wc[4];

	for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
		uint8_t body[32] = { terms[i].layer_type, terms[i].code, 0xe0 };

		upcalls_drop(NULL);
		stream_open(&s, &(struct stream_options){ 0 });
		assert_true(stream_receive(&s, 1, 0, 100));
		assert_true(stream_request(&s, 2, IBV_WR_RDMA_READ, 200, 8, 1, 0));
		peer_length = 0;
		add(&s, control(WIRE_TERMINATE, WIRE_QN_TERMINATE, 1), body, sizeof body);
		stream_put(&s, peer_bytes, peer_length, 0);
		assert_int_equal(stream_poll(&s, wc, 4), 2);
		assert_int_equal(wc[0].wr_id, 2);
		assert_int_equal(wc[0].status, terms[i].status);
		assert_int_equal(wc[1].wr_id, 1);
		assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
		dapl_service_flush();
		stream_close(&s);
		assert_int_equal(upcall_count(BROKEN, NULL), 1);
		assert_int_equal(upcall_count(CLOSED, NULL), 0);
	}
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
