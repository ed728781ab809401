/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udat.h - the uDAPL 2.0 programming interface. Include this one.
 * With -DDAT_API=12 it gives the DAT 1.2 interface instead (../dat-1.2/dat/udat.h). */
#if defined(DAT_API) && DAT_API + 0 == 12
#undef DAT_API
#define _DAT_1_2_BY_MACRO_
#include "../dat-1.2/dat/udat.h"
#elif defined(_DAT_1_2_COMPLETE_) && !defined(_DAT_1_2_BY_MACRO_)
#error "DAT 2.0 after DAT 1.2 in one translation unit: include either <dat/udat.h> of dat-1.2 or <dat2/udat.h>"
#endif

#ifndef _UDAT_H_
#define _UDAT_H_

#include "udat_config.h"
#include "dat_platform_specific.h"
#include "dat.h"
#include "udat_vendor_specific.h"

#ifdef __cplusplus
extern "C" {	/* ABI-19 */
#endif

/* --- memory ------------------------------------------------------------------ */

/* A name for shared memory, agreed on by the processes that register it. */
#define DAT_LMR_COOKIE_SIZE 40	/* bytes */
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

typedef struct dat_shared_memory {
	DAT_PVOID virtual_address;
	DAT_LMR_COOKIE shared_memory_id;
} DAT_SHARED_MEMORY;

/* By DAT_MEM_TYPE: _VIRTUAL, _LMR, _SHARED_VIRTUAL. */
typedef union dat_region_description {
	DAT_PVOID for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

/* ABI-4 */
struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_VA_TYPE va_type;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;	/* what the adapter can reach, >= length */
	DAT_VADDR registered_address;
};

extern DAT_RETURN DAT_API dat_lmr_create(IN DAT_IA_HANDLE ia_handle,
	IN DAT_MEM_TYPE mem_type, IN DAT_REGION_DESCRIPTION region_description,
	IN DAT_VLEN length, IN DAT_PZ_HANDLE pz_handle, IN DAT_MEM_PRIV_FLAGS mem_priv,
	IN DAT_VA_TYPE va_type, OUT DAT_LMR_HANDLE *lmr_handle,
	OUT DAT_LMR_CONTEXT *lmr_context, OUT DAT_RMR_CONTEXT *rmr_context,
	OUT DAT_VLEN *registered_size, OUT DAT_VADDR *registered_address);
extern DAT_RETURN DAT_API dat_lmr_query(IN DAT_LMR_HANDLE lmr_handle,
	IN DAT_LMR_PARAM_MASK lmr_param_mask, OUT DAT_LMR_PARAM *lmr_param);

/* --- event dispatchers ------------------------------------------------------- */

struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen;
	DAT_EVD_STATE evd_state;
	DAT_CNO_HANDLE cno_handle;
	DAT_EVD_FLAGS evd_flags;
};

/* In dat_ia_open(): no asynchronous EVD for this instance, another one has it. */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)0x1)
/* From dat_ia_query(): this instance has none. */
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)0x2)

extern DAT_RETURN DAT_API dat_evd_create(IN DAT_IA_HANDLE ia_handle,
	IN DAT_COUNT evd_min_qlen, IN DAT_CNO_HANDLE cno_handle,
	IN DAT_EVD_FLAGS evd_flags, OUT DAT_EVD_HANDLE *evd_handle);
extern DAT_RETURN DAT_API dat_evd_modify_cno(IN DAT_EVD_HANDLE evd_handle,
	IN DAT_CNO_HANDLE cno_handle);
extern DAT_RETURN DAT_API dat_evd_enable(IN DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN DAT_API dat_evd_disable(IN DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN DAT_API dat_evd_set_unwaitable(IN DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN DAT_API dat_evd_clear_unwaitable(IN DAT_EVD_HANDLE evd_handle);
/* With threshold n: returns when n events are there, hands out one of them. */
extern DAT_RETURN DAT_API dat_evd_wait(IN DAT_EVD_HANDLE evd_handle,
	IN DAT_TIMEOUT timeout, IN DAT_COUNT threshold, OUT DAT_EVENT *event,
	OUT DAT_COUNT *n_more_events);

/* --- notification objects ---------------------------------------------------- */

/* Called by the provider for each notification; the EVD is NULL when the CNO is freed. */
typedef void (DAT_API *DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

typedef struct dat_os_wait_proxy_agent {
	DAT_PVOID instance_data;
	DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

#if defined(__cplusplus) && __cplusplus >= 201103L
#define DAT_OS_WAIT_PROXY_AGENT_NULL (DAT_OS_WAIT_PROXY_AGENT{NULL, NULL})
#else
#define DAT_OS_WAIT_PROXY_AGENT_NULL \
	(DAT_OS_WAIT_PROXY_AGENT) { (DAT_PVOID)NULL, (DAT_AGENT_FUNC)NULL }
#endif

typedef enum dat_proxy_type {
	DAT_PROXY_TYPE_NONE  = 0x0,
	DAT_PROXY_TYPE_AGENT = 0x1,
	DAT_PROXY_TYPE_FD    = 0x2
} DAT_PROXY_TYPE;

/* ABI-4 */
typedef struct dat_cno_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PROXY_TYPE proxy_type;
	union {
		DAT_OS_WAIT_PROXY_AGENT agent;
		DAT_FD fd;
		DAT_PVOID none;
	} proxy;
} DAT_CNO_PARAM;

/* Not bits, and ALL is not their union: the ABI has it so. */
typedef enum dat_cno_param_mask {
	DAT_CNO_FIELD_IA_HANDLE  = 0x1,
	DAT_CNO_FIELD_PROXY_TYPE = 0x2,
	DAT_CNO_FIELD_PROXY      = 0x3,
	DAT_CNO_FIELD_ALL        = 0x4
} DAT_CNO_PARAM_MASK;

extern DAT_RETURN DAT_API dat_cno_create(IN DAT_IA_HANDLE ia_handle,
	IN DAT_OS_WAIT_PROXY_AGENT agent, OUT DAT_CNO_HANDLE *cno_handle);
extern DAT_RETURN DAT_API dat_cno_modify_agent(IN DAT_CNO_HANDLE cno_handle,
	IN DAT_OS_WAIT_PROXY_AGENT agent);
extern DAT_RETURN DAT_API dat_cno_query(IN DAT_CNO_HANDLE cno_handle,
	IN DAT_CNO_PARAM_MASK cno_param_mask, OUT DAT_CNO_PARAM *cno_param);
extern DAT_RETURN DAT_API dat_cno_wait(IN DAT_CNO_HANDLE cno_handle,
	IN DAT_TIMEOUT timeout, OUT DAT_EVD_HANDLE *evd_handle);
extern DAT_RETURN DAT_API dat_cno_free(IN DAT_CNO_HANDLE cno_handle);
/* The descriptor polls readable when dat_cno_trigger() has an EVD to name. */
extern DAT_RETURN DAT_API dat_cno_fd_create(IN DAT_IA_HANDLE ia_handle,
	OUT DAT_FD *file_descriptor, OUT DAT_CNO_HANDLE *cno_handle);
extern DAT_RETURN DAT_API dat_cno_trigger(IN DAT_CNO_HANDLE cno_handle,
	OUT DAT_EVD_HANDLE *evd_handle);

/* --- attributes of an interface adapter -------------------------------------- */

/* Filled by dat_ia_query(). Addresses and named attributes belong to the IA. ABI-4. */
struct dat_ia_attr {
	char adapter_name[DAT_NAME_MAX_LENGTH];
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;	/* what a peer connects to */
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;		/* outstanding, each direction */
	DAT_COUNT max_rdma_read_per_ep_in;	/* credits, as target */
	DAT_COUNT max_rdma_read_per_ep_out;	/* credits, as initiator */
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_SEG_LENGTH max_lmr_block_size;	/* bytes */
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_SEG_LENGTH max_message_size;	/* bytes */
	DAT_SEG_LENGTH max_rdma_size;		/* bytes */
	DAT_COUNT max_rmrs;			/* 0: no RMRs */
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs;			/* 0: no SRQs */
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;		/* of all endpoints together */
	DAT_COUNT max_rdma_read_out;
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_BOOLEAN zb_supported;		/* zero-based addresses */
	DAT_EXTENSION extension_supported;
	DAT_COUNT extension_version;		/* DAT_IB_EXTENSION_VERSION */
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
};

/* Above the 32 bits of dat.h. EXTENSION and EXTENSIONS_SUPPORTED are one bit. */
#define DAT_IA_FIELD_IA_EXTENSION          UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_EXTENSION_VERSION  UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR UINT64_C(0x400000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR     UINT64_C(0x800000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR    UINT64_C(0x1000000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR        UINT64_C(0x2000000000)
#define DAT_IA_FIELD_ALL                   UINT64_C(0x3fffffffff)

/* --- attributes of a provider ------------------------------------------------ */

typedef enum dat_pz_support {
	DAT_PZ_UNIQUE,
	DAT_PZ_SHAREABLE
} DAT_PZ_SUPPORT;

/* ABI-4 */
struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;	/* a set, or-ed */
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;
	DAT_COMPLETION_FLAGS completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size;	/* bytes */
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_PZ_SUPPORT pz_support;
	DAT_UINT32 optimal_buffer_alignment;	/* bytes */
	/* May one EVD take both streams? Rows and columns in the order software, CR, DTO,
	 * connection, RMR bind, asynchronous. */
#ifdef __cplusplus	/* a const member would leave C++ without a default constructor */
	DAT_BOOLEAN evd_stream_merging_supported[6][6];
#else
	const DAT_BOOLEAN evd_stream_merging_supported[6][6];
#endif
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_BOOLEAN rdma_read_lmr_rmr_context_exposure;
	DAT_RMR_SCOPE rmr_scope_supported;
	DAT_BOOLEAN is_signal_safe;
	DAT_BOOLEAN ha_supported;
	DAT_HA_LB ha_loadbalancing;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
};

#define DAT_PROVIDER_FIELD_PROVIDER_NAME                      UINT64_C(0x1)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR             UINT64_C(0x2)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR             UINT64_C(0x4)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR                 UINT64_C(0x8)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR                 UINT64_C(0x10)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED             UINT64_C(0x20)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP                      UINT64_C(0x40)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED                  UINT64_C(0x80)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED         UINT64_C(0x100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE                     UINT64_C(0x200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE              UINT64_C(0x400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH                 UINT64_C(0x800)
#define DAT_PROVIDER_FIELD_EP_CREATOR                         UINT64_C(0x1000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT                         UINT64_C(0x2000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT           UINT64_C(0x4000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED       UINT64_C(0x8000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED                      UINT64_C(0x10000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED           UINT64_C(0x20000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED     UINT64_C(0x40000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED                 UINT64_C(0x80000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED             UINT64_C(0x100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ                       UINT64_C(0x200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED        UINT64_C(0x400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ       UINT64_C(0x800000)
#define DAT_PROVIDER_FIELD_RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE UINT64_C(0x1000000)
#define DAT_PROVIDER_FIELD_RMR_SCOPE_SUPPORTED                UINT64_C(0x2000000)
#define DAT_PROVIDER_FIELD_IS_SIGNAL_SAFE                     UINT64_C(0x4000000)
#define DAT_PROVIDER_FIELD_HA_SUPPORTED                       UINT64_C(0x8000000)
#define DAT_PROVIDER_FIELD_HA_LB                              UINT64_C(0x10000000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR         UINT64_C(0x20000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR             UINT64_C(0x40000000)
#define DAT_PROVIDER_FIELD_ALL                                UINT64_C(0x7fffffff)
#define DAT_PROVIDER_FIELD_NONE                               UINT64_C(0x0)

#ifdef __cplusplus
}
#endif

#endif
