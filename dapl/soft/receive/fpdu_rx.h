/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fpdu_rx.h - the receiving side of a stream. */
#ifndef SOFT_RECEIVE_FPDU_RX_H
#define SOFT_RECEIVE_FPDU_RX_H
#include <stdbool.h>

struct dapl_conn;

/* Receives what is there, up to a budget. Called with the progress lock and qp->lock held. Sets *came if
 * it may have changed something. Returns false if the stream has ended (soft_stream_ended was called). */
bool soft_tcp_receive(struct dapl_conn *conn, bool *came);

#endif
