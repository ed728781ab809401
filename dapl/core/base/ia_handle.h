/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_handle.h - the consumer's handle of an IA (ia_handle.c). */
#ifndef DAPL_IA_HANDLE_H
#define DAPL_IA_HANDLE_H
#include "dapl/core/dapl.h"

/* Returns the registry's handle of the IA (doc/spec/registry.md 3), or NULL if the registry has none. Needs
 * no lock. */
DAT_IA_HANDLE dapl_ia_handle(const struct dapl_ia *ia);

#endif
