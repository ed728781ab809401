/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service_point.h - service points (service_point.c). */
#ifndef DAPL_SERVICE_POINT_H
#define DAPL_SERVICE_POINT_H
#include "dapl/core/conn/cr.h"
#include "dapl/core/dapl.h"

enum dapl_sp_listens { SP_RC = 1, SP_UD = 2 };	/* bits */

struct dapl_sp {	/* PSP, RSP and CSP */
	struct dapl_object obj;
	struct dapl_listener *listener, *ud_listener;
	unsigned listens;		/* atomic: bits of dapl_sp_listens. Set after qual and address */
	DAT_CONN_QUAL qual;		/* atomic. 0 until the device has chosen a port */
	struct dapl_evd *evd;
	DAT_PSP_FLAGS flags;
	struct dapl_ep *ep;		/* RSP: the reserved endpoint, or NULL */
	bool used;			/* atomic. RSP: its only request has arrived */
	unsigned life;			/* atomic. Bits of enum sp_life */
	DAT_COMM comm;			/* CSP */
	struct sockaddr_storage address;
	struct dapl_task task;
};

/* Stops listening, and gives up EVD and endpoint. A second call does nothing. */
void dapl_sp_close(struct dapl_sp *sp);
void dapl_sp_destroy(struct dapl_sp *sp);
DAT_RETURN dapl_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd,
			   DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle);
DAT_RETURN dapl_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd,
			       DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle);
DAT_RETURN dapl_psp_query(DAT_PSP_HANDLE handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param);
DAT_RETURN dapl_psp_free(DAT_PSP_HANDLE handle);
DAT_RETURN dapl_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle,
			   DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *handle);
DAT_RETURN dapl_rsp_query(DAT_RSP_HANDLE handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param);
DAT_RETURN dapl_rsp_free(DAT_RSP_HANDLE handle);
DAT_RETURN dapl_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *handle);
DAT_RETURN dapl_csp_query(DAT_CSP_HANDLE handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param);
DAT_RETURN dapl_csp_free(DAT_CSP_HANDLE handle);

/* Enters a live service point of this IA with that qualifier, not an RSP that has had its request. Returns NULL if
 * there is none. */
struct dapl_sp *dapl_sp_find(struct dapl_ia *ia, DAT_CONN_QUAL qual);

#endif
