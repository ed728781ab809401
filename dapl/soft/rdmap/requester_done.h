/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester_done.h - what comes back for the requests of the send queue. Called with qp->lock held. The
 * functions that return int return a Terminate code or WIRE_TERM_NONE. */
#ifndef SOFT_RDMAP_REQUESTER_DONE_H
#define SOFT_RDMAP_REQUESTER_DONE_H
#include <stdint.h>

struct dapl_conn;
struct soft_qp;
struct soft_swqe;

int soft_requester_response_begin(struct soft_qp *qp, struct dapl_conn *conn);
void soft_requester_response_end(struct soft_qp *qp, struct dapl_conn *conn);
int soft_requester_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
int soft_requester_acked(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			 uint64_t consumed);
/* The oldest read or atomic without an answer and its index in the send queue, or NULL. */
struct soft_swqe *soft_requester_oldest_read(struct soft_qp *qp, const struct dapl_conn *conn,
					     uint32_t *index);

#endif
