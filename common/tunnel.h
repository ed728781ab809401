/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tunnel.h - headers of tunnels that carry frames or IP packets: VXLAN, Geneve, GRE and NVGRE. Plain C over
 * bytes, without state. The caller reads the headers around and within a tunnel. */
#ifndef COMMON_TUNNEL_H
#define COMMON_TUNNEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PORT_VXLAN = 4789, PORT_GENEVE = 6081,	/* of UDP */
	TYPE_BRIDGING = 0x6558,		/* transparent Ethernet bridging: the type in GRE and Geneve of a frame */
	/* bits of the first byte */
	VXLAN_HAS_ID = 0x08,
	GENEVE_VERSION = 0xc0, GENEVE_OPTIONS = 0x3f,	/* the version is 0; options are counted in words of 4 bytes */
	GRE_FLAG_CHECKSUM = 0x80, GRE_FLAG_ROUTING = 0x40, GRE_FLAG_KEY = 0x20, GRE_FLAG_SEQUENCE = 0x10,
	/* of the second byte */
	GRE_VERSION = 0x07,		/* 0; version 1 is PPTP's */
};

/* GRE that carries a frame and has a key is NVGRE. */
enum tunnel_kind { TUNNEL_VXLAN, TUNNEL_GENEVE, TUNNEL_GRE, TUNNEL_NVGRE };

struct tunnel {
	enum tunnel_kind kind;
	uint32_t id;		/* VNI or VSID of 24 bits, key of GRE of 32 bits; 0 if GRE has no key */
	uint16_t type;		/* EtherType of what is within: TYPE_BRIDGING for a frame */
	size_t length;		/* bytes of the header. Options of Geneve may be cut off: it can exceed what was
				 * given */
};

/* Reads the header at `at`, of which there are `left` bytes, behind a UDP header with this destination port. False
 * if it is no tunnel's, of another version, or cut off. */
bool tunnel_read_udp(const uint8_t *at, size_t left, uint16_t port, struct tunnel *tunnel);
/* Reads a GRE header, behind an IP header. False if it is of another version, has routing, or is cut off. */
bool tunnel_read_gre(const uint8_t *at, size_t left, struct tunnel *tunnel);

#endif
