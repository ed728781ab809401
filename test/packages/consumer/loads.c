/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loads.c - loads libdat2.so as old MPI runtimes do. libdat.so must not load: it would mean DAT 1.2. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	void *library = dlopen("libdat2.so", RTLD_NOW);

	if (!library || !dlsym(library, "dat_ia_openv")) {
		fprintf(stderr, "loads: libdat2.so: %s\n", dlerror());
		return 1;
	}
	if (dlopen("libdat.so", RTLD_NOW)) {
		fprintf(stderr, "loads: libdat.so can be loaded\n");
		return 1;
	}
	return 0;
}
