/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* failure.h - what an endpoint knows of its last failure: kept for dat_ext_last_error(),
 * traced, and given to diag_limit.h when it is worth a line. ep->lock is held by the caller. */
#ifndef DAPL_FAILURE_H
#define DAPL_FAILURE_H
#include <dat/dat_diag_extensions.h>
#include "dapl/core/dapl.h"

/* What the device knows of `conn` (NULL: nothing), completed by what the endpoint knows. */
void dapl_failure_explain(const struct dapl_ep *ep, struct dapl_conn *conn,
			  struct dapl_conn_cause *cause);
/* Adds what core has found out, unless the device has given a cause. */
void dapl_failure_code(struct dapl_conn_cause *cause, enum dapl_code_kind kind, unsigned code,
		       const char *text);
/* The time limit of the consumer's connect ended in this step. */
void dapl_failure_time_limit(struct dapl_conn_cause *cause);
/* The device could not begin to connect: returns `err` as a DAT code, and reports a lack of descriptors.
 * Too long private data (EMSGSIZE) are a DAT_LENGTH_ERROR. */
DAT_RETURN dapl_failure_of_connect(const struct dapl_ep *ep, const struct sockaddr *to, int err);
/* The peer's address of a request that came in. */
void dapl_failure_remote(struct dapl_conn *conn, struct sockaddr_storage *address);
/* The connection ended, out of state `before`; the consumer is about to get `event`. */
void dapl_failure_report(struct dapl_ep *ep, DAT_EP_STATE before, DAT_EVENT_NUMBER event,
			 const struct dapl_conn_cause *cause);
/* A datagram endpoint did not reach a peer, or was rejected by it. */
void dapl_failure_report_ud(struct dapl_ep *ep, bool active, uint64_t began_ns, bool rejected,
			    const struct dapl_conn_cause *cause);
/* dat_ext_last_error(); takes ep->lock. `size`: of the caller's structure. */
DAT_RETURN dapl_failure_get(struct dapl_ep *ep, DAT_LAST_ERROR *error, DAT_COUNT size);

#endif
