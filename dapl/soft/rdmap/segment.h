/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* segment.h - an incoming segment: header, payload (responder_place.h), end. Called with qp->lock held. The
 * functions return a Terminate code and name the check that failed, or return WIRE_TERM_NONE. */
#ifndef SOFT_RDMAP_SEGMENT_H
#define SOFT_RDMAP_SEGMENT_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/requester_done.h"
#include "dapl/soft/wire/wire.h"

struct soft_message;

static inline uint32_t segment_head_length(bool tagged)
{
	return WIRE_FPDU_LENGTH + (tagged ? WIRE_TAGGED : WIRE_UNTAGGED);
}

/* The first WIRE_CONTROL_END bytes of an FPDU are in rx->part. Sets rx->part_need. */
int soft_segment_control(const struct dapl_conn *conn, struct soft_rx *rx, const char **check);
/* The whole header of an FPDU is in rx->part. Decides where the payload goes. */
int soft_segment_begin(struct soft_qp *qp, struct dapl_conn *conn, const char **check);
/* A message of a ring begins: the counterpart of the two functions above. */
int soft_segment_arrived(struct soft_qp *qp, struct dapl_conn *conn,
			 const struct soft_message *message, const char **check);
/* The segment is complete. */
int soft_segment_end(struct soft_qp *qp, struct dapl_conn *conn, const char **check);

/* The body of an acknowledgement is complete. */
static inline int soft_segment_ack(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body)
{
	conn->stream.rx.msn_dapl++;
	conn->stream.peer_ready = wire_get32(body + 4);
	return soft_requester_acked(qp, conn, wire_get32(body), wire_get64(body + 8));
}

#endif
