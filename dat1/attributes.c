/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attributes.c - copies attributes, parameters and events member by member. The tables pair a member with
 * the name of its field; what a mask does not select stays as the program left it. */
#include "dat1/attributes.h"
#include "dat1/numbers.h"
#include <string.h>

/* For the tables of members: they use the names `to`, `from` and `mask`. */
#define COPY_IA(member, field) \
	if (mask & DAT_IA_FIELD_IA_##field) \
		to->member = from->member;
#define COPY_PROVIDER(member, field) \
	if (mask & DAT_PROVIDER_FIELD_##field) \
		to->member = from->member;
#define COPY_LMR(member, field) \
	if (mask & DAT_LMR_FIELD_##field) \
		to->member = from->member;

#define IA_MEMBERS(X) \
	X(hardware_version_major, HARDWARE_MAJOR_VERSION) \
	X(hardware_version_minor, HARDWARE_MINOR_VERSION) \
	X(firmware_version_major, FIRMWARE_MAJOR_VERSION) \
	X(firmware_version_minor, FIRMWARE_MINOR_VERSION) \
	X(ia_address_ptr, ADDRESS_PTR) \
	X(max_eps, MAX_EPS) \
	X(max_dto_per_ep, MAX_DTO_PER_EP) \
	X(max_rdma_read_per_ep_in, MAX_RDMA_READ_PER_EP_IN) \
	X(max_rdma_read_per_ep_out, MAX_RDMA_READ_PER_EP_OUT) \
	X(max_evds, MAX_EVDS) \
	X(max_evd_qlen, MAX_EVD_QLEN) \
	X(max_iov_segments_per_dto, MAX_IOV_SEGMENTS_PER_DTO) \
	X(max_lmrs, MAX_LMRS) \
	X(max_lmr_block_size, MAX_LMR_BLOCK_SIZE) \
	X(max_lmr_virtual_address, MAX_LMR_VIRTUAL_ADDRESS) \
	X(max_pzs, MAX_PZS) \
	X(max_message_size, MAX_MESSAGE_SIZE) \
	X(max_rdma_size, MAX_RDMA_SIZE) \
	X(max_rmrs, MAX_RMRS) \
	X(max_rmr_target_address, MAX_RMR_TARGET_ADDRESS) \
	X(max_srqs, MAX_SRQS) \
	X(max_ep_per_srq, MAX_EP_PER_SRQ) \
	X(max_recv_per_srq, MAX_RECV_PER_SRQ) \
	X(max_iov_segments_per_rdma_read, MAX_IOV_SEGMENTS_PER_RDMA_READ) \
	X(max_iov_segments_per_rdma_write, MAX_IOV_SEGMENTS_PER_RDMA_WRITE) \
	X(max_rdma_read_in, MAX_RDMA_READ_IN) \
	X(max_rdma_read_out, MAX_RDMA_READ_OUT) \
	X(max_rdma_read_per_ep_in_guaranteed, MAX_RDMA_READ_PER_EP_IN_GUARANTEED) \
	X(max_rdma_read_per_ep_out_guaranteed, MAX_RDMA_READ_PER_EP_OUT_GUARANTEED) \
	X(num_transport_attr, NUM_TRANSPORT_ATTR) \
	X(transport_attr, TRANSPORT_ATTR) \
	X(num_vendor_attr, NUM_VENDOR_ATTR) \
	X(vendor_attr, VENDOR_ATTR)

void ia_attr_to_1_2(struct ia_attr_1_2 *to, const DAT_IA_ATTR *from, DAT_IA_ATTR_MASK mask)
{
	if (mask & DAT_IA_FIELD_IA_ADAPTER_NAME)
		memcpy(to->adapter_name, from->adapter_name, sizeof to->adapter_name);
	if (mask & DAT_IA_FIELD_IA_VENDOR_NAME)
		memcpy(to->vendor_name, from->vendor_name, sizeof to->vendor_name);
	IA_MEMBERS(COPY_IA)
}

#define PROVIDER_MEMBERS(X) \
	X(provider_version_major, PROVIDER_VERSION_MAJOR) \
	X(provider_version_minor, PROVIDER_VERSION_MINOR) \
	X(lmr_mem_types_supported, LMR_MEM_TYPE_SUPPORTED) \
	X(iov_ownership_on_return, IOV_OWNERSHIP) \
	X(dat_qos_supported, DAT_QOS_SUPPORTED) \
	X(completion_flags_supported, COMPLETION_FLAGS_SUPPORTED) \
	X(is_thread_safe, IS_THREAD_SAFE) \
	X(max_private_data_size, MAX_PRIVATE_DATA_SIZE) \
	X(supports_multipath, SUPPORTS_MULTIPATH) \
	X(ep_creator, EP_CREATOR) \
	X(optimal_buffer_alignment, OPTIMAL_BUFFER_ALIGNMENT) \
	X(srq_supported, SRQ_SUPPORTED) \
	X(srq_watermarks_supported, SRQ_WATERMARKS_SUPPORTED) \
	X(srq_ep_pz_difference_supported, SRQ_EP_PZ_DIFFERENCE_SUPPORTED) \
	X(srq_info_supported, SRQ_INFO_SUPPORTED) \
	X(ep_recv_info_supported, EP_RECV_INFO_SUPPORTED) \
	X(lmr_sync_req, LMR_SYNC_REQ) \
	X(dto_async_return_guaranteed, DTO_ASYNC_RETURN_GUARANTEED) \
	X(rdma_write_for_rdma_read_req, RDMA_WRITE_FOR_RDMA_READ_REQ) \
	X(num_provider_specific_attr, NUM_PROVIDER_SPECIFIC_ATTR) \
	X(provider_specific_attr, PROVIDER_SPECIFIC_ATTR)

/* What the program has opened is an interface of version 1.2. */
void provider_attr_to_1_2(struct provider_attr_1_2 *to, const DAT_PROVIDER_ATTR *from,
			  DAT_PROVIDER_ATTR_MASK mask)
{
	if (mask & DAT_PROVIDER_FIELD_PROVIDER_NAME)
		memcpy(to->provider_name, from->provider_name, sizeof to->provider_name);
	if (mask & DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR)
		to->dapl_version_major = 1;
	if (mask & DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR)
		to->dapl_version_minor = 2;
	if (mask & DAT_PROVIDER_FIELD_PZ_SUPPORT)
		to->pz_support = pz_support_to_1_2(from->pz_support);
	if (mask & DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED)
		memcpy(to->evd_stream_merging_supported, from->evd_stream_merging_supported,
		       sizeof to->evd_stream_merging_supported);
	PROVIDER_MEMBERS(COPY_PROVIDER)
}

#define LMR_MEMBERS(X) \
	X(ia_handle, IA_HANDLE) \
	X(mem_type, MEM_TYPE) \
	X(region_desc, REGION_DESC) \
	X(length, LENGTH) \
	X(pz_handle, PZ_HANDLE) \
	X(mem_priv, MEM_PRIV) \
	X(lmr_context, LMR_CONTEXT) \
	X(rmr_context, RMR_CONTEXT) \
	X(registered_size, REGISTERED_SIZE) \
	X(registered_address, REGISTERED_ADDRESS)

void lmr_param_to_1_2(struct lmr_param_1_2 *to, const DAT_LMR_PARAM *from, DAT_LMR_PARAM_MASK mask)
{
	LMR_MEMBERS(COPY_LMR)
}

void event_to_1_2(struct event_1_2 *to, const DAT_EVENT *from)
{
	memcpy(to, from, sizeof *to);
	if (from->event_number == DAT_DTO_COMPLETION_EVENT)
		to->event_data.dto.status =
			dto_status_to_1_2(from->event_data.dto_completion_event_data.status);
}
