/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs.c - see verbs.h. */
#include "tools/info/verbs.h"
#include "tools/info/output.h"
#include "tools/libverbs.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static char reason[512];

#define LIMITS(X) \
	X(max_mr_size) X(page_size_cap) X(max_qp) X(max_qp_wr) X(device_cap_flags) X(max_sge) \
	X(max_sge_rd) X(max_cq) X(max_cqe) X(max_mr) X(max_pd) X(max_qp_rd_atom) X(max_ee_rd_atom) \
	X(max_res_rd_atom) X(max_qp_init_rd_atom) X(max_ee_init_rd_atom) X(max_ee) X(max_rdd) X(max_mw) \
	X(max_raw_ipv6_qp) X(max_raw_ethy_qp) X(max_mcast_grp) X(max_mcast_qp_attach) \
	X(max_total_mcast_qp_attach) X(max_ah) X(max_fmr) X(max_srq) X(max_srq_wr) X(max_srq_sge) \
	X(max_pkeys) X(local_ca_ack_delay)

static void add_limits(json_t *device, const struct ibv_device_attr *attr)
{
	json_t *limits = json_object();

#define X(name) output_set(limits, #name, (uint64_t)attr->name > INT64_MAX ? \
	output_format("0x%llx", (unsigned long long)attr->name) : json_integer((json_int_t)attr->name));
	LIMITS(X)
#undef X
	output_set(device, "limits", limits);
	output_set(device, "vendor_id", output_format("0x%04x", attr->vendor_id));
	output_set(device, "vendor_part_id", json_integer(attr->vendor_part_id));
	output_set(device, "hw_ver", output_format("0x%x", attr->hw_ver));
}

static void add_port(json_t *port, const struct ibv_port_attr *attr)
{
	output_set(port, "max_mtu", json_integer(attr->max_mtu ? 128 << attr->max_mtu : 0));
	output_set(port, "active_mtu", json_integer(attr->active_mtu ? 128 << attr->active_mtu : 0));
	output_set(port, "max_msg_sz", json_integer(attr->max_msg_sz));
	output_set(port, "max_vl_num", json_integer(attr->max_vl_num));
	output_set(port, "bad_pkey_cntr", json_integer(attr->bad_pkey_cntr));
	output_set(port, "qkey_viol_cntr", json_integer(attr->qkey_viol_cntr));
	output_set(port, "sm_sl", json_integer(attr->sm_sl));
	output_set(port, "pkey_tbl_len", json_integer(attr->pkey_tbl_len));
	output_set(port, "gid_tbl_len", json_integer(attr->gid_tbl_len));
	output_set(port, "subnet_timeout", json_integer(attr->subnet_timeout));
	output_set(port, "init_type_reply", json_integer(attr->init_type_reply));
	output_set(port, "active_width", json_integer(attr->active_width));
	output_set(port, "active_speed", json_integer(attr->active_speed));
}

static const char *query(json_t *device, struct ibv_context *context)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	json_t *port;
	size_t i;
	int err = lib.ibv_query_device(context, &attr);

	if (err) {
		snprintf(reason, sizeof reason, "ibv_query_device: %s", strerror(err));
		return reason;
	}
	add_limits(device, &attr);
	json_array_foreach(json_object_get(device, "ports"), i, port) {
		memset(&port_attr, 0, sizeof port_attr);
		if (!lib.ibv_query_port(context, (uint8_t)json_integer_value(json_object_get(port, "port")),
					&port_attr))
			add_port(port, &port_attr);
	}
	return NULL;
}

static const char *open_and_query(json_t *device, struct ibv_device **list)
{
	const char *name = output_get(device, "name"), *why;
	struct ibv_context *context;

	while (*list && strcmp(lib.ibv_get_device_name(*list), name) != 0)
		list++;
	if (!*list) {
		snprintf(reason, sizeof reason, "libibverbs does not offer %s", name);
		return reason;
	}
	context = lib.ibv_open_device(*list);
	if (!context) {
		snprintf(reason, sizeof reason, "%s cannot be opened: %s", name, strerror(errno));
		return reason;
	}
	why = query(device, context);
	lib.ibv_close_device(context);
	return why;
}

const char *verbs_describe(json_t *device)
{
	struct ibv_device **list;
	const char *why = libverbs_load();

	if (why)
		return why;
	list = lib.ibv_get_device_list(NULL);
	if (!list) {
		snprintf(reason, sizeof reason, "libibverbs finds no devices: %s", errno == ENOSYS ?
			 "the kernel module ib_uverbs is not loaded" : strerror(errno));
		return reason;
	}
	why = open_and_query(device, list);
	lib.ibv_free_device_list(list);
	return why;
}
