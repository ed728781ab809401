/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remedy.c - see remedy.h. Evaluates the id of the libraries' message about the failure first. For RDMA devices it
 * also examines the system, because verbs reports most causes as "no such device". */
#include "tools/info/remedy.h"
#include "tools/info/output.h"
#include "tools/info/probe.h"
#include "tools/info/system.h"
#include "common/message_ids.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RAW "raw:"

struct failure {
	const DAT_ENTRY *entry;
	const json_t *probe;
	const char *message;
	char name[256];		/* first word of ia_params, without "raw:" */
	bool raw;		/* it has "raw:" before it: no IP address is needed */
	unsigned port;
};

static bool found(struct remedy *r, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static bool found(struct remedy *r, const char *fix, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->cause, sizeof r->cause, fmt, args);
	va_end(args);
	snprintf(r->fix, sizeof r->fix, "%s", fix);
	return true;
}

/* Returns "correct WHAT in FILE:LINE", or other words if the entry is not from a file. */
static const char *correct(const struct failure *f, const char *what)
{
	static char text[400];

	if (f->entry->file)
		snprintf(text, sizeof text, "correct %s in %.300s:%u", what, f->entry->file,
			 (unsigned)f->entry->line);
	else
		snprintf(text, sizeof text, "give it an entry of its own in dat.conf");
	return text;
}

static bool is_message(const struct failure *f, enum log_id id)
{
	static const char *const ids[REPORT_COUNT] = {
#define X(name, id, priority, title) id,
		LOG_MESSAGES(X)
#undef X
	};

	return !strcmp(output_get(f->probe, "message_id"), ids[id]);
}

/* --- libraries ------------------------------------------------------------------------ */

/* Returns the rest of the message behind the name of the library, or NULL. */
static const char *reason_of(const struct failure *f)
{
	char before[PATH_MAX + 2];
	const char *at;

	snprintf(before, sizeof before, "%s: ", f->entry->library);
	at = strstr(f->message, before);
	return at ? at + strlen(before) : NULL;
}

/* Whether the library needs another one that is missing. Stores the name of the missing file in `other`: the
 * text of the dynamic linker begins with it. */
static bool needs_another(const struct failure *f, const char *why, char *other, size_t size)
{
	snprintf(other, size, "%.*s", (int)strcspn(why, ":"), why);
	return strstr(why, strerror(ENOENT)) && strcmp(other, f->entry->library) != 0;
}

static bool library_fault(struct remedy *r, const struct failure *f)
{
	bool loaded = is_message(f, REPORT_NO_PROVIDER);
	const char *why = reason_of(f);
	char fix[512], other[128];

	if (!why || !(loaded || is_message(f, REPORT_LIBRARY_NOT_LOADED)))
		return false;
	if (loaded)
		snprintf(fix, sizeof fix, "%s", correct(f, "lib_path"));
	else if (needs_another(f, why, other, sizeof other))
		snprintf(fix, sizeof fix, "install the library %s, which it needs", other);
	else if (!strchr(f->entry->library, '/'))
		snprintf(fix, sizeof fix, "install the package with this library and run ldconfig, or give "
			 "its whole path as lib_path");
	else
		snprintf(fix, sizeof fix, "install it there, or %s", correct(f, "lib_path"));
	return found(r, fix, "cannot load %s: %s", f->entry->library, why);
}

static bool registration_fault(struct remedy *r, const struct failure *f)
{
	const char *at = strstr(f->message, "dat_provider_init");

	if (!is_message(f, REPORT_NOT_REGISTERED))
		return false;
	return found(r, correct(f, "api_version or threadsafety"), "%s", at ? at : f->message);
}

static bool process_fault(struct remedy *r, const struct failure *f)
{
	const char *state = output_get(f->probe, "state");

	if (!strcmp(state, "crashed"))
		return found(r, "replace the library, or report this to its supplier",
			     "%s crashed while it opened the adapter (signal %s)", f->entry->library,
			     output_get(f->probe, "signal"));
	if (!strcmp(state, "hung"))
		return found(r, "see the trace: DAPL_TRACE_LEVEL=7 with a program that opens it",
			     "%s did not answer in time", f->entry->library);
	return false;
}

/* --- locked memory ---------------------------------------------------------------------- */

static bool memlock_fault(struct remedy *r, const struct failure *f)
{
	struct rlimit limit;

	if (strncmp(output_get(f->probe, "call"), "dat_lmr", 7) &&
	    !is_message(f, REPORT_MEMLOCK) &&
	    json_integer_value(json_object_get(f->probe, "message_error")) != ENOMEM)
		return false;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return false;
	return found(r, "ulimit -l unlimited, memlock in /etc/security/limits.conf, or LimitMEMLOCK= of "
		     "the service", "memory cannot be registered: a process may lock %llu KiB here, and "
		     "%u KiB are needed at least", (unsigned long long)limit.rlim_cur >> 10,
		     (unsigned)PROBE_BYTES >> 10);
}

/* --- interfaces and devices --------------------------------------------------------------- */

static bool interface_fault(struct remedy *r, const struct failure *f)
{
	struct system_interface state = system_interface(f->name);
	char fix[320];

	if (!state.exists)
		return false;
	if (!state.up) {
		snprintf(fix, sizeof fix, "ip link set dev %s up", f->name);
		return found(r, fix, "network interface %s is down", f->name);
	}
	if (!state.has_address && !f->raw) {
		snprintf(fix, sizeof fix, "ip address add ADDRESS/PREFIX dev %s", f->name);
		return found(r, fix, "network interface %s has no IP address", f->name);
	}
	return false;
}

static bool nothing_by_that_name(struct remedy *r, const struct failure *f, bool verbs)
{
	json_t *devices = system_rdma_devices(), *interfaces = system_interfaces();
	char rdma[256], net[256];

	system_join(rdma, sizeof rdma, devices, "none");
	system_join(net, sizeof net, interfaces, "none");
	json_decref(devices);
	json_decref(interfaces);
	if (verbs)
		return found(r, correct(f, "ia_params"), "\"%s\" is no RDMA device, network interface or "
			     "address of this host; RDMA devices: %s; interfaces: %s", f->name, rdma, net);
	return found(r, correct(f, "ia_params"), "\"%s\" is no network interface%s of this host; "
		     "interfaces: %s", f->name, f->raw ? "" : " or address", net);
}

bool remedy_device(struct remedy *r, const char *device)
{
	char node[PATH_MAX], cm[PATH_MAX], rights[128], dir[PATH_MAX];
	const char *path;

	system_verbs_node(node, device);
	system_path(cm, "/dev/infiniband/rdma_cm");
	if (!*node)
		return found(r, "modprobe ib_uverbs", "the kernel offers no verbs for %s", device);
	for (int i = 0; i < 2; i++) {
		path = i ? cm : node;
		if (access(path, F_OK))
			return found(r, i ? "modprobe rdma_ucm" : "modprobe ib_uverbs, or make the node visible "
				     "in the container", "there is no %s", path);
		if (access(path, R_OK | W_OK))
			return found(r, "add the user to that group, or let a udev rule give it the mode 0666",
				     "no permission for %s (%s)", path, system_rights(rights, path));
	}
	if (!system_has_driver(device))
		return found(r, "install ibverbs-providers (Debian) or libibverbs (Fedora)",
			     "libibverbs has no driver for %s in %s", device, system_driver_dir(dir));
	return false;
}

static bool port_fault(struct remedy *r, const struct failure *f, const char *device)
{
	json_t *ports = system_names("/sys/class/infiniband/%s/ports", device);
	char state[32], list[128];

	system_join(list, sizeof list, ports, "none");
	json_decref(ports);
	system_port_state(state, device, f->port);
	if (!*state)
		return found(r, correct(f, "ia_params"), "RDMA device %s has no port %u; its ports: %s", device,
			     f->port, list);
	if (strcmp(state, "ACTIVE") != 0)
		return found(r, "check cable, switch and the state of the network interface",
			     "the link of %s port %u is down (%s)", device, f->port ? f->port : 1, state);
	return false;
}

static bool verbs_fault(struct remedy *r, const struct failure *f)
{
	json_t *devices = system_rdma_devices(), *name;
	char device[SYSTEM_NAME] = "", list[256];
	bool known = false, any = json_array_size(devices) > 0;
	size_t i;

	json_array_foreach(devices, i, name)
		known |= !strcmp(json_string_value(name), f->name);
	system_join(list, sizeof list, devices, "none");
	json_decref(devices);
	if (!any)
		return found(r, "load the driver of the device, or use the software device "
			     "(libdaplsoft.so.2)", "this machine has no RDMA device");
	if (known)
		snprintf(device, sizeof device, "%s", f->name);
	else if (interface_fault(r, f))
		return true;
	else if (system_device_of(device, f->name))
		;
	else if (system_interface(f->name).exists || system_has_address(f->name))
		return found(r, correct(f, "ia_params"), "%s has no RDMA device; RDMA devices: %s", f->name,
			     list);
	else
		return nothing_by_that_name(r, f, true);
	return remedy_device(r, device) || port_fault(r, f, device);
}

static bool soft_fault(struct remedy *r, const struct failure *f)
{
	if (!is_message(f, REPORT_NO_ADDRESS))
		return false;
	return interface_fault(r, f) || nothing_by_that_name(r, f, false);
}

/* Whether the form of ia_params, or an option behind them, is wrong. */
static bool params_fault(struct remedy *r, const struct failure *f)
{
	if (!is_message(f, REPORT_BAD_PARAMS))
		return false;
	return found(r, correct(f, "ia_params"), "%s", f->message);
}

/* Whether the entry's library is one for RDMA devices, not the software device. */
static bool is_verbs(const DAT_ENTRY *entry)
{
	return strstr(entry->library, "libdaplofa") || strstr(entry->library, "libdaploscm") ||
	       strstr(entry->library, "libdaploucm") || strstr(entry->library, "libdaplcma");
}

static bool device_fault(struct remedy *r, const struct failure *f)
{
	if (params_fault(r, f))
		return true;
	if (is_verbs(f->entry))
		return verbs_fault(r, f);
	return soft_fault(r, f);
}

/* --- all of it ------------------------------------------------------------------------------ */

static void read_params(struct failure *f)
{
	unsigned port = 0;

	if (sscanf(f->entry->ia_params, "%255s %u", f->name, &port) < 1)
		f->name[0] = '\0';
	f->port = port;
	f->raw = !is_verbs(f->entry) && !strncmp(f->name, RAW, strlen(RAW));
	if (f->raw)
		memmove(f->name, f->name + strlen(RAW), strlen(f->name + strlen(RAW)) + 1);
}

/* An IA that opens may still be useless: it cannot register memory, or its port is down. */
static bool check_open_adapter(struct remedy *r, const struct failure *f)
{
	const json_t *named = json_object_get(f->probe, "named");

	if (*output_get(f->probe, "call"))
		return memlock_fault(r, f) ||
		       found(r, "see MEMORY in dapl(7)", "%s: %s", output_get(f->probe, "call"),
			     *f->message ? f->message : output_get(f->probe, "result"));
	if (!strcmp(output_get(named, "DAT_IB_PORT_STATUS"), "PORT_DOWN"))
		return found(r, "check cable, switch and the state of the network interface",
			     "the link of %s is down", output_get(named, "DAT_IB_DEVICE_NAME"));
	return false;
}

bool remedy_find(struct remedy *r, const DAT_ENTRY *entry, const json_t *probe)
{
	struct failure f = { .entry = entry, .probe = probe, .message = output_get(probe, "message") };

	read_params(&f);
	if (!strcmp(output_get(probe, "state"), "open"))
		return check_open_adapter(r, &f);
	if (process_fault(r, &f) || library_fault(r, &f) || registration_fault(r, &f) ||
	    device_fault(r, &f) || memlock_fault(r, &f))
		return true;
	return found(r, "DAPL_TRACE_LEVEL=7 shows the steps of a program that opens it", "%s: %s",
		     output_get(probe, "call"), *f.message ? f.message : output_get(probe, "result"));
}
