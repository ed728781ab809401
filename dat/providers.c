/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* providers.c - the list of registered providers (providers.h), and the calls by which they register:
 * dat_registry_add_provider() and dat_registry_remove_provider(). */
#include "dat/providers.h"
#include "common/log.h"
#include "dat/busy.h"
#include "dat/debug.h"
#include "dat/entry_text.h"
#include "dat/error.h"
#include <stdlib.h>
#include <string.h>

bool provider_is_current(const struct provider *provider)
{
	return !provider->owner || !provider->owner->replaced ||
	       table_next(&registry.table, &provider->info, NULL);
}

struct provider *provider_find(const DAT_PROVIDER_INFO *key)
{
	struct provider *p = registry.providers;

	assert_held(&registry.lock);
	while (p && !(provider_is_current(p) && same_key(&p->info, key)))
		p = p->next;
	return p;
}

static void provider_unlink(struct provider *provider)
{
	struct provider **at = &registry.providers;

	while (*at != provider)
		at = &(*at)->next;
	*at = provider->next;
	free(provider);
}

void provider_unlink_of(const struct entry *e)
{
	struct provider *p, *next;

	for (p = registry.providers; p; p = next) {
		next = p->next;
		if (p->owner == e)
			provider_unlink(p);
	}
}

void provider_free_all(void)
{
	while (registry.providers)
		provider_unlink(registry.providers);
}

/* --- what providers call -------------------------------------------------------- */

/* REG-29, 30 */
static DAT_RETURN add(const DAT_PROVIDER *table, const DAT_PROVIDER_INFO *info)
{
	struct entry *owner = busy_entry_of_caller(info);
	struct provider **at, *p;

	if (provider_find(info))
		return DAT_ERROR(DAT_PROVIDER_ALREADY_REGISTERED, 0);
	p = calloc(1, sizeof(*p));
	if (!p && owner)
		owner->no_memory = true;	/* an init cannot return it to the consumer */
	if (!p)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	p->info = *info;
	p->table = table;
	p->owner = owner;
	for (at = &registry.providers; *at; at = &(*at)->next)
		;
	*at = p;
	return DAT_SUCCESS;
}

/* A replaced entry's library removes its own provider, not that of the entry in its place. */
static struct provider *provider_to_remove(const DAT_PROVIDER_INFO *info)
{
	const struct entry *e = busy_here();
	struct provider *p = registry.providers;

	if (!e || !e->replaced)
		return provider_find(info);
	while (p && !(p->owner == e && same_key(&p->info, info)))
		p = p->next;
	return p;
}

/* REG-31, 32, 33 */
static DAT_RETURN remove_provider(const DAT_PROVIDER_INFO *info)
{
	struct provider *p = provider_to_remove(info);

	if (!p)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (p->users)
		return DAT_ERROR(DAT_PROVIDER_IN_USE, 0);
	provider_unlink(p);
	return DAT_SUCCESS;
}

/* REG-27, 28 */
static DAT_RETURN check(const DAT_PROVIDER *table, const DAT_PROVIDER_INFO *info)
{
	if (!table)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!info || !memchr(info->ia_name, '\0', sizeof(info->ia_name)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	registry_start();
	return DAT_SUCCESS;
}

/* registry.md 8, calls.md 9 */
EXPORT DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *table,
					    const DAT_PROVIDER_INFO *info)
{
	DAT_RETURN ret = check(table, info);

	if (ret)
		return ret;
	dat_mutex_lock(&registry.lock);
	ret = add(table, info);
	dat_mutex_unlock(&registry.lock);
	log_line(DBG_DYNAMIC | DBG_PROVIDER_API, "add provider " KEY_FMT ": 0x%x",
		 KEY_ARGS(info), ret);
	return ret;
}

EXPORT DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *table,
					       const DAT_PROVIDER_INFO *info)
{
	DAT_RETURN ret = check(table, info);

	if (ret)
		return ret;
	dat_mutex_lock(&registry.lock);
	ret = remove_provider(info);
	dat_mutex_unlock(&registry.lock);
	log_line(DBG_DYNAMIC | DBG_PROVIDER_API, "remove provider " KEY_FMT ": 0x%x",
		 KEY_ARGS(info), ret);
	return ret;
}
