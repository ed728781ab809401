/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.h - the calls and upcalls that differ for UD endpoints (doc/spec/extensions.md 4.1). Called with
 * ep->lock held, unless a comment says otherwise. */
#ifndef DAPL_UD_H
#define DAPL_UD_H
#include "dapl/core/dapl.h"

/* Frees all address handles and connections that are left, and leaves all groups. */
void dapl_ud_end(struct dapl_ep *ep);
DAT_RETURN dapl_ud_connect(struct dapl_ep *ep, const struct sockaddr *to, DAT_TIMEOUT timeout,
			   int len, const void *data);
DAT_RETURN dapl_ud_accept(struct dapl_ep *ep, struct dapl_cr *cr, int len, const void *data);
DAT_RETURN dapl_ud_disconnect(struct dapl_ep *ep);
void dapl_ud_established(struct dapl_ep *ep, struct dapl_conn *conn,
			 const struct dapl_established *info);
void dapl_ud_failed(struct dapl_ep *ep, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t len);
/* dat_ib_post_send_ud, dat_ib_ud_cm_free and dat_ib_ud_ah_free. Called with no lock held. */
DAT_RETURN dapl_ud_send(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			const DAT_IB_ADDR_HANDLE *to, DAT_DTO_COOKIE cookie,
			DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ud_cm_free(struct dapl_ep *ep, DAT_CONTEXT cm);
DAT_RETURN dapl_ud_ah_free(struct dapl_ep *ep, DAT_IB_ADDR_HANDLE *ah);

#endif
