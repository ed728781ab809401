/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* component.c - MCA parameters, the choice of adapters, and the addresses that are published to
 * peers. module.c opens an adapter. */
#include "module.h"
#include "help.h"
#include "ring_poll.h"
#include <dat/dat_messages.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static mca_btl_base_module_t **component_init(int *n, bool progress_threads, bool mpi_threads);

__attribute__((visibility("default")))
mca_btl_udapl_component_t mca_btl_udapl_component = {
	.super = {
		.btl_version = {
			MCA_BTL_DEFAULT_VERSION("udapl"),
			.mca_open_component = component_open,
			.mca_close_component = component_close,
			.mca_register_component_params = component_register,
		},
		.btl_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
		.btl_init = component_init,
		.btl_progress = udapl_progress,
	},
};

/* --- parameters --------------------------------------------------------------------------- */

static void param_text(const char *name, const char *help, char **value)
{
	mca_base_component_var_register(&mca_btl_udapl_component.super.btl_version, name, help,
					MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_2,
					MCA_BASE_VAR_SCOPE_READONLY, value);
}

static void param_int(const char *name, const char *help, int *value)
{
	mca_base_component_var_register(&mca_btl_udapl_component.super.btl_version, name, help,
					MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_4,
					MCA_BASE_VAR_SCOPE_READONLY, value);
}

static void param_bool(const char *name, const char *help, bool *value)
{
	mca_base_component_var_register(&mca_btl_udapl_component.super.btl_version, name, help,
					MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_4,
					MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int component_register(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;

	c->include = NULL;
	param_text("if_include", "Comma-separated list of the interface adapters of dat.conf to use "
		   "(default: all that can be opened). Excludes btl_udapl_if_exclude", &c->include);
	c->exclude = NULL;
	param_text("if_exclude", "Comma-separated list of the interface adapters of dat.conf not to use. "
		   "Excludes btl_udapl_if_include", &c->exclude);
	c->any_network = false;
	param_bool("any_network", "Whether a peer counts as reachable although its address is outside "
		   "the network of the adapter, as behind routers", &c->any_network);
	c->use_srq = true;
	param_bool("use_srq", "Whether the connections of an adapter receive from a shared receive "
		   "queue, where the device has one", &c->use_srq);
	c->srq_depth = 4096;
	param_int("srq_depth", "Receives that a shared receive queue can hold; connections for "
		  "which it has no room have receives of their own", &c->srq_depth);
	c->credits = 24;
	param_int("credits", "Receives posted for a connection: messages that may be sent before "
		  "the peer has processed one (at least 4)", &c->credits);
	c->requests = 64;
	param_int("requests", "Sends and RDMA operations that a connection can have under way "
		  "(at least 4)", &c->requests);
	c->eager_rdma = true;
	param_bool("eager_rdma", "Whether short messages of busy peers are written into a ring in "
		   "memory, which the receiver polls, instead of being sent", &c->eager_rdma);
	c->eager_messages = 256;
	param_int("eager_rdma_num", "Room of the first such ring, in messages as large as the eager limit "
		  "(at least 4; 2 MiB at most); the next, and those of other hosts, have a sixteenth or less",
		  &c->eager_messages);
	c->eager_threshold = 16;
	param_int("eager_rdma_threshold", "Messages of a peer after which it gets a ring",
		  &c->eager_threshold);
	c->eager_peers = 16;
	param_int("max_eager_rdma", "Peers that get a ring, for each adapter", &c->eager_peers);
	c->connect_timeout = 30;
	param_int("connect_timeout", "Seconds until an attempt to connect is given up",
		  &c->connect_timeout);
	c->connect_retries = 3;
	param_int("connect_retries", "Attempts to connect that follow a failed one",
		  &c->connect_retries);
	c->free_list_inc = 32;
	param_int("free_list_inc", "Buffers by which a list grows", &c->free_list_inc);
	return mca_btl_base_param_register(&c->super.btl_version, &mca_btl_udapl_template.super);
}

static int clamp(int value, int least, int most)
{
	return value < least ? least : value > most ? most : value;
}

static int component_open(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;

	c->credits = clamp(c->credits, 4, 0x7fff);
	c->requests = clamp(c->requests, 4, 0x7fff);
	c->eager_messages = clamp(c->eager_messages, UDAPL_RING_MIN_MESSAGES, 0x7fff);
	c->eager_peers = clamp(c->eager_peers, 0, 1 << 20);
	c->connect_timeout = clamp(c->connect_timeout, 1, 2000);
	c->free_list_inc = clamp(c->free_list_inc, 1, 4096);
	c->modules = NULL;
	c->num_modules = 0;
	udapl_add_help_dir();
	return OPAL_SUCCESS;
}

static int component_close(void)
{
	free(mca_btl_udapl_component.modules);
	mca_btl_udapl_component.modules = NULL;
	return OPAL_SUCCESS;
}

/* --- adapters -------------------------------------------------------------------------------- */

static bool in_list(char **list, const char *name)
{
	for (; list && *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

/* Two names may stand for one adapter. */
static bool opened_already(const mca_btl_udapl_module_t *m)
{
	const mca_btl_udapl_component_t *c = &mca_btl_udapl_component;

	for (int i = 0; i < c->num_modules; i++)
		if (!memcmp(&c->modules[i]->address.at, &m->address.at, sizeof m->address.at))
			return true;
	return false;
}

static void open_adapter(const char *name)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;
	mca_btl_udapl_module_t *m = udapl_module_open(name);

	if (m && opened_already(m)) {
		opal_output_verbose(10, opal_btl_base_framework.framework_output,
				    "btl:udapl: %s has the address of another adapter; not used",
				    name);
		udapl_finalize(&m->super);
		m = NULL;
	}
	if (m)
		c->modules[c->num_modules++] = m;
}

static void report_missing(char **wanted, const DAT_PROVIDER_INFO *known, int n)
{
	for (; wanted && *wanted; wanted++) {
		bool found = false;

		for (int i = 0; i < n; i++)
			found |= !strcmp(known[i].ia_name, *wanted);
		if (!found && udapl_is_first_on_node())
			udapl_show_help("no such adapter", opal_process_info.nodename, *wanted);
	}
}

/* Reads up to `room` entries of dat.conf. Returns their number, -1 if it fails. */
static int read_entries(DAT_PROVIDER_INFO *info, int room)
{
	DAT_PROVIDER_INFO **list = calloc(room, sizeof *list);
	DAT_COUNT n = 0;
	DAT_RETURN rc;

	if (!list)
		return -1;
	for (int i = 0; i < room; i++)
		list[i] = &info[i];
	rc = dat_registry_list_providers(room, &n, list);
	free(list);
	return rc != DAT_SUCCESS ? -1 : n < room ? n : room;
}

/* Returns all entries of dat.conf, to be freed by the caller; NULL if that fails. The registry says how many it
 * has returned, not how many there are: a full array may be too short. */
static DAT_PROVIDER_INFO *all_entries(int *n)
{
	for (int room = UDAPL_FIRST_IAS; ; room *= 2) {
		DAT_PROVIDER_INFO *info = calloc(room, sizeof *info);

		*n = info ? read_entries(info, room) : -1;
		if (*n >= 0 && *n < room)
			return info;
		free(info);
		if (*n < 0)
			return NULL;
	}
}

/* What the libraries report while this thread opens adapters. dat.conf may have many entries that no adapter of this
 * node backs, and each process tries them all. */
static __thread struct {
	bool active, quiet;		/* quiet: no adapter was asked for by name */
	char first[256];		/* what was reported first */
} probe;

static DAT_BOOLEAN take_message(const DAT_MESSAGE *message)
{
	if (!probe.active)
		return DAT_FALSE;
	if (!*probe.first)
		snprintf(probe.first, sizeof probe.first, "%s: %s", message->library, message->text);
	return probe.quiet || !udapl_is_first_on_node() ? DAT_TRUE : DAT_FALSE;
}

/* The registry of another project has no such function. */
static void set_message_handler(DAT_MESSAGE_HANDLER handler)
{
	void (*set)(DAT_MESSAGE_HANDLER) = (void (*)(DAT_MESSAGE_HANDLER))(uintptr_t)
		dlsym(RTLD_DEFAULT, "dats_set_message_handler");

	if (set)
		set(handler);
}

static void begin_probe(bool quiet)
{
	probe.active = true;
	probe.quiet = quiet;
	probe.first[0] = '\0';
	set_message_handler(take_message);
}

/* One line a node, if no entry opened. */
static void end_probe(void)
{
	set_message_handler(NULL);
	probe.active = false;
	if (probe.quiet && *probe.first && !mca_btl_udapl_component.num_modules && udapl_is_first_on_node())
		opal_output(0, "btl:udapl: %s: no entry of dat.conf can be opened; the first: %s",
			    opal_process_info.nodename, probe.first);
}

static void open_adapters(char **include, char **exclude)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;
	int n;
	DAT_PROVIDER_INFO *info = all_entries(&n);

	if (info && (c->modules = calloc(n + 1, sizeof *c->modules)) != NULL) {
		report_missing(include, info, n);
		begin_probe(!include);
		for (int i = 0; i < n; i++)
			if (include ? in_list(include, info[i].ia_name)
				    : !in_list(exclude, info[i].ia_name))
				open_adapter(info[i].ia_name);
		end_probe();
	}
	free(info);
}

static int publish_addresses(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;
	struct udapl_address *all = calloc(c->num_modules, sizeof *all);
	int rc;

	if (!all)
		return OPAL_ERR_OUT_OF_RESOURCE;
	for (int i = 0; i < c->num_modules; i++)
		all[i] = c->modules[i]->address;
	OPAL_MODEX_SEND(rc, UDAPL_MODEX_SCOPE, &c->super.btl_version, all,
			c->num_modules * sizeof *all);
	free(all);
	return rc;
}

static void close_all(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;

	while (c->num_modules > 0)
		udapl_finalize(&c->modules[c->num_modules - 1]->super);
}

static mca_btl_base_module_t **component_init(int *n, bool progress_threads, bool mpi_threads)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;
	char **include = c->include && *c->include ? opal_argv_split(c->include, ',') : NULL;
	char **exclude = c->exclude && *c->exclude ? opal_argv_split(c->exclude, ',') : NULL;
	mca_btl_base_module_t **result = NULL;

	(void)progress_threads;
	(void)mpi_threads;
	*n = 0;
	if (!include || !exclude)
		open_adapters(include, exclude);
	else if (udapl_is_first_on_node())
		udapl_show_help("include and exclude");
	opal_argv_free(include);
	opal_argv_free(exclude);
	if (c->num_modules > 0 && publish_addresses() == OPAL_SUCCESS)
		result = malloc(c->num_modules * sizeof *result);
	if (!result) {
		close_all();
		return NULL;
	}
	/* Open MPI frees the array, and calls finalize of each module. */
	for (int i = 0; i < c->num_modules; i++)
		result[i] = &c->modules[i]->super;
	*n = c->num_modules;
	return result;
}
