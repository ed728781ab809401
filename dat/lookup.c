/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lookup.c - finds the provider of an IA, counts its users, and decides when a library is loaded and
 * unloaded. registry_state.h has the rules of locking. */
#include "dat/lookup.h"
#include "common/log.h"
#include "common/trace.h"
#include "dat/busy.h"
#include "dat/debug.h"
#include "dat/entry_text.h"
#include "dat/error.h"
#include "dat/loader.h"
#include "dat/providers.h"
#include <string.h>

/* --- loading and unloading; called with the lock held --------------------------- */

/* Returns true once for each library, however many entries name it. */
static bool is_first_report(struct entry *entry)
{
	for (size_t i = 0; i < registry.table.count; i++)
		if (registry.table.entries[i]->failure_reported &&
		    !strcmp(registry.table.entries[i]->conf->library, entry->conf->library))
			return false;
	entry->failure_reported = true;
	return true;
}

static void report_load(struct entry *e, const char *reason)
{
	struct where w;

	if (is_first_report(e))
		log_report(e->library.lacks_calls ? REPORT_NO_PROVIDER : REPORT_LIBRARY_NOT_LOADED,
			   LOG_FIELDS(.ia = e->conf->info.ia_name, .result = "DAT_PROVIDER_NOT_FOUND"),
			   "%s: \"%s\": cannot load %s: %s", entry_where(e, &w),
			   e->conf->info.ia_name, e->conf->library, reason);
}

/* REG-16 */
static bool entry_load(struct entry *e)
{
	char reason[512];
	bool loaded;

	e->no_memory = false;
	busy_begin(e);
	loaded = loader_open(&e->library, e->conf->library, reason, sizeof(reason));
	if (loaded) {
		log_line(DBG_STATIC, "\"%s\": loaded %s, calling its dat_provider_init(\"%s\")",
			 e->conf->info.ia_name, e->conf->library, e->conf->ia_params);
		trace(TRC_LVL_NORMAL, TRC_DAT_EVENT, "library", e, NULL, "loaded %s",
		      e->conf->library);
		e->library.init(&e->conf->info, e->conf->ia_params);
	} else {
		trace(TRC_LVL_ERROR, TRC_DAT_ERROR, "library", e, NULL, "cannot load %s",
		      e->conf->library);
	}
	busy_end(e);
	e->loaded = loaded;
	if (!loaded)
		report_load(e, reason);
	return loaded;
}

/* REG-19 */
static void entry_unload(struct entry *e)
{
	busy_begin(e);
	log_line(DBG_STATIC, "\"%s\": calling dat_provider_fini of %s, and unloading it",
		 e->conf->info.ia_name, e->conf->library);
	e->library.fini(&e->conf->info);
	dat_mutex_lock(&registry.lock);
	provider_unlink_of(e);
	dat_mutex_unlock(&registry.lock);
	loader_close(&e->library);
	trace(TRC_LVL_NORMAL, TRC_DAT_EVENT, "library", e, NULL, "unloaded %s",
	      e->conf->library);
	busy_end(e);
	e->loaded = false;
}

/* --- get and put -------------------------------------------------------------- */

enum search { FOUND, ABSENT, BUSY };

/* Searches the registered providers. Ignores those of a library that this thread is loading or
 * unloading. */
static enum search search_providers(const DAT_PROVIDER_INFO *key, struct provider **found)
{
	struct provider *p = provider_find(key);

	if (!p || busy_by_this_thread(p->owner))
		return ABSENT;
	if (busy_by_other(p->owner))
		return BUSY;
	*found = p;
	return FOUND;
}

static void report_init(struct entry *e)
{
	struct where w;

	if (!e->failure_reported)
		log_report(REPORT_NOT_REGISTERED, LOG_FIELDS(.ia = e->conf->info.ia_name,
			   .result = "DAT_PROVIDER_NOT_FOUND"),
			   "%s: dat_provider_init of %s registered no " KEY_FMT,
			   entry_where(e, &w), e->conf->library, KEY_ARGS(&e->conf->info));
	e->failure_reported = true;
}

/* Searches the entries with this key, and loads the first library that can be loaded. CFG-27. */
static enum search search_entries(const DAT_PROVIDER_INFO *key, struct provider **found)
{
	struct entry *e = NULL;
	enum search result;

	while ((e = table_next(&registry.table, key, e))) {
		if (busy_by_other(e))
			return BUSY;
		if (busy_by_this_thread(e) || (!e->loaded && !entry_load(e)))
			continue;
		result = search_providers(key, found);
		if (result == ABSENT)
			report_init(e);	/* stays loaded: it may have started threads */
		return result;
	}
	return ABSENT;
}

static bool get_exact(const DAT_PROVIDER_INFO *key, struct provider **found)
{
	enum search result;

	for (;;) {
		busy_wait_for_forks();
		result = search_providers(key, found);
		if (result == ABSENT)
			result = search_entries(key, found);
		if (result != BUSY)
			return result == FOUND;
		busy_wait();
	}
}

struct nearness {
	bool name, major, minor;
};

static void compare(struct nearness *near, const DAT_PROVIDER_INFO *key,
		    const DAT_PROVIDER_INFO *info)
{
	if (strcmp(info->ia_name, key->ia_name))
		return;
	near->name = true;
	if (info->dapl_version_major != key->dapl_version_major)
		return;
	near->major = true;
	if (info->dapl_version_minor == key->dapl_version_minor)
		near->minor = true;
}

static struct nearness nearest(const DAT_PROVIDER_INFO *key)
{
	struct nearness near = { .name = false };

	for (struct entry *e = table_first(&registry.table, key->ia_name); e; e = e->next_in_bucket)
		if (e->conf->is_default)
			compare(&near, key, &e->conf->info);
	for (struct provider *p = registry.providers; p; p = p->next)
		if (provider_is_current(p))
			compare(&near, key, &p->info);
	return near;
}

bool name_is_known(const char *name)
{
	DAT_PROVIDER_INFO key = { .ia_name = "" };

	strncpy(key.ia_name, name, sizeof(key.ia_name) - 1);
	return nearest(&key).name;
}

static bool key_exists(const DAT_PROVIDER_INFO *key)
{
	return table_next(&registry.table, key, NULL) || provider_find(key);
}

/* Returns whether a library could not register its provider with this key. */
static bool lacked_memory(const DAT_PROVIDER_INFO *key)
{
	struct entry *e = NULL;

	while ((e = table_next(&registry.table, key, e)))
		if (e->no_memory)
			return true;
	return false;
}

/* Returns which part of the key matches no entry and no provider. If all parts match, the
 * library was the problem. REG-3, 6, 7, 8, 14, 15. */
static DAT_RETURN reason_absent(const DAT_PROVIDER_INFO *key)
{
	struct nearness near = nearest(key);

	if (!near.name && !registry_has_started())
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0);	/* it may be in the files */
	if (lacked_memory(key))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!near.name || key_exists(key))
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (!near.major)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);	/* CFG-29 */
	if (!near.minor)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
	return key->is_thread_safe ?
		DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND) :
		DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* A thread-safe provider also serves callers that did not ask for thread safety, but only if
 * no provider matches exactly (registry.md 5). CFG-28. */
static DAT_RETURN get(DAT_PROVIDER_INFO *key, struct provider **found)
{
	DAT_BOOLEAN asked = key->is_thread_safe;

	if (get_exact(key, found))
		return DAT_SUCCESS;
	key->is_thread_safe = DAT_TRUE;
	if (!asked && get_exact(key, found))
		return DAT_SUCCESS;
	key->is_thread_safe = asked;
	return reason_absent(key);
}

/* REG-49 */
DAT_RETURN registry_get(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
			DAT_BOOLEAN thread_safe, struct provider **provider)
{
	DAT_PROVIDER_INFO key = {
		.dapl_version_major = major,
		.dapl_version_minor = minor,
		.is_thread_safe = thread_safe ? DAT_TRUE : DAT_FALSE,
	};
	DAT_RETURN ret;

	registry_start();
	strncpy(key.ia_name, name, sizeof(key.ia_name) - 1);
	dat_mutex_lock(&registry.lock);
	ret = get(&key, provider);
	if (!ret) {
		(*provider)->users++;
		if ((*provider)->owner)
			(*provider)->owner->users++;
	}
	dat_mutex_unlock(&registry.lock);
	if (ret)
		log_line(DBG_CONSUMER_API, "no provider for " KEY_FMT, KEY_ARGS(&key));
	return ret;
}

/* REG-20 */
void registry_put(struct provider *provider)
{
	struct entry *owner;

	dat_mutex_lock(&registry.lock);
	busy_wait_for_forks();
	owner = provider->owner;
	provider->users--;
	if (owner && !--owner->users) {
		entry_unload(owner);
		entry_free_replaced(owner);
	}
	dat_mutex_unlock(&registry.lock);
}
