/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - what conn.c offers to the other object files beyond dapl.h. ep->lock is held
 * by the caller. */
#ifndef DAPL_CONN_H
#define DAPL_CONN_H
#include "dapl/core/dapl.h"

/* A terminal event that still waits is told now: its completions are about to vanish. */
void dapl_ep_settle(struct dapl_ep *ep);
/* The parameters that connect and accept share. */
void dapl_conn_params(struct dapl_ep *ep, struct dapl_conn_params *params, const void *pdata,
		      int len);
/* What an endpoint needs before it can be connected or accepted. */
DAT_RETURN dapl_ep_ready(struct dapl_ep *ep);
DAT_PORT_QUAL dapl_port_of(const struct sockaddr_storage *address);
void dapl_ep_default_attr(const struct dapl_ia *ia, DAT_EP_ATTR *attr);

#endif
