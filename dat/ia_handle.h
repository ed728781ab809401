/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_handle.h - maps the IA handles of consumers to the provider's own handles, and back. A
 * consumer's IA handle is a small integer, every other handle a pointer (registry.md 3). The
 * registry decides whether an IA's provider may be unloaded. */
#ifndef DAT_IA_HANDLE_H
#define DAT_IA_HANDLE_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stdint.h>

/* Below any address that can be mapped. 0 is DAT_HANDLE_NULL. */
#define IA_HANDLE_LIMIT 65536u

struct provider;

static inline bool is_ia_handle(DAT_HANDLE handle)
{
	return (uintptr_t)handle < IA_HANDLE_LIMIT;
}

/* Returns the provider's IA, or NULL if `handle` is not the handle of an open IA. Takes no
 * lock. */
DAT_IA_HANDLE ia_from(DAT_IA_HANDLE handle);

/* Returns the consumer's handle of a provider's IA, or NULL if that is not open. */
DAT_IA_HANDLE ia_handle_of(DAT_IA_HANDLE ia);

/* Opening. Reserves the lowest free handle; NULL: none is left, or no memory. The handle is
 * open once it is published. An unused one is released. */
DAT_IA_HANDLE ia_handle_reserve(void);
void ia_handle_publish(DAT_IA_HANDLE handle, DAT_IA_HANDLE ia, struct provider *provider);
void ia_handle_release(DAT_IA_HANDLE handle);

/* Closing. Returns false if the handle is not open or another thread is closing it. Is
 * followed by ia_handle_release(), or by ia_handle_keep() if the IA stays open. */
bool ia_handle_close(DAT_IA_HANDLE handle, DAT_IA_HANDLE *ia, struct provider **provider);
void ia_handle_keep(DAT_IA_HANDLE handle);

/* Called at unload, with no IA open. */
void ia_handle_fini(void);
/* Called around a fork, so that no other thread is in the middle of a change. */
void ia_handle_fork(bool begins);

#endif
