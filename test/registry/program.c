/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* program.c - what programs do with the registry, in one line. */
#include "test/registry/scenario.h"
#include <stdlib.h>
#include <string.h>

DAT_RETURN open_ia(const char *name, DAT_IA_HANDLE *ia)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return dat_ia_open((DAT_NAME_PTR)name, 8, &async, ia);
}

const char *listed(void)
{
	static char text[65536];
	DAT_PROVIDER_INFO *list[2000];
	DAT_COUNT count = 0;

	for (int i = 0; i < 2000; i++)
		list[i] = malloc(sizeof(*list[i]));
	OK(dat_registry_list_providers(2000, &count, list));
	text[0] = '\0';
	for (int i = 0; i < count; i++) {
		strcat(text, list[i]->ia_name);
		strcat(text, " ");
	}
	for (int i = 0; i < 2000; i++)
		free(list[i]);
	return text;
}
