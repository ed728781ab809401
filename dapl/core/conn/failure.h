/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* failure.h - the last failure of an endpoint: keeps it for dat_ext_last_error(), traces it, and gives it
 * to diag_limit.h if it deserves a line. Called with ep->lock held. */
#ifndef DAPL_FAILURE_H
#define DAPL_FAILURE_H
#include <dat/dat_diag_extensions.h>
#include "dapl/core/dapl.h"

/* Gets the cause of `conn` from the device (NULL: there is no connection), and adds the addresses of the
 * endpoint. */
void dapl_failure_explain(const struct dapl_ep *ep, struct dapl_conn *conn,
			  struct dapl_conn_cause *cause);
/* Sets the cause that core has found, unless the device has given a cause. */
void dapl_failure_code(struct dapl_conn_cause *cause, enum dapl_code_kind kind, unsigned code,
		       const char *text);
/* Sets the end of the consumer's time limit as the cause, unless the device has given a cause. */
void dapl_failure_time_limit(struct dapl_conn_cause *cause);
/* The device could not begin to connect: returns `err` as a DAT code, and reports a lack of descriptors.
 * Too long private data (EMSGSIZE) are a DAT_LENGTH_ERROR. */
DAT_RETURN dapl_failure_of_connect(const struct dapl_ep *ep, const struct sockaddr *to, int err);
/* Gets the peer's address of an incoming request. */
void dapl_failure_remote(struct dapl_conn *conn, struct sockaddr_storage *address);
/* Reports that the connection ended in state `before`, before the consumer gets `event`. */
void dapl_failure_report(struct dapl_ep *ep, DAT_EP_STATE before, DAT_EVENT_NUMBER event,
			 const struct dapl_conn_cause *cause);
/* Reports that a datagram endpoint did not reach a peer, or that the peer rejected it. */
void dapl_failure_report_ud(struct dapl_ep *ep, bool active, uint64_t began_ns, bool rejected,
			    const struct dapl_conn_cause *cause);
/* dat_ext_last_error(). `size` is that of the caller's structure. Takes ep->lock. */
DAT_RETURN dapl_failure_get(struct dapl_ep *ep, DAT_LAST_ERROR *error, DAT_COUNT size);

#endif
