/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_fuzz.c - any bytes as the DDP and RDMAP stream of a peer, through the device's
 * receive code with a real QP in memory: nothing crashes, memory that the peer may not
 * write stays as it is, everything posted completes once, and what the device answers is
 * well formed.
 *
 * An input is four bytes (kind of peer; receives posted; requests posted; how the stream is
 * cut) and records. A record's first two bytes say what it is: an FPDU around the bytes that
 * follow, the same with queue and message number set right, an act of our own, or plain
 * bytes. Framing spares the fuzzer CRCs; and STags, which are random, are named by the
 * numbers that `names` lists. */
#include "test/fuzz/soft_side.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- records ----------------------------------------------------------------------- */

enum { FRAME, NUMBERED, ACT, RAW };

struct run {
	struct stream s;
	size_t cut;
	uint32_t msn[8];		/* next of each queue, for NUMBERED */
};

static void name_all(const struct stream *s, uint8_t *ulpdu, uint32_t length)
{
	if (length >= 6)
		side_name(s, ulpdu + 2);	/* tagged: the target; Send: to be invalidated */
	if (length >= WIRE_UNTAGGED)
		side_name_body(s, ulpdu[1] & 15, ulpdu + WIRE_UNTAGGED, length - WIRE_UNTAGGED);
}

static void number(struct run *r, uint8_t *ulpdu, uint32_t length)
{
	static const uint8_t queues[16] = {
		[WIRE_READ_REQUEST] = WIRE_QN_READ, [WIRE_TERMINATE] = WIRE_QN_TERMINATE,
		[WIRE_ATOMIC_REQUEST] = WIRE_QN_READ, [WIRE_ATOMIC_RESPONSE] = WIRE_QN_ATOMIC,
		[WIRE_ACK] = WIRE_QN_DAPL, [WIRE_CLOSE] = WIRE_QN_DAPL,
	};
	uint8_t queue;

	if (length < WIRE_UNTAGGED || ulpdu[0] & 0x80)
		return;
	ulpdu[0] = (ulpdu[0] & 0xc0) | 1;
	ulpdu[1] = 0x40 | (ulpdu[1] & 15);
	queue = queues[ulpdu[1] & 15];
	wire_put32(ulpdu + 6, queue);
	wire_put32(ulpdu + 10, r->msn[queue]);
	r->msn[queue] += ulpdu[0] >> 6 & 1;
}

/* Into few enough pieces that one input doesn't take long. */
static void put(struct run *r, const uint8_t *p, size_t length)
{
	size_t least = 1 + length / 64;

	stream_put(&r->s, p, length, r->cut && r->cut < least ? least : r->cut);
}

static void record(struct run *r, unsigned kind, const uint8_t *p, uint32_t length)
{
	uint8_t ulpdu[4096], fpdu[4096 + 16];

	if (kind == ACT || kind == RAW) {
		if (kind == ACT)
			side_act(&r->s, p, length);
		else
			put(r, p, length);
		return;
	}
	memcpy(ulpdu, p, length);
	name_all(&r->s, ulpdu, length);
	if (kind == NUMBERED)
		number(r, ulpdu, length);
	put(r, fpdu, stream_frame(&r->s, fpdu, ulpdu, length));
}

/* --- what must hold ---------------------------------------------------------------- */

/* Whole frames of known kinds, and nothing behind a Terminate. */
static void check_answers(const struct stream *s)
{
	const uint8_t *ulpdu;
	bool over = false;
	size_t at = 0;
	int length;

	while ((ulpdu = stream_next(s, &at, &length))) {
		side_demand(!over, "a frame after a Terminate");
		side_demand(length >= WIRE_TAGGED && (ulpdu[0] & 0x3f) == 1 && ulpdu[1] >> 4 == 4,
		       "a malformed frame was sent");
		side_demand(s->conn->stream.peer_is_dapl || (ulpdu[1] & 15) <= WIRE_TERMINATE,
		       "a frame that a stranger does not know");
		over = (ulpdu[1] & 15) == WIRE_TERMINATE;
	}
	side_demand(length == 0, "a wrong CRC was sent");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	side_open();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run r = { .msn = { 1, 1, 1, 1, 1, 1, 1, 1 } };
	struct stream_options options;
	static unsigned inputs;

	if (size < 4)
		return 0;
	options = (struct stream_options){
		.peer_is_dapl = data[0] & 1, .crc = data[0] & 2, .srq = data[0] & 4, .narrow = data[0] & 8,
	};
	stream_open(&r.s, &options);
	for (int i = 0; i < (data[1] & 31); i++)
		stream_receive(&r.s, i, 0, data[1] & 32 ? 64 : 4096);
	for (int i = 0; i < 8; i++)
		if (data[2] >> i & 1)
			side_act(&r.s, (const uint8_t[]){ i, 64 }, 2);
	r.cut = data[3];
	data += 4;
	size -= 4;
	while (size >= 2 && r.s.alive) {
		uint32_t length = wire_get16(data) & 0xfff, times = 1u << (data[0] >> 3 & 6);

		length = length < size - 2 ? length : size - 2;
		for (; times && r.s.alive; times--)
			record(&r, data[0] >> 6, data + 2, length);
		data += 2 + length;
		size -= 2 + length;
	}
	stream_end(&r.s);
	check_answers(&r.s);
	side_check(&r.s);
	stream_close(&r.s);
	if (++inputs % 64 == 0)
		dapl_service_flush();	/* lest what it has to free piles up */
	return 0;
}
