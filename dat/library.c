/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* library.c - see library.h. registry_state.h has the rules of locking. */
#include "dat/library.h"
#include "common/log.h"
#include "common/trace.h"
#include "dat/busy.h"
#include "dat/closed.h"
#include "dat/forks.h"
#include "dat/ia.h"
#include "dat/ia_handle.h"
#include "dat/lmr_table.h"
#include "dat/providers.h"
#include "dat/registry_state.h"
#include <pthread.h>

/* --- fork: the child finds the locks free, and no entry busy for a thread it lacks --- */

static void before_fork(void)
{
	dat_mutex_lock(&registry.lock);
	busy_before_fork();
	dat_mutex_unlock(&registry.lock);
	forks_before();		/* of the libraries: their locks come before the registry's */
	registry_fork(true);
	ia_handle_fork(true);
	ia_query_fork(true);
	lmr_table_fork(true);
}

static void unlock_all(void)
{
	lmr_table_fork(false);
	ia_query_fork(false);
	ia_handle_fork(false);
	registry_fork(false);
}

static void after_fork(void)
{
	busy_after_fork();
	unlock_all();
	forks_parent();
}

static void after_fork_in_child(void)
{
	busy_after_fork_in_child();
	unlock_all();
	forks_child();
}

/* Called before any thread can use the registry, since a fork that has begun does not call new handlers. */
__attribute__((constructor)) void library_watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* --- end ---------------------------------------------------------------------- */

static bool in_use(void)
{
	bool used = busy_any();

	for (size_t i = 0; i < registry.table.count; i++)
		used |= registry.table.entries[i]->loaded;
	for (struct provider *p = registry.providers; p; p = p->next)
		used |= p->users > 0;
	return used;
}

/* At process exit IAs may be open, and threads may be in the middle of calls that never
 * continue: then all stays as it is. After dlclose() no memory of the library is left. REG-26. */
static void __attribute__((destructor)) registry_end(void)
{
	log_flush();
	if (!dat_mutex_try(&registry.lock))
		return;
	if (!in_use()) {
		provider_free_all();
		table_free(&registry.table);
		ia_handle_fini();
		lmr_table_fini();
		closed_fini();
		log_fini();
		trace_fini();
	}
	dat_mutex_unlock(&registry.lock);
}
