/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia.h - what the steps of opening, querying and closing an IA share with api.c. */
#ifndef DAT_IA_H
#define DAT_IA_H
#include "dat/ia_handle.h"
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <stdarg.h>
#include <stdbool.h>

/* The provider table of an object: its first word (registry.md 1.2). */
static inline const DAT_PROVIDER *provider_of(const void *object)
{
	return *(const DAT_PROVIDER *const *)object;
}

/* Whether any IA opened so far has extensions (calls.md, dat_extension_op). */
bool ia_extensions_seen(void);

/* dat_extension_op() on no object: the registry's own operations (registry.md 9). */
DAT_RETURN ia_query_open(va_list args);
DAT_RETURN ia_query_close(DAT_HANDLE handle, va_list args);

#endif
