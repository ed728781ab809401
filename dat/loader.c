/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loader.c - dlopen() and dlclose() of provider libraries.
 *
 * A bare name is searched for as the dynamic linker does it, and then in the directory of
 * libdat2. So a stack installed outside the system's directories works without
 * LD_LIBRARY_PATH. */
#include "dat/loader.h"
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the path of libdat2 itself. */
static const char *own_path(void)
{
	Dl_info info;

	return dladdr((void *)own_path, &info) && info.dli_fname ? info.dli_fname : "";
}

static bool find_beside_libdat2(const char *name, char *path, size_t size)
{
	const char *own = own_path(), *slash = strrchr(own, '/');

	return slash && !strchr(name, '/') &&
	       (size_t)snprintf(path, size, "%.*s/%s", (int)(slash - own), own, name) < size &&
	       !access(path, R_OK);
}

/* Providers need not link to libdat2: they expect to find it loaded. They would not find it in
 * a program that loaded it as a part of a plug-in (RTLD_LOCAL), so this makes its symbols
 * global. */
static void make_self_global(void)
{
	void *self = dlopen(own_path(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);

	if (self)
		dlclose(self);
}

/* RTLD_GLOBAL because the reference library did so and providers may rely on it. */
static void *load(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);

	if (!handle) {
		make_self_global();
		handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	}
	return handle;
}

static void save_dlerror(char *reason, size_t size)
{
	const char *error = dlerror();

	snprintf(reason, size, "%s", error ? error : "unknown reason");
}

bool loader_open(struct library *library, const char *name, char *reason, size_t size)
{
	char path[PATH_MAX];

	*library = (struct library){ .handle = load(name) };
	if (!library->handle) {
		save_dlerror(reason, size);
		if (!find_beside_libdat2(name, path, sizeof(path)))
			return false;
		library->handle = load(path);
	}
	if (!library->handle) {
		save_dlerror(reason, size);
		return false;
	}
	library->init = (DAT_PROVIDER_INIT_FUNC)dlsym(library->handle,
						      DAT_PROVIDER_INIT_FUNC_STR);
	library->fini = (DAT_PROVIDER_FINI_FUNC)dlsym(library->handle,
						      DAT_PROVIDER_FINI_FUNC_STR);
	if (library->init && library->fini)
		return true;
	snprintf(reason, size, "%s has no %s: it is not a provider", name, library->init ?
		 DAT_PROVIDER_FINI_FUNC_STR : DAT_PROVIDER_INIT_FUNC_STR);
	loader_close(library);
	library->lacks_calls = true;
	return false;
}

/* Threads that sleep in a call of any provider. */
static int sleeping_threads;

void loader_enter(void)
{
	__atomic_add_fetch(&sleeping_threads, 1, __ATOMIC_SEQ_CST);
}

void loader_leave(void)
{
	__atomic_sub_fetch(&sleeping_threads, 1, __ATOMIC_SEQ_CST);
}

/* Waits for the threads that sleep in a provider. Threads in another provider may sleep for
 * ever, so the wait ends after 100 ms. */
static void wait_for_sleeping_threads(void)
{
	for (int i = 0; i < 100 && __atomic_load_n(&sleeping_threads, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
}

void loader_close(struct library *library)
{
	wait_for_sleeping_threads();
	dlclose(library->handle);
	*library = (struct library){ .handle = NULL };
}

#ifdef __GLIBC__		/* its RTLD_DI_SERINFO is an enumerator */
static bool in_dirs(const Dl_serinfo *dirs, const char *name)
{
	char path[PATH_MAX];

	for (unsigned i = 0; i < dirs->dls_cnt; i++)
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", dirs->dls_serpath[i].dls_name,
				     name) < sizeof(path) && !access(path, R_OK))
			return true;
	return false;
}

static bool on_search_path(void *self, const char *name)
{
	Dl_serinfo size, *dirs;
	bool found;

	if (dlinfo(self, RTLD_DI_SERINFOSIZE, &size))
		return false;
	dirs = malloc(size.dls_size);
	if (!dirs)
		return false;
	*dirs = size;
	found = !dlinfo(self, RTLD_DI_SERINFO, dirs) && in_dirs(dirs, name);
	free(dirs);
	return found;
}
#else
static bool on_search_path(void *self, const char *name)
{
	(void)self, (void)name;
	return false;
}
#endif

bool loader_finds(const char *name)
{
	char path[PATH_MAX];
	bool found = find_beside_libdat2(name, path, sizeof(path));
	void *self;

	if (found)
		return true;
	self = dlopen(own_path(), RTLD_NOW | RTLD_NOLOAD);
	if (self) {
		found = on_search_path(self, name);
		dlclose(self);
	}
	return found;
}
