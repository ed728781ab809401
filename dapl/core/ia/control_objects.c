/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_objects.c - see control_objects.h. */
#include "dapl/core/ia/control_objects.h"
#include <errno.h>
#include <unistd.h>
#include "config.h"
#include "common/clock.h"
#include "common/trace.h"
#include "dapl/core/base/qual.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ia/control_answer.h"
#include "dapl/core/ia/counters.h"

/* --- list ---------------------------------------------------------------------------- */

static const char *write_ia(struct json_writer *json, struct dapl_ia *ia)
{
	static const struct {
		enum dapl_kind kind;
		const char *key;
	} kinds[] = {
		{ DAPL_EP, "endpoints" }, { DAPL_EVD, "evds" }, { DAPL_LMR, "lmrs" },
		{ DAPL_RMR, "rmrs" }, { DAPL_PSP, "service_points" }, { DAPL_SRQ, "srqs" },
	};

	json_write_open(json, NULL, '{');
	json_write_text(json, "name", ia->ia_attr.adapter_name);
	json_write_text(json, "device", ia->attr.device);
	json_write_count(json, "port", ia->attr.port);
	json_write_text(json, "netdev", ia->attr.netdev);
	dapl_answer_host(json, "address", &ia->attr.address);
	dapl_answer_object(json, ia);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		json_write_count(json, kinds[i].key, dapl_object_count(ia, kinds[i].kind));
	json_write_close(json, '}');
	return NULL;
}

const char *dapl_list_verb(const struct json_object *request, struct json_writer *json, char *why, size_t size)
{
	(void)request, (void)why, (void)size;
	json_write_number(json, "pid", getpid());
	json_write_number(json, "uid", geteuid());
	json_write_text(json, "program", program_invocation_short_name);
	json_write_text(json, "provider", dapl_device_ops.name);
	json_write_text(json, "version", PACKAGE_VERSION);
	json_write_count(json, "trace_level", __atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	return dapl_answer_each_ia(json, "ias", write_ia);
}

/* --- counters ------------------------------------------------------------------------ */

static void write_counter(void *json, const char *name, uint64_t value)
{
	if (value)
		json_write_count(json, name, value);
}

static void write_counters(struct json_writer *json, struct dapl_object *obj)
{
	json_write_open(json, "counters", '{');
	dapl_counters_each(obj, write_counter, json);
	json_write_close(json, '}');
}

static void write_counted(struct json_writer *json, struct dapl_object *obj)
{
	json_write_open(json, NULL, '{');
	dapl_answer_object(json, obj);
	write_counters(json, obj);
	json_write_close(json, '}');
}

static const char *write_ia_counters(struct json_writer *json, struct dapl_ia *ia)
{
	const char *failed;

	json_write_open(json, NULL, '{');
	json_write_text(json, "name", ia->ia_attr.adapter_name);
	dapl_answer_object(json, ia);
	write_counters(json, &ia->obj);
	json_write_open(json, "totals", '{');
	failed = dapl_counters_each_total(ia, write_counter, json) ? NULL : "no memory";
	json_write_close(json, '}');
	json_write_open(json, "endpoints", '[');
	if (!failed)
		failed = dapl_answer_each_object(json, ia, DAPL_EP, write_counted);
	json_write_close(json, ']');
	json_write_open(json, "evds", '[');
	if (!failed)
		failed = dapl_answer_each_object(json, ia, DAPL_EVD, write_counted);
	json_write_close(json, ']');
	json_write_close(json, '}');
	return failed;
}

const char *dapl_counters_verb(const struct json_object *request, struct json_writer *json, char *why, size_t size)
{
	struct dapl_post_waits posts = dapl_post_lock_waits();

	(void)request, (void)why, (void)size;
	write_counter(json, "post_waits", posts.waits);
	write_counter(json, "post_sleeps", posts.sleeps);
	return dapl_answer_each_ia(json, "ias", write_ia_counters);
}

/* --- endpoints ----------------------------------------------------------------------- */

static const char *carrier_of(struct dapl_ep *ep)
{
	if (!ep->conn || !dapl_device_ops.carrier || ep->state != DAT_EP_STATE_CONNECTED)
		return NULL;
	return dapl_device_ops.carrier(ep->conn);
}

/* Writes the state of TCP, if it carries the connection of the endpoint. */
static void write_tcp(struct json_writer *json, struct dapl_ep *ep)
{
	struct dapl_tcp_state state;

	if (!ep->conn || !dapl_device_ops.tcp_state || ep->state != DAT_EP_STATE_CONNECTED ||
	    !dapl_device_ops.tcp_state(ep->conn, &state))
		return;
	json_write_open(json, "tcp", '{');
	json_write_count(json, "rtt_us", state.rtt_us);
	json_write_count(json, "rtt_var_us", state.rtt_var_us);
	json_write_count(json, "cwnd", state.cwnd);
	json_write_count(json, "retransmits", state.retransmits);
	json_write_close(json, '}');
}

/* Writes the bytes that the program has posted, and that have arrived. RDMA reads and writes of the peer
 * are not counted, because the device executes them. */
static void write_traffic(struct json_writer *json, struct dapl_ep *ep)
{
	static const int sent[] = { DCNT_EP_POST_SEND_DATA, DCNT_EP_POST_SEND_UD_DATA,
		DCNT_EP_POST_WRITE_DATA, DCNT_EP_POST_WRITE_IMM_DATA };
	static const int received[] = { DCNT_EP_RECV_DATA, DCNT_EP_RECV_UD_DATA,
		DCNT_EP_RECV_IMM_DATA };
	uint64_t count[DCNT_EP_ALL_COUNTERS] = { 0 }, out = 0, in = 0;

	dapl_counters_of_ep(ep, count);
	for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
		out += count[sent[i]];
	for (size_t i = 0; i < sizeof received / sizeof *received; i++)
		in += count[received[i]];
	json_write_count(json, "bytes_sent", out);
	json_write_count(json, "bytes_received", in);
	json_write_count(json, "bytes_read", count[DCNT_EP_POST_READ_DATA]);
}

static void write_endpoint(struct json_writer *json, struct dapl_object *obj)
{
	struct dapl_ep *ep = (struct dapl_ep *)obj;

	dapl_mutex_lock(&ep->lock);
	json_write_open(json, NULL, '{');
	json_write_text(json, "ia", ep->obj.ia->ia_attr.adapter_name);
	json_write_text(json, "device", ep->obj.ia->attr.device);
	dapl_answer_object(json, ep);
	json_write_text(json, "type", ep->is_raw ? "raw" : ep->is_ud ? "UD" : "RC");
	json_write_text(json, "state", dapl_status_ep_state_name(ep->state));
	json_write_count(json, "seconds", ep->began_ns ?
			 (clock_now_ns() - ep->began_ns) / 1000000000 : 0);
	ep->qp ? json_write_count(json, "qp", ep->qpn) : json_write_text(json, "qp", NULL);
	dapl_answer_address(json, "local", &ep->local);
	dapl_answer_address(json, "remote", &ep->remote);
	json_write_text(json, "carrier", carrier_of(ep));
	write_tcp(json, ep);
	dapl_mutex_unlock(&ep->lock);
	write_traffic(json, ep);
	json_write_close(json, '}');
}

static const char *write_endpoints(struct json_writer *json, struct dapl_ia *ia)
{
	return dapl_answer_each_object(json, ia, DAPL_EP, write_endpoint);
}

const char *dapl_endpoints_verb(const struct json_object *request, struct json_writer *json, char *why, size_t size)
{
	(void)request, (void)why, (void)size;
	return dapl_answer_each_ia(json, "endpoints", write_endpoints);
}

/* --- service points ------------------------------------------------------------------ */

static const char *service_point_type(const struct dapl_sp *sp)
{
	return sp->obj.kind == DAPL_RSP ? "RSP" : sp->obj.kind == DAPL_CSP ? "CSP" : "PSP";
}

/* Leaves out a service point that does not listen yet, or no longer. */
static void write_service_point(struct json_writer *json, struct dapl_object *obj)
{
	const struct dapl_sp *sp = (const struct dapl_sp *)obj;
	const struct dapl_ia *ia = sp->obj.ia;
	unsigned listens = __atomic_load_n(&sp->listens, __ATOMIC_ACQUIRE);

	if (!listens)
		return;
	json_write_open(json, NULL, '{');
	json_write_text(json, "ia", ia->ia_attr.adapter_name);
	json_write_text(json, "device", ia->attr.device);
	dapl_answer_object(json, sp);
	json_write_text(json, "type", service_point_type(sp));
	dapl_answer_host(json, "address", sp->address.ss_family ? &sp->address : &ia->attr.address);
	json_write_count(json, "port", dapl_qual_port(sp->qual));
	json_write_format(json, "qualifier", "%llu", (unsigned long long)sp->qual);	/* JSON's integers
										 * may have 63 bits */
	json_write_open(json, "services", '[');
	json_write_text(json, NULL, "RC");
	if (listens & SP_UD)
		json_write_text(json, NULL, "UD");
	json_write_close(json, ']');
	json_write_close(json, '}');
}

static const char *write_service_points(struct json_writer *json, struct dapl_ia *ia)
{
	static const enum dapl_kind kinds[] = { DAPL_PSP, DAPL_RSP, DAPL_CSP };
	const char *failed = NULL;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !failed; i++)
		failed = dapl_answer_each_object(json, ia, kinds[i], write_service_point);
	return failed;
}

const char *dapl_service_points_verb(const struct json_object *request, struct json_writer *json, char *why,
				     size_t size)
{
	(void)request, (void)why, (void)size;
	return dapl_answer_each_ia(json, "service_points", write_service_points);
}
