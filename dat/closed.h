/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closed.h - objects whose handles may still be in use after their provider is unloaded. */
#ifndef DAT_CLOSED_H
#define DAT_CLOSED_H

/* Called by a provider that is being unloaded. Takes over an object from malloc() or
 * aligned_alloc() that a consumer may still have a handle of. Overwrites its first word. */
void dats_keep_closed(void *object);

/* Called at unload of the registry. */
void closed_fini(void);

#endif
