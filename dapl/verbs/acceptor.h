/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* acceptor.h - the passive side of a connection (acceptor.c). */
#ifndef HW_ACCEPTOR_H
#define HW_ACCEPTOR_H
#include "conn_types.h"

/* Makes a connection for the id of a request. After a failure the id still belongs to the caller. */
int hw_acceptor_from_request(struct dapl_device *dev, struct rdma_cm_id *id, bool ud,
			     const struct hw_pdata *pdata, const struct rdma_cm_event *event,
			     struct dapl_conn **conn);
/* Operations of dapl/core/device.h. They take conn->lock. EMSGSIZE: too much private data.
 * hw_acceptor_reject() releases the connection unless it fails. */
int hw_acceptor_accept(struct dapl_conn *conn, const struct dapl_conn_params *params);
int hw_acceptor_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len);

#endif
