/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dissect.c - see dissect.h. Numbers are those of the RFCs, and of the InfiniBand Architecture Specification, volume 1,
 * chapter 9 and Annex A17 (RoCEv2). */
#include "dissect.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "common/bytes.h"
#include "common/rdmap.h"
#include "common/tunnel.h"

enum {
	TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806, TYPE_TAG = 0x8100, TYPE_SERVICE_TAG = 0x88a8, TYPE_IPV6 = 0x86dd,
	TYPE_ROCE1 = 0x8915, TYPE_LENGTH_MAX = 1500,	/* up to here the type is a length (802.3) */
	TAGS_MAX = 3,
	ICMP = 1, TCP = 6, UDP = 17, GRE = 47, ICMP6 = 58, SCTP = 132,
	HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, DESTINATION = 60,
	EXTENSIONS_MAX = 8,		/* headers of IPv6 that are skipped */
	PORT_ROCE = 4791,
	BTH = 12, RETH = 16, CRC = 4,	/* bytes */
	CONGESTION = 0x81,		/* opcode of a congestion notification */
	/* of RDMAP, between software devices: opcodes, and their queue */
	ACKNOWLEDGEMENT = 14, CLOSE_NOTIFICATION = 15, QUEUE_SOFTWARE = 4,
};

/* What is left of the frame. */
struct view {
	const uint8_t *at;
	uint32_t captured;		/* bytes at `at` */
	uint32_t length;		/* bytes of the frame from there on */
};

static void add(struct dissection *is, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct dissection *is, const char *fmt, ...)
{
	size_t used = strlen(is->detail);
	va_list args;

	va_start(args, fmt);
	vsnprintf(is->detail + used, sizeof is->detail - used, fmt, args);
	va_end(args);
}

static void set_protocol(struct dissection *is, const char *name)
{
	snprintf(is->protocol, sizeof is->protocol, "%s", name);
}

/* Returns whether `bytes` are there. Says so in the detail if they are not. */
static bool has(struct dissection *is, const struct view *v, uint32_t bytes)
{
	if (v->captured >= bytes)
		return true;
	add(is, "%scut off", *is->detail ? ", " : "");
	return false;
}

/* Moves behind `bytes`, which are there. */
static void skip(struct view *v, uint32_t bytes)
{
	v->at += bytes;
	v->captured -= bytes;
	v->length -= bytes;
}

/* Ends the view after `length` bytes: what follows is padding. */
static void limit(struct view *v, uint32_t length)
{
	if (v->length > length)
		v->length = length;
	if (v->captured > length)
		v->captured = length;
}

/* --- RoCE ---------------------------------------------------------------------------------------- */

static const char *nak_code(uint8_t syndrome)
{
	static const char *const codes[] = { "PSN sequence error", "invalid request", "remote access error",
		"remote operational error", "invalid RD request" };

	syndrome &= 0x1f;
	return syndrome < sizeof codes / sizeof *codes ? codes[syndrome] : "reserved code";
}

/* Describes the acknowledgement extended header at `at`. */
static void acknowledgement(struct dissection *is, const uint8_t *at)
{
	switch (at[0] >> 5 & 3) {
	case 0:
		add(is, ", ack");
		break;
	case 1:
		add(is, ", RNR nak");
		break;
	default:
		add(is, ", nak: %s", nak_code(at[0]));
	}
}

static void roce(struct dissection *is, struct view v)
{
	static const char *const transports[] = { "RC", "UC", "RD", "UD", "CNP", "XRC", "?", "?" };
	static const char *const operations[32] = {
		"send first", "send middle", "send last", "send last with immediate", "send only",
		"send only with immediate", "write first", "write middle", "write last", "write last with immediate",
		"write only", "write only with immediate", "read request", "read response first",
		"read response middle", "read response last", "read response only", "acknowledge",
		"atomic acknowledge", "compare-and-swap", "fetch-and-add", "opcode 21", "send last with invalidate",
		"send only with invalidate", [28] = "flush", [29] = "atomic write",
	};
	unsigned opcode, operation;
	uint32_t behind = CRC;		/* bytes that are no payload */
	bool has_reth;

	set_protocol(is, "roce");
	if (!has(is, &v, BTH))
		return;
	opcode = v.at[0];
	operation = opcode & 31;
	has_reth = operation == 6 || operation == 10 || operation == 11 || operation == 12;
	if (opcode == CONGESTION)
		add(is, "congestion notification");
	else if (operations[operation])
		add(is, "%s %s", transports[opcode >> 5], operations[operation]);
	else
		add(is, "%s opcode %u", transports[opcode >> 5], operation);
	add(is, ", qp 0x%x psn %u", get_be32(v.at + 4) & 0xffffff, get_be32(v.at + 8) & 0xffffff);
	skip(&v, BTH);
	if (has_reth && v.captured >= RETH)
		add(is, ", rkey 0x%x, %u bytes", get_be32(v.at + 8), get_be32(v.at + 12));
	else if ((operation == 17 || operation == 18) && v.captured >= 4)
		acknowledgement(is, v.at);
	behind += operation == 3 || operation == 5 ? 4 : 0;
	if (operation < 6 && opcode != CONGESTION && v.length >= behind)
		add(is, ", %u bytes", v.length - behind);
}

/* --- iWARP --------------------------------------------------------------------------------------- */

/* Returns the queue of an untagged message, or -1 for a tagged one. */
static int queue_of(unsigned operation)
{
	switch (operation) {
	case RDMAP_WRITE: case RDMAP_READ_RESPONSE:
		return -1;
	case RDMAP_READ_REQUEST: case RDMAP_ATOMIC_REQUEST:
		return DDP_QUEUE_READ;
	case RDMAP_TERMINATE:
		return DDP_QUEUE_TERMINATE;
	case RDMAP_ATOMIC_RESPONSE:
		return DDP_QUEUE_ATOMIC_RESPONSE;
	case ACKNOWLEDGEMENT: case CLOSE_NOTIFICATION:
		return QUEUE_SOFTWARE;
	default:
		return DDP_QUEUE_SEND;
	}
}

/* Returns whether an FPDU begins here. Nothing in TCP says so: versions, reserved bits, the tagged bit and the queue
 * must all be those of the operation. `*header` is the length of its header with that of MPA. */
static bool is_fpdu(const struct view *v, unsigned *operation, uint32_t *header)
{
	int queue;
	bool tagged;

	if (v->captured < 4)
		return false;
	tagged = v->at[2] & 0x80;
	*operation = v->at[3] & 15;
	*header = 2 + (tagged ? DDP_TAGGED_HEADER : DDP_UNTAGGED_HEADER);
	queue = queue_of(*operation);
	return v->captured >= *header && (v->at[2] & 0x3f) == 1 && (v->at[3] & 0xf0) == 0x40 &&
	       tagged == (queue < 0) && get_be16(v->at) + 2u >= *header &&
	       (tagged || get_be32(v->at + 8) == (uint32_t)queue);
}

static void fpdus(struct dissection *is, struct view v)
{
	static const char *const operations[16] = { "write", "read request", "read response", "send",
		"send with invalidate", "send, solicited", "send with invalidate, solicited", "terminate",
		"immediate data", "immediate data, solicited", "atomic request", "atomic response",
		"send with immediate", "send with immediate, solicited", "acknowledgement", "close notification" };
	unsigned operation, more = 0;
	uint32_t header;

	while (is_fpdu(&v, &operation, &header)) {
		uint32_t ulpdu = get_be16(v.at), size = ((ulpdu + 2 + 3) & ~3u) + CRC;

		if (!more++)
			add(is, "%s, %u bytes", operations[operation], ulpdu + 2 - header);
		if (size > v.captured)
			break;
		skip(&v, size);
	}
	if (more > 1)
		add(is, ", and %u more", more - 1);
}

/* Describes the payload of a segment of TCP if it is iWARP. */
static bool iwarp(struct dissection *is, const struct view *v)
{
	unsigned operation;
	uint32_t header;

	if (v->captured >= 20 && (!memcmp(v->at, "MPA ID Req Frame", 16) || !memcmp(v->at, "MPA ID Rep Frame", 16))) {
		set_protocol(is, "iwarp");
		add(is, "MPA %s%s, %u bytes of private data", v->at[9] == 'q' ? "request" : "reply",
		    v->at[16] & 0x20 ? ", rejected" : "", get_be16(v->at + 18));
		return true;
	}
	if (!is_fpdu(v, &operation, &header))
		return false;
	set_protocol(is, "iwarp");
	fpdus(is, *v);
	return true;
}

/* --- transports ------------------------------------------------------------------------------------ */

static void ethernet(struct dissection *is, struct view v, bool within);
static void network(struct dissection *is, uint32_t type, struct view v, bool within);

static void add_ports(struct dissection *is, const uint8_t *at)
{
	char *const ends[] = { is->from, is->to };

	for (int i = 0; i < 2; i++) {
		char address[sizeof is->from];

		snprintf(address, sizeof address, "%s", ends[i]);
		snprintf(ends[i], sizeof is->from, strchr(address, ':') ? "[%.50s]:%u" : "%.50s:%u", address,
			 get_be16(at + 2 * i));
	}
}

static void tcp(struct dissection *is, struct view v)
{
	static const char letters[] = "FSRPAUEC";
	uint32_t header, seq, ack;
	char flags[9] = "";
	uint8_t bits;

	set_protocol(is, "tcp");
	if (!has(is, &v, 4))
		return;
	add_ports(is, v.at);
	if (!has(is, &v, 20))
		return;
	seq = get_be32(v.at + 4);
	ack = get_be32(v.at + 8);
	bits = v.at[13];
	header = 4u * (v.at[12] >> 4);
	for (unsigned i = 0, n = 0; i < 8; i++)
		if (bits & 1u << i)
			flags[n++] = letters[i];
	if (header < 20 || header > v.length) {
		add(is, "header of %u bytes", header);
		return;
	}
	if (header <= v.captured) {
		struct view payload = v;

		skip(&payload, header);
		if (iwarp(is, &payload))
			return;
	}
	add(is, "%s seq %u ack %u, %u bytes", *flags ? flags : "no flags", seq, ack, v.length - header);
}

static bool tunnelled(struct dissection *is, struct view v, uint16_t port)
{
	static const char *const names[] = { [TUNNEL_VXLAN] = "vxlan", [TUNNEL_GENEVE] = "geneve",
		[TUNNEL_GRE] = "gre", [TUNNEL_NVGRE] = "nvgre" };
	struct tunnel tunnel;
	struct dissection inner = { .from = "" };

	if (!(port ? tunnel_read_udp(v.at, v.captured, port, &tunnel) : tunnel_read_gre(v.at, v.captured, &tunnel)))
		return false;
	set_protocol(is, names[tunnel.kind]);
	add(is, "%u", tunnel.id);
	if (tunnel.length > v.captured)
		return true;
	skip(&v, (uint32_t)tunnel.length);
	if (tunnel.type == TYPE_BRIDGING)
		ethernet(&inner, v, true);
	else
		network(&inner, tunnel.type, v, true);
	add(is, ": %s%s%s > %s %s%s%.140s", inner.tags, *inner.tags ? " " : "", inner.from, inner.to, inner.protocol,
	    *inner.detail ? " " : "", inner.detail);
	return true;
}

static void udp(struct dissection *is, struct view v, bool within)
{
	uint32_t length;
	uint16_t port;

	set_protocol(is, "udp");
	if (!has(is, &v, 4))
		return;
	add_ports(is, v.at);
	if (!has(is, &v, 8))
		return;
	port = get_be16(v.at + 2);
	length = get_be16(v.at + 4);
	skip(&v, 8);
	if (port == PORT_ROCE)
		roce(is, v);
	else if (within || !tunnelled(is, v, port))
		add(is, "%u bytes", length < 8 ? v.length : length - 8);
}

static void icmp(struct dissection *is, struct view v, bool version6)
{
	static const struct { uint8_t version, type; const char *name; } names[] = {
		{ 4, 0, "echo reply" }, { 4, 3, "unreachable" }, { 4, 5, "redirect" }, { 4, 8, "echo request" },
		{ 4, 11, "time exceeded" }, { 6, 1, "unreachable" }, { 6, 2, "packet too big" },
		{ 6, 3, "time exceeded" }, { 6, 128, "echo request" }, { 6, 129, "echo reply" },
		{ 6, 133, "router solicitation" }, { 6, 134, "router advertisement" },
		{ 6, 135, "neighbour solicitation" }, { 6, 136, "neighbour advertisement" }, { 6, 137, "redirect" },
	};
	const char *name = NULL;

	set_protocol(is, version6 ? "icmp6" : "icmp");
	if (!has(is, &v, 8))
		return;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].version == (version6 ? 6 : 4) && names[i].type == v.at[0])
			name = names[i].name;
	if (name)
		add(is, "%s", name);
	else
		add(is, "type %u", v.at[0]);
	if (name && !strncmp(name, "echo", 4))
		add(is, " id %u seq %u", get_be16(v.at + 4), get_be16(v.at + 6));
	else if (v.at[1])
		add(is, " code %u", v.at[1]);
}

static void transport(struct dissection *is, unsigned protocol, struct view v, bool within)
{
	switch (protocol) {
	case TCP:
		tcp(is, v);
		break;
	case UDP:
		udp(is, v, within);
		break;
	case ICMP: case ICMP6:
		icmp(is, v, protocol == ICMP6);
		break;
	case SCTP:
		set_protocol(is, "sctp");
		if (has(is, &v, 4))
			add_ports(is, v.at);
		break;
	default:
		set_protocol(is, "ip");
		if (protocol != GRE || within || !tunnelled(is, v, 0))
			add(is, "protocol %u", protocol);
	}
}

/* --- IP, ARP --------------------------------------------------------------------------------------- */

static void ipv4(struct dissection *is, struct view v, bool within)
{
	uint32_t header, total, fragment, protocol;

	set_protocol(is, "ip");
	if (!has(is, &v, 20))
		return;
	header = 4u * (v.at[0] & 15);
	total = get_be16(v.at + 2);
	fragment = get_be16(v.at + 6) & 0x1fff;
	protocol = v.at[9];
	inet_ntop(AF_INET, v.at + 12, is->from, sizeof is->from);
	inet_ntop(AF_INET, v.at + 16, is->to, sizeof is->to);
	if (header < 20 || (total && total < header)) {
		add(is, "header of %u bytes, total length %u", header, total);
		return;
	}
	if (total)			/* 0: of a long message that the device cuts */
		limit(&v, total);
	if (!has(is, &v, header))
		return;
	skip(&v, header);
	if (fragment)
		add(is, "fragment at %u of protocol %u", 8 * fragment, protocol);
	else
		transport(is, protocol, v, within);
}

static void ipv6(struct dissection *is, struct view v, bool within)
{
	uint32_t payload, protocol;

	set_protocol(is, "ip6");
	if (!has(is, &v, 40))
		return;
	payload = get_be16(v.at + 4);
	protocol = v.at[6];
	inet_ntop(AF_INET6, v.at + 8, is->from, sizeof is->from);
	inet_ntop(AF_INET6, v.at + 24, is->to, sizeof is->to);
	if (payload)			/* 0: of a long message that the device cuts, or of a jumbogram */
		limit(&v, 40 + payload);
	skip(&v, 40);
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		uint32_t size = 8;

		if (protocol != HOP_BY_HOP && protocol != ROUTING && protocol != DESTINATION && protocol != FRAGMENT)
			break;
		if (!has(is, &v, 8))
			return;
		if (protocol == FRAGMENT && get_be16(v.at + 2) & 0xfff8) {
			add(is, "fragment at %u of protocol %u", get_be16(v.at + 2) & 0xfff8u, v.at[0]);
			return;
		}
		if (protocol != FRAGMENT)
			size += 8u * v.at[1];
		protocol = v.at[0];
		if (!has(is, &v, size))
			return;
		skip(&v, size);
	}
	transport(is, protocol, v, within);
}

static void arp(struct dissection *is, struct view v)
{
	char sender[INET_ADDRSTRLEN], target[INET_ADDRSTRLEN];
	unsigned operation;

	set_protocol(is, "arp");
	if (!has(is, &v, 28))
		return;
	operation = get_be16(v.at + 6);
	if (get_be32(v.at) != 0x00010800 || get_be16(v.at + 4) != 0x0604) {
		add(is, "operation %u", operation);
		return;
	}
	inet_ntop(AF_INET, v.at + 14, sender, sizeof sender);
	inet_ntop(AF_INET, v.at + 24, target, sizeof target);
	if (operation == 1)
		add(is, "request for %s, tell %s", target, sender);
	else if (operation == 2)
		add(is, "%s is at %02x:%02x:%02x:%02x:%02x:%02x", sender, v.at[8], v.at[9], v.at[10], v.at[11],
		    v.at[12], v.at[13]);
	else
		add(is, "operation %u of %s for %s", operation, sender, target);
}

/* RoCE before version 2: a global route header, which is like that of IPv6, over Ethernet. */
static void roce1(struct dissection *is, struct view v)
{
	set_protocol(is, "roce");
	if (!has(is, &v, 40))
		return;
	inet_ntop(AF_INET6, v.at + 8, is->from, sizeof is->from);
	inet_ntop(AF_INET6, v.at + 24, is->to, sizeof is->to);
	limit(&v, 40u + get_be16(v.at + 4));
	skip(&v, 40);
	roce(is, v);
}

static void network(struct dissection *is, uint32_t type, struct view v, bool within)
{
	switch (type) {
	case TYPE_IPV4:
		ipv4(is, v, within);
		break;
	case TYPE_IPV6:
		ipv6(is, v, within);
		break;
	case TYPE_ARP:
		arp(is, v);
		break;
	case TYPE_ROCE1:
		roce1(is, v);
		break;
	default:
		if (type > TYPE_LENGTH_MAX)
			snprintf(is->protocol, sizeof is->protocol, "type 0x%04x", type);
		else
			set_protocol(is, "802.3");
	}
}

static void ethernet(struct dissection *is, struct view v, bool within)
{
	char *const ends[] = { is->to, is->from };
	uint32_t type;

	set_protocol(is, "ethernet");
	if (!has(is, &v, 14))
		return;
	for (int i = 0; i < 2; i++)
		snprintf(ends[i], sizeof is->to, "%02x:%02x:%02x:%02x:%02x:%02x", v.at[6 * i], v.at[6 * i + 1],
			 v.at[6 * i + 2], v.at[6 * i + 3], v.at[6 * i + 4], v.at[6 * i + 5]);
	type = get_be16(v.at + 12);
	skip(&v, 14);
	for (int i = 0; i < TAGS_MAX && (type == TYPE_TAG || type == TYPE_SERVICE_TAG) && v.captured >= 4; i++) {
		size_t used = strlen(is->tags);

		snprintf(is->tags + used, sizeof is->tags - used, "%svlan %u", i ? " " : "", get_be16(v.at) & 0xfff);
		type = get_be16(v.at + 2);
		skip(&v, 4);
	}
	network(is, type, v, within);
}

void dissect_frame(const uint8_t *frame, uint32_t captured, uint32_t length, struct dissection *is)
{
	*is = (struct dissection){ .from = "" };
	ethernet(is, (struct view){ frame, captured, length > captured ? length : captured }, false);
}
