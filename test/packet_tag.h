/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_tag.h - the VLAN tag of a frame that a packet socket received: the kernel strips it, and tells it beside
 * the frame to a socket with PACKET_AUXDATA. */
#ifndef TEST_PACKET_TAG_H
#define TEST_PACKET_TAG_H
#include <linux/if_packet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* Puts the tag where it was on the wire. `frame` has room for 4 bytes more. Returns the new length. */
static inline size_t packet_insert_tag(uint8_t *frame, size_t length, struct msghdr *message)
{
	struct tpacket_auxdata aux;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof aux);
		if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
			continue;
		memmove(frame + 16, frame + 12, length - 12);
		frame[12] = (uint8_t)(aux.tp_vlan_tpid >> 8);
		frame[13] = (uint8_t)aux.tp_vlan_tpid;
		frame[14] = (uint8_t)(aux.tp_vlan_tci >> 8);
		frame[15] = (uint8_t)aux.tp_vlan_tci;
		return length + 4;
	}
	return length;
}

#endif
