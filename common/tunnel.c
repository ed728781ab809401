/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tunnel.c - reads headers of tunnels (tunnel.h). */
#include "common/tunnel.h"
#include "common/bytes.h"

enum {
	UDP_TUNNEL_HEADER = 8, /* bytes of VXLAN, and of Geneve without options */
	GRE_HEADER = 4,
	GRE_FIELD = 4, /* bytes without fields, and of each field that a flag announces */
};

static uint32_t be24(const uint8_t *at)
{
	return (uint32_t)at[0] << 16 | get_be16(at + 1);
}

bool tunnel_read_udp(const uint8_t *at, size_t left, uint16_t port, struct tunnel *tunnel)
{
	if (left < UDP_TUNNEL_HEADER)
		return false;
	*tunnel = (struct tunnel){ .id = be24(at + 4), .length = UDP_TUNNEL_HEADER };
	if (port == PORT_VXLAN) {
		tunnel->kind = TUNNEL_VXLAN;
		tunnel->type = TYPE_BRIDGING;
		return at[0] & VXLAN_HAS_ID;
	}
	tunnel->kind = TUNNEL_GENEVE;
	tunnel->type = get_be16(at + 2);
	tunnel->length += (size_t)(at[0] & GENEVE_OPTIONS) * 4;
	return port == PORT_GENEVE && !(at[0] & GENEVE_VERSION);
}

bool tunnel_read_gre(const uint8_t *at, size_t left, struct tunnel *tunnel)
{
	const uint8_t *key;
	size_t length = GRE_HEADER;

	if (left < GRE_HEADER || (at[1] & GRE_VERSION) || (at[0] & GRE_FLAG_ROUTING))
		return false;
	if (at[0] & GRE_FLAG_CHECKSUM)
		length += GRE_FIELD;
	key = at + length;
	if (at[0] & GRE_FLAG_KEY)
		length += GRE_FIELD;
	if (at[0] & GRE_FLAG_SEQUENCE)
		length += GRE_FIELD;
	if (left < length)
		return false;
	*tunnel = (struct tunnel){ .kind = TUNNEL_GRE, .type = get_be16(at + 2), .length = length };
	if (!(at[0] & GRE_FLAG_KEY))
		return true;
	tunnel->id = be24(key) << 8 | key[3];
	if (tunnel->type == TYPE_BRIDGING) {
		tunnel->kind = TUNNEL_NVGRE;
		tunnel->id >>= 8; /* the last byte is a hash of the flow */
	}
	return true;
}
