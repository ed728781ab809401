/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* initiator.h - the active side of a connection (initiator.c). Its handlers of events are called with
 * conn->lock held, and return without it. */
#ifndef HW_INITIATOR_H
#define HW_INITIATOR_H
#include "conn_types.h"

/* Operation of dapl/core/device.h; no lock is held. An errno: there is no connection. */
int hw_initiator_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
			 struct dapl_conn **conn);

void hw_initiator_address_resolved(struct dapl_conn *conn);
void hw_initiator_address_failed(struct dapl_conn *conn, int status);
void hw_initiator_route_resolved(struct dapl_conn *conn);
void hw_initiator_route_failed(struct dapl_conn *conn, int status);
/* InfiniBand and RoCE: the peer accepted. */
void hw_initiator_response(struct dapl_conn *conn, const struct hw_pdata *pdata);
void hw_initiator_ud_established(struct dapl_conn *conn, const struct rdma_cm_event *event,
				 const struct hw_pdata *pdata);
void hw_initiator_iwarp_established(struct dapl_conn *conn, const struct rdma_cm_event *event,
				    const struct hw_pdata *pdata);

#endif
