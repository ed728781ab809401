/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loader.h - loads and unloads provider libraries. No other file calls the dl functions.
 * lookup.c decides when a library is loaded and unloaded. */
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
	bool lacks_calls;	/* loader_open() failed since it has no `init` or no `fini` */
};

/* Returns false if the library cannot be used; `reason` then is the reason, in at most `size`
 * bytes. */
bool loader_open(struct library *library, const char *name, char *reason, size_t size);
void loader_close(struct library *library);

/* Called around a call that can sleep in a provider. An abrupt dat_ia_close() wakes the
 * sleeping thread, which must leave the library before it is unmapped. loader_close() waits
 * for that. */
void loader_enter(void);
void loader_leave(void);

/* Returns whether loader_open() would find a file for this name without a slash. Loads
 * nothing. */
bool loader_finds(const char *name);

#endif
