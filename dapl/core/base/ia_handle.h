/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_handle.h - the handle by which the consumer knows an IA (ia_handle.c). */
#ifndef DAPL_IA_HANDLE_H
#define DAPL_IA_HANDLE_H
#include "dapl/core/dapl.h"

/* The registry's handle of the IA (doc/spec/registry.md 3); NULL: the registry does not know it. No lock
 * is needed. */
DAT_IA_HANDLE dapl_ia_handle(const struct dapl_ia *ia);

#endif
