/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep.h - endpoints as objects (ep.c). */
#ifndef DAPL_EP_H
#define DAPL_EP_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_ep_make(struct dapl_ia *ia, struct dapl_pz *pz, struct dapl_evd *recv,
			struct dapl_evd *request, struct dapl_evd *connect,
			struct dapl_srq *srq, const DAT_EP_ATTR *attr, int attr_arg,
			struct dapl_ep **ep);
DAT_RETURN dapl_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			  DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr,
			  DAT_EP_HANDLE *handle);
DAT_RETURN dapl_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
				   DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
				   DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR *attr,
				   DAT_EP_HANDLE *handle);
DAT_RETURN dapl_ep_query(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param);
DAT_RETURN dapl_ep_get_status(DAT_EP_HANDLE handle, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			      DAT_BOOLEAN *request_idle);
/* Takes the locks that guard the counters of an endpoint, inside of ep->lock. dapl_ep_unlock_counters() gets what it
 * returned. */
struct dapl_evd *dapl_ep_lock_counters(struct dapl_ep *ep);
void dapl_ep_unlock_counters(struct dapl_ep *ep, struct dapl_evd *evd);
DAT_RETURN dapl_ep_recv_query(DAT_EP_HANDLE handle, DAT_COUNT *allocated, DAT_COUNT *span);

#endif
