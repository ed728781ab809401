/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attr.c - attributes of an IA: IA attributes, provider attributes and named attributes (doc/spec/calls.md
 * 1, doc/spec/extensions.md 2). Their values come from the device. */
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dat/dat_dm_extensions.h>
#include <dat/dat_mcast_extensions.h>
#include <dat/dat_net_extensions.h>
#include <dat/dat_send_extensions.h>
#include <dat/dat_trace.h>
#include "dapl/core/base/registry.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/ia/attr.h"
#include "dapl/core/ia/ia.h"

enum { MAX_NAMED = 32, RESERVED_WRS = 2 };

/* The provider-specific attributes for one MTU and port state. A block stays until the IA closes, because
 * consumers have pointers into it. Later queries find the block of their state again. */
struct dapl_attr_text {
	struct dapl_attr_text *next;
	unsigned mtu;
	bool port_active;
	DAT_NAMED_ATTR vendor[8], specific[MAX_NAMED];	/* vendor: used in the first block only */
	char value[MAX_NAMED][80];
	int values, specifics;
};

/* --- trace levels at run time (seeds: AIX uDAPL) ------------------------------------------ */

static DAT_RETURN trclvl_query(DAT_TRC_COMPONENT component, DAT_UINT32 *level)
{
	DAT_TRCLVL_QUERY_FUNC query;

	if (!level)
		return BAD_PARAM(2);
	if (component == DAT_TRC_DAT) {
		query = (DAT_TRCLVL_QUERY_FUNC)dapl_registry_function("dat_trclvl_query");
		return query ? query(component, level) : NOT_SUPPORTED;
	}
	if (component != DAT_TRC_DAPL)
		return BAD_PARAM(1);
	*level = __atomic_load_n(&trace_level, __ATOMIC_RELAXED);
	return DAT_SUCCESS;
}

static DAT_RETURN trclvl_modify(DAT_TRC_COMPONENT component, DAT_UINT32 level)
{
	DAT_TRCLVL_MODIFY_FUNC modify;

	if (level > TRC_LVL_MAX)
		return BAD_PARAM(2);
	if (component == DAT_TRC_DAT) {
		modify = (DAT_TRCLVL_MODIFY_FUNC)dapl_registry_function("dat_trclvl_modify");
		return modify ? modify(component, level) : NOT_SUPPORTED;
	}
	if (component != DAT_TRC_DAPL)
		return BAD_PARAM(1);
	trace_set_level(level);
	return DAT_SUCCESS;
}

static void trace_dump_to(int fd)
{
	trace_dump(fd);
}

/* --- named attributes ------------------------------------------------------------------------ */

static const char *format(struct dapl_attr_text *text, const char *fmt, ...)
{
	char *to = text->value[text->values++];
	va_list args;

	va_start(args, fmt);
	vsnprintf(to, sizeof text->value[0], fmt, args);
	va_end(args);
	return to;
}

/* The trace levels are listed with the attribute that announces them. EXT-18. */
static void vendor_attrs(struct dapl_ia *ia)
{
	DAT_NAMED_ATTR *a = ia->text->vendor;
	int n = 0;

	a[n++] = (DAT_NAMED_ATTR){ DAT_ATTR_DELAYED_ACK_SUPPORTED,
		ia->attr.delayed_ack ? "true" : "false" };
	a[n++] = (DAT_NAMED_ATTR){ DAT_ATTR_VENDOR_EXTENSION, "1.0" };
	a[n++] = (DAT_NAMED_ATTR){ DAT_ATTR_VENDOR_EXT_VERSION, "1.0" };
	/* the values of these are functions, not strings */
	a[n++] = (DAT_NAMED_ATTR){ DAT_ATTR_DEBUG_QUERY, (const char *)(uintptr_t)trclvl_query };
	a[n++] = (DAT_NAMED_ATTR){ DAT_ATTR_DEBUG_MODIFY, (const char *)(uintptr_t)trclvl_modify };
	a[n++] = (DAT_NAMED_ATTR){ DAT_ATTR_DEBUG_DUMP, (const char *)(uintptr_t)trace_dump_to };
	ia->ia_attr.num_vendor_attr = n;
	ia->ia_attr.vendor_attr = a;
}

static void add(struct dapl_attr_text *text, const char *name, const char *value)
{
	DAT_NAMED_ATTR *a = &text->specific[text->specifics++];

	a->name = name;
	a->value = value;
}

/* EXT-3 */
static void specific_attrs(const struct dapl_device_attr *d, struct dapl_attr_text *t)
{
	char gid[INET6_ADDRSTRLEN] = "";

	inet_ntop(AF_INET6, d->gid.raw, gid, sizeof gid);
	add(t, "DAT_EXTENSION_INTERFACE", "TRUE");
	if (d->atomics) {
		add(t, DAT_IB_ATTR_FETCH_AND_ADD, "TRUE");
		add(t, DAT_IB_ATTR_CMP_AND_SWAP, "TRUE");
	}
	if (d->write_immediate) {
		add(t, DAT_IB_ATTR_IMMED_DATA, "TRUE");
		add(t, DAT_SEND_ATTR_IMMED, "TRUE");
	}
	if (d->ud)
		add(t, DAT_IB_ATTR_UD, "TRUE");
	if (d->multicast)
		add(t, DAT_MCAST_ATTR, "TRUE");
	add(t, "DAT_IB_RDMA_READ", "TRUE");
	add(t, DAT_IB_ATTR_COUNTERS, "TRUE");
	if (d->raw_ethernet)
		add(t, DAT_ETH_ATTR_RAW, dapl_device_ops.eth->carrier);
	if (dapl_device_ops.map_remote)
		add(t, DAT_MAP_ATTR_RMR, "TRUE");
	if (d->dm_size) {
		add(t, DAT_DM_ATTR_SIZE, format(t, "%llu", (unsigned long long)d->dm_size));
		add(t, DAT_DM_ATTR_UNIT, format(t, "%u", d->dm_unit));
		if (dapl_device_ops.map_dm)
			add(t, DAT_DM_ATTR_MAP, "TRUE");
	}
	add(t, DAT_NET_ATTR_WATCH, "TRUE");
	add(t, "DAT_IB_TRANSPORT_MTU", format(t, "%u", d->mtu));
	add(t, "DAT_IB_PORT_NUMBER", format(t, "%u", d->port));
	add(t, "DAT_IB_PORT_STATUS", d->port_active ? "PORT_ACTIVE" : "PORT_DOWN");
	add(t, "DAT_IB_GID", format(t, "%s", gid));
	add(t, "DAT_IB_NODE_GUID", format(t, "%016llx",
		(unsigned long long)be64toh(d->limits.node_guid)));
	add(t, "DAT_IB_DEVICE_NAME", format(t, "%s", d->device));
	if (d->flush_global || d->flush_persistent)
		add(t, "DAT_IB_DEVICE_FLUSH", !d->flush_persistent ? "GLOBAL" : d->flush_global ?
		    "GLOBAL PERSISTENT" : "PERSISTENT");
	if (d->atomic_write)
		add(t, "DAT_IB_DEVICE_ATOMIC_WRITE", "TRUE");
	add(t, "DAT_IB_PROVIDER_NAME", dapl_device_ops.name);
	add(t, "DAT_IB_CONNECTIVITY_MODE", d->iwarp ? "IWARP" : "DIRECT");
	t->mtu = d->mtu;
	t->port_active = d->port_active;
}

static void show(struct dapl_ia *ia, struct dapl_attr_text *text)
{
	ia->provider_attr.num_provider_specific_attr = text->specifics;
	ia->provider_attr.provider_specific_attr = text->specific;
}

/* Shows the attributes of the present state. Without memory the last ones stay. Called with ia->lock
 * held. */
static void show_present(struct dapl_ia *ia, const struct dapl_device_attr *now)
{
	struct dapl_attr_text *text = ia->text;

	assert_held(&ia->lock);
	while (text && (text->mtu != now->mtu || text->port_active != now->port_active))
		text = text->next;
	if (!text && (text = calloc(1, sizeof *text))) {
		specific_attrs(now, text);
		text->next = ia->text->next;	/* the first block stays the first */
		ia->text->next = text;
	}
	if (!text)
		return;
	show(ia, text);
	__atomic_store_n(&ia->attr.mtu, now->mtu, __ATOMIC_RELAXED);	/* a datagram of the reported size
									 * may be sent */
}


/* --- IA attributes ------------------------------------------------------------------------------ */

static DAT_COUNT count_of(long long n)
{
	return n < 0 ? 0 : n > INT_MAX ? INT_MAX : (DAT_COUNT)n;
}

static DAT_COUNT less(DAT_COUNT n, DAT_COUNT max)
{
	return n < max ? n : max;
}

static DAT_COUNT work_requests(const struct dapl_device_attr *d)
{
	DAT_COUNT n = count_of(d->limits.max_qp_wr) - RESERVED_WRS;

	if (dapl_settings.wr_max)
		n = less(n, dapl_settings.wr_max);
	return n > 0 ? n : 1;
}

/* IA-15 */
static void ia_attrs(struct dapl_ia *ia, const struct dapl_entry *entry)
{
	const struct dapl_device_attr *d = &ia->attr;
	const struct ibv_device_attr *l = &d->limits;
	DAT_IA_ATTR *a = &ia->ia_attr;
	unsigned major = 0, minor = 0;

	snprintf(a->adapter_name, sizeof a->adapter_name, "%s", entry->info.ia_name);
	snprintf(a->vendor_name, sizeof a->vendor_name, "%s", d->vendor);
	sscanf(l->fw_ver, "%u.%u", &major, &minor);
	a->hardware_version_major = l->hw_ver;
	a->firmware_version_major = major;
	a->firmware_version_minor = minor;
	a->ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ia->attr.address;	/* IA-19 */
	a->max_eps = count_of(l->max_qp);
	a->max_dto_per_ep = work_requests(d);
	a->max_rdma_read_per_ep_in = count_of(l->max_qp_rd_atom);
	a->max_rdma_read_per_ep_out = count_of(l->max_qp_init_rd_atom);
	a->max_evds = count_of(l->max_cq);
	a->max_evd_qlen = less(count_of(l->max_cqe), DAPL_EVD_MAX);
	a->max_iov_segments_per_dto = less(count_of(l->max_sge), 255);
	a->max_lmrs = count_of(l->max_mr);
	a->max_lmr_block_size = ~(DAT_SEG_LENGTH)0;
	a->max_lmr_virtual_address = ~(DAT_VADDR)0;
	a->max_pzs = count_of(l->max_pd);
	a->max_message_size = d->max_message;
	a->max_rdma_size = d->max_message;
	a->max_rmrs = d->windows_1 || d->windows_2 ? count_of(l->max_mw) : 0;
	a->max_rmr_target_address = ~(DAT_VADDR)0;
	a->max_srqs = count_of(l->max_srq);
	a->max_ep_per_srq = a->max_srqs ? count_of(l->max_qp) : 0;
	a->max_recv_per_srq = a->max_srqs ? count_of(l->max_srq_wr) : 0;
	a->max_iov_segments_per_rdma_read = less(count_of(d->max_read_sge),
						 a->max_iov_segments_per_dto);
	a->max_iov_segments_per_rdma_write = a->max_iov_segments_per_dto;
	a->max_rdma_read_in = count_of(l->max_res_rd_atom);
	a->max_rdma_read_out = count_of((long long)l->max_qp_init_rd_atom * l->max_qp);
	a->max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
	a->max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
	a->zb_supported = d->zero_based ? DAT_TRUE : DAT_FALSE;
	/* IA-22, but an iWARP device without the InfiniBand operations still has counters and queries */
	a->extension_supported = d->iwarp && !d->atomics ? DAT_EXTENSION_IW : DAT_EXTENSION_IB;
	a->extension_version = DAT_IB_EXTENSION_VERSION;
	a->num_transport_attr = 0;
	a->transport_attr = NULL;
	vendor_attrs(ia);
}

static DAT_RMR_SCOPE rmr_scope(const struct dapl_device_attr *d)
{
	if (d->windows_1 && d->windows_2)
		return DAT_RMR_SCOPE_ANY;
	return d->windows_2 ? DAT_RMR_SCOPE_EP : DAT_RMR_SCOPE_PZ;
}

/* IA-20 */
static void provider_attrs(struct dapl_ia *ia, const struct dapl_entry *entry)
{
	const struct dapl_device_attr *d = &ia->attr;
	DAT_PROVIDER_ATTR *a = &ia->provider_attr;
	/* const for consumers, but set here */
	DAT_BOOLEAN *merging = (DAT_BOOLEAN *)(uintptr_t)&a->evd_stream_merging_supported[0][0];

	snprintf(a->provider_name, sizeof a->provider_name, "dapl-%s", dapl_device_ops.name);
	a->provider_version_major = 3;
	a->provider_version_minor = 0;
	/* these three must equal what was registered (doc/spec/registry.md 7). IA-21 */
	a->dapl_version_major = entry->info.dapl_version_major;
	a->dapl_version_minor = entry->info.dapl_version_minor;
	a->is_thread_safe = entry->info.is_thread_safe;
	a->lmr_mem_types_supported = (DAT_MEM_TYPE)(DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
	a->iov_ownership_on_return = DAT_IOV_CONSUMER;	/* DTO-31 */
	a->dat_qos_supported = (DAT_QOS)(DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY |
					 DAT_QOS_ECONOMY | DAT_QOS_PREMIUM);
	a->completion_flags_supported = (DAT_COMPLETION_FLAGS)
		(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		 DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
		 DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	a->max_private_data_size = d->pdata_connect;
	a->supports_multipath = DAT_FALSE;
	a->ep_creator = DAT_PSP_CREATES_EP_IFASKED;
	a->pz_support = DAT_PZ_SHAREABLE;
	a->optimal_buffer_alignment = DAT_OPTIMAL_ALIGNMENT;
	for (int i = 0; i < 36; i++)
		merging[i] = DAT_TRUE;	/* EVD-7 */
	a->srq_supported = ia->ia_attr.max_srqs ? DAT_TRUE : DAT_FALSE;
	a->srq_watermarks_supported = ia->ia_attr.max_srqs != 0;
	a->srq_ep_pz_difference_supported = DAT_FALSE;
	a->srq_info_supported = ia->ia_attr.max_srqs != 0;
	a->ep_recv_info_supported = 1;
	a->lmr_sync_req = DAT_FALSE;
	a->dto_async_return_guaranteed = DAT_TRUE;
	a->rdma_write_for_rdma_read_req = d->read_sink_remote ? DAT_TRUE : DAT_FALSE;
	a->rdma_read_lmr_rmr_context_exposure = d->iwarp ? DAT_TRUE : DAT_FALSE;
	a->rmr_scope_supported = rmr_scope(d);
	a->is_signal_safe = DAT_FALSE;
	a->ha_supported = DAT_FALSE;
	a->ha_loadbalancing = DAT_HA_LB_NONE;
	specific_attrs(d, ia->text);
	show(ia, ia->text);
}

DAT_RETURN dapl_attr_prepare(struct dapl_ia *ia, const struct dapl_entry *entry)
{
	ia->text = calloc(1, sizeof *ia->text);
	if (!ia->text)
		return NO_RESOURCE(MEMORY);
	ia_attrs(ia, entry);
	provider_attrs(ia, entry);
	return DAT_SUCCESS;
}

void dapl_attr_free(struct dapl_ia *ia)
{
	struct dapl_attr_text *text;

	while ((text = ia->text)) {
		ia->text = text->next;
		free(text);
	}
}

DAT_RETURN dapl_attr_present(struct dapl_ia *ia, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			     DAT_PROVIDER_ATTR_MASK provider_mask,
			     DAT_PROVIDER_ATTR *provider_attr)
{
	struct dapl_device_attr now;
	/* a forked child must not touch the device */
	bool known = provider_mask && ia->pid == getpid() && !dapl_device_ops.query(ia->dev, &now);
	DAT_RETURN ret;

	dapl_mutex_lock(&ia->lock);
	if (known)
		show_present(ia, &now);
	ret = dapl_attr_fill(ia, ia_mask, ia_attr, provider_mask, provider_attr);
	dapl_mutex_unlock(&ia->lock);
	return ret;
}

/* IA-16, 17, 18 */
DAT_RETURN dapl_attr_fill(const struct dapl_ia *ia, DAT_IA_ATTR_MASK ia_mask,
			  DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			  DAT_PROVIDER_ATTR *provider_attr)
{
	if (ia_mask & ~(DAT_IA_ATTR_MASK)DAT_IA_FIELD_ALL)
		return BAD_PARAM(3);
	if (ia_mask && !ia_attr)
		return BAD_PARAM(4);
	if (provider_mask & ~(DAT_PROVIDER_ATTR_MASK)DAT_PROVIDER_FIELD_ALL)
		return BAD_PARAM(5);
	if (provider_mask && !provider_attr)
		return BAD_PARAM(6);
	if (ia_mask)
		memcpy(ia_attr, &ia->ia_attr, sizeof *ia_attr);
	if (provider_mask)
		memcpy(provider_attr, &ia->provider_attr, sizeof *provider_attr);
	return DAT_SUCCESS;
}
