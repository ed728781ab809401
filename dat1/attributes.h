/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attributes.h - the structures of DAT 1.2 that a query fills and that the header of DAT 1.2 leaves as
 * they are in DAT 2.0; binaries of 1.2 know them with other members. */
#ifndef DAT1_ATTRIBUTES_H
#define DAT1_ATTRIBUTES_H
#include <dat-1.2/dat/udat.h>

struct ia_attr_1_2 {
	char adapter_name[DAT_NAME_MAX_LENGTH];
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	DAT_COUNT max_rdma_read_per_ep_in;
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_VLEN max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_VLEN max_message_size;
	DAT_VLEN max_rdma_size;
	DAT_COUNT max_rmrs;
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs;
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
};

struct provider_attr_1_2 {
	char provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;
	DAT_COMPLETION_FLAGS completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size;
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_PZ_SUPPORT pz_support;
	DAT_UINT32 optimal_buffer_alignment;
	DAT_BOOLEAN evd_stream_merging_supported[6][6];
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
};

struct lmr_param_1_2 {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
};

/* What programs of 1.2 have memory for. */
struct event_1_2 {
	DAT_EVENT_NUMBER event_number;
	DAT_EVD_HANDLE evd_handle;
	union {
		DAT_DTO_COMPLETION_EVENT_DATA dto;
		DAT_UINT64 words[4];
	} event_data;
};

#if defined(__LP64__)
_Static_assert(sizeof(struct ia_attr_1_2) == 688, "DAT_IA_ATTR of 1.2");
_Static_assert(sizeof(struct provider_attr_1_2) == 504, "DAT_PROVIDER_ATTR of 1.2");
_Static_assert(sizeof(struct lmr_param_1_2) == 80, "DAT_LMR_PARAM of 1.2");
_Static_assert(sizeof(struct event_1_2) == 48, "DAT_EVENT of 1.2");
#endif

/* Copy the members that a mask of 2.0 selects. */
void ia_attr_to_1_2(struct ia_attr_1_2 *to, const DAT_IA_ATTR *from, DAT_IA_ATTR_MASK mask);
void provider_attr_to_1_2(struct provider_attr_1_2 *to, const DAT_PROVIDER_ATTR *from,
			  DAT_PROVIDER_ATTR_MASK mask);
void lmr_param_to_1_2(struct lmr_param_1_2 *to, const DAT_LMR_PARAM *from, DAT_LMR_PARAM_MASK mask);
/* `from` as the inline functions of the DAT 1.2 header leave it. */
void event_to_1_2(struct event_1_2 *to, const DAT_EVENT *from);

#endif
