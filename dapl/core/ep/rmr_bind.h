/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr_bind.h - dat_rmr_bind (rmr_bind.c). */
#ifndef DAPL_RMR_BIND_H
#define DAPL_RMR_BIND_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_rmr_bind(DAT_RMR_HANDLE handle, DAT_LMR_HANDLE lmr_handle,
			 const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
			 DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);

#endif
