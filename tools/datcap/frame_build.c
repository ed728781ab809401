/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_build.c - builds the bytes of a described frame (frame.h). Writes the headers from the outermost to
 * the innermost, and then the lengths and checksums from the innermost to the outermost. */
#include "common/bytes.h"
#include "common/tunnel.h"
#include "frame.h"
#include "sum16.h"
#include <stdio.h>
#include <string.h>

enum { ETHERNET = 14, TAG = 4, ARP = 28, IPV4 = 20, IPV6 = 40, UDP = 8, TCP = 20, ICMP = 8, TUNNEL = 8,
	NO_NEXT_HEADER = 59, NO_PROTOCOL = 256 };

struct place {				/* offsets of the headers of a layer; 0: it has none */
	uint32_t ip, l4;
};

static uint32_t protocol_of(const struct frame_layer *l)
{
	return l->protocol == NO_PROTOCOL ? NO_NEXT_HEADER : l->protocol;
}

static bool is_tcp(const struct frame_layer *l)
{
	return l->ports && l->protocol == 6;
}

static uint32_t headers_of(const struct frame_layer *l)
{
	return ETHERNET + TAG * l->tags + (l->version == 6 ? IPV6 : l->version ? IPV4 : 0) +
		(is_tcp(l) ? TCP : l->ports ? UDP : 0) + (l->icmp ? ICMP : 0) + (l->arp ? ARP : 0) +
		(l->tunnel ? TUNNEL : 0);
}

static uint8_t *put_ethernet(uint8_t *to, const struct frame_layer *l)
{
	memcpy(to, l->dst, 6);
	memcpy(to + 6, l->src, 6);
	to += 12;
	for (unsigned i = 0; i < l->tags; i++) {
		to = put_be16(to, i + 1 < l->tags ? 0x88a8 : 0x8100);
		to = put_be16(to, l->vlan[i]);
	}
	return put_be16(to, l->type ? l->type : l->arp ? 0x0806 : l->version == 6 ? 0x86dd : l->version ? 0x0800 :
			0x88b5);
}

/* Writes the IP header without lengths and checksum, which complete() adds. */
static uint8_t *put_ip(uint8_t *to, const struct frame_layer *l)
{
	if (l->version == 6) {
		to = put_be32(to, 6u << 28 | l->tos << 20 | l->flow);
		to = put_be16(to, 0);
		*to++ = (uint8_t)protocol_of(l);
		*to++ = (uint8_t)l->ttl;
		memcpy(to, l->ip_src, 16);
		memcpy(to + 16, l->ip_dst, 16);
		return to + 32;
	}
	to = put_be16(to, 0x4500 | l->tos);
	to = put_be16(to, 0);
	to = put_be32(to, l->id << 16);
	*to++ = (uint8_t)l->ttl;
	*to++ = (uint8_t)protocol_of(l);
	to = put_be16(to, 0);
	memcpy(to, l->ip_src, 4);
	memcpy(to + 4, l->ip_dst, 4);
	return to + 8;
}

static uint8_t *put_arp(uint8_t *to, const struct frame_layer *l)
{
	to = put_be32(to, 0x00010800);	/* Ethernet, IPv4 */
	to = put_be16(to, 0x0604);	/* bytes of their addresses */
	to = put_be16(to, l->arp);
	memcpy(to, l->src, 6);
	memcpy(to + 6, l->ip_src, 4);
	if (l->arp == FRAME_ARP_REQUEST)
		memset(to + 10, 0, 6);
	else
		memcpy(to + 10, l->dst, 6);
	memcpy(to + 16, l->ip_dst, 4);
	return to + 20;
}

static uint8_t *put_icmp(uint8_t *to, const struct frame_layer *l)
{
	*to++ = (uint8_t)l->icmp_type;
	*to++ = (uint8_t)l->icmp_code;
	to = put_be16(to, 0);
	to = put_be16(to, l->icmp_id);
	return put_be16(to, l->icmp_seq);
}

static uint8_t *put_l4(uint8_t *to, const struct frame_layer *l)
{
	to = put_be16(to, l->sport);
	to = put_be16(to, l->dport);
	if (!is_tcp(l))
		return put_be32(to, 0);
	to = put_be32(to, l->seq);
	to = put_be32(to, l->ack);
	to = put_be16(to, 5u << 12 | l->flags);
	to = put_be16(to, 65535);
	return put_be32(to, 0);
}

static uint8_t *put_tunnel(uint8_t *to, const struct frame_layer *l)
{
	to = put_be32(to, l->tunnel == FRAME_VXLAN ? (uint32_t)VXLAN_HAS_ID << 24 : TYPE_BRIDGING);
	return put_be32(to, l->tunnel_id << 8);
}

/* Returns the sum of the pseudo header. */
static uint32_t pseudo_header(const struct frame_layer *l, uint32_t length)
{
	const uint32_t bytes = l->version == 6 ? 16 : 4;

	return sum16(l->ip_src, bytes, sum16(l->ip_dst, bytes, protocol_of(l) + length));
}

/* Sets the checksum of ICMP, which has no pseudo header in IPv4, over bytes [at->l4, end). */
static void complete_icmp(uint8_t *frame, const struct frame_layer *l, const struct place *at, uint32_t end)
{
	const uint32_t length = end - at->l4;

	put_be16(frame + at->l4 + 2, ~sum16(frame + at->l4, length, l->version == 6 ? pseudo_header(l, length) : 0));
}

/* Sets the length of UDP, and the checksum of TCP or UDP over bytes [at->l4, end). */
static void complete_l4(uint8_t *frame, const struct frame_layer *l, const struct place *at, uint32_t end)
{
	uint32_t length = end - at->l4, sum;
	uint8_t *field = frame + at->l4 + (is_tcp(l) ? 16 : 6);

	if (!is_tcp(l))
		put_be16(frame + at->l4 + 4, length);
	if (!l->version)
		return;
	sum = ~sum16(frame + at->l4, length, pseudo_header(l, length)) & 0xffff;
	put_be16(field, !sum && !is_tcp(l) ? 0xffff : sum);
}

static void complete(uint8_t *frame, const struct frame_layer *l, const struct place *at, uint32_t end)
{
	if (l->ports)
		complete_l4(frame, l, at, end);
	else if (l->icmp)
		complete_icmp(frame, l, at, end);
	if (l->version == 6) {
		put_be16(frame + at->ip + 4, end - at->ip - IPV6);
	} else if (l->version) {
		put_be16(frame + at->ip + 2, end - at->ip);
		put_be16(frame + at->ip + 10, ~sum16(frame + at->ip, IPV4, 0));
	}
}

static uint8_t *put_layer(uint8_t *frame, uint8_t *to, const struct frame_layer *l, struct place *at)
{
	to = put_ethernet(to, l);
	if (l->version) {
		at->ip = (uint32_t)(to - frame);
		to = put_ip(to, l);
	}
	if (l->ports) {
		at->l4 = (uint32_t)(to - frame);
		to = put_l4(to, l);
	} else if (l->icmp) {
		at->l4 = (uint32_t)(to - frame);
		to = put_icmp(to, l);
	} else if (l->arp) {
		to = put_arp(to, l);
	}
	return l->tunnel ? put_tunnel(to, l) : to;
}

/* Falsifies the checksum of TCP, UDP or ICMP, or else that of the IPv4 header. */
static void spoil(uint8_t *frame, const struct frame_layer *l, const struct place *at)
{
	if (l->ports)
		frame[at->l4 + (is_tcp(l) ? 16 : 6)] ^= 0x55;
	else if (l->icmp)
		frame[at->l4 + 2] ^= 0x55;
	else if (l->version == 4)
		frame[at->ip + 10] ^= 0x55;
}

uint32_t frame_build(const struct frame *f, uint8_t *to, uint32_t room, struct frame_fault *fault)
{
	struct place at[FRAME_LAYERS] = { { 0 } };
	uint32_t least = f->payload_length, length;
	uint8_t *end = to;

	fault->column = 0;
	for (unsigned i = 0; i < f->layers; i++)
		least += headers_of(&f->layer[i]);
	length = f->length ? f->length : least;
	if (length < least || length > room) {
		snprintf(fault->text, sizeof fault->text,
			 "len %u found, expected %u to %u: headers and payload have %u bytes, "
			 "the device sends %u", length, least, room, least, room);
		return 0;
	}
	for (unsigned i = 0; i < f->layers; i++)
		end = put_layer(to, end, &f->layer[i], &at[i]);
	memcpy(end, f->payload, f->payload_length);
	memset(to + least, 0, length - least);
	for (unsigned i = f->layers; i--;)
		complete(to, &f->layer[i], &at[i], length);
	if (f->bad_checksum)
		spoil(to, &f->layer[f->layers - 1], &at[f->layers - 1]);
	return length;
}
