/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_report.h - the upcalls of a connection (conn_report.c). The functions run on the service thread.
 * They are called with conn->lock held, change the state, release the lock, and then make the upcall. */
#ifndef HW_CONN_REPORT_H
#define HW_CONN_REPORT_H
#include "conn_types.h"

/* The cause was recorded before. */
void hw_report_failed(struct dapl_conn *conn, enum dapl_conn_failure why, const void *pdata,
		      size_t len);
/* Makes no upcall if the connection has ended meanwhile. */
void hw_report_established(struct dapl_conn *conn, const void *pdata, size_t len,
			   const struct dapl_ud_peer *peer);
void hw_report_disconnected(struct dapl_conn *conn, enum conn_state next, bool orderly);
/* Copies the addresses that the id has by now. conn->lock stays held. */
void hw_report_addresses(struct dapl_conn *conn);
/* Refuses a request on the provider's behalf. No lock needed. */
void hw_report_refusal(struct rdma_cm_id *id, enum hw_wire wire);

#endif
