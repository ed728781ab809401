/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_loader.c - loading and unloading of provider libraries: where a name is searched for, what makes a library no
 * provider, why none could be loaded, and how long an unload waits for threads. The dynamic linker is replaced here. */
#include "dat/loader.h"
#include "test/unit/unit.h"
#include <dlfcn.h>
#include <limits.h>
#include <link.h>

static const char *own;			/* path of libdat2; NULL: not known */
static const char *loadable, *readable;	/* the one library that can be loaded, and the one file that can be read */
static bool needs_global;		/* loading finds libdat2's symbols only when they are global */
static bool has_init, has_fini, has_error;
static const char *dirs[2];		/* search path of the linker; NULL: not known */

static char tried[256];			/* names of the loads, each with a blank behind it */
static bool is_global;			/* symbols of libdat2 */
static int opened;			/* handles */
static int sleeps, leaves_at;		/* the sleeping thread leaves in this sleep; 0: never */
static char self, library;		/* what handles point to */

/* --- in place of the dynamic linker ----------------------------------------------------------------------------- */

REPLACE(dlopen, dlsym, dlclose, dlerror, dladdr, dlinfo, access, usleep)

void *__wrap_dlopen(const char *name, int flags)
{
	if (flags & RTLD_NOLOAD) {
		assert_string_equal(name, own ? own : "");
		is_global |= (flags & RTLD_GLOBAL) != 0;
		opened++;
		return &self;
	}
	assert_int_equal(flags, RTLD_NOW | RTLD_GLOBAL);
	strcat(strcat(tried, name), " ");
	if (!loadable || strcmp(name, loadable) || (needs_global && !is_global))
		return NULL;
	opened++;
	return &library;
}

static void init(const DAT_PROVIDER_INFO *info, const char *params) { (void)info, (void)params; }
static void fini(const DAT_PROVIDER_INFO *info) { (void)info; }

void *__wrap_dlsym(void *handle, const char *symbol)
{
	assert_ptr_equal(handle, &library);
	if (!strcmp(symbol, "dat_provider_init"))
		return has_init ? (void *)init : NULL;
	assert_string_equal(symbol, "dat_provider_fini");
	return has_fini ? (void *)fini : NULL;
}

int __wrap_dlclose(void *handle)
{
	assert_true(handle == &self || handle == &library);
	opened--;
	return 0;
}

/* As the linker's: the reason of the last load. */
char *__wrap_dlerror(void)
{
	static char error[] = "no such file", beside[] = "its libraries are missing";

	return !has_error ? NULL : strstr(tried, "/opt/lib/") ? beside : error;
}

int __wrap_dladdr(const void *address, Dl_info *info)
{
	info->dli_fname = own;
	return own != NULL;
}

int __wrap_dlinfo(void *handle, int request, void *info)
{
	Dl_serinfo *found = info;

	assert_ptr_equal(handle, &self);
	if (!dirs[0])
		return -1;
	if (request == RTLD_DI_SERINFOSIZE) {
		found->dls_size = sizeof *found + 2 * sizeof *found->dls_serpath;
		found->dls_cnt = 2;
		return 0;
	}
	assert_int_equal(request, RTLD_DI_SERINFO);
	assert_int_equal(found->dls_cnt, 2);
	for (int i = 0; i < 2; i++) {
		static char names[2][PATH_MAX];

		strcpy(names[i], dirs[i]);
		found->dls_serpath[i].dls_name = names[i];
	}
	return 0;
}

int __wrap_access(const char *path, int mode)
{
	assert_int_equal(mode, R_OK);
	return readable && !strcmp(path, readable) ? 0 : -1;
}

int __wrap_usleep(useconds_t us)
{
	assert_int_equal(us, 1000);
	if (++sleeps == leaves_at)
		loader_leave();
	return 0;
}

static struct library loaded;
static char reason[128];

UNIT_FIXTURE(begin)
{
	own = "/opt/lib/libdat2.so.2";
	loadable = "libp.so";
	readable = NULL;
	needs_global = is_global = has_error = false;
	has_init = has_fini = true;
	dirs[0] = dirs[1] = NULL;
	*tried = *reason = '\0';
	opened = sleeps = leaves_at = 0;
}

/* Each handle is closed. */
static int end(void **state) { return opened; }
static bool open_library(const char *name) { return loader_open(&loaded, name, reason, sizeof reason); }

static void opens(const char *name, const char *expected)
{
	*tried = '\0';
	assert_true(open_library(name));
	assert_string_equal(tried, expected);
	loader_close(&loaded);
}

static void fails(const char *name, const char *expected)
{
	*tried = '\0';
	assert_false(open_library(name));
	assert_string_equal(tried, expected);
	assert_int_equal(opened, 0);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, end)

/* --- loading ---------------------------------------------------------------------------------------------------- */

TEST(provider_has_two_functions)
{
	assert_true(open_library("libp.so"));
	assert_ptr_equal(loaded.handle, &library);
	assert_true((void *)loaded.init == (void *)init);
	assert_true((void *)loaded.fini == (void *)fini);
	assert_false(is_global);
	loader_close(&loaded);
	assert_null(loaded.handle);
	assert_true(!loaded.init && !loaded.fini);
}

TEST(library_without_one_of_them_is_closed)
{
	has_fini = false;
	fails("libp.so", "libp.so ");
	assert_string_equal(reason, "libp.so has no dat_provider_fini: it is not a provider");
	assert_true(loaded.lacks_calls);
	has_init = false;
	fails("libp.so", "libp.so ");
	assert_string_equal(reason, "libp.so has no dat_provider_init: it is not a provider");
	has_fini = true;
	fails("libp.so", "libp.so ");
	assert_string_equal(reason, "libp.so has no dat_provider_init: it is not a provider");
}

/* A program may have loaded libdat2 as a part of a plug-in. */
TEST(symbols_of_libdat2_become_global_if_they_are_needed)
{
	needs_global = true;
	opens("libp.so", "libp.so libp.so ");
	assert_true(is_global);
}

TEST(bare_name_is_found_beside_libdat2)
{
	loadable = readable = "/opt/lib/libp.so";
	opens("libp.so", "libp.so libp.so /opt/lib/libp.so ");
	loadable = NULL;
	fails("libp.so", "libp.so libp.so /opt/lib/libp.so /opt/lib/libp.so ");
	readable = NULL;
	fails("libp.so", "libp.so libp.so ");
}

TEST(name_with_a_slash_is_a_path)
{
	loadable = readable = "/opt/lib/./libp.so";
	fails("./libp.so", "./libp.so ./libp.so ");
	loadable = "/lib/libp.so";
	opens("/lib/libp.so", "/lib/libp.so ");
}

TEST(libdat2_of_unknown_place_has_nothing_beside_it)
{
	static const char *const places[] = { NULL, "", "libdat2.so.2" };

	loadable = readable = "/libp.so";
	for (int i = 0; i < 3; i++) {
		own = places[i];
		fails("libp.so", "libp.so libp.so ");
		assert_false(loader_finds("libp.so"));
	}
}

TEST(reason_is_that_of_the_linker)
{
	loadable = NULL;
	fails("libp.so", "libp.so libp.so ");
	assert_false(loaded.lacks_calls);
	assert_string_equal(reason, "unknown reason");
	has_error = true;
	fails("libp.so", "libp.so libp.so ");
	assert_string_equal(reason, "no such file");
	memset(reason, '#', sizeof reason);
	assert_false(loader_open(&loaded, "libp.so", reason, 5));
	assert_string_equal(reason, "no s");
	assert_int_equal(reason[5], '#');
}

/* The search for the bare name fails in any case. */
TEST(reason_is_that_of_the_file_beside_libdat2)
{
	loadable = NULL;
	readable = "/opt/lib/libp.so";
	has_error = true;
	fails("libp.so", "libp.so libp.so /opt/lib/libp.so /opt/lib/libp.so ");
	assert_string_equal(reason, "its libraries are missing");
}

/* --- unloading -------------------------------------------------------------------------------------------------- */

/* They may sleep in another provider, for ever. */
TEST(unload_waits_100_ms_at_most_for_sleeping_threads)
{
	static const struct { bool left; int leaves_at, sleeps; } rows[] = {
		{ true, 0, 0 }, { false, 3, 3 }, { false, 0, 100 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(open_library("libp.so"));
		sleeps = 0;
		leaves_at = rows[i].leaves_at;
		loader_enter();
		if (rows[i].left)
			loader_leave();
		loader_close(&loaded);
		assert_int_equal(sleeps, rows[i].sleeps);
		assert_int_equal(opened, 0);
	}
	loader_leave();
}

/* --- finding ---------------------------------------------------------------------------------------------------- */

TEST(file_beside_libdat2_is_found)
{
	readable = "/opt/lib/libp.so";
	assert_true(loader_finds("libp.so"));
	assert_false(loader_finds("libq.so"));
	assert_string_equal(tried, "");			/* nothing is loaded */
}

TEST(file_on_the_search_path_is_found)
{
	static const char *const files[] = { "/lib/first/libp.so", "/lib/second/libp.so" };

	dirs[0] = "/lib/first";
	dirs[1] = "/lib/second";
	assert_false(loader_finds("libp.so"));
	for (int i = 0; i < 2; i++) {
		readable = files[i];
		assert_true(loader_finds("libp.so"));
	}
	assert_string_equal(tried, "");
}

TEST(path_that_is_too_long_is_not_found)
{
	static char dir[PATH_MAX], file[PATH_MAX];

	memset(dir, 'd', sizeof dir - 8);		/* the name is cut at the end of a path */
	memcpy(file, dir, sizeof dir - 8);
	strcat(file, "/libp.s");
	dirs[0] = dirs[1] = dir;
	readable = file;
	assert_false(loader_finds("libp.so"));
}

UNIT_MAIN(NULL, NULL)
