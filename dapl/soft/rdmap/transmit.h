/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transmit.h - the sending side of a stream, and the completion of requests. Called with qp->lock held, or with the
 * progress lock when the connection has no QP. */
#ifndef SOFT_RDMAP_TRANSMIT_H
#define SOFT_RDMAP_TRANSMIT_H
#include <stdbool.h>
#include <stdint.h>

struct dapl_conn;
struct ibv_send_wr;
struct soft_qp;

/* Sends what can be sent, over TCP or through the ring of the connection. */
void soft_conn_send(struct dapl_conn *conn);
/* The common case of posting: one small request of one segment on an idle stream; sends it. Returns
 * false, with nothing done, for any other request and if the socket takes nothing. The connection has
 * no shared memory. */
bool soft_tcp_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr);
/* Returns true if messages, bytes of the window, or many slots of the ring are not acknowledged yet. */
bool soft_owes_ack(const struct dapl_conn *conn);
/* Sends the acknowledgement that the connection owes, if any. */
void soft_send_ack(struct dapl_conn *conn);
/* Completes, in order, the finished requests at the head of the send queue. */
void soft_requester_complete(struct soft_qp *qp);
/* Executes the request at the connection's cursor, which needs no segment. */
void soft_requester_execute_local(struct dapl_conn *conn);

#endif
