/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* acceptor.h - the passive side of a handshake. */
#ifndef SOFT_CM_ACCEPTOR_H
#define SOFT_CM_ACCEPTOR_H
#include <stdbool.h>
#include <stddef.h>

struct dapl_conn;
struct dapl_conn_params;

int acceptor_accept(struct dapl_conn *conn, const struct dapl_conn_params *params);
int acceptor_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len);

/* --- events, progress lock held -------------------------------------------------------------- */

/* WAIT_REQUEST: the socket is readable. Drops the progress lock around the upcall for a Request
 * that is complete. */
void acceptor_take_request(struct dapl_conn *conn);
/* WAIT_FIRST: the socket is readable. */
void acceptor_first_readable(struct dapl_conn *conn);
/* OPEN: an initiator of another implementation is silent, and may be waiting for this side, as DAT lets
 * either side send first. Sends, if the TCP of the initiator has acknowledged the Reply: then no frame
 * arrives together with the Reply. Else tries again later. */
void acceptor_speak_first(struct dapl_conn *conn);
/* Rejects in the name of the provider. Peers of other implementations only see the end of the
 * stream, since MPA has no bit for that. */
void acceptor_refuse(struct dapl_conn *conn);

#endif
