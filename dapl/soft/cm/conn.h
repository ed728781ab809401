/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - connection management: the operations of the device on connections and listeners. */
#ifndef SOFT_CM_CONN_H
#define SOFT_CM_CONN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dapl/core/device.h"
#include "dapl/soft/rdmap/conn.h"

struct dapl_device;
struct dapl_listener;
struct soft_qp;

int soft_cm_open(struct dapl_device *dev);
void soft_cm_close(struct dapl_device *dev);
int soft_cm_listen(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port,
		   bool ud, int backlog, void *sp, struct dapl_listener **listener);
void soft_cm_unlisten(struct dapl_listener *listener);
int soft_cm_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
		    struct dapl_conn **conn);
int soft_cm_accept(struct dapl_conn *conn, const struct dapl_conn_params *params);
int soft_cm_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len);
int soft_cm_disconnect(struct dapl_conn *conn);
void soft_cm_release(struct dapl_conn *conn);
/* Detaches the QP from its connection, if any. Progress lock held. */
void soft_cm_detach(struct soft_qp *qp);
/* The stream of the peer has ended; the socket is closed. Progress lock held. */
void soft_cm_stream_over(struct dapl_conn *conn);
/* Queues an upcall (SOFT_UP_*), which the service thread makes. Any locks may be held. */
void soft_cm_tell(struct dapl_conn *conn, uint32_t what);
/* Records why the connection fails or breaks; the first cause stays. Progress lock or qp->lock
 * held. */
void soft_cm_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code,
		    const char *text);
/* Records the error of the socket as the cause. */
void soft_cm_socket_error(struct dapl_conn *conn);
void soft_cm_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause);

#endif
