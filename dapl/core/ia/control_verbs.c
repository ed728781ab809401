/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_verbs.c - see control_verbs.h. Enters all objects of a kind first, and reads them then, because
 * the lock of an endpoint is taken before that of its IA. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dat/dat_entries.h>
#include <dat/dat_trace.h>
#include "config.h"
#include "common/clock.h"
#include "common/control.h"
#include "dapl/core/base/control.h"
#include "dapl/core/base/qual.h"
#include "dapl/core/base/registry.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/base/status.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/event/async.h"
#include "dapl/core/ia/control_verbs.h"
#include "dapl/core/ia/counters.h"
#include "dapl/core/ia/tap.h"

static const char no_memory[] = "no memory";

/* --- parts of answers ---------------------------------------------------------------- */

/* The address without its port. Returns `text`, or NULL if the address is unknown. */
static const char *host_text(const struct sockaddr_storage *address, char text[INET6_ADDRSTRLEN])
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET)
		return inet_ntop(AF_INET, &four->sin_addr, text, INET6_ADDRSTRLEN);
	if (address->ss_family == AF_INET6)
		return inet_ntop(AF_INET6, &six->sin6_addr, text, INET6_ADDRSTRLEN);
	return NULL;
}

static void write_address(struct json_writer *json, const char *key, const struct sockaddr_storage *address)
{
	char text[INET6_ADDRSTRLEN];
	const char *host = host_text(address, text);

	if (host)
		json_write_format(json, key, address->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
				  (unsigned)dapl_port_of(address));
	else
		json_write_text(json, key, NULL);
}

static void write_host(struct json_writer *json, const char *key, const struct sockaddr_storage *address)
{
	char text[INET6_ADDRSTRLEN];

	json_write_text(json, key, host_text(address, text));
}

/* The name under which trace records and messages show an object. */
static void write_handle(struct json_writer *json, const void *object)
{
	json_write_format(json, "object", "%p", object);
}

/* --- IAs and objects, entered -------------------------------------------------------- */

struct set {
	struct dapl_object **objects;
	size_t count;
};

static void leave_all(struct set *set)
{
	for (size_t i = 0; i < set->count; i++)
		dapl_object_leave(set->objects[i]);
	free(set->objects);
}

/* Calls `write` for each open IA. Returns NULL or no_memory. */
static const char *each_ia(struct json_writer *json,
			   const char *(*write)(struct json_writer *json, struct dapl_ia *ia))
{
	const char *failed = NULL;
	struct set ias;

	if (!dapl_async_enter_ias(&ias.objects, &ias.count))
		return no_memory;
	for (size_t i = 0; i < ias.count && !failed; i++)
		failed = write(json, (struct dapl_ia *)ias.objects[i]);
	leave_all(&ias);
	return failed;
}

static const char *each_object(struct json_writer *json, struct dapl_ia *ia, enum dapl_kind kind,
			       void (*write)(struct json_writer *json, struct dapl_object *obj))
{
	struct set set;

	if (!dapl_object_enter_all(ia, kind, &set.objects, &set.count))
		return no_memory;
	for (size_t i = 0; i < set.count; i++)
		write(json, set.objects[i]);
	leave_all(&set);
	return NULL;
}

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
	write_host(json, "address", &ia->attr.address);
	write_handle(json, ia);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		json_write_count(json, kinds[i].key, dapl_object_count(ia, kinds[i].kind));
	json_write_close(json, '}');
	return NULL;
}

static const char *list(const struct json_object *request, struct json_writer *json, char *why,
			size_t size)
{
	const char *failed;

	(void)request, (void)why, (void)size;
	json_write_number(json, "pid", getpid());
	json_write_number(json, "uid", geteuid());
	json_write_text(json, "program", program_invocation_short_name);
	json_write_text(json, "provider", dapl_device_ops.name);
	json_write_text(json, "version", PACKAGE_VERSION);
	json_write_count(json, "trace_level", __atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	json_write_open(json, "ias", '[');
	failed = each_ia(json, write_ia);
	json_write_close(json, ']');
	return failed;
}

/* --- parameters ---------------------------------------------------------------------- */

/* Writes null for a value below the range: the device or the path decides. */
static void write_value(struct json_writer *json, const char *key, long value, unsigned long min)
{
	value < (long)min ? json_write_text(json, key, NULL) : json_write_number(json, key, value);
}

static void write_parameter(struct json_writer *json, const struct dapl_parameter *parameter)
{
	static const char *const whens[] = { "now", "next IA", "never" };
	static const char *const origins[] = { "default", "dapl.conf", "environment", "set" };
	enum parameter_origin origin;
	long value = dapl_parameter_value(parameter, &origin);

	json_write_open(json, NULL, '{');
	json_write_text(json, "name", parameter->name);
	write_value(json, "value", value, parameter->min);
	write_value(json, "default", parameter->by_default, parameter->min);
	json_write_count(json, "min", parameter->min);
	json_write_count(json, "max", parameter->max);
	json_write_text(json, "when", whens[parameter->when]);
	json_write_text(json, "from", origins[origin]);
	json_write_close(json, '}');
}

static const char *missing(char *why, size_t size, const char *key)
{
	snprintf(why, size, "the request has no member \"%s\"", key);
	return why;
}

static const char *write_one(struct json_writer *json, const char *name, char *why, size_t size)
{
	struct dapl_parameter parameter;

	if (!dapl_parameter_find(name, &parameter)) {
		snprintf(why, size, "provider %s has no parameter %.40s", dapl_device_ops.name, name);
		return why;
	}
	json_write_open(json, "parameters", '[');
	write_parameter(json, &parameter);
	json_write_close(json, ']');
	return NULL;
}

static const char *get(const struct json_object *request, struct json_writer *json, char *why,
		       size_t size)
{
	const struct json_member *name = json_member(request, "name");
	struct dapl_parameter parameter;

	if (name)
		return write_one(json, name->text, why, size);
	json_write_open(json, "parameters", '[');
	for (unsigned i = 0; dapl_parameter_at(i, &parameter); i++)
		write_parameter(json, &parameter);
	json_write_close(json, ']');
	return NULL;
}

static const char *set(const struct json_object *request, struct json_writer *json, char *why,
		       size_t size)
{
	const struct json_member *name = json_member(request, "name");
	const struct json_member *value = json_member(request, "value");

	if (!name || !value)
		return missing(why, size, name ? "value" : "name");
	if (!dapl_parameter_set(name->text, value->text, why, size))
		return why;
	return write_one(json, name->text, why, size);
}

/* --- trace --------------------------------------------------------------------------- */

/* The registry has a level of its own; registries of other projects lack the function. */
static void set_registry_level(unsigned level)
{
	DAT_TRCLVL_MODIFY_FUNC modify =
		(DAT_TRCLVL_MODIFY_FUNC)dapl_registry_function("dat_trclvl_modify");

	if (modify)
		modify(DAT_TRC_DAT, level);
}

static const char *set_trace(const struct json_object *request, struct json_writer *json, char *why,
			     size_t size)
{
	const struct json_member *level = json_member(request, "level");

	if (!level)
		return missing(why, size, "level");
	json_write_count(json, "was", __atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	if (!dapl_parameter_set("DAPL_TRACE_LEVEL", level->text, why, size))
		return why;
	set_registry_level(__atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	json_write_count(json, "level", __atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	return NULL;
}

static void write_record(void *json, const char *text, size_t length)
{
	json_write_bytes(json, NULL, text, length);
}

static const char *dump(const struct json_object *request, struct json_writer *json, char *why,
			size_t size)
{
	(void)request, (void)why, (void)size;
	json_write_count(json, "level", __atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	json_write_open(json, "records", '[');
	trace_each(write_record, json);
	json_write_close(json, ']');
	return NULL;
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
	write_handle(json, obj);
	write_counters(json, obj);
	json_write_close(json, '}');
}

static const char *write_ia_counters(struct json_writer *json, struct dapl_ia *ia)
{
	const char *failed;

	json_write_open(json, NULL, '{');
	json_write_text(json, "name", ia->ia_attr.adapter_name);
	write_handle(json, ia);
	write_counters(json, &ia->obj);
	json_write_open(json, "endpoints", '[');
	failed = each_object(json, ia, DAPL_EP, write_counted);
	json_write_close(json, ']');
	json_write_open(json, "evds", '[');
	if (!failed)
		failed = each_object(json, ia, DAPL_EVD, write_counted);
	json_write_close(json, ']');
	json_write_close(json, '}');
	return failed;
}

static const char *counters(const struct json_object *request, struct json_writer *json, char *why,
			    size_t size)
{
	const char *failed;

	(void)request, (void)why, (void)size;
	json_write_open(json, "ias", '[');
	failed = each_ia(json, write_ia_counters);
	json_write_close(json, ']');
	return failed;
}

/* --- endpoints ----------------------------------------------------------------------- */

static const char *carrier_of(struct dapl_ep *ep)
{
	if (!ep->conn || !dapl_device_ops.carrier || ep->state != DAT_EP_STATE_CONNECTED)
		return NULL;
	return dapl_device_ops.carrier(ep->conn);
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
	write_handle(json, ep);
	json_write_text(json, "type", ep->is_raw ? "raw" : ep->is_ud ? "UD" : "RC");
	json_write_text(json, "state", dapl_ep_state_name(ep->state));
	json_write_count(json, "seconds", ep->began_ns ?
			 (clock_now_ns() - ep->began_ns) / 1000000000 : 0);
	ep->qp ? json_write_count(json, "qp", ep->qpn) : json_write_text(json, "qp", NULL);
	write_address(json, "local", &ep->local);
	write_address(json, "remote", &ep->remote);
	json_write_text(json, "carrier", carrier_of(ep));
	dapl_mutex_unlock(&ep->lock);
	write_traffic(json, ep);
	json_write_close(json, '}');
}

static const char *write_endpoints(struct json_writer *json, struct dapl_ia *ia)
{
	return each_object(json, ia, DAPL_EP, write_endpoint);
}

static const char *endpoints(const struct json_object *request, struct json_writer *json, char *why,
			     size_t size)
{
	const char *failed;

	(void)request, (void)why, (void)size;
	json_write_open(json, "endpoints", '[');
	failed = each_ia(json, write_endpoints);
	json_write_close(json, ']');
	return failed;
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
	write_handle(json, sp);
	json_write_text(json, "type", service_point_type(sp));
	write_host(json, "address", sp->address.ss_family ? &sp->address : &ia->attr.address);
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
		failed = each_object(json, ia, kinds[i], write_service_point);
	return failed;
}

static const char *service_points(const struct json_object *request, struct json_writer *json, char *why,
				  size_t size)
{
	const char *failed;

	(void)request, (void)why, (void)size;
	json_write_open(json, "service_points", '[');
	failed = each_ia(json, write_service_points);
	json_write_close(json, ']');
	return failed;
}

/* --- reread -------------------------------------------------------------------------- */

typedef DAT_RETURN (*reread_func)(DAT_COUNT *entries);

/* Runs on the service thread: libdat2 waits for loads and unloads of other threads, a second at most. */
static const char *reread(const struct json_object *request, struct json_writer *json, char *why,
			  size_t size)
{
	reread_func reread_files = (reread_func)dapl_registry_function("dats_reread");
	DAT_COUNT entries = 0;
	DAT_RETURN ret;

	(void)request, (void)why, (void)size;
	if (!reread_files)
		return "its registry is not this project's, and reads its files once";
	ret = reread_files(&entries);
	if (DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER)
		return "a file cannot be read, or has a bad line; the program has reported it, and keeps "
		       "the old entries";
	if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED)
		return "libraries are being loaded or unloaded; try again";
	if (ret)
		return "the registry lacks memory or descriptors, and keeps the old entries";
	json_write_number(json, "entries", entries);
	return NULL;
}

/* --- the table ----------------------------------------------------------------------- */

static dapl_control_verb *const verbs[CONTROL_VERBS] = {
	[CONTROL_LIST] = list,
	[CONTROL_GET] = get,
	[CONTROL_SET] = set,
	[CONTROL_TRACE] = set_trace,
	[CONTROL_DUMP] = dump,
	[CONTROL_COUNTERS] = counters,
	[CONTROL_ENDPOINTS] = endpoints,
	[CONTROL_REREAD] = reread,
	[CONTROL_SERVICE_POINTS] = service_points,
	[CONTROL_TAP] = dapl_tap_verb,
};

void dapl_control_verbs_init(void)
{
	dapl_control_serve(verbs, CONTROL_VERBS);
}
