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

#endif
