/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_free.h - the end of an endpoint (ep_free.c). */
#ifndef DAPL_EP_FREE_H
#define DAPL_EP_FREE_H
#include "dapl/core/dapl.h"

/* Ends an endpoint that was killed before, and its connection. No call is inside it. */
void dapl_ep_destroy(struct dapl_ep *ep);

DAT_RETURN dapl_ep_reset(DAT_EP_HANDLE handle);
DAT_RETURN dapl_ep_free(DAT_EP_HANDLE handle);

#endif
