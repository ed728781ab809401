/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* disconnect.h - dat_ep_disconnect (disconnect.c). */
#ifndef DAPL_DISCONNECT_H
#define DAPL_DISCONNECT_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags);
/* ep->lock held, DISCONNECT_PENDING: has the device completed all posts? No other thread may be
 * dequeuing. */
bool dapl_conn_is_drained(struct dapl_ep *ep);

#endif
