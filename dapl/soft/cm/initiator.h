/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* initiator.h - the active side of a handshake. */
#ifndef SOFT_CM_INITIATOR_H
#define SOFT_CM_INITIATOR_H

struct dapl_conn;
struct dapl_conn_params;
struct dapl_device;

int initiator_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
		    struct dapl_conn **conn);

/* --- events, progress lock held -------------------------------------------------------------- */

/* CONNECTING: TCP is up, or has failed. */
void initiator_connecting(struct dapl_conn *conn);
/* WAIT_REPLY: the socket is readable. */
void initiator_reply_readable(struct dapl_conn *conn);
/* ATTACHING: the socket to the peer process is readable. */
void initiator_attach_ready(struct dapl_conn *conn);
/* ATTACHING: the peer process did not answer, or its backlog was full. */
void initiator_attach_expired(struct dapl_conn *conn);

#endif
