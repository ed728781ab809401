/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.h - shared receive queues (srq.c). */
#ifndef DAPL_SRQ_H
#define DAPL_SRQ_H
#include "dapl/core/dapl.h"

/* Ends an SRQ that was killed before. */
void dapl_srq_destroy(struct dapl_srq *srq);
/* Called before `evd`, or NULL, becomes the EVD of an endpoint's receives: if the endpoint has a watermark,
 * the service thread polls the EVD as completions come. ep->lock is held, or the endpoint is not published
 * yet. */
DAT_RETURN dapl_ep_watch_receives(struct dapl_ep *ep, struct dapl_evd *evd);
/* The device reports that the limit was reached, or that the SRQ failed. */
void dapl_srq_limit(struct dapl_srq *srq);
void dapl_srq_failed(struct dapl_srq *srq);

DAT_RETURN dapl_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *attr,
			   DAT_SRQ_HANDLE *handle);
DAT_RETURN dapl_srq_free(DAT_SRQ_HANDLE handle);
DAT_RETURN dapl_srq_post_recv(DAT_SRQ_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			      DAT_DTO_COOKIE cookie);
DAT_RETURN dapl_srq_query(DAT_SRQ_HANDLE handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param);
DAT_RETURN dapl_srq_resize(DAT_SRQ_HANDLE handle, DAT_COUNT max);
DAT_RETURN dapl_srq_set_lw(DAT_SRQ_HANDLE handle, DAT_COUNT low);
DAT_RETURN dapl_ep_set_watermark(DAT_EP_HANDLE handle, DAT_COUNT soft, DAT_COUNT hard);

#endif
