/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listing.c - the names of adapters: which exist, the line about one that does not, and the lists that
 * programs ask for. */
#include "common/log.h"
#include "dat/entry_table.h"
#include "dat/error.h"
#include "dat/listing.h"
#include "dat/lookup.h"
#include "dat/providers.h"
#include "dat/unknown_ia.h"
#include <string.h>

/* --- names -------------------------------------------------------------------- */

/* Returns whether an earlier entry that can be opened has the same name. */
static bool is_listed(const struct entry *entry)
{
	const struct entry *e = table_first(&registry.table, entry->conf->info.ia_name);

	while (e != entry && !(e->conf->is_default &&
			       !strcmp(e->conf->info.ia_name, entry->conf->info.ia_name)))
		e = e->next_in_bucket;
	return e != entry;
}

static void list_names(struct name_list *list)
{
	for (size_t i = 0; i < registry.table.count; i++)
		if (registry.table.entries[i]->conf->is_default && !is_listed(registry.table.entries[i]))
			unknown_ia_add_name(list, registry.table.entries[i]->conf->info.ia_name);
	for (struct provider *p = registry.providers; p; p = p->next)
		if (!p->owner)	/* the names of other providers are in the entries */
			unknown_ia_add_name(list, p->info.ia_name);
}

/* Reports nothing if a file could not be read: that is the cause, and has been reported. */
void registry_report_unknown(const char *name)
{
	struct name_list list = { .length = 0 };

	dat_mutex_lock(&registry.lock);
	if (registry_has_started() && !name_is_known(name)) {
		const struct sources *sources = &registry.table.reading->sources;

		list_names(&list);
		if ((list.length || !sources->unreadable) && unknown_ia_is_new(name))
			unknown_ia_report(name, sources->origin ? sources->origin : "", &list);
	}
	dat_mutex_unlock(&registry.lock);
}

/* Returns whether an open could find an IA of this name. */
static bool registry_knows(const char *name)
{
	bool known;

	registry_start();
	dat_mutex_lock(&registry.lock);
	known = name_is_known(name);
	dat_mutex_unlock(&registry.lock);
	return known;
}

/* --- the list ----------------------------------------------------------------- */

struct listing {
	DAT_PROVIDER_INFO **list;
	DAT_COUNT max, total;
};

static void list_one(struct listing *l, const DAT_PROVIDER_INFO *info)
{
	if (l->total < l->max && l->list[l->total])
		*l->list[l->total] = *info;
	l->total++;
}

/* Entries in the order of the file, then the providers that no entry names. CFG-23, 26. */
static void list_all(struct listing *l)
{
	for (size_t i = 0; i < registry.table.count; i++)
		if (registry.table.entries[i]->conf->is_default && !registry.table.entries[i]->conf->unlisted &&
		    !registry.table.entries[i]->repeated)
			list_one(l, &registry.table.entries[i]->conf->info);
	for (struct provider *p = registry.providers; p; p = p->next)
		if (provider_is_current(p) && !table_next(&registry.table, &p->info, NULL))
			list_one(l, &p->info);
}

/* calls.md 9: an array that is too short gets what fits; without an array, only the number is
 * returned. REG-34, 35, 36, 37, 38, 39. */
EXPORT DAT_RETURN dat_registry_list_providers(DAT_COUNT max, DAT_COUNT *returned,
					      DAT_PROVIDER_INFO *list[])
{
	struct listing l = { .list = list, .max = max };

	if (!returned)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (max > 0 && !list)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	registry_start();
	if (!registry_has_started())
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0);	/* the files are not read */
	dat_mutex_lock(&registry.lock);
	list_all(&l);
	dat_mutex_unlock(&registry.lock);
	if (!max) {
		*returned = l.total;
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	}
	*returned = max < 0 ? 0 : max < l.total ? max : l.total;
	return DAT_SUCCESS;
}

/* No known provider spans two IAs, and names alone do not show a relation. */
EXPORT DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR name1,
						 const DAT_NAME_PTR name2,
						 DAT_HA_RELATIONSHIP *answer)
{
	if (!name1)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!name2)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!answer)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!registry_knows(name1) || !registry_knows(name2))
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	*answer = DAT_HA_UNKNOWN;
	return DAT_SUCCESS;
}
