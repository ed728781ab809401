/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia.h - the functions of ia.c that other files use, and the provider table of an object. */
#ifndef DAT_IA_H
#define DAT_IA_H
#include "dat/ia_handle.h"
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <stdarg.h>
#include <stdbool.h>

/* Returns the provider table of an object: the object's first word (registry.md 1.2). */
static inline const DAT_PROVIDER *provider_of(const void *object)
{
	return *(const DAT_PROVIDER *const *)object;
}

/* Returns whether any IA opened so far has extensions (calls.md, dat_extension_op). */
bool ia_extensions_seen(void);

/* dat_extension_op() without an object: the registry's own operations (registry.md 9). */
DAT_RETURN ia_query_open(va_list args);
DAT_RETURN ia_query_close(DAT_HANDLE handle, va_list args);
/* Called around a fork, so that no other thread is in the middle of a change. */
void ia_query_fork(bool begins);

#endif
