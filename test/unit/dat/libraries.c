/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libraries.c - see libraries.h. */
#include "test/unit/dat/libraries.h"
#include <dlfcn.h>
#include "dat/busy.h"
#include "dat/lookup.h"
#include "dat/providers.h"
#include "test/unit/unit.h"

const char *missing;
bool lacks_calls;
bool registers;
void (*during_load)(void), (*during_init)(void), (*during_fini)(void);
static const DAT_PROVIDER table;
static char steps[512];

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
	dat_mutex_lock(&registry.lock);
	dat_mutex_unlock(&registry.lock);
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

REPLACE(dlopen, dlsym, dlclose, dlerror)

static char self, library;		/* what handles point to */
static bool is_retried;			/* a load that failed is tried again once libdat2 is global */

void *__wrap_dlopen(const char *name, int flags)
{
	if (flags & RTLD_NOLOAD) {		/* libdat2 itself */
		is_retried = flags & RTLD_GLOBAL;
		return is_retried ? &self : NULL;
	}
	assert_unlocked();
	if (!is_retried) {
		add_step("open:", name, NULL);
		if (during_load)
			during_load();
	}
	is_retried = false;
	return missing && (!strcmp(missing, "*") || !strcmp(missing, name)) ? NULL : &library;
}

void *__wrap_dlsym(void *handle, const char *symbol)
{
	assert_ptr_equal(handle, &library);
	return lacks_calls ? NULL : !strcmp(symbol, DAT_PROVIDER_INIT_FUNC_STR) ? (void *)init : (void *)fini;
}

char *__wrap_dlerror(void)
{
	static char error[] = "no such file";

	return error;
}

int __wrap_dlclose(void *handle)
{
	if (handle == &self)
		return 0;
	assert_unlocked();
	assert_ptr_equal(handle, &library);
	add_step("close", "", NULL);
	return 0;
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
	provider_free_all();
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

DAT_RETURN get_ia(const char *name, struct provider **found) { return registry_get(name, 2, 0, DAT_FALSE, found); }

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
