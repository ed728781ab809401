/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ready.c - see ready.h. */
#include "dapl/core/conn/ready.h"
#include "dapl/core/ep/ep_qp.h"

enum dapl_qos dapl_ep_ready_qos(DAT_QOS qos)
{
	if (qos & DAT_QOS_PREMIUM)
		return DAPL_QOS_PREMIUM;
	if (qos & DAT_QOS_LOW_LATENCY)
		return DAPL_QOS_LATENCY;
	if (qos & DAT_QOS_HIGH_THROUGHPUT)
		return DAPL_QOS_THROUGHPUT;
	if (qos & DAT_QOS_ECONOMY)
		return DAPL_QOS_ECONOMY;
	return DAPL_QOS_DEFAULT;
}

void dapl_ep_conn_params(struct dapl_ep *ep, struct dapl_conn_params *params, const void *pdata,
			 int len)
{
	assert_held(&ep->lock);
	*params = (struct dapl_conn_params){
		.qp = ep->qp, .owner = ep, .pdata = pdata, .pdata_len = len,
		.reads_out = ep->attr.max_rdma_read_out, .reads_in = ep->attr.max_rdma_read_in,
		.srq = ep->srq != NULL, .ud = ep->is_ud, .delayed_ack = ep->delayed_ack,
		.qos = dapl_ep_ready_qos(ep->attr.qos), .tuning = ep->tuning,
	};
}

/* CONN-9, 10 */
DAT_RETURN dapl_ep_make_ready(struct dapl_ep *ep)
{
	assert_held(&ep->lock);
	if (!ep->connect_evd)
		return BAD_HANDLE(EVD_CONN);
	if (!ep->pz)
		return BAD_STATE(EP_NOTREADY);
	return dapl_ep_need_qp(ep);
}
