/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udat.h - the DAT 1.2 interface over libdat2, for programs written for DAT 1.2. Include this one.
 *
 * What DAT 1.2 and DAT 2.0 declare differently is renamed while the headers of DAT 2.0 are read: it
 * gets the prefix dat_v2_ or DAT_V2_. dat_1_2_types.h and dat_1_2_calls.h then define the 1.2 form
 * under the plain name. All other names, and the numbers behind all names, are those of DAT 2.0. */
#ifndef _DAT_1_2_UDAT_H_
#define _DAT_1_2_UDAT_H_

#ifdef _DAT_H_
#error "DAT 1.2 after DAT 2.0 in one translation unit: include either <dat/udat.h> of dat-1.2 or <dat2/udat.h>"
#else

/* types */
#define dat_lmr_triplet dat_v2_lmr_triplet
#define DAT_LMR_TRIPLET DAT_V2_LMR_TRIPLET
#define dat_rmr_triplet dat_v2_rmr_triplet
#define DAT_RMR_TRIPLET DAT_V2_RMR_TRIPLET
#define dat_rmr_param dat_v2_rmr_param
#define DAT_RMR_PARAM DAT_V2_RMR_PARAM
#define dat_cno_param dat_v2_cno_param
#define DAT_CNO_PARAM DAT_V2_CNO_PARAM
#define dat_cno_param_mask dat_v2_cno_param_mask
#define DAT_CNO_PARAM_MASK DAT_V2_CNO_PARAM_MASK
#define DAT_CNO_FIELD_IA_HANDLE DAT_V2_CNO_FIELD_IA_HANDLE
#define DAT_CNO_FIELD_PROXY_TYPE DAT_V2_CNO_FIELD_PROXY_TYPE
#define DAT_CNO_FIELD_PROXY DAT_V2_CNO_FIELD_PROXY
#define DAT_CNO_FIELD_ALL DAT_V2_CNO_FIELD_ALL
#define dat_ep_attr dat_v2_ep_attr
#define DAT_EP_ATTR DAT_V2_EP_ATTR
#define dat_ep_param dat_v2_ep_param
#define DAT_EP_PARAM DAT_V2_EP_PARAM
#define dat_dto_completion_event_data dat_v2_dto_completion_event_data
#define DAT_DTO_COMPLETION_EVENT_DATA DAT_V2_DTO_COMPLETION_EVENT_DATA
#define dat_event_data dat_v2_event_data
#define DAT_EVENT_DATA DAT_V2_EVENT_DATA
#define dat_event dat_v2_event
#define DAT_EVENT DAT_V2_EVENT
/* calls */
#define dat_ia_openv dat_v2_ia_openv
#define dat_lmr_create dat_v2_lmr_create
#define dat_lmr_free dat_v2_lmr_free
#define dat_lmr_sync_rdma_read dat_v2_lmr_sync_rdma_read
#define dat_lmr_sync_rdma_write dat_v2_lmr_sync_rdma_write
#define dat_rmr_bind dat_v2_rmr_bind
#define dat_rmr_query dat_v2_rmr_query
#define dat_cr_reject dat_v2_cr_reject
#define dat_cno_query dat_v2_cno_query
#define dat_evd_wait dat_v2_evd_wait
#define dat_evd_dequeue dat_v2_evd_dequeue
#define dat_evd_post_se dat_v2_evd_post_se
#define dat_ep_create dat_v2_ep_create
#define dat_ep_create_with_srq dat_v2_ep_create_with_srq
#define dat_ep_query dat_v2_ep_query
#define dat_ep_modify dat_v2_ep_modify
#define dat_ep_post_send dat_v2_ep_post_send
#define dat_ep_post_recv dat_v2_ep_post_recv
#define dat_ep_post_rdma_read dat_v2_ep_post_rdma_read
#define dat_ep_post_rdma_write dat_v2_ep_post_rdma_write
#define dat_srq_post_recv dat_v2_srq_post_recv

#include "../../dat2/udat.h"

#undef dat_lmr_triplet
#undef DAT_LMR_TRIPLET
#undef dat_rmr_triplet
#undef DAT_RMR_TRIPLET
#undef dat_rmr_param
#undef DAT_RMR_PARAM
#undef dat_cno_param
#undef DAT_CNO_PARAM
#undef dat_cno_param_mask
#undef DAT_CNO_PARAM_MASK
#undef DAT_CNO_FIELD_IA_HANDLE
#undef DAT_CNO_FIELD_PROXY_TYPE
#undef DAT_CNO_FIELD_PROXY
#undef DAT_CNO_FIELD_ALL
#undef dat_ep_attr
#undef DAT_EP_ATTR
#undef dat_ep_param
#undef DAT_EP_PARAM
#undef dat_dto_completion_event_data
#undef DAT_DTO_COMPLETION_EVENT_DATA
#undef dat_event_data
#undef DAT_EVENT_DATA
#undef dat_event
#undef DAT_EVENT
#undef dat_ia_openv
#undef dat_lmr_create
#undef dat_lmr_free
#undef dat_lmr_sync_rdma_read
#undef dat_lmr_sync_rdma_write
#undef dat_rmr_bind
#undef dat_rmr_query
#undef dat_cr_reject
#undef dat_cno_query
#undef dat_evd_wait
#undef dat_evd_dequeue
#undef dat_evd_post_se
#undef dat_ep_create
#undef dat_ep_create_with_srq
#undef dat_ep_query
#undef dat_ep_modify
#undef dat_ep_post_send
#undef dat_ep_post_recv
#undef dat_ep_post_rdma_read
#undef dat_ep_post_rdma_write
#undef dat_srq_post_recv

/* From here on the headers of DAT 2.0 refuse to be included. */
#define _DAT_1_2_COMPLETE_

/* What dat_ia_open() asks for; dat_ia_openv() asks the registry for 2.0 instead. */
#undef DAT_VERSION_MAJOR
#undef DAT_VERSION_MINOR
#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

#include "dat_1_2_types.h"
#include "dat_1_2_convert.h"
#include "dat_1_2_calls.h"

#endif
#endif
