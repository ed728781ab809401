/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frames.c - see frames.h. */
#include <linux/if_ether.h>
#include <string.h>
#include "test/unit/softeth/frames.h"

void frame_put(struct frame *f, const char *bytes, size_t n)
{
	memcpy(f->bytes + f->length, bytes, n);
	f->length += n;
}

static void put16(struct frame *f, uint16_t value)
{
	const char bytes[2] = { (char)(value >> 8), (char)value };

	frame_put(f, bytes, sizeof bytes);
}

void frame_put_ethernet(struct frame *f, uint16_t type)
{
	FRAME_PUT(f, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02");
	put16(f, type);
}

void frame_put_ipv4(struct frame *f, uint8_t protocol)
{
	FRAME_PUT(f, "\x45\x28\x00\x40\x00\x00\x00\x00\x40");
	frame_put(f, (const char *)&protocol, 1);
	FRAME_PUT(f, "\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02");
}

void frame_put_ethernet_ipv4(struct frame *f, uint8_t protocol)
{
	frame_put_ethernet(f, ETH_P_IP);
	frame_put_ipv4(f, protocol);
}

void frame_put_ipv6(struct frame *f, uint8_t next)
{
	FRAME_PUT(f, "\x61\x2a\xbc\xde\x00\x40");
	frame_put(f, (const char *)&next, 1);
	FRAME_PUT(f, "\x40\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
		     "\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02");
}

void frame_put_udp(struct frame *f, uint16_t port)
{
	FRAME_PUT(f, "\x30\x39");
	put16(f, port);
	FRAME_PUT(f, "\x00\x20\x00\x00");
}

struct frame frame_over(int version, uint8_t protocol, uint16_t port)
{
	struct frame f = { .length = 0 };

	if (version == 4) {
		frame_put_ethernet_ipv4(&f, protocol);
	} else {
		frame_put_ethernet(&f, ETH_P_IPV6);
		frame_put_ipv6(&f, protocol);
	}
	frame_put_udp(&f, port);
	FRAME_PUT(&f, "payload");
	return f;
}
