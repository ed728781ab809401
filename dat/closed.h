/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closed.h - handles that outlive their provider. */
#ifndef DAT_CLOSED_H
#define DAT_CLOSED_H

/* For providers that are being unloaded: takes over an object of theirs, from malloc or
 * aligned_alloc, that a consumer may still have a handle of. Its first word is written. */
void dats_keep_closed(void *object);

/* At unload of the registry. */
void closed_fini(void);

#endif
