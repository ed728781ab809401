/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registry.c - opening by version, the list of adapters, registration and the names of return codes. An
 * adapter of a u2.0 entry is one of version 1.2 to a program that uses this library. */
#include "dat1/dat1.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/file_size.h"

static DAT_RETURN open_as(DAT_UINT32 major, DAT_UINT32 minor, const DAT_NAME_PTR name,
			  DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia,
			  DAT_BOOLEAN thread_safe)
{
	return dat_v2_ia_openv(name, qlen, async_evd, ia, major, minor, thread_safe);
}

/* Version 1.2 is a u1.2 entry of dat.conf if there is one, else the u2.0 entry of that name. Both name
 * providers for DAT 2.0. */
EXPORT_1_2(ia_openv, const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
	   DAT_IA_HANDLE *ia, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe)
{
	DAT_RETURN ret = open_as(major, minor, name, qlen, async_evd, ia, thread_safe);

	if (DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND && major == 1 && minor == 2)
		ret = open_as(2, 0, name, qlen, async_evd, ia, thread_safe);
	return return_to_1_2(ret);
}

static int same_adapter(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b)
{
	return !strcmp(a->ia_name, b->ia_name) && !a->is_thread_safe == !b->is_thread_safe;
}

static int is_listed(DAT_PROVIDER_INFO **list, DAT_COUNT count, const DAT_PROVIDER_INFO *info)
{
	for (DAT_COUNT i = 0; i < count; i++)
		if (same_adapter(list[i], info))
			return 1;
	return 0;
}

/* Names with a u1.2 and a u2.0 entry are listed once: they are opened in the same way. */
EXPORT_1_2(registry_list_providers, DAT_COUNT max, DAT_COUNT *returned, DAT_PROVIDER_INFO **list)
{
	DAT_RETURN ret = dat_registry_list_providers(max, returned, list);
	DAT_COUNT kept = 0;

	if (ret != DAT_SUCCESS)
		return return_to_1_2(ret);
	for (DAT_COUNT i = 0; i < *returned; i++) {
		if (list[i]->dapl_version_major == 2) {
			list[i]->dapl_version_major = 1;
			list[i]->dapl_version_minor = 2;
		}
		if (is_listed(list, kept, list[i]))
			continue;
		if (kept != i)
			*list[kept] = *list[i];
		kept++;
	}
	*returned = kept;
	return DAT_SUCCESS;
}

/* The table of a provider for DAT 1.2 has other functions at other places than that of DAT 2.0. */
EXPORT_1_2(registry_add_provider, const void *table, const DAT_PROVIDER_INFO *info)
{
	char line[DAT_NAME_MAX_LENGTH + 120];
	int n;

	if (!table)
		return return_to_1_2(DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	if (!info)
		return return_to_1_2(DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	n = snprintf(line, sizeof line, "dat: \"%.*s\" is served by a provider for DAT 1.2, but this libdat.so.1 takes "
		     "providers for DAT 2.0 only\n", DAT_NAME_MAX_LENGTH, info->ia_name);
	file_write(STDERR_FILENO, line, (size_t)n);
	return return_to_1_2(DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE));
}

/* None of them has been registered. */
EXPORT_1_2(registry_remove_provider, const void *table, const DAT_PROVIDER_INFO *info)
{
	if (!table)
		return return_to_1_2(DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	if (!info)
		return return_to_1_2(DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	return return_to_1_2(DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
}

EXPORT_1_2(strerror, DAT_RETURN ret, const char **major, const char **minor)
{
	return return_to_1_2(dat_strerror(return_to_2_0(ret), major, minor));
}
