/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frames.h - frames of tests, put together header by header. All frames of one kind of header have equal bytes in it,
 * but for what the caller gives. */
#ifndef TEST_SOFTETH_FRAMES_H
#define TEST_SOFTETH_FRAMES_H
#include <stddef.h>
#include <stdint.h>

struct frame {
	uint8_t bytes[400];
	size_t length;
};

void frame_put(struct frame *f, const char *bytes, size_t n);
#define FRAME_PUT(f, text) frame_put(f, text, sizeof text - 1)

void frame_put_ethernet(struct frame *f, uint16_t type);	/* 02:00:00:00:00:02 to 02:00:00:00:00:01 */
void frame_put_ipv4(struct frame *f, uint8_t protocol);		/* 10.0.0.1 to 10.0.0.2, ToS 0x28 */
void frame_put_ethernet_ipv4(struct frame *f, uint8_t protocol);	/* both headers */
void frame_put_ipv6(struct frame *f, uint8_t next);	/* fd00::1 to fd00::2, traffic class 0x12, label 0xabcde */
void frame_put_udp(struct frame *f, uint16_t port);		/* from port 12345 */

/* A whole frame over IPv4 or IPv6 (`version` 4 or 6), with a payload behind ports as UDP and TCP have them. */
struct frame frame_over(int version, uint8_t protocol, uint16_t port);

#endif
