/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_cause.h - records why a connection fails or breaks (conn_cause.c). The functions are called with
 * conn->lock held, before the state changes. The first cause stays: later ones are ignored. */
#ifndef HW_CONN_CAUSE_H
#define HW_CONN_CAUSE_H
#include "conn_types.h"

/* The cause belongs to the step that the connection is in. */
void hw_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code,
	       const char *text);
void hw_caused_by_errno(struct dapl_conn *conn, int err);
/* The cause is that of an event of the CM: a reason of the CM's protocol, an errno, or none. */
void hw_caused_by_event(struct dapl_conn *conn, const struct rdma_cm_event *event);
/* The cause belongs to this step. */
void hw_caused_in(struct dapl_conn *conn, enum dapl_conn_step step, int err,
		  enum dapl_code_kind kind, unsigned code, const char *text);

#endif
