/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libdat2 as a part of something else: loaded and unloaded, hidden from the program,
 * called by constructors (REG-50). This program is not linked to it. */
#include "test/registry/scenario.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void *load(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(handle);
	return handle;
}

static bool is_loaded(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle != NULL;
}

/* What a plug-in does, with libdat2 and the mock provider local to it: the
 * mock is not linked to libdat2. */
static void use_plugin(void)
{
	void *libdat2 = load(LIBDAT2), *plugin = load("./plugin.so");
	DAT_RETURN (*round)(const char *) =
		(DAT_RETURN (*)(const char *))dlsym(plugin, "plugin_round");
	int inits = noted("init good 2.0 nonthreadsafe []");

	CHECK(!dlsym(RTLD_DEFAULT, "dat_registry_add_provider"));
	OK(round("good"));
	CHECK(noted("init good 2.0 nonthreadsafe []") == inits + 1);
	CHECK(noted("fini good") == inits + 1);
	RETURNS(round("unknown"), NOT_FOUND);
	dlclose(plugin);
	dlclose(libdat2);
	CHECK(!is_loaded(LIBDAT2) && !is_loaded("./mock.so"));
}

static void a_plug_in_brings_libdat2_along(void **state)
{
	(void)state;
	silent_but_unknown("good.conf", use_plugin, 1);
}

/* What it left behind would show up under valgrind and the address sanitizer. */
static void use_plugin_often(void)
{
	for (int i = 0; i < 20; i++)
		use_plugin();
}

static void libdat2_can_be_unloaded_and_loaded_again(void **state)
{
	(void)state;
	silent_but_unknown("good.conf", use_plugin_often, 20);
}

static void tracing_ends_with_the_library(void **state)
{
	static struct outcome outcome;

	(void)state;
	setenv("DAT_TRACE_LEVEL", "10", 1);
	scenario(&outcome, "good.conf", use_plugin_often);
	unsetenv("DAT_TRACE_LEVEL");
	assert_int_equal(outcome.status, 0);
}

static void let_construct(void)
{
	void *libdat2 = load(LIBDAT2), *library = load("./opens_in_constructor.so");

	OK(*(DAT_RETURN *)dlsym(library, "constructor_opened"));
	OK(*(DAT_RETURN *)dlsym(library, "constructor_closed"));
	CHECK(noted("fini good") == 1);
	dlclose(library);
	dlclose(libdat2);
	CHECK(!is_loaded(LIBDAT2));
}

static void REG_50_a_constructor_opens_an_ia(void **state)
{
	(void)state;
	silent("good.conf", let_construct);
}

/* One thread makes the first call, while another is inside the dynamic linker and makes
 * its own from there: neither may wait for what the other has. */
static DAT_RETURN (*list_providers)(DAT_COUNT, DAT_COUNT *, DAT_PROVIDER_INFO **);

static void *list(void *arg)
{
	DAT_COUNT count;

	usleep(10000);	/* the constructor runs, and takes its time */
	RETURNS(list_providers(0, &count, NULL),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	CHECK(count == 1);
	return arg;
}

static void first_calls_race(void)
{
	void *libdat2 = load(LIBDAT2), *library;
	pthread_t thread;

	list_providers = (void *)dlsym(libdat2, "dat_registry_list_providers");
	setenv("CONSTRUCTOR_SLEEPS", "", 1);
	CHECK(!pthread_create(&thread, NULL, list, NULL));
	library = load("./opens_in_constructor.so");
	pthread_join(thread, NULL);
	dlclose(library);
	dlclose(libdat2);
}

static void a_constructor_and_a_thread_make_the_first_calls(void **state)
{
	(void)state;
	silent("good.conf", first_calls_race);
}

/* --- a stack that is installed away from the system's directories --------------------- */

static char dir[] = "/tmp/test_load.XXXXXX";

static void copy(const char *from, const char *to)
{
	char command[1024];

	snprintf(command, sizeof(command), "cp %s %s/%s", from, dir, to);
	CHECK(!system(command));
}

static void open_soft(void)
{
	DAT_RETURN (*openv)(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE *, DAT_IA_HANDLE *,
			    DAT_UINT32, DAT_UINT32, DAT_BOOLEAN);
	DAT_RETURN (*close_ia)(DAT_IA_HANDLE, DAT_CLOSE_FLAGS);
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	char path[64];
	void *libdat2;

	snprintf(path, sizeof(path), "%s/libdat2.so.2", dir);
	copy(LIBDAT2, "libdat2.so.2");
	copy("./mock.so", "libdaplsoft.so.2");
	libdat2 = load(path);
	openv = (void *)dlsym(libdat2, "dat_ia_openv");
	close_ia = (void *)dlsym(libdat2, "dat_ia_close");
	OK(openv("ofa-v2-soft", 8, &evd, &ia, 2, 0, DAT_FALSE));
	CHECK(noted("init ofa-v2-soft 2.0 nonthreadsafe [lo 0]") == 1);
	OK(close_ia(ia, DAT_CLOSE_DEFAULT));
	dlclose(libdat2);
}

/* No dat.conf, no device: the software device is there, from the library beside libdat2. */
static void providers_are_found_beside_libdat2(void **state)
{
	char command[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("DAT_TEST_ROOT", dir, 1);
	silent(NULL, open_soft);
	unsetenv("DAT_TEST_ROOT");
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plug_in_brings_libdat2_along),
		cmocka_unit_test(libdat2_can_be_unloaded_and_loaded_again),
		cmocka_unit_test(tracing_ends_with_the_library),
		cmocka_unit_test(a_constructor_and_a_thread_make_the_first_calls),
		cmocka_unit_test(providers_are_found_beside_libdat2),
		cmocka_unit_test(REG_50_a_constructor_opens_an_ia),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
