/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_handle.c - the consumer's handle of an IA: the registry makes handles of its own, and maps each to the
 * provider's pointer. */
#include "dapl/core/base/ia_handle.h"

extern DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *ia);

/* HND-11 */
DAT_IA_HANDLE dapl_ia_handle(const struct dapl_ia *ia)
{
	DAT_IA_HANDLE handle = DAT_HANDLE_NULL;

	if (dats_get_ia_handle((DAT_IA_HANDLE)(uintptr_t)ia, &handle) != DAT_SUCCESS)
		return DAT_HANDLE_NULL;
	return handle;
}
