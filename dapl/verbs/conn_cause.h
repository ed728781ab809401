/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_cause.h - why a connection fails or breaks (conn_cause.c). Called with conn->lock held, before
 * the state changes. What follows from the first cause does not replace it. */
#ifndef HW_CONN_CAUSE_H
#define HW_CONN_CAUSE_H
#include "conn_types.h"

/* In the step that the connection is in. */
void hw_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code,
	       const char *text);
void hw_caused_by_errno(struct dapl_conn *conn, int err);
/* What an event of the CM says: a reason of the CM's protocol, an errno, or nothing. */
void hw_caused_by_event(struct dapl_conn *conn, const struct rdma_cm_event *event);
/* In another step. */
void hw_caused_in(struct dapl_conn *conn, enum dapl_conn_step step, int err,
		  enum dapl_code_kind kind, unsigned code, const char *text);

#endif
