/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_report.h - the upcalls of a connection (conn_report.c), on the service thread. conn->lock is held
 * on entry and not on return; the state changes before. */
#ifndef HW_CONN_REPORT_H
#define HW_CONN_REPORT_H
#include "conn_types.h"

/* The cause was noted. */
void hw_report_failed(struct dapl_conn *conn, enum dapl_conn_failure why, const void *pdata,
		      size_t len);
/* Tells nothing if the connection has ended meanwhile. */
void hw_report_established(struct dapl_conn *conn, const void *pdata, size_t len,
			   const struct dapl_ud_peer *peer);
void hw_report_disconnected(struct dapl_conn *conn, enum conn_state next, bool orderly);
/* conn->lock held throughout: the id knows its addresses now. */
void hw_learn_addresses(struct dapl_conn *conn);
/* Refuses a request on the provider's behalf. No lock needed. */
void hw_refuse(struct rdma_cm_id *id, enum hw_wire wire);

#endif
