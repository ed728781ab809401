/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cr.h - connection requests (cr.c). */
#ifndef DAPL_CR_H
#define DAPL_CR_H
#include "dapl/core/dapl.h"

struct dapl_cr {
	struct dapl_object obj;
	struct dapl_conn *conn;
	struct dapl_ep *ep;		/* endpoint of the RSP or of the provider, with a reference; else
					 * NULL */
	bool from_rsp;
	bool busy;			/* atomic: a call is accepting, rejecting or handing off the
					 * request */
	bool ud;
	struct sockaddr_storage local, remote;
	int pdata_len;
	char *pdata;			/* NULL: there is none */
};
DAPL_ENTER(cr, dapl_cr, DAPL_CR)

/* Returns a new CR that is not published yet, or NULL without memory. */
struct dapl_cr *dapl_cr_new(struct dapl_ia *ia, struct dapl_conn *conn,
			    const struct dapl_request *request);
/* Ends a CR that was not delivered. */
void dapl_cr_discard(struct dapl_cr *cr);
/* Refuses a request that no call can answer any more, because its event is discarded. */
void dapl_cr_refuse(DAT_CR_HANDLE handle);

void dapl_cr_destroy(struct dapl_cr *cr);
DAT_RETURN dapl_cr_query(DAT_CR_HANDLE handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param);
DAT_RETURN dapl_cr_accept(DAT_CR_HANDLE handle, DAT_EP_HANDLE ep_handle, DAT_COUNT len,
			  const DAT_PVOID data);
DAT_RETURN dapl_cr_reject(DAT_CR_HANDLE handle, DAT_COUNT len, const DAT_PVOID data);
DAT_RETURN dapl_cr_handoff(DAT_CR_HANDLE handle, DAT_CONN_QUAL qual);

#endif
