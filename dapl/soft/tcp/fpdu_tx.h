/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fpdu_tx.h - the sending side of a stream. Called with qp->lock held, or with the progress lock when
 * the connection has no QP. */
#ifndef SOFT_TCP_FPDU_TX_H
#define SOFT_TCP_FPDU_TX_H
#include <stdbool.h>
#include <stdint.h>

struct batch;
struct dapl_conn;
struct ibv_send_wr;
struct iovec;
struct soft_qp;
struct wire_segment;

/* Appends one FPDU to a batch that has room for it. */
void fpdu_put(struct batch *b, bool crc_on, const struct wire_segment *seg, const void *body,
	      uint32_t body_length, const struct iovec *payload, int pieces, uint32_t length);
/* Sends what can be sent. */
void soft_tcp_send(struct dapl_conn *conn);
/* The common case of posting: one small request of one segment on an idle stream; sends it. Returns
 * false, with nothing done, for any other request and if the socket takes nothing. The connection has
 * no shared memory. */
bool soft_tcp_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr);

#endif
