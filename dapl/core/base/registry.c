/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registry.c - see registry.h. */
#include "dapl/core/base/registry.h"
#include <dlfcn.h>
#include <stddef.h>

/* ABI-15 */
void *dapl_registry_function(const char *name)
{
	void *registry = dlopen("libdat2.so.2", RTLD_NOW | RTLD_NOLOAD);
	void *function;

	if (!registry)
		return NULL;
	function = dlsym(registry, name);
	dlclose(registry);	/* libdat2 stays loaded: this library depends on it */
	return function;
}
