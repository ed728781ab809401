/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* no_fini.c - a library that is almost a provider. */
#include <dat/udat.h>
#include <dat/dat_registry.h>

__attribute__((visibility("default")))
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	(void)info, (void)params;
}
