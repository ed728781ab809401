/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia.h - interface adapters (ia.c). */
#ifndef DAPL_IA_H
#define DAPL_IA_H
#include "dapl/core/dapl.h"

/* The slot of the provider table; the entry is found by its name. */
DAT_RETURN dapl_ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *handle);
/* The entry that the registry initialised for this name; NULL: none. (provider.c) */
struct dapl_entry *dapl_entry_find(const char *name);

#endif
