/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hw.c - how calls of libibverbs and librdmacm report errors, and why librdmacm stays loaded (hw.h). */
#include <dlfcn.h>
#include <errno.h>
#include "hw.h"

/* --- errors --------------------------------------------------------------------------------------- */

int hw_null_errno(void)
{
	return errno ? errno : EIO;
}

int hw_errno(int rc)
{
	if (rc == -1)
		return hw_null_errno();
	return rc < 0 ? -rc : rc;
}

/* --- librdmacm ------------------------------------------------------------------------------------ */

/* RTLD_NODELETE marks the library, not the handle, so the handle is closed again. A librdmacm
 * that is linked statically has no such name and is left as it is. */
void hw_keep_librdmacm(void)
{
	void *library = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);

	if (library)
		dlclose(library);
}
