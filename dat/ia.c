/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia.c - opens and closes an IA, and queries an IA without opening it. The steps are those of
 * registry.md 6, 7 and 9, and providers rely on the order of the calls. */
#include "dat/ia.h"
#include "common/log.h"
#include "common/trace.h"
#include "dat/debug.h"
#include "dat/error.h"
#include "dat/listing.h"
#include "dat/lmr_table.h"
#include "dat/lock.h"
#include "dat/lookup.h"
#include "dat/registry.h"
#include <stdlib.h>
#include <string.h>

static bool extensions_seen;

bool ia_extensions_seen(void)
{
	return __atomic_load_n(&extensions_seen, __ATOMIC_RELAXED);
}

static bool name_fits(const char *name)
{
	return name && strnlen(name, DAT_NAME_MAX_LENGTH) < DAT_NAME_MAX_LENGTH;
}

/* --- open --------------------------------------------------------------------- */

/* A failure of the query does not close the IA. REG-17, 18. */
static void learn_extensions(DAT_IA_HANDLE ia)
{
	DAT_IA_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	if (!provider_of(ia)->ia_query_func(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL) &&
	    attr.extension_supported != DAT_EXTENSION_NONE)
		__atomic_store_n(&extensions_seen, true, __ATOMIC_RELAXED);
}

/* Returns whether the table has the functions that the registry itself calls. Registration
 * does not check them: the reference accepts an empty table, which may never be opened. */
static bool can_open(const DAT_PROVIDER *table)
{
	return table->ia_open_func && table->ia_query_func && table->ia_close_func;
}

/* Reserves the handle first: no step after the provider's open may fail. REG-10. */
static DAT_RETURN open_with(struct provider *provider, const DAT_NAME_PTR name,
			    DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			    DAT_IA_HANDLE *ia_handle)
{
	DAT_IA_HANDLE handle, ia = NULL;
	DAT_RETURN ret;

	if (!can_open(provider->table))
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, 0);
	handle = ia_handle_reserve();
	if (!handle)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ret = provider->table->ia_open_func(name, qlen, async_evd, &ia);
	if (!ret && !ia)
		ret = DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	if (ret) {
		ia_handle_release(handle);
		return ret;
	}
	ia_handle_publish(handle, ia, provider);
	learn_extensions(ia);
	*ia_handle = handle;
	return DAT_SUCCESS;
}

/* REG-1, 2, 4, 5 */
static DAT_RETURN check_open(const char *name, DAT_EVD_HANDLE *async_evd,
			     DAT_IA_HANDLE *ia_handle)
{
	if (!name_fits(name))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!ia_handle)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!async_evd)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return DAT_SUCCESS;
}

/* calls.md 1, registry.md 6 */
EXPORT DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
			       DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle,
			       DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safety)
{
	DAT_RETURN ret = check_open(name, async_evd_handle, ia_handle);
	struct provider *provider;

	if (ret)
		return ret;
	ret = registry_get(name, major, minor, thread_safety, &provider);
	if (ret) {
		trace(TRC_LVL_ERROR, TRC_DAT_ERROR, "ia", NULL, NULL, "no provider for %s: 0x%x",
		      name, ret);
		registry_report_unknown(name);
		return ret;
	}
	ret = open_with(provider, name, async_evd_min_qlen, async_evd_handle, ia_handle);
	log_line(DBG_CONSUMER_API, "open \"%s\" u%u.%u: 0x%x", name, major, minor, ret);
	if (ret) {
		trace(TRC_LVL_ERROR, TRC_DAT_ERROR, "ia", NULL, NULL,
		      "open %s: provider returned 0x%x", name, ret);
		registry_put(provider);	/* REG-9 */
		return ret;
	}
	trace(TRC_LVL_NORMAL, TRC_DAT_EVENT, "ia", *ia_handle, "open", "%s", name);
	return DAT_SUCCESS;
}

/* --- close -------------------------------------------------------------------- */

/* Programs expect the reference's behaviour: it looks up the registration by the name and
 * version that the provider reports, and fails if they differ from what was registered. This
 * registry knows the registration without that, but returns the same error: it shows a defect
 * of the provider. REG-25. */
static bool reports_what_it_registered(const DAT_PROVIDER_ATTR *attr, const char *device_name,
				       const DAT_PROVIDER_INFO *info)
{
	return attr->dapl_version_major == info->dapl_version_major &&
	       attr->dapl_version_minor == info->dapl_version_minor &&
	       !attr->is_thread_safe == !info->is_thread_safe &&
	       device_name && !strcmp(device_name, info->ia_name);
}

/* REG-24, 47 */
static DAT_RETURN close_provider_ia(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags,
				    const DAT_PROVIDER_INFO *info, bool *consistent)
{
	const DAT_PROVIDER *table = provider_of(ia);
	DAT_PROVIDER_ATTR attr;
	DAT_RETURN ret;

	memset(&attr, 0, sizeof(attr));
	ret = table->ia_query_func(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr);
	if (ret)
		return ret;
	*consistent = reports_what_it_registered(&attr, table->device_name, info);
	return table->ia_close_func(ia, flags);
}

/* calls.md 1, registry.md 7. REG-21, 22, 23. */
EXPORT DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags)
{
	struct provider *provider;
	DAT_IA_HANDLE ia;
	bool consistent = false;
	DAT_RETURN ret;

	if (!ia_handle_close(ia_handle, &ia, &provider))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = close_provider_ia(ia, flags, &provider->info, &consistent);
	log_line(DBG_CONSUMER_API, "close \"%s\": 0x%x", provider->info.ia_name, ret);
	if (ret) {
		trace(TRC_LVL_ERROR, TRC_DAT_ERROR, "ia", ia_handle, "open",
		      "close: provider returned 0x%x", ret);
		ia_handle_keep(ia_handle);
		return ret;
	}
	trace(TRC_LVL_NORMAL, TRC_DAT_EVENT, "ia", ia_handle, "closed", "%s",
	      provider->info.ia_name);
	lmr_table_drop(ia_handle);
	ia_handle_release(ia_handle);
	registry_put(provider);
	return consistent ? DAT_SUCCESS :
		DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* --- queries without an open ---------------------------------------------------- */

/* An open query. Its handle is the provider's pointer. The registry only remembers which
 * provider it holds, and never reads through a handle that it does not remember. */
struct query {
	struct query *next;
	DAT_HANDLE handle;
	struct provider *provider;
};

static struct dat_mutex query_lock = DAT_MUTEX_INIT(RANK_DAT_QUERIES);	/* guards the list */
static struct query *queries;

static void query_link(struct query *query)
{
	dat_mutex_lock(&query_lock);
	query->next = queries;
	queries = query;
	dat_mutex_unlock(&query_lock);
}

static struct query *query_unlink(DAT_HANDLE handle)
{
	struct query **at, *query;

	dat_mutex_lock(&query_lock);
	for (at = &queries; *at && (*at)->handle != handle; at = &(*at)->next)
		;
	query = *at;
	if (query)
		*at = query->next;
	dat_mutex_unlock(&query_lock);
	return query;
}

void ia_query_fork(bool begins)
{
	if (begins)
		dat_mutex_lock(&query_lock);
	else
		dat_mutex_unlock(&query_lock);
}

/* The provider gets the name as its handle, and the arguments that follow the name. */
static DAT_RETURN open_query_with(struct query *query, char *name, va_list args)
{
	const DAT_PROVIDER *table = query->provider->table;
	DAT_HANDLE *out;
	va_list peek;
	DAT_RETURN ret;

	va_copy(peek, args);
	out = va_arg(peek, DAT_HANDLE *);
	va_end(peek);
	if (!out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!table->handle_extendedop_func)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, 0);
	ret = table->handle_extendedop_func((DAT_HANDLE)name, DAT_OPEN_EXTENSION_BASE, args);
	if (!ret)
		query->handle = *out;
	return ret;
}

/* EXT-10, 11 */
DAT_RETURN ia_query_open(va_list args)
{
	char *name = va_arg(args, char *);
	struct query *query;
	DAT_RETURN ret;

	if (!name_fits(name))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	query = calloc(1, sizeof(*query));
	if (!query)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ret = registry_get(name, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE,
			   &query->provider);
	if (ret)
		goto free_query;
	ret = open_query_with(query, name, args);
	if (ret)
		goto put_provider;
	query_link(query);
	return DAT_SUCCESS;

put_provider:
	registry_put(query->provider);
free_query:
	free(query);
	return ret;
}

DAT_RETURN ia_query_close(DAT_HANDLE handle, va_list args)
{
	struct query *query = handle ? query_unlink(handle) : NULL;
	DAT_RETURN ret;

	if (!query)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = query->provider->table->handle_extendedop_func(handle, DAT_CLOSE_EXTENSION_BASE,
							     args);
	if (ret) {
		query_link(query);
		return ret;
	}
	registry_put(query->provider);
	free(query);
	return DAT_SUCCESS;
}
