/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* links.c - checks whether the parts of RDMA are present, loads kernel modules, and makes and removes
 * software RDMA devices of the kernel (ctl.h). It runs the programs modprobe and rdma. */
#include <dat/udat.h>
#include <dat/dat_entries.h>
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/control/owner.h"
#include "tools/control/rdma_objects.h"
#include "tools/control/run.h"
#include "tools/ctl/ctl.h"
#include "tools/info/output.h"
#include "tools/info/system.h"
#include "tools/messages.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const modules[] = { "ib_uverbs", "rdma_ucm" };
enum { MODULES = sizeof modules / sizeof *modules };

/* --- are they there? ----------------------------------------------------------------------- */

static void add_part(json_t *parts, const char *part, bool there, bool needed, json_t *detail)
{
	json_t *row = json_object();

	output_set(row, "part", output_text(part));
	output_set(row, "there", json_boolean(there));
	output_set(row, "needed", json_boolean(needed));
	output_set(row, "detail", detail);
	output_append(parts, row);
}

static bool is_software(const char *library)
{
	const char *slash = strrchr(library, '/');

	return !strncmp(slash ? slash + 1 : library, "libdaplsoft.", 12);
}

static bool is_first(const DAT_ENTRY *entries, DAT_COUNT index)
{
	for (DAT_COUNT i = 0; i < index; i++)
		if (entries[i].is_default && !strcmp(entries[i].library, entries[index].library))
			return false;
	return entries[index].is_default;
}

static void add_library(json_t *parts, const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	const char *why = handle ? NULL : dlerror();

	add_part(parts, library, handle != NULL, true, output_text(handle ? "provider library" : why));
	if (handle)
		dlclose(handle);
}

/* Returns the path of the dat.conf that the registry reads. */
static const char *configuration_file(char path[PATH_MAX])
{
	const char *override = getenv("DAT_OVERRIDE");

	if (override && *override)
		snprintf(path, PATH_MAX, "%s", override);
	else
		system_path(path, "%s", SYSCONFDIR "/dat.conf");
	return path;
}

static void add_file(json_t *parts, DAT_COUNT usable, bool drop_ins)
{
	char path[PATH_MAX];
	bool there = !access(configuration_file(path), F_OK);
	const char *s = usable == 1 ? "" : "s";
	json_t *detail;

	if (there)
		detail = output_format("%d adapter%s (datinfo)", (int)usable, s);
	else if (!usable)
		detail = output_text("there is no such file");
	else
		detail = output_format("there is no such file; %d adapter%s (datinfo) of devices present%s",
				       (int)usable, s, drop_ins ? " and dat.conf.d" : "");
	add_part(parts, path, there && usable, there || !usable, detail);
}

/* Returns whether an entry needs RDMA of the kernel. */
static bool add_configuration(json_t *parts)
{
	DAT_ENTRY *entries = NULL;
	DAT_COUNT count = 0, usable = 0;
	bool kernel = false, drop_ins = false, failed;
	const char *cause;

	messages_hold();
	failed = dats_list_entries(&entries, &count) != DAT_SUCCESS;
	cause = messages_release(failed);
	if (failed)
		fail("%s", cause ? cause : "the registry has not enough memory or descriptors to read dat.conf");
	for (DAT_COUNT i = 0; i < count; i++) {
		usable += entries[i].is_default;
		drop_ins |= entries[i].is_default && entries[i].origin == DAT_ENTRY_DROP_IN;
		kernel |= entries[i].is_default && !is_software(entries[i].library);
	}
	add_file(parts, usable, drop_ins);
	for (DAT_COUNT i = 0; i < count; i++)
		if (is_first(entries, i))
			add_library(parts, entries[i].library);
	free(entries);
	return kernel;
}

static void add_modules(json_t *parts, bool needed)
{
	char path[PATH_MAX];

	for (int i = 0; i < MODULES; i++) {
		bool there = !access(system_path(path, "/sys/module/%s", modules[i]), F_OK);

		add_part(parts, modules[i], there, needed,
			 output_text(there ? "kernel module" : "kernel module: datctl -l, or modprobe"));
	}
}

static void add_devices(json_t *parts, bool needed)
{
	json_t *names = system_rdma_devices(), *name;
	char state[32];
	size_t i;

	json_array_foreach(names, i, name) {
		const char *device = json_string_value(name);

		add_part(parts, device, true, false, output_format("RDMA device, port 1 %s",
			 system_port_state(state, device, 0)));
	}
	if (!json_array_size(names))
		add_part(parts, "RDMA device", false, needed,
			 output_text("none: a driver of the adapter, or datctl -l rxe:INTERFACE"));
	json_decref(names);
}

static json_t *find_users(void)
{
	json_t *answers = control_ask_all(0, CONTROL_LIST, NULL), *users = json_array(), *answer, *ia;
	size_t i, j;

	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "ias"), j, ia) {
			json_t *user = json_object();

			output_set(user, "pid", json_incref(json_object_get(answer, "pid")));
			owner_add(user);
			output_set(user, "program", output_text(output_get(answer, "program")));
			output_set(user, "ia", output_text(output_get(ia, "name")));
			output_set(user, "device", output_text(output_get(ia, "device")));
			output_append(users, user);
		}
	json_decref(answers);
	return users;
}

static void print_query(const json_t *parts, const json_t *users)
{
	static const char *const heads[] = { "PART", "STATE", "WHAT" };
	static const char *const user_heads[] = { "PID", "USER", "PROGRAM", "IA", "DEVICE" };
	struct table *table = table_new(3, heads);
	json_t *row;
	size_t i;

	json_array_foreach(parts, i, row) {
		bool there = json_is_true(json_object_get(row, "there"));
		const char *cells[] = { output_get(row, "part"), there ? "there" :
			json_is_true(json_object_get(row, "needed")) ? "missing" : "not needed",
			output_get(row, "detail") };

		table_add(table, cells);
	}
	table_print(table, 0);
	if (!json_array_size(users))
		return;
	putchar('\n');
	table = table_new(5, user_heads);
	json_array_foreach(users, i, row) {
		char pid[24];
		const char *cells[] = { output_get_number(pid, row, "pid"), output_get(row, "user"),
			output_get(row, "program"), output_get(row, "ia"), output_get(row, "device") };

		table_add(table, cells);
	}
	table_print(table, 0);
}

int ctl_query(bool json)
{
	json_t *parts = json_array(), *users = find_users(), *row, *all;
	bool complete = true, kernel = add_configuration(parts);
	size_t i;

	add_modules(parts, kernel);
	add_devices(parts, kernel);
	json_array_foreach(parts, i, row)
		complete &= json_is_true(json_object_get(row, "there")) ||
			    !json_is_true(json_object_get(row, "needed"));
	if (!json) {
		print_query(parts, users);
		json_decref(parts);
		json_decref(users);
		return complete ? control_status() : CLI_FAILURE;
	}
	all = json_object();
	output_set(all, "complete", json_boolean(complete));
	output_set(all, "parts", parts);
	output_set(all, "users", users);
	output_json(all);
	return complete ? control_status() : CLI_FAILURE;
}

/* --- make and remove ------------------------------------------------------------------------ */

static void need_root(const char *what)
{
	if (geteuid())
		fail("%s needs root", what);
}

static void run_or_fail(const char *program, const char *const *arguments)
{
	struct run_output output;
	int status = run_program(program, arguments, &output);

	free(output.text);
	if (status)
		fail("%s%s%s", strstr(output.error, program) ? "" : program,
		     strstr(output.error, program) ? "" : ": ",
		     *output.error ? output.error : "failed without a message");
}

static void load_module(const char *name)
{
	const char *const arguments[] = { "--", name, NULL };
	struct run_output output;
	char path[PATH_MAX];
	int status;

	if (!access(system_path(path, "/sys/module/%s", name), F_OK))
		return;
	status = run_program("modprobe", arguments, &output);
	free(output.text);
	if (status)
		fail("the kernel module %s cannot be loaded%s%s", name, *output.error ? ": " : "",
		     *output.error ? output.error : "; this kernel may lack it");
}

/* Writes the name of the device to make: rxe_eth0 for "rxe:eth0". */
static void name_new_device(char *name, size_t size, const char *type, const char *interface)
{
	char path[PATH_MAX];

	if (snprintf(name, size, "%s_%s", type, interface) >= (int)size ||
	    !system_interface(interface).exists)
		fail("there is no network interface %s", interface);
	if (!access(system_path(path, "/sys/class/infiniband/%s", name), F_OK))
		fail("there is a device %s already", name);
}

static void make_device(const char *name, const char *type, const char *interface)
{
	const char *const arguments[] = { "link", "add", name, "type", type, "netdev", interface, NULL };

	load_module(!strcmp(type, "rxe") ? "rdma_rxe" : "siw");
	run_or_fail("rdma", arguments);
	printf("%s\n", name);
}

int ctl_load(const char *what)
{
	const char *interface = what ? strchr(what, ':') : NULL;
	char type[4] = "", name[64];

	if (what && !strcmp(what, "soft")) {
		puts("the software device needs no kernel module; ofa-v2-soft in dat.conf opens it");
		return 0;
	}
	if (interface && interface - what == 3)
		memcpy(type, what, 3);
	if (what && ((strcmp(type, "rxe") && strcmp(type, "siw")) || !interface[1] ||
		     strchr(interface, '/')))
		usage_error("--load: \"%s\" found, soft, rxe:INTERFACE or siw:INTERFACE expected", what);
	need_root("--load");
	if (what)
		name_new_device(name, sizeof name, type, interface + 1);
	for (int i = 0; i < MODULES; i++)
		load_module(modules[i]);
	if (what)
		make_device(name, type, interface + 1);
	return 0;
}

/* Describes the last object of a kind in `text`. Leaves `text` alone if there is none. */
static void find_objects(enum rdma_kind kind, const char *device, char *text, size_t size)
{
	static const char *const names[RDMA_KINDS] = { "a context", "a PD", "an MR", "a CQ", "a QP" };
	json_t *objects = rdma_objects(kind, device), *row;
	size_t i;

	json_array_foreach(objects, i, row)
		snprintf(text, size, "process %lld (%s), which has %s",
			 (long long)json_integer_value(json_object_get(row, "pid")),
			 output_get(row, "program"), names[kind]);
	json_decref(objects);
}

/* Describes a program that uses the device, or makes `text` empty if no program does. Later descriptions
 * replace earlier ones: QPs come after other objects of the kernel, and control sockets, which report
 * the IA, come last. */
static void find_use(const char *device, char *text, size_t size)
{
	json_t *users = find_users(), *row;
	size_t i;

	*text = 0;
	for (enum rdma_kind kind = RDMA_CONTEXT; kind <= RDMA_QP; kind++)
		find_objects(kind, device, text, size);
	json_array_foreach(users, i, row)
		if (!strcmp(output_get(row, "device"), device))
			snprintf(text, size, "process %lld (%s) as IA %s",
				 (long long)json_integer_value(json_object_get(row, "pid")),
				 output_get(row, "program"), output_get(row, "ia"));
	json_decref(users);
}

static void refuse_if_used(const char *device)
{
	char use[512];

	find_use(device, use, sizeof use);
	if (*use)
		fail("%s is used by %s", device, use);
}

int ctl_unload(const char *name)
{
	const char *const arguments[] = { "link", "delete", name, NULL };
	char path[PATH_MAX];

	if (!*name || strchr(name, '/') || *name == '-' || *name == '.')
		usage_error("--unload: \"%s\" found, the name of an RDMA device expected", name);
	need_root("--unload");
	if (access(system_path(path, "/sys/class/infiniband/%s", name), F_OK))
		fail("there is no RDMA device %s (datinfo --devices)", name);
	refuse_if_used(name);
	run_or_fail("rdma", arguments);
	return 0;
}
