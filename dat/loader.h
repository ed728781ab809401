/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loader.h - provider libraries: into memory and out again. Nobody else calls dl*.
 * When, and how often, is the registry's affair. */
#ifndef DAT_LOADER_H
#define DAT_LOADER_H
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <stdbool.h>
#include <stddef.h>

struct library {
	void *handle;
	DAT_PROVIDER_INIT_FUNC init;
	DAT_PROVIDER_FINI_FUNC fini;
};

/* False: not to be had, and why, as a text of at most `size` bytes. */
bool loader_open(struct library *library, const char *name, char *why, size_t size);
void loader_close(struct library *library);

/* Around a call that sleeps in a provider: an abrupt dat_ia_close() releases the sleeper,
 * and its library must outlast the way out. loader_close() gives it that time. */
void loader_enter(void);
void loader_leave(void);

/* Whether loader_open() would find a file for this name without a slash. Loads nothing. */
bool loader_finds(const char *name);

#endif
