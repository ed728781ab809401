/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - connections (conn.c). The caller holds ep->lock. */
#ifndef DAPL_CONN_H
#define DAPL_CONN_H
#include "dapl/core/dapl.h"

/* Delivers a deferred terminal event now, since the completions before it are about to vanish. */
void dapl_ep_deliver_deferred(struct dapl_ep *ep);
/* The parameters that connect and accept share. */
void dapl_conn_params(struct dapl_ep *ep, struct dapl_conn_params *params, const void *pdata,
		      int len);
/* What an endpoint needs before it can be connected or accepted. */
DAT_RETURN dapl_ep_ready(struct dapl_ep *ep);

#endif
