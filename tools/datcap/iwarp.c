/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.c - see iwarp.h. If only a part of a message was recorded, the FPDUs of the rest have no payload: analysers
 * do not decode an FPDU that is cut. Their lengths and checksums are right for what they have, as are the sequence
 * numbers of TCP. Offsets of DDP and the lengths of frames count all bytes of the message. */
#include "iwarp.h"
#include "common/bytes.h"
#include "common/rdmap.h"
#include "crc.h"
#include "sum16.h"
#include <string.h>

enum {
	SEGMENT = 32768,		/* bytes of a message in one FPDU, at most */
	TCP = 20, PROTOCOL = 6,		/* bytes of the header, its number in the IP header */
	MPA_HEADER = 20,		/* bytes of a Request or Reply Frame */
	MPA_CRC = 0x40,			/* its flag: FPDUs have a CRC */
	/* The ports from here on belong to no protocol that analysers know. Those of the program might, and then
	 * analysers decode the stream as that protocol instead of iWARP. */
	PORT_FIRST = 0xf000, PORTS = 0x800,	/* for each end */
	SYN = 2, PSH = 8, ACK = 16,
	FRAME_MAX = FLOW_HEADERS_MAX + TCP + 2 + DDP_UNTAGGED_HEADER + SEGMENT + 3 + CRC_SIZE,
};

struct stream {				/* a connection */
	uint64_t file;			/* number of the last file with its handshakes; 0: none */
	uint32_t number;		/* of these handshakes, among all */
	uint32_t sequence[2];		/* of ends[i]: bytes sent */
	uint32_t messages[2][4];	/* of ends[i], by queue: number of the last message */
};

struct message {			/* what RDMAP carries */
	uint8_t op;
	bool tagged;
	uint32_t word, queue;		/* STag, or STag to invalidate; queue if untagged */
	uint64_t offset;		/* of a tagged message */
	const uint8_t *payload;
	uint32_t length, captured;
	bool cut;			/* RDMAP counts on all bytes: an FPDU without some of them is cut */
};

struct writer {
	const struct flow *flow;
	struct stream *stream;
	unsigned from;			/* end that sends */
	flow_take *take;
	void *arg;
	uint8_t frame[FRAME_MAX];
};

static uint64_t file = 1;		/* number of the current file */

void iwarp_begin_file(void)
{
	file++;
}

/* --- TCP ------------------------------------------------------------------------------------------- */

/* Returns the made-up port of this end. All handshakes differ in a port, and the two ends do, too, which may have the
 * same address. */
static uint32_t port_of(const struct stream *stream, unsigned end)
{
	return PORT_FIRST + (end ? PORTS + stream->number / PORTS % PORTS : stream->number % PORTS);
}

/* Sends a segment with `length` bytes of payload. The first `captured` of them are in the frame already. The frame
 * counts `left_out` bytes more. `joined`: the next segment belongs into the same file. */
static bool send_segment(struct writer *w, unsigned flags, uint32_t length, uint32_t captured, uint32_t left_out,
			 bool joined)
{
	const struct flow *flow = w->flow;
	uint32_t *sequence = w->stream->sequence;
	uint8_t *tcp = flow_put_headers(flow, w->from, PROTOCOL, TCP + length, w->frame), *to = tcp, *end;
	struct flow_frame frame = { .bytes = w->frame, .joined = joined };

	to = put_be16(to, port_of(w->stream, w->from));
	to = put_be16(to, port_of(w->stream, !w->from));
	to = put_be32(to, sequence[w->from]);
	to = put_be32(to, flags & ACK ? sequence[!w->from] : 0);
	to = put_be16(to, 5u << 12 | flags);
	to = put_be16(to, 65535);		/* window */
	end = put_be32(to, 0) + captured;
	if (captured == length)
		put_be16(tcp + 16, ~sum16(tcp, TCP + length, flow_pseudo_header(flow, PROTOCOL, TCP + length)));
	frame.captured = (uint32_t)(end - w->frame);
	frame.length = frame.captured + length - captured + left_out;
	sequence[w->from] += length + (flags & SYN ? 1 : 0);
	return w->take(w->arg, &frame);
}

/* Returns the address of the payload in the frame. */
static uint8_t *payload_of(struct writer *w)
{
	return w->frame + flow_headers_size(w->flow) + TCP;
}

static bool send_by(struct writer *w, unsigned from, unsigned flags, const char *mpa)
{
	uint8_t *to = payload_of(w);

	w->from = from;
	if (!mpa)
		return send_segment(w, flags, 0, 0, 0, true);
	memcpy(to, mpa, 16);
	to[16] = MPA_CRC;
	to[17] = 1;			/* revision */
	put_be16(to + 18, 0);		/* no private data */
	return send_segment(w, flags, MPA_HEADER, MPA_HEADER, 0, true);
}

/* Sends the handshakes of TCP and MPA. Without them an analyser does not recognise the protocols. In a later file of a
 * ring the ports are others, since an analyser that reads several files does not expect handshakes within a stream. */
static bool open_flow(struct writer *w)
{
	static uint32_t handshakes;

	w->stream->file = file;
	w->stream->number = handshakes++;
	return send_by(w, 0, SYN, NULL) && send_by(w, 1, SYN | ACK, NULL) && send_by(w, 0, ACK, NULL) &&
	       send_by(w, 0, PSH | ACK, "MPA ID Req Frame") && send_by(w, 1, PSH | ACK, "MPA ID Rep Frame");
}

/* --- MPA, DDP, RDMAP ---------------------------------------------------------------------------------- */

static uint8_t *put_ddp(uint8_t *to, const struct message *m, uint32_t number, uint32_t done, bool last)
{
	*to++ = (uint8_t)((m->tagged ? 0x80 : 0) | (last ? 0x40 : 0) | 1);
	*to++ = 0x40 | m->op;
	to = put_be32(to, m->word);
	if (m->tagged)
		return put_be64(to, m->offset + done);
	to = put_be32(to, m->queue);
	to = put_be32(to, number);
	return put_be32(to, done);
}

/* Returns the bytes of an FPDU whose header and payload have `length` bytes. */
static uint32_t fpdu_length(uint32_t length)
{
	return length + (-length & 3) + CRC_SIZE;
}

/* Sends one FPDU with bytes [done, done + n) of the message, as far as they were recorded. */
static bool send_fpdu(struct writer *w, const struct message *m, uint32_t number, uint32_t done, uint32_t n)
{
	const unsigned from = w->from;
	uint8_t *begin = payload_of(w);
	uint32_t header = 2 + (m->tagged ? DDP_TAGGED_HEADER : DDP_UNTAGGED_HEADER);
	uint32_t here = m->captured > done ? m->captured - done < n ? m->captured - done : n : 0;
	uint32_t counted = header + (m->cut ? n : here), length = fpdu_length(counted), captured = header + here;

	if (w->stream->file != file && !open_flow(w))
		return false;
	w->from = from;
	put_be16(begin, counted - 2);
	put_ddp(begin + 2, m, number, done, done + n == m->length);
	if (here)
		memcpy(begin + header, m->payload + done, here);
	if (captured == counted) {
		memset(begin + captured, 0, -captured & 3);
		captured += -captured & 3;
		crc_put(begin + captured, crc_add(CRC32C, 0, begin, captured));
		captured += CRC_SIZE;
	}
	return send_segment(w, PSH | ACK, length, captured, fpdu_length(header + n) - length, false);
}

static bool send_message(struct writer *w, unsigned from, const struct message *m)
{
	uint32_t done = 0, number = m->tagged ? 0 : ++w->stream->messages[from][m->queue], n;

	w->from = from;
	for (;; done += n) {
		n = m->length - done < SEGMENT ? m->length - done : SEGMENT;
		if (!send_fpdu(w, m, number, done, n))
			return false;
		if (done + n == m->length)
			return true;
	}
}

/* Sends the immediate data as the software device does: with the length of the write that they follow. */
static bool send_immediate(struct writer *w, unsigned from, const struct tap_record *r)
{
	uint8_t data[RDMAP_IMMEDIATE_BODY] = { 0 };
	struct message m = { .op = r->flags & TAP_SOLICITED ? RDMAP_IMMEDIATE_SE : RDMAP_IMMEDIATE,
		.queue = DDP_QUEUE_SEND, .payload = data, .length = sizeof data, .captured = sizeof data };

	put_be32(put_be32(data, r->word), r->op == TAP_WRITE ? r->length : 0);
	return !(r->flags & TAP_IMMEDIATE) || send_message(w, from, &m);
}

static bool send_send(struct writer *w, unsigned from, const struct tap_record *r, const uint8_t *payload)
{
	bool invalidates = r->flags & TAP_INVALIDATE, solicited = r->flags & TAP_SOLICITED;
	struct message m = { .queue = DDP_QUEUE_SEND, .word = invalidates ? r->word : 0, .payload = payload,
		.length = r->length, .captured = r->captured };

	m.op = solicited ? invalidates ? RDMAP_SEND_SE_INV : RDMAP_SEND_SE :
		invalidates ? RDMAP_SEND_INV : RDMAP_SEND;
	return send_message(w, from, &m) && send_immediate(w, from, r);
}

static bool send_write(struct writer *w, unsigned from, const struct tap_record *r, const uint8_t *payload)
{
	struct message m = { .op = RDMAP_WRITE, .tagged = true, .word = r->memory.stag, .offset = r->memory.remote,
		.payload = payload, .length = r->length, .captured = r->captured };

	return send_message(w, from, &m) && send_immediate(w, from, r);
}

static bool send_read_request(struct writer *w, unsigned from, const struct tap_record *r)
{
	uint8_t data[RDMAP_READ_REQUEST_BODY], *to = data;
	struct message m = { .op = RDMAP_READ_REQUEST, .queue = DDP_QUEUE_READ, .payload = data, .length = sizeof data,
		.captured = sizeof data };

	to = put_be32(to, r->memory.sink_stag);
	to = put_be64(to, r->memory.sink);
	to = put_be32(to, r->length);
	to = put_be32(to, r->memory.stag);
	put_be64(to, r->memory.remote);
	return send_message(w, from, &m);
}

static bool send_read_response(struct writer *w, unsigned from, const struct tap_record *r, const uint8_t *payload)
{
	struct message m = { .op = RDMAP_READ_RESPONSE, .tagged = true, .word = r->memory.sink_stag,
		.offset = r->memory.sink, .payload = payload, .length = r->length, .captured = r->captured };

	return send_message(w, from, &m);
}

static bool send_atomic_request(struct writer *w, unsigned from, const struct tap_record *r)
{
	bool swaps = r->op == TAP_CMP_SWAP;
	uint8_t data[RDMAP_ATOMIC_REQUEST_BODY], *to = data;
	struct message m = { .op = RDMAP_ATOMIC_REQUEST, .queue = DDP_QUEUE_READ, .payload = data,
		.length = sizeof data, .captured = sizeof data };

	to = put_be32(to, swaps ? 2 : 0);
	to = put_be32(to, (uint32_t)r->memory.sink);	/* identifies the request */
	to = put_be32(to, r->memory.stag);
	to = put_be64(to, r->memory.remote);
	to = put_be64(to, swaps ? r->atomic.swap : r->atomic.compare_add);
	to = put_be64(to, swaps ? ~(uint64_t)0 : 0);
	to = put_be64(to, swaps ? r->atomic.compare_add : 0);
	put_be64(to, swaps ? ~(uint64_t)0 : 0);
	return send_message(w, from, &m);
}

/* Sends the value before the atomic. It is in the byte order of the host. */
static bool send_atomic_response(struct writer *w, unsigned from, const struct tap_record *r, const uint8_t *payload)
{
	uint8_t data[RDMAP_ATOMIC_RESPONSE_BODY];
	uint64_t value = 0;
	struct message m = { .op = RDMAP_ATOMIC_RESPONSE, .queue = DDP_QUEUE_ATOMIC_RESPONSE, .payload = data,
		.length = sizeof data, .captured = r->captured < 8 ? 4 : sizeof data, .cut = true };

	if (r->captured >= 8)
		memcpy(&value, payload, 8);
	put_be64(put_be32(data, (uint32_t)r->memory.sink), value);
	return send_message(w, from, &m);
}

bool iwarp_frames(const struct tap_record *record, const uint8_t *payload, flow_take *take, void *arg)
{
	static struct writer w;
	bool answered = record->kind == TAP_ANSWERED;
	unsigned side, from;
	struct flow *flow = flow_of(record, &side);

	w.flow = flow;
	w.stream = flow_state(flow, sizeof *w.stream);
	w.take = take;
	w.arg = arg;
	from = flow_sender(record, side);
	switch (record->op) {
	case TAP_SEND: return send_send(&w, from, record, payload);
	case TAP_WRITE: return send_write(&w, from, record, payload);
	case TAP_READ: return answered ? send_read_response(&w, from, record, payload) :
		send_read_request(&w, from, record);
	default: return answered ? send_atomic_response(&w, from, record, payload) :
		send_atomic_request(&w, from, record);
	}
}
