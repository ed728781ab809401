/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_event.h - events of the connection manager (conn_event.c). */
#ifndef HW_CONN_EVENT_H
#define HW_CONN_EVENT_H
#include "conn_types.h"

/* Service thread, no lock held. `pdata` holds the event's private data. */
void hw_conn_event(struct dapl_conn *conn, const struct rdma_cm_event *event,
		   const uint8_t *pdata, size_t len);

#endif
