/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pdata.h - private data as it goes over the wire, and back. Pure: bytes in, bytes out.
 *
 * rdma_cm carries private data exactly on iWARP, but pads it with zeros to a fixed size on InfiniBand and
 * RoCE. There this provider uses the last four bytes of the padded area:
 *
 *	request, accept:  data ... zeros ... DA 92 flags length
 *
 * The data start at offset 0, where another implementation expects them. A rejection starts with four
 * bytes instead, on every transport:
 *
 *	reject:           DA 92 flags length data ...
 *
 * because OFA's provider puts its version there (02 00 x x), and skips four bytes of what it receives.
 * Thus it distinguishes a rejection by a consumer from the kernel's, which carries nothing. Flag 0x80 in a
 * rejection: the provider refused, the consumer was not asked. Flags 0x07: the sender's path MTU limit as
 * an enum ibv_mtu, 0 for none.
 *
 * A request of a UD endpoint carries the address of its sender, which SIDR does not, in 28 bytes before
 * its last four: GID, queue pair number, Q_Key, LID, two bytes 0; numbers big-endian. */
#ifndef HW_PDATA_H
#define HW_PDATA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hw_wire { HW_WIRE_IB, HW_WIRE_IWARP, HW_WIRE_UD };
enum hw_message { HW_REQUEST, HW_ACCEPT, HW_REJECT };

struct hw_ud_self {
	uint8_t gid[16];
	uint32_t qpn, qkey;
	uint16_t lid;
};

struct hw_pdata {
	const uint8_t *data;		/* inside the buffer that was unpacked */
	size_t len;
	bool exact;			/* len is the sender's; else it may include padding */
	bool refused;			/* a rejection, but not by the peer's consumer */
	uint8_t mtu;			/* 0 to 5: enum ibv_mtu; 0: the sender has no limit */
	bool has_self;			/* UD requests */
	struct hw_ud_self self;
};

/* How many bytes a consumer can send. */
size_t hw_pdata_room(enum hw_wire wire, enum hw_message message);

/* Writes what to hand to rdma_cm; returns its length (at most 255), or -1 if len is more
 * than there is room for. `self` for UD requests only. */
int hw_pdata_pack(uint8_t out[256], enum hw_wire wire, enum hw_message message,
		  const void *data, size_t len, uint8_t mtu, bool refused,
		  const struct hw_ud_self *self);

/* `in` is what a peer sent, up to 255 bytes, and untrusted; it may be NULL if len is 0. */
void hw_pdata_unpack(struct hw_pdata *p, enum hw_wire wire, enum hw_message message,
		     const uint8_t *in, size_t len);

#endif
