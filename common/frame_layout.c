/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_layout.c - offsets of the headers of a frame, outer and within a tunnel, and one's complement sums.
 * dapl/softeth/match.c reads the fields that rules match, tunnel.c the headers of tunnels. */
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>
#include "common/frame_layout.h"
#include "common/bytes.h"
#include "common/tunnel.h"

enum {
	MAX_TAGS = 2,			/* VLAN tags that are skipped */
	MAX_EXTENSIONS = 6,		/* IPv6 extension headers that are skipped */
	UDP_HEADER = 8, TCP_HEADER = 20,
};

static bool read_ports(const uint8_t *head, size_t length, struct eth_layout *l)
{
	size_t header = 0;

	if (l->protocol == IPPROTO_UDP) {
		header = UDP_HEADER;
	} else if (l->protocol == IPPROTO_TCP) {
		if (length < (size_t)l->l4 + TCP_HEADER)
			return false;
		header = (size_t)(head[l->l4 + 12] >> 4) * 4;
		if (header < TCP_HEADER)
			return false;
	}
	if (!header)
		return true;
	l->payload = (uint16_t)(l->l4 + header);
	return length >= l->payload && l->end >= l->payload;
}

static bool read_ipv4(const uint8_t *head, size_t length, struct eth_layout *l)
{
	const uint8_t *p = head + l->l3;
	uint16_t header;

	if (length < (size_t)l->l3 + 20 || p[0] >> 4 != 4 || (p[0] & 15) < 5)
		return false;
	header = (uint16_t)((p[0] & 15) * 4);
	l->version = 4;
	l->protocol = p[9];
	l->l4 = (uint16_t)(l->l3 + header);
	l->end = (uint32_t)l->l3 + get_be16(p + 2);
	if (length < l->l4 || l->end < l->l4)
		return false;
	return (get_be16(p + 6) & 0x3fff) || read_ports(head, length, l);	/* a fragment has no ports to read */
}

/* With a routing header the pseudo header has another address, so headers behind it are not read. */
static bool read_ipv6(const uint8_t *head, size_t length, struct eth_layout *l)
{
	const uint8_t *p = head + l->l3;
	size_t at = (size_t)l->l3 + 40;
	uint8_t next;

	if (length < at || p[0] >> 4 != 6)
		return false;
	l->version = 6;
	l->end = (uint32_t)at + get_be16(p + 4);
	next = p[6];
	for (int i = 0; i < MAX_EXTENSIONS && (next == IPPROTO_HOPOPTS || next == IPPROTO_DSTOPTS); i++) {
		if (length < at + 8)
			return false;
		next = head[at];
		at += (size_t)head[at + 1] * 8 + 8;
	}
	if (length < at || l->end < at)
		return false;
	l->protocol = next;
	l->l4 = (uint16_t)at;
	return read_ports(head, length, l);
}

static bool read_ip(const uint8_t *head, size_t length, uint16_t type, size_t at, struct eth_layout *l)
{
	l->l3 = (uint16_t)at;
	if (type == ETH_P_IP)
		return read_ipv4(head, length, l);
	return type == ETH_P_IPV6 && read_ipv6(head, length, l);
}

/* `at`: the offset of an Ethernet header. */
static bool read_ethernet(const uint8_t *head, size_t length, size_t at, struct eth_layout *l)
{
	uint16_t type;

	if (length < at + ETH_HLEN)
		return false;
	at += 12;
	type = get_be16(head + at);
	for (int i = 0; i < MAX_TAGS && (type == ETH_P_8021Q || type == ETH_P_8021AD); i++) {
		at += 4;
		if (length < at + 2)
			return false;
		type = get_be16(head + at);
	}
	return read_ip(head, length, type, at + 2, l);
}

bool eth_layout_read(const uint8_t *head, size_t length, struct eth_layout *l)
{
	*l = (struct eth_layout){ .version = 0 };
	return read_ethernet(head, length > ETH_HEADERS_MAX ? ETH_HEADERS_MAX : length, 0, l);
}

bool eth_layout_read_unsized(const uint8_t *head, size_t length, struct eth_layout *l)
{
	uint8_t copy[ETH_HEADERS_MAX];

	if (length > sizeof copy)
		length = sizeof copy;
	eth_layout_read(head, length, l);
	if (!l->l3 || length < l->l3 + 20u)	/* an IPv4 header; IPv6 is longer */
		return false;
	memcpy(copy, head, length);
	put_be16(copy + l->l3 + (copy[l->l3] >> 4 == 4 ? 2 : 4), UINT16_MAX);
	return eth_layout_read(copy, length, l);
}

/* --- within a tunnel ---------------------------------------------------------------------- */

static bool read_tunnel(const uint8_t *head, size_t length, const struct eth_layout *outer, struct tunnel *tunnel,
			size_t *at)
{
	*at = outer->l4;
	if (outer->protocol == IPPROTO_GRE)
		return tunnel_read_gre(head + *at, length - *at, tunnel);
	*at += UDP_HEADER;
	return outer->protocol == IPPROTO_UDP && outer->payload && length >= *at &&
	       tunnel_read_udp(head + *at, length - *at, get_be16(head + outer->l4 + 2), tunnel);
}

bool eth_layout_inner(const uint8_t *head, size_t length, const struct eth_layout *outer, struct eth_layout *l)
{
	struct tunnel tunnel;
	size_t at;

	*l = (struct eth_layout){ .version = 0 };
	if (length > ETH_HEADERS_MAX)
		length = ETH_HEADERS_MAX;
	if (length < outer->l4 || !read_tunnel(head, length, outer, &tunnel, &at))
		return false;
	at += tunnel.length;
	return tunnel.type == TYPE_BRIDGING ? read_ethernet(head, length, at, l) :
					      read_ip(head, length, tunnel.type, at, l);
}

/* --- checksums ---------------------------------------------------------------------------- */

/* Adds with the carries in the upper half: up to 64 KiB do not overflow. */
uint32_t eth_sum_bytes(const uint8_t *at, size_t length, uint32_t sum)
{
	uint64_t total = sum;

	for (; length > 1; at += 2, length -= 2)
		total += get_be16(at);
	if (length)
		total += (uint32_t)at[0] << 8;
	while (total >> 32)
		total = (total & 0xffffffff) + (total >> 32);
	return (uint32_t)total;
}

uint16_t eth_sum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* A piece that begins at an odd offset has its bytes in the other halves of the words: swapping its folded sum
 * puts them right. */
uint32_t eth_sum_pieces(const struct iovec *iov, int n, size_t offset, size_t length, uint32_t sum)
{
	bool odd = false;

	for (int i = 0; i < n && length; i++) {
		size_t some = iov[i].iov_len;
		uint16_t part;

		if (offset >= some) {
			offset -= some;
			continue;
		}
		some -= offset;
		if (some > length)
			some = length;
		part = eth_sum_fold(eth_sum_bytes((const uint8_t *)iov[i].iov_base + offset, some, 0));
		sum = eth_sum_fold(sum) + (odd ? (uint16_t)(part << 8 | part >> 8) : part);
		odd ^= some & 1;
		length -= some;
		offset = 0;
	}
	return sum;
}

uint32_t eth_sum_pseudo(const uint8_t *head, const struct eth_layout *l)
{
	const uint8_t *ip = head + l->l3;
	uint32_t length = l->end - l->l4;
	uint32_t sum = (length >> 16) + (length & 0xffff) + l->protocol;

	return l->version == 4 ? eth_sum_bytes(ip + 12, 8, sum) : eth_sum_bytes(ip + 8, 32, sum);
}

uint16_t eth_checksum_offset(const struct eth_layout *l)
{
	return l->protocol == IPPROTO_TCP ? 16 : 6;
}
