/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_layout.h - where the IP and TCP or UDP headers of a frame are, outer and within a tunnel, and their
 * checksums. Plain C over bytes, without state. */
#ifndef COMMON_FRAME_LAYOUT_H
#define COMMON_FRAME_LAYOUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
	ETH_HEADERS_MAX = 256,		/* bytes of a frame in which its headers must end */
	ETH_TAG_LENGTH = 4,		/* bytes of a VLAN tag */
};

struct eth_layout {
	uint16_t l3, l4;		/* offsets of the IP header and of the one behind it */
	uint16_t payload;		/* offset behind the TCP or UDP header; 0: it is neither, or a fragment */
	uint8_t version, protocol;
	uint32_t end;			/* offset at which the packet ends by its IP header */
};

/* Returns false if the frame is not IP, or is cut off within its headers. `length` bytes of it are at
 * `head`. */
bool eth_layout_read(const uint8_t *head, size_t length, struct eth_layout *layout);

/* Reads the layout of a frame whose IP header may lack the length, as the kernel's of joined segments beyond 65535
 * bytes (BIG TCP). Only `end` has no meaning then. */
bool eth_layout_read_unsized(const uint8_t *head, size_t length, struct eth_layout *layout);

/* Reads the layout of the headers within a tunnel: VXLAN, Geneve, GRE or NVGRE. Offsets count from the
 * beginning of the frame. */
bool eth_layout_inner(const uint8_t *head, size_t length, const struct eth_layout *outer, struct eth_layout *inner);

/* The one's complement sum of bytes of a frame in pieces, not inverted. `sum` is of an even number of bytes
 * before, or 0. */
uint32_t eth_sum_bytes(const uint8_t *at, size_t length, uint32_t sum);
uint32_t eth_sum_pieces(const struct iovec *iov, int n, size_t offset, size_t length, uint32_t sum);
uint16_t eth_sum_fold(uint32_t sum);		/* to 16 bits, in host byte order */
/* The sum of the pseudo header. */
uint32_t eth_sum_pseudo(const uint8_t *head, const struct eth_layout *layout);
/* True if a frame in pieces has a VLAN tag (0x8100) behind its addresses. Such a frame may exceed the MTU of its
 * device by the tag. */
static inline bool eth_pieces_tagged(const struct iovec *iov, int n)
{
	const size_t type = 12;		/* offset of both bytes of the type */
	uint8_t found[2] = { 0, 0 };
	size_t at = 0;

	for (int i = 0; i < n && at < type + 2; at += iov[i++].iov_len)
		for (size_t k = 0; k < 2; k++)
			if (type + k >= at && type + k - at < iov[i].iov_len)
				found[k] = ((const uint8_t *)iov[i].iov_base)[type + k - at];
	return found[0] == 0x81 && found[1] == 0x00;
}

/* Offset of the checksum within the TCP or UDP header. */
uint16_t eth_checksum_offset(const struct eth_layout *layout);

#endif
