/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api.h - what the files of the calls share. A call checks the handle, then jumps through the table of the
 * object's provider, which makes all other checks and stores the results (REG-44). Opening and closing an
 * IA is in ia.c.
 *
 * One comparison recognises values that cannot be an object's handle: NULL and the small
 * integers of IA handles (HND-10; their error codes: calls.md 0.2). An IA must be open: the handle of
 * a closed IA and a provider's own pointer are refused (registry.md 3). The functions that the
 * reference library does not have check for an empty slot: a provider made for that library
 * may have left one. */
#ifndef DAT_API_H
#define DAT_API_H
#include "dat/error.h"
#include "dat/ia.h"

#define BAD_HANDLE(kind) DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE##kind)
#define NOT_IMPLEMENTED DAT_ERROR(DAT_NOT_IMPLEMENTED, 0)

#define no_object(handle) is_ia_handle(handle)

#endif
