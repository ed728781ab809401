/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.h - the target's side of a message. Called with qp->lock held. The functions that return int
 * return a Terminate code or WIRE_TERM_NONE. */
#ifndef SOFT_RDMAP_RESPONDER_H
#define SOFT_RDMAP_RESPONDER_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/obj/mem.h"

struct dapl_conn;
struct iovec;
struct ring_message;
struct soft_qp;
struct soft_region;

int soft_responder_send_begin(struct soft_qp *qp, struct dapl_conn *conn);
int soft_responder_send_end(struct soft_qp *qp, struct dapl_conn *conn);
int soft_responder_write_begin(struct soft_qp *qp, struct dapl_conn *conn);
void soft_responder_write_end(struct dapl_conn *conn);
int soft_responder_read(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
int soft_responder_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
int soft_responder_immediate(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
/* The Terminate code for a write to memory that this check refused. */
int soft_responder_write_term(enum soft_check check);
/* responder_quick.c. The common case: executes a small Send or write of one segment. Returns false, with nothing done, for
 * any other message. */
bool soft_responder_quick(struct soft_qp *qp, struct dapl_conn *conn,
		       const struct ring_message *message);
/* responder_place.c. Fills iov with the places of the next bytes of the segment's payload, `length` bytes at most. Returns the
 * number of iovecs, and in *held the window to pass to soft_mem_done(); or -1 and *term. */
int soft_responder_place(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		      struct iovec *iov, int max, struct soft_region **held, int *term);
void soft_responder_placed(struct dapl_conn *conn, uint32_t length);

#endif
