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
#include "test/unit/soft_stream.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "stream_fuzz: %s\n", what);
	abort();
}

/* --- upcalls ----------------------------------------------------------------------- */

static unsigned ended, released;	/* atomic */

void dapl_up_request(void *sp, struct dapl_conn *conn, const struct dapl_request *request)
{
	(void)sp, (void)conn, (void)request;
	abort();
}

void dapl_up_established(void *owner, struct dapl_conn *conn, const struct dapl_established *i)
{
	(void)owner, (void)conn, (void)i;
	abort();
}

void dapl_up_failed(void *owner, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t n)
{
	(void)owner, (void)conn, (void)why, (void)pdata, (void)n;
	abort();
}

void dapl_up_disconnected(void *owner, struct dapl_conn *conn, bool orderly)
{
	(void)owner, (void)conn, (void)orderly;
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
}

void dapl_up_released(void *owner)
{
	(void)owner;
	__atomic_add_fetch(&released, 1, __ATOMIC_RELAXED);
}

void dapl_up_async(void *ia, const struct ibv_async_event *event)
{
	(void)ia, (void)event;
}

/* --- records ----------------------------------------------------------------------- */

enum { FRAME, NUMBERED, ACT, RAW };

struct run {
	struct stream s;
	size_t cut;
	uint32_t msn[8];		/* next of each queue, for NUMBERED */
};

/* An STag of the input that stands for one of ours. */
static void name(struct run *r, uint8_t *stag)
{
	const struct stream_device *d = &stream_device;
	const uint32_t names[] = {
		d->open->rkey, d->constant->rkey, d->local->rkey, d->foreign->rkey,
		r->s.window->mw.rkey,
	};
	uint32_t n = wire_get32(stag) - 0x5701;

	if (n < sizeof names / sizeof names[0])
		wire_put32(stag, names[n]);
}

static void name_all(struct run *r, uint8_t *ulpdu, uint32_t length)
{
	uint8_t op = length > 1 ? ulpdu[1] & 15 : 0;

	if (length >= 6)
		name(r, ulpdu + 2);	/* tagged: the target; Send: to be invalidated */
	if (op == WIRE_READ_REQUEST && length >= WIRE_UNTAGGED + 20)
		name(r, ulpdu + WIRE_UNTAGGED + 16);
	if (op == WIRE_ATOMIC_REQUEST && length >= WIRE_UNTAGGED + 12)
		name(r, ulpdu + WIRE_UNTAGGED + 8);
}

static void number(struct run *r, uint8_t *ulpdu, uint32_t length)
{
	static const uint8_t queues[16] = {
		[WIRE_READ_REQUEST] = WIRE_QN_READ, [WIRE_TERMINATE] = WIRE_QN_TERMINATE,
		[WIRE_ATOMIC_REQUEST] = WIRE_QN_READ, [WIRE_ATOMIC_RESPONSE] = WIRE_QN_ATOMIC,
		[WIRE_ACK] = WIRE_QN_OURS, [WIRE_GOODBYE] = WIRE_QN_OURS,
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

static void act(struct run *r, const uint8_t *p, uint32_t length)
{
	uint32_t size = length > 1 ? p[1] * 16 : 100, key = stream_device.open->rkey;
	struct stream *s = &r->s;

	switch (length ? p[0] % 12 : 0) {
	case 0:
		stream_receive(s, 1, 0, size);
		break;
	case 1:
		stream_request(s, 2, IBV_WR_RDMA_READ, 8192, size, key, 0);
		break;
	case 2:
		stream_request(s, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8192, 8, key, 0);
		break;
	case 3:
		stream_request(s, 4, IBV_WR_SEND, 16384, size, 0, 0);
		break;
	case 4:
		stream_request(s, 5, IBV_WR_RDMA_WRITE, 16384, size, key, 0);
		break;
	case 5:
		stream_request(s, 6, IBV_WR_RDMA_WRITE_WITH_IMM, 16384, size, key, 0);
		break;
	case 6:
		stream_bind(s, 7, 0, STREAM_REGION);
		break;
	case 7:
		stream_request(s, 8, IBV_WR_SEND_WITH_IMM, 16384, size, 0, 0);
		break;
	case 8:		/* the source is not registered for it */
		stream_request(s, 9, IBV_WR_RDMA_READ, 8192, STREAM_LOCAL, key, 0);
		break;
	case 9:
		soft_cm_disconnect(s->conn);
		break;
	case 10:
		soft_qp_error(&s->qp->qp);
		break;
	case 11:
		soft_cm_detach(s->qp);
		soft_engine_lock(stream_device.dev);
		soft_engine_unlock(stream_device.dev);
		break;
	}
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
			act(r, p, length);
		else
			put(r, p, length);
		return;
	}
	memcpy(ulpdu, p, length);
	name_all(r, ulpdu, length);
	if (kind == NUMBERED)
		number(r, ulpdu, length);
	put(r, fpdu, stream_frame(&r->s, fpdu, ulpdu, length));
}

/* --- what must hold ---------------------------------------------------------------- */

static bool untouched(const char *p, size_t n)
{
	static char pristine[STREAM_REGION];

	if (!pristine[0])
		memset(pristine, 0xa5, sizeof pristine);
	return !memcmp(p, pristine, n);
}

static void check_memory(void)
{
	const struct stream_memory *m = stream_device.memory;

	demand(untouched(m->before, STREAM_GUARD) && untouched(m->between, STREAM_GUARD) &&
	       untouched(m->after, STREAM_GUARD), "the peer wrote beside a region");
	demand(untouched(m->constant, STREAM_REGION), "the peer wrote what it may only read");
}

/* Whole frames of known kinds, and nothing behind a Terminate. */
static void check_answers(const struct stream *s)
{
	const uint8_t *ulpdu;
	bool over = false;
	size_t at = 0;
	int length;

	while ((ulpdu = stream_next(s, &at, &length))) {
		demand(!over, "a frame after a Terminate");
		demand(length >= WIRE_TAGGED && (ulpdu[0] & 0x3f) == 1 && ulpdu[1] >> 4 == 4,
		       "a malformed frame was sent");
		demand(s->conn->ours || (ulpdu[1] & 15) <= WIRE_TERMINATE,
		       "a frame that a stranger does not know");
		over = (ulpdu[1] & 15) == WIRE_TERMINATE;
	}
	demand(length == 0, "a wrong CRC was sent");
}

static void check_completions(struct stream *s)
{
	struct ibv_wc wc[16];
	unsigned before;

	while (s->posted) {
		before = s->posted;
		demand(stream_poll(s, wc, 16) && s->posted < before,
		       "something posted did not complete");
	}
	demand(s->srq || !stream_poll(s, wc, 16), "something completed twice");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	stream_device_open();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run r = { .msn = { 1, 1, 1, 1, 1, 1, 1, 1 } };
	struct stream_options options;
	struct ibv_wc wc[16];
	static unsigned inputs;

	if (size < 4)
		return 0;
	options = (struct stream_options){
		.ours = data[0] & 1, .crc = data[0] & 2, .srq = data[0] & 4, .narrow = data[0] & 8,
	};
	stream_open(&r.s, &options);
	for (int i = 0; i < (data[1] & 31); i++)
		stream_receive(&r.s, i, 0, data[1] & 32 ? 64 : 4096);
	for (int i = 0; i < 8; i++)
		if (data[2] >> i & 1)
			act(&r, (const uint8_t[]){ i, 64 }, 2);
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
	check_memory();
	if (r.s.srq)
		while (stream_poll(&r.s, wc, 16))
			;
	else
		check_completions(&r.s);
	stream_close(&r.s);
	if (++inputs % 64 == 0)
		dapl_service_flush();	/* lest what it has to free piles up */
	return 0;
}
