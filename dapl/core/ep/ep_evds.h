/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_evds.h - the EVDs of an endpoint (ep_evds.c). */
#ifndef DAPL_EP_EVDS_H
#define DAPL_EP_EVDS_H
#include "dapl/core/dapl.h"

/* Enters the EVDs of three handles: receive, request, connect. A null handle leaves NULL. An error names
 * the first handle that is no EVD of this IA with the stream. The caller leaves entered EVDs, after an
 * error, too (DAPL_ENTERED_EVDS). */
DAT_RETURN dapl_ep_enter_evds(struct dapl_ia *ia, DAT_EVD_HANDLE recv_handle,
			      DAT_EVD_HANDLE request_handle, DAT_EVD_HANDLE connect_handle,
			      struct dapl_evd *evds[3]);	/* all NULL before the call */
void dapl_ep_leave_evds(struct dapl_evd *(*evds)[3]);
#define DAPL_ENTERED_EVDS __attribute__((cleanup(dapl_ep_leave_evds)))

/* The completions of the endpoint begin to feed these EVDs, with the flags of `attr`. NULL stands for no
 * EVD. After an error nothing is fed. */
DAT_RETURN dapl_ep_feed_evds(const struct dapl_ep *ep, struct dapl_evd *recv,
			     struct dapl_evd *request, const DAT_EP_ATTR *attr);
/* The completions stop feeding these EVDs. `attr` has the same flags as in dapl_ep_feed_evds. */
void dapl_ep_unfeed_evds(struct dapl_evd *recv, struct dapl_evd *request, const DAT_EP_ATTR *attr);

/* The connection events of an endpoint go to this EVD from now on; NULL is ignored. The EVD's memory stays
 * until dapl_ep_drop_connect_evd, even if its IA is closed before the endpoint's IA. */
DAT_RETURN dapl_ep_pin_connect_evd(struct dapl_evd *connect);
void dapl_ep_drop_connect_evd(struct dapl_evd *connect);

#endif
