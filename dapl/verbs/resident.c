/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resident.c - keeps librdmacm loaded when the provider is unloaded. librdmacm opens every
 * RDMA device at its first use and never closes one. If it were unloaded, the next copy would
 * open the devices again, and two descriptors a device would leak. */
#include <dlfcn.h>
#include "resident.h"

/* RTLD_NODELETE marks the library, not the handle, so the handle is closed again. A librdmacm
 * that is linked statically has no such name and is left as it is. */
void hw_keep_librdmacm(void)
{
	void *library = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);

	if (library)
		dlclose(library);
}
