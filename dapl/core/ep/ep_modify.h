/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_modify.h - dat_ep_modify (ep_modify.c). */
#ifndef DAPL_EP_MODIFY_H
#define DAPL_EP_MODIFY_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param);

#endif
