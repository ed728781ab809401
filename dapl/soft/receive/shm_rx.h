/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_rx.h - the receiving side of a connection whose data goes through rings. */
#ifndef SOFT_RECEIVE_SHM_RX_H
#define SOFT_RECEIVE_SHM_RX_H
#include <stdbool.h>

struct dapl_conn;

/* Executes the messages in the ring, up to a budget, and evaluates acknowledgements. `later`: an
 * acknowledgement that came in a message may stay in shm->ack_waits, so that received messages
 * complete first; the caller then sets shm->ack_owed. The caller holds the locks that
 * soft_tcp_receive() needs. Returns false if nothing of it allows this side to send more. */
bool shm_rx_receive(struct dapl_conn *conn, bool later);

#endif
