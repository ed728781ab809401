/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registry.c - reads the files of the static registry when it starts, and again when asked.
 * registry_state.h has the rules of locking. library.c keeps it usable over a fork, and frees it at the end.
 *
 * The files are read once, and again by dats_reread() only. A process that is short of descriptors or
 * memory at that time reads them again at its next call; otherwise it would have no adapters for the
 * rest of its life. */
#include "dat/registry.h"
#include "common/log.h"
#include "common/trace.h"
#include "dat/busy.h"
#include "dat/debug.h"
#include "dat/devices.h"
#include "dat/entry_text.h"
#include "dat/environment.h"
#include "dat/error.h"
#include "dat/loader.h"
#include "dat/providers.h"
#include "dat/registry_state.h"
#include "dat/sources.h"
#include <dat/dat_entries.h>
#include <pthread.h>

struct registry registry = { .lock = DAT_MUTEX_INIT(RANK_DAT_REGISTRY) };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct dat_mutex files_lock = DAT_MUTEX_INIT(RANK_DAT_FILES);	/* reading files; before the registry's lock */
static bool have_soft;		/* the software provider is installed */

/* --- start -------------------------------------------------------------------- */

/* REG-52, 53 */
static void start(void)
{
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
	dat_mutex_lock(&registry.lock);
	made = table_make(&registry.table, reading);
	for (size_t i = 0; i < registry.table.count; i++)
		entry_log(registry.table.entries[i]);
	dat_mutex_unlock(&registry.lock);
	if (!made)
		reading_put(reading);
	return made;
}

/* The linker is asked for its search path before any lock is taken. */
void registry_start(void)
{
	if (registry_has_started())
		return;
	__atomic_store_n(&have_soft, loader_finds(SOFT_LIBRARY), __ATOMIC_RELAXED);
	pthread_once(&once, start);
	dat_mutex_lock(&files_lock);
	if (!registry_has_started() && read_entries())
		__atomic_store_n(&registry.started, true, __ATOMIC_RELEASE);
	log_flush();
	dat_mutex_unlock(&files_lock);
}

void registry_fork(bool begins)
{
	if (begins) {
		dat_mutex_lock(&files_lock);
		dat_mutex_lock(&registry.lock);
	} else {
		dat_mutex_unlock(&registry.lock);
		dat_mutex_unlock(&files_lock);
	}
}

struct reading *registry_hold_reading(void)
{
	struct reading *reading;

	registry_start();
	dat_mutex_lock(&registry.lock);
	reading = registry.table.reading;
	if (reading)
		reading_get(reading);
	dat_mutex_unlock(&registry.lock);
	return reading;
}

/* --- reading again ------------------------------------------------------------ */

static DAT_RETURN replace_entries(struct entry_table *fresh)
{
	DAT_RETURN ret = DAT_SUCCESS;

	dat_mutex_lock(&registry.lock);
	if (busy_here())
		ret = DAT_ERROR(DAT_INVALID_STATE, 0);	/* called by a provider's init or fini */
	else if (!busy_wait_until_idle())
		ret = DAT_ERROR(DAT_TIMEOUT_EXPIRED, 0);
	else
		table_replace(&registry.table, fresh);
	for (size_t i = 0; !ret && i < registry.table.count; i++)
		entry_log(registry.table.entries[i]);
	dat_mutex_unlock(&registry.lock);
	return ret;
}

/* files_lock is held. */
static DAT_RETURN read_again(void)
{
	struct reading *read = reading_make(__atomic_load_n(&have_soft, __ATOMIC_RELAXED), true);
	struct entry_table fresh;
	DAT_RETURN ret;

	assert_held(&files_lock);
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
	dat_mutex_lock(&files_lock);
	ret = registry_has_started() ? read_again() :
		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0);
	log_flush();
	if (!ret && count)
		*count = (DAT_COUNT)registry.table.count;
	dat_mutex_unlock(&files_lock);
	trace(TRC_LVL_NORMAL, TRC_DAT_EVENT, "registry", NULL, NULL, "files read again: 0x%x", ret);
	return ret;
}
