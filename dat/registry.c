/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registry.c - the static registry (entries of dat.conf), the dynamic registry (providers
 * registered by code), and the only code that decides to load or unload a library.
 *
 * One lock guards both registries. It is never held while provider code or the dynamic linker
 * runs: an entry whose library is being loaded or unloaded is `busy`, and other threads that need
 * the entry wait for `idle`. The thread that made it busy does not wait: what its own call has
 * not finished does not exist yet. A provider and its entry count their users. A user is counted
 * before the lock is dropped, so that no unload removes the code during an open.
 *
 * The files are read once, and again by dats_reread() only. A process that is short of descriptors or memory at that time reads
 * them again at its next call; otherwise it would have no adapters for the rest of its life.
 *
 * A constructor may enter the locks and the one-time start, with the dynamic linker's lock
 * held. So no code here calls the linker while it holds a lock. One deadlock remains possible:
 * a constructor opens an IA while another thread loads that IA's library. The constructor
 * waits for the other thread, which waits for the linker. */
#include "dat/closed.h"
#include "dat/registry.h"
#include <dat/dat_entries.h>
#include "common/log.h"
#include "common/trace.h"
#include "dat/debug.h"
#include "dat/devices.h"
#include "dat/entry_table.h"
#include "dat/environment.h"
#include "dat/error.h"
#include "dat/ia_handle.h"
#include "dat/lmr_table.h"
#include "dat/loader.h"
#include "dat/sources.h"
#include "dat/unknown_ia.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;	/* reading files; before `lock` */
static bool started;		/* the files have been read: no lock is needed to see that */
static bool have_soft;		/* the software provider is installed */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards all below */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;	/* an entry is no longer busy */
static struct entry_table table;
static struct entry *busy_entries;	/* the entry that became busy last is the first */
static unsigned forking;		/* threads that wait to fork; they take precedence */
static struct provider *providers;	/* in the order of registration */
static bool no_memory;		/* dat_registry_add_provider() failed during an init */

/* --- keys --------------------------------------------------------------------- */

static const char *thread_word(DAT_BOOLEAN thread_safe)
{
	return thread_safe ? "threadsafe" : "nonthreadsafe";
}

/* Format of a key in messages: "name" u2.0 nonthreadsafe. */
#define KEY_FMT "\"%s\" u%u.%u %s"
#define KEY_ARGS(info) (info)->ia_name, (info)->dapl_version_major, \
	(info)->dapl_version_minor, thread_word((info)->is_thread_safe)

static struct entry *entry_next(const DAT_PROVIDER_INFO *key, struct entry *after)
{
	return table_next(&table, key, after);
}

/* A provider of a replaced entry has IAs open. It serves opens as well while the files have an entry
 * with its key, whatever that says now: no library can register a key twice, and IAs of one name may
 * share their asynchronous EVD. */
static bool is_current(const struct provider *provider)
{
	return !provider->owner || !provider->owner->replaced ||
	       table_next(&table, &provider->info, NULL);
}

static struct provider *provider_find(const DAT_PROVIDER_INFO *key)
{
	struct provider *p = providers;

	while (p && !(is_current(p) && same_key(&p->info, key)))
		p = p->next;
	return p;
}

/* --- start and end ------------------------------------------------------------ */

/* The position of an entry, for messages. */
struct where {
	char text[PATH_MAX + 16];
};

static const char *where(const struct entry *e, struct where *w)
{
	if (!e->conf->file)
		return "devices present";
	snprintf(w->text, sizeof(w->text), "%s:%u", e->conf->file, e->conf->line);
	return w->text;
}

static void log_entry(const struct entry *e)
{
	struct where w;

	if (log_on(DBG_STATIC))
		log_line(DBG_STATIC, "%s: " KEY_FMT " %s \"%s\"", where(e, &w),
			 KEY_ARGS(&e->conf->info), e->conf->library, e->conf->ia_params);
}

/* --- fork: the child finds the locks free, and no entry busy for a thread it lacks --- */

static bool busy_elsewhere(void)
{
	struct entry *e = busy_entries;

	while (e && pthread_equal(e->busy_thread, pthread_self()))
		e = e->next_busy;
	return e != NULL;
}

/* A child that is forked while another thread is in dlopen() or dlclose() would inherit the
 * linker's state in the middle of a change. The wait ends after one second, however long a
 * provider takes. */
static void before_fork(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&reading);
	pthread_mutex_lock(&lock);
	forking++;
	while (busy_elsewhere() && !pthread_cond_timedwait(&idle, &lock, &until))
		;
	forking--;
	pthread_cond_broadcast(&idle);
	ia_handle_fork(true);
	lmr_table_fork(true);
}

static void after_fork(void)
{
	lmr_table_fork(false);
	ia_handle_fork(false);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&reading);
}

static void after_fork_in_child(void)
{
	struct entry **at = &busy_entries, *e;

	while ((e = *at)) {
		if (pthread_equal(e->busy_thread, pthread_self())) {
			at = &e->next_busy;
		} else {
			e->busy = false;
			*at = e->next_busy;
		}
	}
	after_fork();
}

static void start(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
	log_init("dat", "DAT_DBG_TYPE", NULL, "DAT_DBG_DEST", DBG_ERROR);
	trace_init("DAT_TRACE_LEVEL");
	environment_check();
}

/* Returns false if memory or descriptors were short. */
static bool read_entries(void)
{
	struct reading *reading = reading_make(__atomic_load_n(&have_soft, __ATOMIC_RELAXED), false);
	bool made;

	if (!reading)
		return false;
	pthread_mutex_lock(&lock);
	made = table_make(&table, reading);
	for (size_t i = 0; i < table.count; i++)
		log_entry(table.entries[i]);
	pthread_mutex_unlock(&lock);
	if (!made)
		reading_put(reading);
	return made;
}

/* The linker is asked for its search path before any lock is taken. */
void registry_start(void)
{
	if (__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&have_soft, loader_finds(SOFT_LIBRARY), __ATOMIC_RELAXED);
	pthread_once(&once, start);
	pthread_mutex_lock(&reading);
	if (!__atomic_load_n(&started, __ATOMIC_RELAXED) && read_entries())
		__atomic_store_n(&started, true, __ATOMIC_RELEASE);
	log_flush();
	pthread_mutex_unlock(&reading);
}

struct reading *registry_hold_reading(void)
{
	struct reading *reading;

	registry_start();
	pthread_mutex_lock(&lock);
	reading = table.reading;
	if (reading)
		reading_get(reading);
	pthread_mutex_unlock(&lock);
	return reading;
}

/* --- end ---------------------------------------------------------------------- */

static bool in_use(void)
{
	bool used = busy_entries != NULL;

	for (size_t i = 0; i < table.count; i++)
		used |= table.entries[i]->loaded;
	for (struct provider *p = providers; p; p = p->next)
		used |= p->users > 0;
	return used;
}

/* At process exit IAs may be open, and threads may be in the middle of calls that never
 * continue: then all stays as it is. After dlclose() no memory of the library is left. REG-26. */
static void __attribute__((destructor)) registry_end(void)
{
	log_flush();
	if (pthread_mutex_trylock(&lock))
		return;
	if (!in_use()) {
		while (providers) {
			struct provider *p = providers;

			providers = p->next;
			free(p);
		}
		table_free(&table);
		ia_handle_fini();
		lmr_table_fini();
		closed_fini();
		log_fini();
		trace_fini();
	}
	pthread_mutex_unlock(&lock);
}

/* --- loading and unloading; called with the lock held --------------------------- */

/* Drops the lock, so that code of the provider may run. */
static void busy_begin(struct entry *e)
{
	e->busy = true;
	e->busy_thread = pthread_self();
	e->next_busy = busy_entries;
	busy_entries = e;
	pthread_mutex_unlock(&lock);
}

/* Takes the lock again. */
static void busy_end(struct entry *e)
{
	struct entry **at = &busy_entries;

	pthread_mutex_lock(&lock);
	while (*at != e)
		at = &(*at)->next_busy;
	*at = e->next_busy;
	e->busy = false;
	pthread_cond_broadcast(&idle);
}

static bool busy_by_other(const struct entry *e)
{
	return e && e->busy && !pthread_equal(e->busy_thread, pthread_self());
}

static bool busy_by_this_thread(const struct entry *e)
{
	return e && e->busy && pthread_equal(e->busy_thread, pthread_self());
}

/* Returns the entry that this thread made busy last and has not finished. */
static struct entry *busy_here(void)
{
	struct entry *e = busy_entries;

	while (e && !busy_by_this_thread(e))
		e = e->next_busy;
	return e;
}

/* Called before a load or an unload. Otherwise threads that load and unload in turn could
 * delay a fork for ever. A thread that is itself in the middle of a load does not wait,
 * because the fork waits for it. */
static void wait_for_forks(void)
{
	while (forking && !busy_here())
		pthread_cond_wait(&idle, &lock);
}

/* Returns true once for each library, however many entries name it. */
static bool is_first_report(struct entry *entry)
{
	for (size_t i = 0; i < table.count; i++)
		if (table.entries[i]->failure_reported &&
		    !strcmp(table.entries[i]->conf->library, entry->conf->library))
			return false;
	entry->failure_reported = true;
	return true;
}

static void report_load(struct entry *e, const char *reason)
{
	struct where w;

	if (is_first_report(e))
		log_report(REPORT_LIBRARY_NOT_LOADED, LOG_FIELDS(.ia = e->conf->info.ia_name,
			   .result = "DAT_PROVIDER_NOT_FOUND"),
			   "%s: \"%s\": cannot load %s: %s", where(e, &w),
			   e->conf->info.ia_name, e->conf->library, reason);
}

/* REG-16 */
static bool entry_load(struct entry *e)
{
	char reason[512];
	bool loaded;

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

static void provider_unlink(struct provider *provider)
{
	struct provider **at = &providers;

	while (*at != provider)
		at = &(*at)->next;
	*at = provider->next;
	free(provider);
}

/* Removes the registrations that dat_provider_fini left: they would point into unmapped
 * memory. */
static void unlink_providers_of(const struct entry *e)
{
	struct provider *p, *next;

	for (p = providers; p; p = next) {
		next = p->next;
		if (p->owner == e)
			provider_unlink(p);
	}
}

/* REG-19 */
static void entry_unload(struct entry *e)
{
	busy_begin(e);
	log_line(DBG_STATIC, "\"%s\": calling dat_provider_fini of %s, and unloading it",
		 e->conf->info.ia_name, e->conf->library);
	e->library.fini(&e->conf->info);
	pthread_mutex_lock(&lock);
	unlink_providers_of(e);
	pthread_mutex_unlock(&lock);
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
			   where(e, &w), e->conf->library, KEY_ARGS(&e->conf->info));
	e->failure_reported = true;
}

/* Searches the entries with this key, and loads the first library that can be loaded. CFG-27. */
static enum search search_entries(const DAT_PROVIDER_INFO *key, struct provider **found)
{
	struct entry *e = NULL;
	enum search result;

	while ((e = entry_next(key, e))) {
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
		wait_for_forks();
		result = search_providers(key, found);
		if (result == ABSENT)
			result = search_entries(key, found);
		if (result != BUSY)
			return result == FOUND;
		pthread_cond_wait(&idle, &lock);
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

	for (struct entry *e = table_first(&table, key->ia_name); e; e = e->next_in_bucket)
		if (e->conf->is_default)
			compare(&near, key, &e->conf->info);
	for (struct provider *p = providers; p; p = p->next)
		if (is_current(p))
			compare(&near, key, &p->info);
	return near;
}

static bool key_exists(const DAT_PROVIDER_INFO *key)
{
	return entry_next(key, NULL) || provider_find(key);
}

/* Returns which part of the key matches no entry and no provider. If all parts match, the
 * library was the problem. REG-3, 6, 7, 8, 14, 15. */
static DAT_RETURN reason_absent(const DAT_PROVIDER_INFO *key)
{
	struct nearness near = nearest(key);

	if (!near.name && !__atomic_load_n(&started, __ATOMIC_RELAXED))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0);	/* it may be in the files */
	if (no_memory && key_exists(key))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!near.name || key_exists(key))
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (!near.major)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
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
	pthread_mutex_lock(&lock);
	ret = get(&key, provider);
	if (!ret) {
		(*provider)->users++;
		if ((*provider)->owner)
			(*provider)->owner->users++;
	}
	pthread_mutex_unlock(&lock);
	if (ret)
		log_line(DBG_CONSUMER_API, "no provider for " KEY_FMT, KEY_ARGS(&key));
	return ret;
}

/* REG-20 */
void registry_put(struct provider *provider)
{
	struct entry *owner;

	pthread_mutex_lock(&lock);
	wait_for_forks();
	owner = provider->owner;
	provider->users--;
	if (owner && !--owner->users) {
		entry_unload(owner);
		entry_free_replaced(owner);
	}
	pthread_mutex_unlock(&lock);
}

/* --- reading again ------------------------------------------------------------ */

/* Waits until no library is being loaded or unloaded, as before a fork. Threads that would begin that
 * wait meanwhile. False: a provider takes longer than a second. Called with the lock held. */
static bool wait_until_idle(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	forking++;
	while (busy_entries && !pthread_cond_timedwait(&idle, &lock, &until))
		;
	forking--;
	pthread_cond_broadcast(&idle);
	return !busy_entries;
}

static DAT_RETURN replace_entries(struct entry_table *fresh)
{
	DAT_RETURN ret = DAT_SUCCESS;

	pthread_mutex_lock(&lock);
	if (busy_here())
		ret = DAT_ERROR(DAT_INVALID_STATE, 0);	/* called by a provider's init or fini */
	else if (!wait_until_idle())
		ret = DAT_ERROR(DAT_TIMEOUT_EXPIRED, 0);
	else
		table_replace(&table, fresh);
	for (size_t i = 0; !ret && i < table.count; i++)
		log_entry(table.entries[i]);
	pthread_mutex_unlock(&lock);
	return ret;
}

/* `reading` (the lock) is held. */
static DAT_RETURN read_again(void)
{
	struct reading *read = reading_make(__atomic_load_n(&have_soft, __ATOMIC_RELAXED), true);
	struct entry_table fresh;
	DAT_RETURN ret;

	if (!read)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0);
	if (read->sources.unreadable || read->sources.faults) {
		reading_put(read);
		return DAT_ERROR(DAT_INVALID_PARAMETER, 0);
	}
	if (!table_make(&fresh, read)) {
		reading_put(read);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	ret = replace_entries(&fresh);
	if (ret)
		table_free(&fresh);
	return ret;
}

EXPORT DAT_RETURN dats_reread(DAT_COUNT *count)
{
	DAT_RETURN ret;

	registry_start();
	pthread_mutex_lock(&reading);
	ret = __atomic_load_n(&started, __ATOMIC_RELAXED) ? read_again() :
		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0);
	log_flush();
	if (!ret && count)
		*count = (DAT_COUNT)table.count;
	pthread_mutex_unlock(&reading);
	trace(TRC_LVL_NORMAL, TRC_DAT_EVENT, "registry", NULL, NULL, "files read again: 0x%x", ret);
	return ret;
}

/* --- names -------------------------------------------------------------------- */

/* Returns whether an earlier entry that can be opened has the same name. */
static bool is_listed(const struct entry *entry)
{
	const struct entry *e = table_first(&table, entry->conf->info.ia_name);

	while (e != entry && !(e->conf->is_default &&
			       !strcmp(e->conf->info.ia_name, entry->conf->info.ia_name)))
		e = e->next_in_bucket;
	return e != entry;
}

static void list_names(struct name_list *list)
{
	for (size_t i = 0; i < table.count; i++)
		if (table.entries[i]->conf->is_default && !is_listed(table.entries[i]))
			name_list_add(list, table.entries[i]->conf->info.ia_name);
	for (struct provider *p = providers; p; p = p->next)
		if (!p->owner)	/* the names of other providers are in the entries */
			name_list_add(list, p->info.ia_name);
}

/* Reports nothing if a file could not be read: that is the cause, and has been reported. */
void registry_report_unknown(const char *name)
{
	DAT_PROVIDER_INFO key = { .ia_name = "" };
	struct name_list list = { .length = 0 };

	strncpy(key.ia_name, name, sizeof(key.ia_name) - 1);
	pthread_mutex_lock(&lock);
	if (__atomic_load_n(&started, __ATOMIC_ACQUIRE) && !nearest(&key).name) {
		const struct sources *sources = &table.reading->sources;

		list_names(&list);
		if ((list.length || !sources->unreadable) && unknown_ia_is_new(name))
			unknown_ia_report(name, sources->origin ? sources->origin : "", &list);
	}
	pthread_mutex_unlock(&lock);
}

bool registry_knows(const char *name)
{
	DAT_PROVIDER_INFO key = { .ia_name = "" };
	bool known;

	registry_start();
	strncpy(key.ia_name, name, sizeof(key.ia_name) - 1);
	pthread_mutex_lock(&lock);
	known = nearest(&key).name;
	pthread_mutex_unlock(&lock);
	return known;
}

/* --- what providers call -------------------------------------------------------- */

/* Returns the entry on whose behalf the calling code runs. That is the entry this thread is
 * loading. If there is none, it is an entry with this key that another thread is loading: an
 * init can start a thread. */
static struct entry *entry_of_caller(const DAT_PROVIDER_INFO *info)
{
	struct entry *e = busy_here();

	if (e)
		return e;
	for (e = busy_entries; e; e = e->next_busy)
		if (same_key(&e->conf->info, info))
			return e;
	return NULL;
}

/* REG-29, 30 */
static DAT_RETURN add(const DAT_PROVIDER *table, const DAT_PROVIDER_INFO *info)
{
	struct provider **at, *p;

	if (provider_find(info))
		return DAT_ERROR(DAT_PROVIDER_ALREADY_REGISTERED, 0);
	p = calloc(1, sizeof(*p));
	if (!p && entry_of_caller(info))
		no_memory = true;	/* an init cannot return it to the consumer */
	if (!p)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	p->info = *info;
	p->table = table;
	p->owner = entry_of_caller(info);
	for (at = &providers; *at; at = &(*at)->next)
		;
	*at = p;
	return DAT_SUCCESS;
}

/* A replaced entry's library removes its own provider, not that of the entry in its place. */
static struct provider *provider_to_remove(const DAT_PROVIDER_INFO *info)
{
	const struct entry *e = busy_here();
	struct provider *p = providers;

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
	pthread_mutex_lock(&lock);
	ret = add(table, info);
	pthread_mutex_unlock(&lock);
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
	pthread_mutex_lock(&lock);
	ret = remove_provider(info);
	pthread_mutex_unlock(&lock);
	log_line(DBG_DYNAMIC | DBG_PROVIDER_API, "remove provider " KEY_FMT ": 0x%x",
		 KEY_ARGS(info), ret);
	return ret;
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
	for (size_t i = 0; i < table.count; i++)
		if (table.entries[i]->conf->is_default && !table.entries[i]->repeated)
			list_one(l, &table.entries[i]->conf->info);
	for (struct provider *p = providers; p; p = p->next)
		if (is_current(p) && !entry_next(&p->info, NULL))
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
	if (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0);	/* the files are not read */
	pthread_mutex_lock(&lock);
	list_all(&l);
	pthread_mutex_unlock(&lock);
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
