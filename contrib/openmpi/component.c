/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* component.c - parameters, which adapters are opened, what peers are told of them.
 * What is done with an adapter is module.c's job. */
#include "udapl.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"

/* The length of the lists of names that are asked for. */
enum { MAX_IAS = 64 };

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
		.btl_data = { MCA_BASE_METADATA_PARAM_NONE },
		.btl_init = component_init,
		.btl_progress = udapl_progress,
	},
};

/* --- parameters --------------------------------------------------------------------------- */

static void text(const char *name, const char *help, char **value)
{
	mca_base_component_var_register(&mca_btl_udapl_component.super.btl_version, name, help,
					MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_2,
					MCA_BASE_VAR_SCOPE_READONLY, value);
}

static void number(const char *name, const char *help, int *value)
{
	mca_base_component_var_register(&mca_btl_udapl_component.super.btl_version, name, help,
					MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_4,
					MCA_BASE_VAR_SCOPE_READONLY, value);
}

static void yes_no(const char *name, const char *help, bool *value)
{
	mca_base_component_var_register(&mca_btl_udapl_component.super.btl_version, name, help,
					MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_4,
					MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int component_register(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;

	c->include = NULL;
	text("if_include", "Comma-separated list of the interface adapters of dat.conf to use "
	     "(default: all that can be opened). Excludes btl_udapl_if_exclude", &c->include);
	c->exclude = NULL;
	text("if_exclude", "Comma-separated list of the interface adapters of dat.conf not to use. "
	     "Excludes btl_udapl_if_include", &c->exclude);
	c->any_network = false;
	yes_no("any_network", "Whether a peer is thought reachable though its address is not in "
	       "the network of the adapter, as over routers", &c->any_network);
	c->use_srq = true;
	yes_no("use_srq", "Whether the connections of an adapter receive from a shared receive "
	       "queue, where the device has one", &c->use_srq);
	c->srq_depth = 4096;
	number("srq_depth", "Receives that a shared receive queue can hold; connections for "
	       "which it has no room have receives of their own", &c->srq_depth);
	c->credits = 24;
	number("credits", "Receives posted for a connection: messages that may be sent before "
	       "the peer has processed one (at least 4)", &c->credits);
	c->requests = 64;
	number("requests", "Sends and RDMA operations that a connection can have under way "
	       "(at least 4)", &c->requests);
	c->eager_rdma = true;
	yes_no("eager_rdma", "Whether short messages of busy peers are written into a ring in "
	       "memory, which the receiver polls, instead of being sent", &c->eager_rdma);
	c->eager_messages = 16;
	number("eager_rdma_num", "Room of the first such ring, in messages as large as the eager limit "
	       "(at least 4); the next have less", &c->eager_messages);
	c->eager_threshold = 16;
	number("eager_rdma_threshold", "Messages of a peer after which it gets a ring",
	       &c->eager_threshold);
	c->eager_peers = 16;
	number("max_eager_rdma", "Peers that get a ring, for each adapter", &c->eager_peers);
	c->connect_timeout = 30;
	number("connect_timeout", "Seconds until an attempt to connect is given up",
	       &c->connect_timeout);
	c->connect_retries = 3;
	number("connect_retries", "Attempts to connect that follow a failed one",
	       &c->connect_retries);
	c->free_list_inc = 32;
	number("free_list_inc", "Buffers by which a list grows", &c->free_list_inc);
	return mca_btl_base_param_register(&c->super.btl_version, &mca_btl_udapl_template.super);
}

static int at_least(int value, int least, int most)
{
	return value < least ? least : value > most ? most : value;
}

/* The texts for users are where the component is. */
static void find_help(void)
{
	Dl_info info;
	char *dir, *slash;

	if (!dladdr(&mca_btl_udapl_component, &info) || !(dir = strdup(info.dli_fname)))
		return;
	slash = strrchr(dir, '/');
	if (slash) {
		*slash = '\0';
		opal_show_help_add_dir(dir);
	}
	free(dir);
}

static int component_open(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;

	c->credits = at_least(c->credits, 4, 0x7fff);
	c->requests = at_least(c->requests, 4, 0x7fff);
	c->eager_messages = at_least(c->eager_messages, UDAPL_LEAST_IN_RING, 0x7fff);
	c->connect_timeout = at_least(c->connect_timeout, 1, 2000);
	c->free_list_inc = at_least(c->free_list_inc, 1, 4096);
	c->modules = NULL;
	c->num_modules = 0;
	find_help();
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

void udapl_tell(const char *topic, ...)
{
	va_list args;
	char *text;

	va_start(args, topic);
	text = opal_show_help_vstring("help-mpi-btl-udapl.txt", topic, true, args);
	va_end(args);
	if (text)
		fputs(text, stderr);
	free(text);
}

static void complain_of_missing(char **wanted, DAT_PROVIDER_INFO **known, int n)
{
	for (; wanted && *wanted; wanted++) {
		bool found = false;

		for (int i = 0; i < n; i++)
			found |= !strcmp(known[i]->ia_name, *wanted);
		if (!found && udapl_speaks_for_node())
			udapl_tell("no such adapter", opal_process_info.nodename, *wanted);
	}
}

static void open_adapters(char **include, char **exclude)
{
	DAT_PROVIDER_INFO *info = calloc(MAX_IAS, sizeof *info), *list[MAX_IAS];
	DAT_COUNT n = 0;

	for (int i = 0; info && i < MAX_IAS; i++)
		list[i] = &info[i];
	if (info && dat_registry_list_providers(MAX_IAS, &n, list) == DAT_SUCCESS) {
		n = n < MAX_IAS ? n : MAX_IAS;
		complain_of_missing(include, list, n);
		for (int i = 0; i < n; i++)
			if (include ? in_list(include, info[i].ia_name)
				    : !in_list(exclude, info[i].ia_name))
				open_adapter(info[i].ia_name);
	}
	free(info);
}

static int tell_addresses(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;
	struct udapl_address *all = calloc(c->num_modules, sizeof *all);
	int rc;

	if (!all)
		return OPAL_ERR_OUT_OF_RESOURCE;
	for (int i = 0; i < c->num_modules; i++)
		all[i] = c->modules[i]->address;
	OPAL_MODEX_SEND(rc, OPAL_PMIX_GLOBAL, &c->super.btl_version, all,
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
		c->modules = calloc(MAX_IAS, sizeof *c->modules);
	else if (udapl_speaks_for_node())
		udapl_tell("include and exclude");
	if (c->modules)
		open_adapters(include, exclude);
	opal_argv_free(include);
	opal_argv_free(exclude);
	if (c->num_modules > 0 && tell_addresses() == OPAL_SUCCESS)
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
