/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - connecting (connect.c). */
#ifndef DAPL_CONNECT_H
#define DAPL_CONNECT_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_ep_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
			   DAT_TIMEOUT timeout, DAT_COUNT len, const DAT_PVOID data, DAT_QOS qos,
			   DAT_CONNECT_FLAGS flags);
DAT_RETURN dapl_ep_common_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address,
				  DAT_TIMEOUT timeout, DAT_COUNT len, const DAT_PVOID data);
DAT_RETURN dapl_ep_dup_connect(DAT_EP_HANDLE handle, DAT_EP_HANDLE dup_handle, DAT_TIMEOUT timeout,
			       DAT_COUNT len, const DAT_PVOID data, DAT_QOS qos);

/* Fills the parameters that connect and accept share. Called with ep->lock held. */
void dapl_conn_params(struct dapl_ep *ep, struct dapl_conn_params *params, const void *pdata,
		      int len);
/* Checks the connect EVD and the PZ of an endpoint, and makes its QP, before a connect or an accept. Called
 * with ep->lock held. */
DAT_RETURN dapl_ep_make_ready(struct dapl_ep *ep);

#endif
