/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libraries.c - see libraries.h. */
#include "test/unit/dat/libraries.h"
#include <stdio.h>
#include "dat/busy.h"
#include "dat/loader.h"
#include "dat/lookup.h"
#include "dat/providers.h"
#include "test/unit/unit.h"

const char *missing;
bool lacks_calls;
bool registers;
void (*during_load)(void), (*during_init)(void), (*during_fini)(void);
static const DAT_PROVIDER table;
static char steps[512];

/* --- libraries -------------------------------------------------------------------------------------------------- */

/* `params` NULL: there are none. */
static void add_step(const char *what, const char *name, const char *params)
{
	size_t used = strlen(steps);

	snprintf(steps + used, sizeof steps - used, "%s%s%s%s%s ", what, name, params ? "[" : "", params ? params : "",
		 params ? "]" : "");
}

/* Code of providers, and the linker's, runs without the registry's lock. */
static void assert_unlocked(void)
{
	pthread_mutex_lock(&registry.lock);
	pthread_mutex_unlock(&registry.lock);
}

static void do_once(void (**what)(void))
{
	void (*now)(void) = *what;

	*what = NULL;
	if (now)
		now();
}

static void init(const DAT_PROVIDER_INFO *info, const char *params)
{
	assert_unlocked();
	add_step("init:", info->ia_name, params);
	if (registers)
		dat_registry_add_provider(&table, info);
	do_once(&during_init);
}

static void fini(const DAT_PROVIDER_INFO *info)
{
	assert_unlocked();
	add_step("fini:", info->ia_name, NULL);
	do_once(&during_fini);
}

/* --- the loader ------------------------------------------------------------------------------------------------- */

REPLACE(loader_open, loader_close)

bool __wrap_loader_open(struct library *library, const char *name, char *reason, size_t size)
{
	assert_unlocked();
	add_step("open:", name, NULL);
	if (during_load)
		during_load();
	*library = (struct library){ .handle = library, .init = init, .fini = fini, .lacks_calls = lacks_calls };
	snprintf(reason, size, "no such file");
	return !missing || (strcmp(missing, "*") && strcmp(missing, name));
}

void __wrap_loader_close(struct library *library)
{
	assert_unlocked();
	assert_ptr_equal(library->handle, library);
	add_step("close", "", NULL);
}

/* --- fixture ---------------------------------------------------------------------------------------------------- */

int libraries_begin(void **state)
{
	conf_text = A B;
	conf_shortage = 0;
	*steps = '\0';
	missing = NULL;
	lacks_calls = false;
	registers = true;
	during_load = during_init = during_fini = NULL;
	return 0;
}

int libraries_end(void **state)
{
	providers_free();
	table_free(&registry.table);
	memset(&registry.table, 0, sizeof registry.table);
	registry.started = false;
	return busy_any() ? -1 : 0;
}

void took(const char *expected)
{
	assert_string_equal(steps, expected);
	*steps = '\0';
}

DAT_RETURN get_ia(const char *name, struct provider **found)
{
	return registry_get(name, 2, 0, DAT_FALSE, found);
}

struct provider *opened(const char *name)
{
	struct provider *p = NULL;

	assert_int_equal(get_ia(name, &p), DAT_SUCCESS);
	assert_string_equal(p->info.ia_name, name);
	return p;
}

void register_ia(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe)
{
	DAT_PROVIDER_INFO info = key_of(name);

	info.dapl_version_major = major;
	info.dapl_version_minor = minor;
	info.is_thread_safe = safe;
	assert_int_equal(dat_registry_add_provider(&table, &info), DAT_SUCCESS);
}
