/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* older.c - a program in DAT 1.2 style outside of this tree: opens the software device and closes it. */
#include <dat/udat.h>
#include <stdio.h>

int main(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	const char *major = "", *minor = "";
	DAT_RETURN rc = dat_ia_open("ofa-v2-soft", 8, &async, &ia);

	if (rc == DAT_SUCCESS)
		rc = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	if (rc == DAT_SUCCESS)
		return 0;
	dat_strerror(rc, &major, &minor);
	fprintf(stderr, "older: %s %s\n", major, minor);
	return 1;
}
