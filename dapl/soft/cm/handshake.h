/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handshake.h - the part of the handshake that initiator and acceptor share. Progress lock held. */
#ifndef SOFT_CM_HANDSHAKE_H
#define SOFT_CM_HANDSHAKE_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/wire/wire.h"

struct dapl_conn;
struct shm_segment;

/* The first FPDU of an initiator that has the shared memory: a zero-length write that names an STag
 * of its own. From there on both directions are in the rings. */
enum { SWITCH_STAG = 2, SWITCH_LENGTH = WIRE_FPDU_LENGTH + WIRE_TAGGED + WIRE_CRC };
void handshake_switch_frame(uint8_t frame[SWITCH_LENGTH]);

static inline uint8_t handshake_min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* What this side tells a peer of this implementation. */
struct wire_trailer handshake_trailer(const struct dapl_conn *conn);
/* The trailer of the peer completes a datagram association: TCP has done its work. */
void handshake_associated(struct dapl_conn *conn, const struct wire_trailer *peer);
/* Both streams carry FPDUs from here on. If they cannot, the connection fails. */
void handshake_established(struct dapl_conn *conn);
/* Data goes through the rings of the segment from here on. Takes over the reference. Returns false
 * without memory: it goes over TCP. */
bool handshake_use_rings(struct dapl_conn *conn, struct shm_segment *segment);
/* The acceptor has the shared memory that its initiator has agreed on. Takes over the reference. */
void handshake_rings_agreed(struct dapl_conn *conn, struct shm_segment *segment);

#endif
