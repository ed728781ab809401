/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_filter.c - see frame_filter.h. libpcap's filter sees a frame as it is on the wire: with the VLAN tag that the
 * device has stripped, and without the header that the kernel adds to segments that it has joined. */
#include "frame_filter.h"
#include <linux/if_ether.h>
#include <netinet/ip6.h>
#include <stddef.h>
#include <string.h>
#include "vlan.h"
#include "tools/cli.h"

enum {
	FILTER_MAX = 1 << 16,		/* bytes that the filter reads of a frame of which it needs a copy */
	TAGS_MAX = 2,			/* VLAN tags that are skipped */
	JUMBO_HEADER = 8,		/* bytes of a hop-by-hop header with the jumbo payload option */
};

void frame_filter_open(struct frame_filter *filter, const char *expression, enum ways direction)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, FILTER_MAX);

	*filter = (struct frame_filter){ .has_program = *expression, .direction = direction };
	if (*expression && (!dead || pcap_compile(dead, &filter->program, expression, 1, PCAP_NETMASK_UNKNOWN)))
		usage_error("--filter \"%s\": %s", expression, dead ? pcap_geterr(dead) : "no memory");
	if (dead)
		pcap_close(dead);
}

void frame_filter_close(struct frame_filter *filter)
{
	pcap_freecode(&filter->program);
}

/* Returns the offset of the hop-by-hop header of joined segments, or 0 if the frame has none. Linux up to 6.18 puts it
 * in front of TCP over IPv6 when these have more than 65535 bytes (BIG TCP). No frame on the wire has it. */
static uint32_t find_jumbo_header(const DAT_ETH_FRAME *f)
{
	static const uint8_t header[] = { IPPROTO_TCP, 0, IP6OPT_JUMBO, IP6OPT_JUMBO_LEN - 2 };
	const uint8_t *data = f->data;
	uint32_t at = VLAN_OFFSET, type = 0;

	for (int i = 0; i <= TAGS_MAX && at + 2 <= f->length; i++, at += VLAN_TAG) {
		type = get_be16(data + at);
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
	}
	data += at + 2;
	at += 2 + sizeof(struct ip6_hdr);
	return type == ETH_P_IPV6 && at + JUMBO_HEADER <= f->length && !get_be16(data + 4) &&
	       data[6] == IPPROTO_HOPOPTS && !memcmp(data + sizeof(struct ip6_hdr), header, sizeof header) ? at : 0;
}

/* Copies the frame as it is on the wire: with the VLAN tag, which the device has stripped, and without the jumbo header
 * at this offset, unless that is 0. The copy has FILTER_MAX bytes at most of the frame. Returns their number. */
static uint32_t copy_as_on_wire(const DAT_ETH_FRAME *f, uint32_t jumbo, uint8_t *to)
{
	const uint8_t *data = f->data;
	uint32_t used = VLAN_OFFSET, at = VLAN_OFFSET, end = f->length < FILTER_MAX ? f->length : FILTER_MAX;

	memcpy(to, data, VLAN_OFFSET);
	if (vlan_tag_size(f)) {
		vlan_put_tag(f, to + used);
		used += VLAN_TAG;
	}
	if (jumbo) {
		memcpy(to + used, data + at, jumbo - at);
		used += jumbo - at;
		to[used - sizeof(struct ip6_hdr) + offsetof(struct ip6_hdr, ip6_nxt)] = IPPROTO_TCP;
		at = jumbo + JUMBO_HEADER;
	}
	memcpy(to + used, data + at, end - at);
	return used + end - at;
}

bool frame_filter_passes(const struct frame_filter *filter, const DAT_ETH_FRAME *f)
{
	static uint8_t copy[FILTER_MAX + VLAN_TAG];
	struct pcap_pkthdr header = { .caplen = f->length, .len = f->wire_length + vlan_tag_size(f) };
	const uint8_t *data = f->data;
	uint32_t jumbo;

	if (filter->direction && (filter->direction == OUTGOING) != !!(f->flags & DAT_ETH_FRAME_OUTGOING))
		return false;
	if (!filter->has_program)
		return true;
	jumbo = find_jumbo_header(f);
	if ((vlan_tag_size(f) || jumbo) && f->length >= VLAN_OFFSET) {
		header.caplen = copy_as_on_wire(f, jumbo, copy);
		header.len -= jumbo ? JUMBO_HEADER : 0;
		data = copy;
	}
	return pcap_offline_filter(&filter->program, &header, data);
}
