/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unexpected.h - messages that came before their receive: keeps them, and delivers them when receives are
 * posted. Called with qp->lock held. */
#ifndef SOFT_RDMAP_UNEXPECTED_H
#define SOFT_RDMAP_UNEXPECTED_H
#include <stdbool.h>
#include <stdint.h>

struct dapl_conn;
struct soft_qp;
struct soft_unexpected;

/* Appends a message without payload. NULL: no memory. */
struct soft_unexpected *soft_unexpected_new(struct dapl_conn *conn, uint8_t op, uint32_t word);
/* Makes room for `size` bytes of payload. Returns false if there is no memory. */
bool soft_unexpected_reserve(struct soft_unexpected *unexpected, uint32_t size);
/* Limits the memory of all these messages. If they take more than the window, a peer of this
 * implementation gets the Terminate code that is returned; the socket of another peer is not read. Else
 * returns WIRE_TERM_NONE. */
int soft_unexpected_limit(struct dapl_conn *conn);
/* Receives were posted: delivers messages into them. */
void soft_unexpected_deliver(struct soft_qp *qp);
/* Frees all messages. */
void soft_unexpected_drop(struct dapl_conn *conn);

#endif
