/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.h - the target's side of a message. Called with qp->lock held. The functions that return int
 * return a Terminate code or WIRE_TERM_NONE. */
#ifndef SOFT_RDMAP_RESPONDER_H
#define SOFT_RDMAP_RESPONDER_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/obj/mem.h"

struct dapl_conn;
struct soft_message;
struct soft_qp;

/* A segment of a Send begins. The first one takes a receive, or makes an unexpected message. */
int soft_responder_send_begin(struct soft_qp *qp, struct dapl_conn *conn);
/* The last segment of a Send is in place: completes the receive. */
int soft_responder_send_end(struct soft_qp *qp, struct dapl_conn *conn);
/* A segment of a write begins: checks its target. */
int soft_responder_write_begin(struct soft_qp *qp, struct dapl_conn *conn);
/* The last segment of a write is in place. */
void soft_responder_write_end(struct dapl_conn *conn);
/* A read request has come: checks its source, and lists the answer that is due. */
int soft_responder_read(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
/* An atomic request has come: executes it, and lists the answer that is due. */
int soft_responder_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
/* Immediate data has come, behind its write: completes a receive, or makes an unexpected message. */
int soft_responder_immediate(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
/* The Terminate code for a write to memory that this check refused. */
int soft_responder_write_term(enum soft_check check);

/* Executes a small Send or write of one segment. Returns false, with nothing done, for any other message. */
bool soft_responder_quick(struct soft_qp *qp, struct dapl_conn *conn, const struct soft_message *message);

#endif
