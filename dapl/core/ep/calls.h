/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls.h - the calls of this folder of which each is the only function that its file gives to others. */
#ifndef DAPL_EP_CALLS_H
#define DAPL_EP_CALLS_H
#include "dapl/core/dapl.h"

/* ep_modify.c */
DAT_RETURN dapl_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param);

/* rmr_bind.c */
DAT_RETURN dapl_rmr_bind(DAT_RMR_HANDLE handle, DAT_LMR_HANDLE lmr_handle,
			 const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
			 DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);

/* post_recv.c */
/* Posts a receive with any list of segments and any flags. Arguments and errors are those of
 * dat_ep_post_recv(). Called with no lock held. */
DAT_RETURN dapl_receive_any(struct dapl_ep *ep, int n, const DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

#endif
