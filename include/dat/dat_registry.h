/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_registry.h - between the registry (libdat2) and the provider libraries it loads. */
#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#include "udat.h"
#include "udat_redirection.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A provider registers one table for each ia_name it serves. Table and device_name belong to the
 * provider, and must stay valid until it is removed. */
extern DAT_RETURN DAT_API dat_registry_add_provider(IN const DAT_PROVIDER *provider,
	IN const DAT_PROVIDER_INFO *provider_info);
extern DAT_RETURN DAT_API dat_registry_remove_provider(IN const DAT_PROVIDER *provider,
	IN const DAT_PROVIDER_INFO *provider_info);

/* Converts both ways: from the number that a consumer has as IA handle to the provider's object,
 * and from the object of an open IA to the number. Queries return the number as ia_handle. */
extern DAT_RETURN DAT_API dats_get_ia_handle(IN DAT_IA_HANDLE handle,
	OUT DAT_IA_HANDLE *ia_handle);

/* The two functions a provider library exports. `instance_data` is the ia_params field of
 * the dat.conf entry. */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"
typedef void (DAT_API *DAT_PROVIDER_INIT_FUNC)(IN const DAT_PROVIDER_INFO *provider_info,
	IN const char *instance_data);
typedef void (DAT_API *DAT_PROVIDER_FINI_FUNC)(IN const DAT_PROVIDER_INFO *provider_info);

/* Whether connections of one IA can move over to the other. */
typedef enum dat_ha_relationship {
	DAT_HA_FALSE,
	DAT_HA_TRUE,
	DAT_HA_UNKNOWN,
	DAT_HA_CONFLICTING,	/* the two IAs disagree */
	DAT_HA_EXTENSION_BASE
} DAT_HA_RELATIONSHIP;

extern DAT_RETURN DAT_API dat_registry_providers_related(IN const DAT_NAME_PTR ia_name,
	IN const DAT_NAME_PTR other_ia_name, OUT DAT_HA_RELATIONSHIP *answer);

#ifdef __cplusplus
}
#endif

#endif
