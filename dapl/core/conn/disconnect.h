/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* disconnect.h - dat_ep_disconnect (disconnect.c). */
#ifndef DAPL_DISCONNECT_H
#define DAPL_DISCONNECT_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags);
/* Returns true if the device has completed all requests of an endpoint in DISCONNECT_PENDING. Polls the CQ,
 * so it works if no thread is dequeuing. Called with ep->lock held. */
bool dapl_ep_is_drained(struct dapl_ep *ep);

#endif
