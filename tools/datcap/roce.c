/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.c - see roce.h. If only a part of a message was recorded, the payload of a packet ends where that part ends,
 * and later packets have none: analysers do not show the operation of a packet that is cut. IP, UDP and ICRC are
 * right for what the packet has. Sequence numbers count all packets of the message, the lengths of frames all its
 * bytes.
 *
 * Headers and numbers are those of the InfiniBand Architecture Specification, volume 1, chapter 9, and its
 * Annex A17, RoCEv2. */
#include "roce.h"
#include "common/bytes.h"
#include "crc.h"
#include "sum16.h"
#include <stdlib.h>
#include <string.h>
#include "tools/cli.h"

enum {
	UDP = 8, PROTOCOL = 17,		/* bytes of the header, its number in the IP header */
	PORT = 4791,
	BTH = 12, RETH = 16, ATOMIC_ETH = 28, AETH = 4, IMMEDIATE = 4,	/* bytes */
	EXTENDED_MAX = ATOMIC_ETH,	/* RETH and immediate data are shorter */
	MTU_DEFAULT = 1024, MTU_MAX = 4096,
	FRAME_MAX = FLOW_HEADERS_MAX + UDP + BTH + EXTENDED_MAX + MTU_MAX + CRC_SIZE,
	SOLICITED = 0x80, MIGRATED = 0x40, PARTITION = 0xffff,	/* fields of BTH: flags, the default P_Key */
	ACKNOWLEDGED = 0x1f,		/* syndrome of AETH: positive, says nothing about credits */
	MASK24 = 0xffffff,
	WAITING_MAX = 1 << 15,		/* requests; the send queues of known devices are no larger */
};

/* Opcodes of reliable connections. */
enum {
	SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMMEDIATE, SEND_ONLY, SEND_ONLY_IMMEDIATE,
	WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMMEDIATE, WRITE_ONLY, WRITE_ONLY_IMMEDIATE,
	READ_REQUEST, RESPONSE_FIRST, RESPONSE_MIDDLE, RESPONSE_LAST, RESPONSE_ONLY,
	ATOMIC_ACKNOWLEDGE = 18, CMP_SWAP, FETCH_ADD,
	SEND_LAST_INVALIDATE = 22, SEND_ONLY_INVALIDATE, OPCODES
};

/* The extended headers of each opcode, in the order of the packet. The value that answers an atomic counts
 * as payload. */
enum { HAS_RETH = 1, HAS_ATOMIC_ETH = 2, HAS_AETH = 4, HAS_WORD = 8 };	/* word: immediate data, IETH */
static const uint8_t extended[OPCODES] = {
	[SEND_LAST_IMMEDIATE] = HAS_WORD, [SEND_ONLY_IMMEDIATE] = HAS_WORD,
	[SEND_LAST_INVALIDATE] = HAS_WORD, [SEND_ONLY_INVALIDATE] = HAS_WORD,
	[WRITE_FIRST] = HAS_RETH, [WRITE_ONLY] = HAS_RETH,
	[WRITE_LAST_IMMEDIATE] = HAS_WORD, [WRITE_ONLY_IMMEDIATE] = HAS_RETH | HAS_WORD,
	[READ_REQUEST] = HAS_RETH, [CMP_SWAP] = HAS_ATOMIC_ETH, [FETCH_ADD] = HAS_ATOMIC_ETH,
	[RESPONSE_FIRST] = HAS_AETH, [RESPONSE_LAST] = HAS_AETH, [RESPONSE_ONLY] = HAS_AETH,
	[ATOMIC_ACKNOWLEDGE] = HAS_AETH,
};

/* The opcodes of the packets of a message. */
struct opcodes {
	uint8_t first, middle, last, only;
};

struct waiting {			/* a read or an atomic without answer */
	uint32_t psn, number;		/* of the request */
	uint32_t length;
	uint64_t sink;
	uint8_t op;
	struct waiting *next;
};

struct direction {			/* of a connection: what one end requests */
	uint32_t psn;			/* of the next packet */
	uint32_t requests;		/* so far */
	struct waiting *oldest, **end;
	uint32_t waiting;
};

struct connection {
	uint32_t qpn[2];		/* of ends[i] */
	uint32_t mtu;
	struct direction directions[2];	/* from ends[i] */
};

struct message {
	struct opcodes opcodes;
	const struct tap_record *record;
	uint32_t psn;			/* of its first packet */
	uint32_t number;		/* of a response: that of the request */
	const uint8_t *payload;
	uint32_t length, captured;
	bool cut;			/* the payload is a header: a packet without all of it is cut */
};

struct writer {
	const struct flow *flow;
	struct connection *connection;
	unsigned from;			/* end that sends */
	flow_take *take;
	void *arg;
	uint8_t frame[FRAME_MAX];
};

/* --- a packet --------------------------------------------------------------------------------------- */

/* Returns the source port. It is derived from the numbers of both queue pairs, as devices do to keep a
 * connection on one path. It is above PORT, so that analysers do not take the packet for that of another
 * protocol. */
static uint32_t source_port(const struct connection *c)
{
	uint64_t product = (uint64_t)c->qpn[0] * c->qpn[1];
	uint32_t label = (uint32_t)(product ^ product >> 20 ^ product >> 40) & 0xfffff;

	return 0xc000 | ((label ^ label >> 14) & 0x3fff);
}

static uint8_t *put_udp(const struct writer *w, uint8_t *to, uint32_t length)
{
	to = put_be16(to, source_port(w->connection));
	to = put_be16(to, PORT);
	to = put_be16(to, length);
	return put_be16(to, 0);
}

static uint8_t *put_bth(const struct writer *w, uint8_t *to, uint8_t opcode, uint8_t flags, uint32_t psn)
{
	*to++ = opcode;
	*to++ = flags;
	to = put_be16(to, PARTITION);
	to = put_be32(to, w->connection->qpn[!w->from] & MASK24);
	return put_be32(to, psn & MASK24);	/* AckReq is 0, since no acknowledgement is shown */
}

static uint8_t *put_extended(uint8_t *to, const struct message *m, uint8_t opcode)
{
	const struct tap_record *r = m->record;
	uint8_t has = extended[opcode];
	bool swaps = opcode == CMP_SWAP;

	if (has & (HAS_RETH | HAS_ATOMIC_ETH))
		to = put_be32(put_be64(to, r->memory.remote), r->memory.stag);
	if (has & HAS_RETH)
		to = put_be32(to, r->length);
	if (has & HAS_ATOMIC_ETH)
		to = put_be64(put_be64(to, swaps ? r->atomic.swap : r->atomic.compare_add),
			   swaps ? r->atomic.compare_add : 0);
	if (has & HAS_AETH)
		to = put_be32(to, (uint32_t)ACKNOWLEDGED << 24 | (m->number & MASK24));
	if (has & HAS_WORD)
		to = put_be32(to, r->word);
	return to;
}

/* Returns the ICRC of the packet from its IP header at `ip` to `end`. Fields that may change on the way
 * count as ones. So do 8 bytes before the packet, in place of InfiniBand's local route header. */
static uint32_t icrc_of(const uint8_t *ip, const uint8_t *udp, const uint8_t *end)
{
	uint8_t ones[8], head[FLOW_HEADERS_MAX + UDP + BTH];
	size_t ip_size = (size_t)(udp - ip), size = ip_size + UDP + BTH;
	uint32_t crc;

	memset(ones, 0xff, sizeof ones);
	memcpy(head, ip, size);
	if (ip[0] >> 4 == 6) {
		head[0] |= 0x0f;	/* traffic class, flow label */
		memset(head + 1, 0xff, 3);
		head[7] = 0xff;		/* hop limit */
	} else {
		head[1] = head[8] = 0xff;	/* type of service, time to live */
		memset(head + 10, 0xff, 2);	/* checksum */
	}
	memset(head + ip_size + 6, 0xff, 2);	/* checksum of UDP */
	head[ip_size + UDP + 4] = 0xff;		/* congestion notification in BTH */
	crc = crc_add(CRC32, 0, ones, sizeof ones);
	crc = crc_add(CRC32, crc, head, size);
	return crc_add(CRC32, crc, ip + size, (size_t)(end - ip) - size);
}

/* Sets the checksum of UDP over IPv6, which must not be 0 (RFC 8200). Over IPv4, devices send none. In a
 * packet that is cut, the checksum is that of the `captured` bytes: an analyser cannot check it, but reports
 * 0 as illegal. */
static void put_udp_checksum(const struct writer *w, uint8_t *udp, uint32_t length, uint32_t captured)
{
	uint32_t sum;

	if (w->flow->ends[0].family != 6)
		return;
	sum = ~sum16(udp, captured, flow_pseudo_header(w->flow, PROTOCOL, length)) & 0xffff;
	put_be16(udp + 6, sum ? sum : 0xffff);
}

/* Sends one packet with bytes [done, done + n) of the message, as far as they were recorded. */
static bool send_packet(struct writer *w, const struct message *m, uint8_t opcode, uint32_t done, uint32_t n)
{
	uint32_t here = m->captured > done ? m->captured - done < n ? m->captured - done : n : 0;
	uint32_t counted = m->cut ? n : here, padding = -counted & 3;
	bool last = done + n == m->length, solicited = last && m->record->flags & TAP_SOLICITED;
	uint8_t *ip = w->frame + FLOW_ETHERNET, *udp = w->frame + flow_headers_size(w->flow);
	uint8_t flags = (uint8_t)((solicited ? SOLICITED : 0) | MIGRATED | padding << 4);
	uint8_t *payload = put_bth(w, udp + UDP, opcode, flags, m->psn + done / w->connection->mtu), *end;
	uint32_t length;
	struct flow_frame frame = { .bytes = w->frame };

	payload = put_extended(payload, m, opcode);
	length = (uint32_t)(payload - udp) + counted + padding + CRC_SIZE;
	flow_put_headers(w->flow, w->from, PROTOCOL, length, w->frame);
	put_udp(w, udp, length);
	if (here)
		memcpy(payload, m->payload + done, here);
	end = payload + here;
	if (here == counted) {
		memset(end, 0, padding);
		end = crc_put(end + padding, icrc_of(ip, udp, end + padding));
	}
	put_udp_checksum(w, udp, length, (uint32_t)(end - udp));
	frame.captured = (uint32_t)(end - w->frame);
	frame.length = (uint32_t)(payload - w->frame) + n + (-n & 3) + CRC_SIZE;
	return w->take(w->arg, &frame);
}

static bool send_message(struct writer *w, unsigned from, const struct message *m)
{
	uint32_t mtu = w->connection->mtu, done = 0;

	w->from = from;
	if (m->length <= mtu)
		return send_packet(w, m, m->opcodes.only, 0, m->length);
	for (; m->length - done > mtu; done += mtu)
		if (!send_packet(w, m, done ? m->opcodes.middle : m->opcodes.first, done, mtu))
			return false;
	return send_packet(w, m, m->opcodes.last, done, m->length - done);
}

/* --- sequence numbers --------------------------------------------------------------------------------- */

static uint32_t packets_of(const struct connection *c, uint32_t length)
{
	return length ? (length - 1) / c->mtu + 1 : 1;
}

/* Allocates sequence numbers for a request: one for each of its packets, or for each packet of a read's
 * answer. */
static uint32_t take_psns(struct connection *c, unsigned from, uint32_t length)
{
	struct direction *d = &c->directions[from];
	uint32_t psn = d->psn;

	d->psn += packets_of(c, length);
	d->requests++;
	return psn;
}

static void drop_oldest(struct direction *d)
{
	struct waiting *old = d->oldest;

	d->oldest = old->next;
	if (!d->oldest)
		d->end = &d->oldest;
	d->waiting--;
	free(old);
}

static void remember_request(struct direction *d, const struct tap_record *r, uint32_t psn)
{
	struct waiting *new = calloc(1, sizeof *new);

	if (!new)
		fail("no memory");
	*new = (struct waiting){ .psn = psn, .number = d->requests, .length = r->length, .sink = r->memory.sink,
		.op = r->op };
	if (!d->oldest)
		d->end = &d->oldest;
	*d->end = new;
	d->end = &new->next;
	if (++d->waiting > WAITING_MAX)
		drop_oldest(d);
}

/* Gives the response the numbers of its request. Requests are answered in order, so older requests have been
 * answered, too, and their completions were suppressed. Allocates numbers if the request was not
 * recorded. */
static void find_request(struct connection *c, unsigned requester, const struct tap_record *r, struct message *m)
{
	struct direction *d = &c->directions[requester];
	struct waiting *found = d->oldest;

	while (found && !(found->op == r->op && found->length == r->length && found->sink == r->memory.sink))
		found = found->next;
	if (!found) {
		m->psn = take_psns(c, requester, r->length);
		m->number = d->requests;
		return;
	}
	while (d->oldest != found)
		drop_oldest(d);
	m->psn = found->psn;
	m->number = found->number;
	drop_oldest(d);
}

/* --- messages ----------------------------------------------------------------------------------------- */

static bool send_send(struct writer *w, unsigned from, struct message *m)
{
	unsigned flags = m->record->flags;

	m->opcodes = flags & TAP_INVALIDATE ?
		(struct opcodes){ SEND_FIRST, SEND_MIDDLE, SEND_LAST_INVALIDATE, SEND_ONLY_INVALIDATE } :
		flags & TAP_IMMEDIATE ?
		(struct opcodes){ SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMMEDIATE, SEND_ONLY_IMMEDIATE } :
		(struct opcodes){ SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY };
	m->psn = take_psns(w->connection, from, m->length);
	return send_message(w, from, m);
}

/* The record of a received write has only the immediate data; address and length are 0. */
static bool send_write(struct writer *w, unsigned from, struct message *m)
{
	m->opcodes = m->record->flags & TAP_IMMEDIATE ?
		(struct opcodes){ WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST_IMMEDIATE, WRITE_ONLY_IMMEDIATE } :
		(struct opcodes){ WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY };
	m->psn = take_psns(w->connection, from, m->length);
	return send_message(w, from, m);
}

static bool send_fetch(struct writer *w, unsigned from, struct message *m)
{
	uint8_t op = m->record->op;

	m->opcodes.only = op == TAP_READ ? READ_REQUEST : op == TAP_CMP_SWAP ? CMP_SWAP : FETCH_ADD;
	m->psn = take_psns(w->connection, from, m->length);
	remember_request(&w->connection->directions[from], m->record, m->psn);
	m->length = m->captured = 0;	/* they are those of the answer */
	return send_message(w, from, m);
}

static bool send_response(struct writer *w, unsigned from, struct message *m)
{
	uint8_t value[8];
	uint64_t before = 0;

	find_request(w->connection, !from, m->record, m);
	m->opcodes = (struct opcodes){ RESPONSE_FIRST, RESPONSE_MIDDLE, RESPONSE_LAST, RESPONSE_ONLY };
	if (m->record->op != TAP_READ) {	/* the value is in the byte order of the host */
		if (m->captured >= sizeof before)
			memcpy(&before, m->payload, sizeof before);
		put_be64(value, before);
		m->opcodes.only = ATOMIC_ACKNOWLEDGE;
		m->payload = value;
		m->captured = m->captured >= sizeof value ? sizeof value : 0;
		m->length = sizeof value;
		m->cut = true;
	}
	return send_message(w, from, m);
}

/* Updates the connection from the record. The number of the peer's QP may become known after the first
 * message. If the number of this side's QP changes, another connection uses the same addresses. */
static void update_connection(struct connection *c, const struct tap_record *r, unsigned side)
{
	uint32_t mtu = r->ends.mtu;

	if (c->qpn[side] && c->qpn[side] != r->qpn)
		for (int i = 0; i < 2; i++)
			while (c->directions[i].oldest)
				drop_oldest(&c->directions[i]);
	c->qpn[side] = r->qpn;
	if (r->ends.remote_qpn)
		c->qpn[!side] = r->ends.remote_qpn;
	c->mtu = mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096 ? mtu : MTU_DEFAULT;
}

bool roce_frames(const struct tap_record *record, const uint8_t *payload, flow_take *take, void *arg)
{
	static struct writer w;
	struct message m = { .record = record, .payload = payload, .length = record->length,
		.captured = record->captured };
	unsigned side, from;
	struct flow *flow = flow_of(record, &side);

	w.flow = flow;
	w.connection = flow_state(flow, sizeof *w.connection);
	w.take = take;
	w.arg = arg;
	update_connection(w.connection, record, side);
	from = flow_sender(record, side);
	if (record->kind == TAP_ANSWERED)
		return send_response(&w, from, &m);
	switch (record->op) {
	case TAP_SEND: return send_send(&w, from, &m);
	case TAP_WRITE: return send_write(&w, from, &m);
	default: return send_fetch(&w, from, &m);
	}
}
