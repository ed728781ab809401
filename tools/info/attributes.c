/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attributes.c - see attributes.h. */
#include "tools/info/attributes.h"
#include "tools/info/output.h"
#include "tools/names.h"
#include <dat/dat_dm_extensions.h>
#include <dat/dat_eth_extensions.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_map_extensions.h>
#include <dat/dat_mcast_extensions.h>
#include <dat/dat_net_extensions.h>
#include <dat/dat_send_extensions.h>
#include <dat/dat_trace.h>
#include <stdio.h>
#include <string.h>

/* Values above INT64_MAX, such as an address limit of all ones (no limit), do not fit into json_int_t and
 * become text. */
static json_t *number(DAT_UINT64 value)
{
	return value > INT64_MAX ? output_format("0x%llx", (unsigned long long)value) :
				   json_integer((json_int_t)value);
}

#define NUMBER(member) output_set(to, #member, number((DAT_UINT64)attr->member))
#define TRUTH(member) output_set(to, #member, json_boolean(attr->member))
#define TEXT(member) output_set(to, #member, output_text(attr->member))
#define VERSION(name) output_set(to, #name "_version", output_format("%u.%u", \
	attr->name##_version_major, attr->name##_version_minor))

static json_t *address(DAT_IA_ADDRESS_PTR ptr)
{
	char text[ADDRESS_TEXT];

	return ptr ? output_text(address_text((const struct sockaddr *)ptr, text)) : json_null();
}

static const char *extension_name(DAT_EXTENSION extension)
{
	switch (extension) {
	case DAT_EXTENSION_NONE: return "none";
	case DAT_EXTENSION_IB: return "IB";
	case DAT_EXTENSION_IW: return "IW";
	default: return "unknown";
	}
}

json_t *attributes_of_ia(const DAT_IA_ATTR *attr)
{
	json_t *to = json_object();

	TEXT(adapter_name);
	TEXT(vendor_name);
	VERSION(hardware);
	VERSION(firmware);
	output_set(to, "ia_address", address(attr->ia_address_ptr));
	NUMBER(max_eps);
	NUMBER(max_dto_per_ep);
	NUMBER(max_rdma_read_per_ep_in);
	NUMBER(max_rdma_read_per_ep_out);
	NUMBER(max_evds);
	NUMBER(max_evd_qlen);
	NUMBER(max_iov_segments_per_dto);
	NUMBER(max_lmrs);
	NUMBER(max_lmr_block_size);
	NUMBER(max_lmr_virtual_address);
	NUMBER(max_pzs);
	NUMBER(max_message_size);
	NUMBER(max_rdma_size);
	NUMBER(max_rmrs);
	NUMBER(max_rmr_target_address);
	NUMBER(max_srqs);
	NUMBER(max_ep_per_srq);
	NUMBER(max_recv_per_srq);
	NUMBER(max_iov_segments_per_rdma_read);
	NUMBER(max_iov_segments_per_rdma_write);
	NUMBER(max_rdma_read_in);
	NUMBER(max_rdma_read_out);
	TRUTH(max_rdma_read_per_ep_in_guaranteed);
	TRUTH(max_rdma_read_per_ep_out_guaranteed);
	TRUTH(zb_supported);
	output_set(to, "extension_supported", output_text(extension_name(attr->extension_supported)));
	NUMBER(extension_version);
	return to;
}

struct bit {
	unsigned bit;
	const char *name;
};

static json_t *names_of_bits(unsigned bits, const struct bit *names, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (bits & names[i].bit)
			output_append(list, output_text(names[i].name));
	return list;
}
#define BITS(member, names) \
	output_set(to, #member, names_of_bits((unsigned)attr->member, names, sizeof names / sizeof *names))

static const struct bit qos[] = {
	{ DAT_QOS_HIGH_THROUGHPUT, "high throughput" },
	{ DAT_QOS_LOW_LATENCY, "low latency" },
	{ DAT_QOS_ECONOMY, "economy" },
	{ DAT_QOS_PREMIUM, "premium" },
};
static const struct bit completions[] = {
	{ DAT_COMPLETION_SUPPRESS_FLAG, "suppress" },
	{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, "solicited wait" },
	{ DAT_COMPLETION_UNSIGNALLED_FLAG, "unsignaled" },
	{ DAT_COMPLETION_BARRIER_FENCE_FLAG, "barrier fence" },
	{ DAT_COMPLETION_EVD_THRESHOLD_FLAG, "EVD threshold" },
};
static const struct bit memories[] = {
	{ DAT_MEM_TYPE_LMR, "LMR" },
	{ DAT_MEM_TYPE_SHARED_VIRTUAL, "shared virtual" },
};

static const char *word(unsigned value, const char *const *words, size_t count)
{
	return value < count ? words[value] : "unknown";
}
#define WORD(member, ...) output_set(to, #member, output_text(word((unsigned)attr->member, \
	(const char *const[]){ __VA_ARGS__ }, \
	sizeof (const char *const[]){ __VA_ARGS__ } / sizeof(char *))))

json_t *attributes_of_provider(const DAT_PROVIDER_ATTR *attr)
{
	bool merging = true;
	json_t *to = json_object();

	for (int i = 0; i < 36; i++)
		merging &= attr->evd_stream_merging_supported[i / 6][i % 6] != DAT_FALSE;
	TEXT(provider_name);
	VERSION(provider);
	VERSION(dapl);
	BITS(lmr_mem_types_supported, memories);
	WORD(iov_ownership_on_return, "consumer", "provider, reads it", "provider, may change it");
	BITS(dat_qos_supported, qos);
	BITS(completion_flags_supported, completions);
	TRUTH(is_thread_safe);
	NUMBER(max_private_data_size);
	TRUTH(supports_multipath);
	WORD(ep_creator, "consumer", "provider if asked", "provider");
	WORD(pz_support, "unique", "shareable");
	NUMBER(optimal_buffer_alignment);
	output_set(to, "evd_stream_merging_supported", output_text(merging ? "all" : "some"));
	TRUTH(srq_supported);
	TRUTH(srq_watermarks_supported);
	TRUTH(srq_ep_pz_difference_supported);
	TRUTH(srq_info_supported);
	TRUTH(ep_recv_info_supported);
	TRUTH(lmr_sync_req);
	TRUTH(dto_async_return_guaranteed);
	TRUTH(rdma_write_for_rdma_read_req);
	TRUTH(rdma_read_lmr_rmr_context_exposure);
	WORD(rmr_scope_supported, "EP", "PZ", "any");
	TRUTH(is_signal_safe);
	TRUTH(ha_supported);
	WORD(ha_loadbalancing, "none", "between connections", "within a connection");
	return to;
}

/* Whether the value of the attribute is the address of a function (dat_trace.h). */
static bool is_function(const char *name)
{
	return !strcmp(name, DAT_ATTR_DEBUG_QUERY) || !strcmp(name, DAT_ATTR_DEBUG_MODIFY) ||
	       !strcmp(name, DAT_ATTR_DEBUG_DUMP);
}

json_t *attributes_named(const DAT_NAMED_ATTR *list, DAT_COUNT count)
{
	json_t *to = json_object();

	for (DAT_COUNT i = 0; list && i < count; i++)
		if (list[i].name && list[i].value && !is_function(list[i].name))
			output_set(to, list[i].name, output_text(list[i].value));
	return to;
}

static bool has(const DAT_NAMED_ATTR *list, DAT_COUNT count, const char *name)
{
	for (DAT_COUNT i = 0; list && i < count; i++)
		if (list[i].name && !strcmp(list[i].name, name))
			return true;
	return false;
}

json_t *attributes_extensions(const DAT_IA_ATTR *ia, const DAT_PROVIDER_ATTR *provider)
{
	static const struct {
		const char *attribute, *word;
	} known[] = {
		{ DAT_IB_ATTR_FETCH_AND_ADD, "fetch and add" },
		{ DAT_IB_ATTR_CMP_AND_SWAP, "compare and swap" },
		{ DAT_IB_ATTR_IMMED_DATA, "write with immediate data" },
		{ DAT_SEND_ATTR_IMMED, "send with immediate data" },
		{ DAT_IB_ATTR_UD, "datagrams" },
		{ DAT_MCAST_ATTR, "multicast" },
		{ DAT_IB_ATTR_COUNTERS, "counters" },
		{ DAT_MAP_ATTR_RMR, "mapping of a peer's memory" },
		{ DAT_DM_ATTR_SIZE, "device memory" },
		{ DAT_ETH_ATTR_RAW, "raw Ethernet" },
		{ DAT_NET_ATTR_WATCH, "events of the network" },
	};
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (has(provider->provider_specific_attr, provider->num_provider_specific_attr,
			known[i].attribute))
			output_append(list, output_text(known[i].word));
	if (has(ia->vendor_attr, ia->num_vendor_attr, DAT_ATTR_VENDOR_EXTENSION))
		output_append(list, output_text("trace levels"));
	return list;
}
