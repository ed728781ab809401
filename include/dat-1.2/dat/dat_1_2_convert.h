/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_1_2_convert.h - converts between structures of DAT 1.2 and of DAT 2.0. udat.h includes it.
 * The functions return 0 for a length of 4 GiB or more, which DAT 2.0 cannot express; they never
 * truncate. None allocates memory. C89. */
#ifndef _DAT_1_2_CONVERT_H_
#define _DAT_1_2_CONVERT_H_

/* Segments of one list, converted on the stack. No provider of this package accepts more than
 * 255; a longer list exceeds max_iov_segments_per_dto. */
#define DAT_1_2_IOV_MAX 255

#define DAT_1_2_BAD_ARGUMENT(n) \
	((DAT_RETURN)(DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG##n))

/* The arguments of a call of DAT 2.0 after the `first` have other positions in 1.2: subtracts `by`
 * from the position that an error names. */
static __inline__ DAT_RETURN dat_1_2_argument(DAT_RETURN ret, DAT_UINT32 first, DAT_UINT32 by)
{
	if (DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER && DAT_GET_SUBTYPE(ret) > first &&
	    DAT_GET_SUBTYPE(ret) <= DAT_INVALID_ARG10)
		return ret - by;
	return ret;
}

/* Compilers then do not warn that a program reads what a failed query has not written: an external
 * function gives no such warning either. */
#define DAT_1_2_WRITES(out) __asm__ __volatile__("" : : "r"(out) : "memory")

/* Returns 0 if a segment is too long. */
static __inline__ int dat_1_2_local_iov(DAT_V2_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from,
	DAT_COUNT count)
{
	DAT_COUNT i;

	for (i = 0; i < count; i++) {
		if (from[i].segment_length >> 32)
			return 0;
		to[i].virtual_address = from[i].virtual_address;
		to[i].segment_length = (DAT_SEG_LENGTH)from[i].segment_length;
		to[i].lmr_context = from[i].lmr_context;
	}
	return 1;
}

static __inline__ int dat_1_2_remote(DAT_V2_RMR_TRIPLET *to, const DAT_RMR_TRIPLET *from)
{
	if (from->segment_length >> 32)
		return 0;
	to->virtual_address = from->target_address;
	to->segment_length = (DAT_SEG_LENGTH)from->segment_length;
	to->rmr_context = from->rmr_context;
	return 1;
}

/* Widens the length of a completion at its place. The library has written a 2.0 event. */
static __inline__ void dat_1_2_event(DAT_EVENT *event)
{
	DAT_SEG_LENGTH length;

	if (event->event_number != DAT_DTO_COMPLETION_EVENT)
		return;
	__builtin_memcpy(&length, (const char *)event + __builtin_offsetof(struct dat_v2_event,
		event_data.dto_completion_event_data.transfered_length), sizeof(length));
	event->event_data.dto_completion_event_data.transfered_length = length;
}

/* The members of the attributes with the same type in both. */
#define DAT_1_2_COPY_EP_ATTR(to, from) \
	(to)->service_type = (from)->service_type; \
	(to)->qos = (from)->qos; \
	(to)->recv_completion_flags = (from)->recv_completion_flags; \
	(to)->request_completion_flags = (from)->request_completion_flags; \
	(to)->max_recv_dtos = (from)->max_recv_dtos; \
	(to)->max_request_dtos = (from)->max_request_dtos; \
	(to)->max_recv_iov = (from)->max_recv_iov; \
	(to)->max_request_iov = (from)->max_request_iov; \
	(to)->max_rdma_read_in = (from)->max_rdma_read_in; \
	(to)->max_rdma_read_out = (from)->max_rdma_read_out; \
	(to)->srq_soft_hw = (from)->srq_soft_hw; \
	(to)->max_rdma_read_iov = (from)->max_rdma_read_iov; \
	(to)->max_rdma_write_iov = (from)->max_rdma_write_iov; \
	(to)->ep_transport_specific_count = (from)->ep_transport_specific_count; \
	(to)->ep_transport_specific = (from)->ep_transport_specific; \
	(to)->ep_provider_specific_count = (from)->ep_provider_specific_count; \
	(to)->ep_provider_specific = (from)->ep_provider_specific

/* `mask` says which members are set: 0 for the lengths that are not. */
static __inline__ int dat_1_2_ep_attr(DAT_V2_EP_ATTR *to, const DAT_EP_ATTR *from,
	DAT_EP_PARAM_MASK mask)
{
	to->max_message_size = 0;
	to->max_rdma_size = 0;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE) {
		if (from->max_message_size >> 32)
			return 0;
		to->max_message_size = (DAT_SEG_LENGTH)from->max_message_size;
	}
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE) {
		if (from->max_rdma_size >> 32)
			return 0;
		to->max_rdma_size = (DAT_SEG_LENGTH)from->max_rdma_size;
	}
	DAT_1_2_COPY_EP_ATTR(to, from);
	return 1;
}

static __inline__ void dat_1_2_ep_attr_back(DAT_EP_ATTR *to, const DAT_V2_EP_ATTR *from)
{
	to->max_message_size = from->max_message_size;
	to->max_rdma_size = from->max_rdma_size;
	DAT_1_2_COPY_EP_ATTR(to, from);
}

/* The members of the parameters with the same type in both. */
#define DAT_1_2_COPY_EP_PARAM(to, from) \
	(to)->ia_handle = (from)->ia_handle; \
	(to)->ep_state = (from)->ep_state; \
	(to)->local_ia_address_ptr = (from)->local_ia_address_ptr; \
	(to)->local_port_qual = (from)->local_port_qual; \
	(to)->remote_ia_address_ptr = (from)->remote_ia_address_ptr; \
	(to)->remote_port_qual = (from)->remote_port_qual; \
	(to)->pz_handle = (from)->pz_handle; \
	(to)->recv_evd_handle = (from)->recv_evd_handle; \
	(to)->request_evd_handle = (from)->request_evd_handle; \
	(to)->connect_evd_handle = (from)->connect_evd_handle; \
	(to)->srq_handle = (from)->srq_handle

static __inline__ int dat_1_2_ep_param(DAT_V2_EP_PARAM *to, const DAT_EP_PARAM *from,
	DAT_EP_PARAM_MASK mask)
{
	to->comm.domain = 0;
	to->comm.type = 0;
	to->comm.protocol = 0;
	DAT_1_2_COPY_EP_PARAM(to, from);
	return dat_1_2_ep_attr(&to->ep_attr, &from->ep_attr, mask);
}

static __inline__ void dat_1_2_ep_param_back(DAT_EP_PARAM *to, const DAT_V2_EP_PARAM *from)
{
	DAT_1_2_COPY_EP_PARAM(to, from);
	dat_1_2_ep_attr_back(&to->ep_attr, &from->ep_attr);
}

static __inline__ void dat_1_2_rmr_param_back(DAT_RMR_PARAM *to, const DAT_V2_RMR_PARAM *from)
{
	to->ia_handle = from->ia_handle;
	to->pz_handle = from->pz_handle;
	to->lmr_triplet.lmr_context = from->lmr_triplet.lmr_context;
	to->lmr_triplet.pad = 0;
	to->lmr_triplet.virtual_address = from->lmr_triplet.virtual_address;
	to->lmr_triplet.segment_length = from->lmr_triplet.segment_length;
	to->mem_priv = from->mem_priv;
	to->rmr_context = from->rmr_context;
}

/* A CNO that triggers a descriptor has no agent. */
static __inline__ void dat_1_2_cno_param_back(DAT_CNO_PARAM *to, const DAT_V2_CNO_PARAM *from)
{
	to->ia_handle = from->ia_handle;
	to->agent.instance_data = 0;
	to->agent.proxy_agent_func = 0;
	if (from->proxy_type == DAT_PROXY_TYPE_AGENT)
		to->agent = from->proxy.agent;
}

#endif
