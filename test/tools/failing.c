/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* failing.c - a provider that fails in the way that ia_params name: "crash", "hang", "noise" (prints, and
 * fails without a message), "flood" (prints without end), "memlock" (opens, and registers no memory),
 * "unregistered" (offers nothing). */
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);

static char behaviour[64];
static DAT_PROVIDER_INFO own;
static DAT_PROVIDER table;
static struct object {
	const DAT_PROVIDER *provider;
} ia = { &table }, pz = { &table };

static DAT_RETURN open_ia(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *handle)
{
	static const char noise[65536];

	(void)name, (void)qlen, (void)evd;
	if (!strcmp(behaviour, "crash"))
		raise(SIGSEGV);
	while (!strcmp(behaviour, "hang"))
		pause();
	while (!strcmp(behaviour, "flood"))	/* as much as a pipe holds: a reader finds it empty only for a moment */
		if (write(STDERR_FILENO, noise, sizeof noise) < 0)
			exit(1);
	if (!strcmp(behaviour, "noise")) {
		printf("noise on stdout\n");
		fflush(stdout);
		fprintf(stderr, "noise on stderr\n");
		return DAT_CLASS_ERROR | DAT_INTERNAL_ERROR;
	}
	*handle = (DAT_IA_HANDLE)&ia;
	return DAT_SUCCESS;
}

static DAT_RETURN query_ia(DAT_IA_HANDLE handle, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK ia_mask,
			   DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK mask, DAT_PROVIDER_ATTR *attr)
{
	(void)handle, (void)evd;
	if (ia_mask)
		memset(ia_attr, 0, sizeof *ia_attr);
	if (mask) {
		memset((void *)attr, 0, sizeof *attr);
		attr->dapl_version_major = own.dapl_version_major;
		attr->dapl_version_minor = own.dapl_version_minor;
		attr->is_thread_safe = own.is_thread_safe;
	}
	return DAT_SUCCESS;
}

static DAT_RETURN close_ia(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	(void)handle, (void)flags;
	return DAT_SUCCESS;
}

static DAT_RETURN create_pz(DAT_IA_HANDLE handle, DAT_PZ_HANDLE *out)
{
	(void)handle;
	*out = (DAT_PZ_HANDLE)&pz;
	return DAT_SUCCESS;
}

static DAT_RETURN free_pz(DAT_PZ_HANDLE handle)
{
	(void)handle;
	return DAT_SUCCESS;
}

static DAT_RETURN create_lmr(DAT_IA_HANDLE handle, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			     DAT_VLEN length, DAT_PZ_HANDLE zone, DAT_MEM_PRIV_FLAGS privileges,
			     DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *context,
			     DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *size, DAT_VADDR *address)
{
	(void)handle, (void)type, (void)region, (void)zone, (void)privileges, (void)va_type;
	(void)lmr, (void)context, (void)rmr_context, (void)size, (void)address;
	fprintf(stderr, "dapl: cannot register %llu bytes of memory\n", (unsigned long long)length);
	return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY;
}

__attribute__((visibility("default")))
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	own = *info;
	snprintf(behaviour, sizeof behaviour, "%s", params);
	table = (DAT_PROVIDER){
		.device_name = own.ia_name,
		.ia_open_func = open_ia,
		.ia_query_func = query_ia,
		.ia_close_func = close_ia,
		.pz_create_func = create_pz,
		.pz_free_func = free_pz,
		.lmr_create_func = create_lmr,
	};
	if (strcmp(behaviour, "unregistered") != 0)
		dat_registry_add_provider(&table, &own);
}

__attribute__((visibility("default")))
void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	dat_registry_remove_provider(&table, info);
}
