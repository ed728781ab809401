/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plugin.c - a plug-in that is linked to libdat2, as an MPI's component is. */
#include <dat/udat.h>

__attribute__((visibility("default"))) DAT_RETURN plugin_round(const char *name);
DAT_RETURN plugin_round(const char *name)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret = dat_ia_open((DAT_NAME_PTR)name, 8, &evd, &ia);

	return ret ? ret : dat_ia_close(ia, DAT_CLOSE_DEFAULT);
}
