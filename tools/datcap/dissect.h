/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dissect.h - reads the headers of a captured frame, and says in words what it is: addresses, protocol, and what a
 * reader looks for first in it. Plain C over bytes, without state: of TCP it sees one segment. lines.c prints it. */
#ifndef DATCAP_DISSECT_H
#define DATCAP_DISSECT_H
#include <stdint.h>

struct dissection {
	char from[64], to[64];		/* IP address and perhaps port; Ethernet address if the frame has no IP */
	char tags[40];			/* "vlan 7 vlan 5"; "" without tags */
	char protocol[16];
	char detail[240];		/* "" if there is nothing to add */
};

/* Describes a frame of `length` bytes, of which the first `captured` are at `frame`. What is cut off or malformed is
 * left out; the detail says where the headers end too soon. */
void dissect_frame(const uint8_t *frame, uint32_t captured, uint32_t length, struct dissection *is);

#endif
