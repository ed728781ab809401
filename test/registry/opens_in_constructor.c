/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* opens_in_constructor.c - a plug-in that opens and closes an IA while it is loaded. */
#include <dat/udat.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) DAT_RETURN constructor_opened = 1;
__attribute__((visibility("default"))) DAT_RETURN constructor_closed = 1;

static void __attribute__((constructor)) open_and_close(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	if (getenv("CONSTRUCTOR_SLEEPS"))
		usleep(50000);
	constructor_opened = dat_ia_open("good", 8, &evd, &ia);
	constructor_closed = dat_ia_close(ia, DAT_CLOSE_DEFAULT);
}
