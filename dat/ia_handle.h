/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_handle.h - the IA handles given to consumers <-> the provider's own.
 * A consumer's IA handle is a small integer, every other handle a pointer (registry.md 3).
 * Whether an IA's provider may be unloaded is the registry's business. */
#ifndef DAT_IA_HANDLE_H
#define DAT_IA_HANDLE_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stdint.h>

/* Below any address that can be mapped; 0 is DAT_HANDLE_NULL. */
#define IA_HANDLE_LIMIT 65536u

struct provider;

static inline bool is_ia_handle(DAT_HANDLE handle)
{
	return (uintptr_t)handle < IA_HANDLE_LIMIT;
}

/* The provider's IA; NULL unless `handle` is a consumer's and open. Takes no lock. */
DAT_IA_HANDLE ia_from(DAT_IA_HANDLE handle);

/* The consumer's handle of a provider's IA; NULL unless that is open. */
DAT_IA_HANDLE ia_handle_of(DAT_IA_HANDLE ia);

/* Opening: the lowest free handle (NULL: none left, or no memory), which is not open
 * before it is published; unused, it is given back. */
DAT_IA_HANDLE ia_handle_reserve(void);
void ia_handle_publish(DAT_IA_HANDLE handle, DAT_IA_HANDLE ia, struct provider *provider);
void ia_handle_release(DAT_IA_HANDLE handle);

/* Closing: one thread at a time; false when the handle is not open or another thread is
 * at it. Ends with ia_handle_release(), or with _keep() when the IA stays open. */
bool ia_handle_close(DAT_IA_HANDLE handle, DAT_IA_HANDLE *ia, struct provider **provider);
void ia_handle_keep(DAT_IA_HANDLE handle);

/* At unload, with no IA open. */
void ia_handle_fini(void);
/* Around a fork: no other thread is in the middle of a change. */
void ia_handle_fork(bool begins);

#endif
