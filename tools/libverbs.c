/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libverbs.c - see libverbs.h. */
#include "tools/libverbs.h"
#include <dlfcn.h>
#include <stdio.h>

struct libverbs lib;

static const struct {
	const char *name;
	void **to;	/* a pointer to a function */
} functions[] = {
#define X(type, name, arguments) { #name, (void **)&lib.name },
	LIBVERBS_FUNCTIONS(X)
#undef X
};

const char *libverbs_load(void)
{
	static char reason[512];
	static void *handle;

	if (handle)
		return NULL;
	handle = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!handle) {
		snprintf(reason, sizeof reason, "libibverbs cannot be loaded: %s", dlerror());
		return reason;
	}
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		*functions[i].to = dlsym(handle, functions[i].name);
		if (!*functions[i].to) {
			snprintf(reason, sizeof reason, "libibverbs has no %s", functions[i].name);
			dlclose(handle);
			handle = NULL;	/* so that a later call fails, too */
			return reason;
		}
	}
	return NULL;
}
