/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ready.h - what each way of making a connection does first: connect, accept, datagrams and groups. */
#ifndef DAPL_CONN_READY_H
#define DAPL_CONN_READY_H
#include "dapl/core/dapl.h"

/* Returns the device's class of service for DAT's. */
enum dapl_qos dapl_ep_ready_qos(DAT_QOS qos);
/* Fills the parameters that connect and accept share. Called with ep->lock held. */
void dapl_ep_conn_params(struct dapl_ep *ep, struct dapl_conn_params *params, const void *pdata,
			 int len);
/* Checks the connect EVD and the PZ of an endpoint, and makes its QP, before a connect or an accept. Called
 * with ep->lock held. */
DAT_RETURN dapl_ep_make_ready(struct dapl_ep *ep);

#endif
