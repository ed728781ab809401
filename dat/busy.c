/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* busy.c - marks entries whose library is being loaded or unloaded, and waits for them (busy.h). */
#include "dat/busy.h"
#include "dat/registry_state.h"
#include <pthread.h>
#include <time.h>

/* Under the registry's lock. */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;	/* an entry is no longer busy */
static struct entry *busy_entries;	/* the entry that became busy last is the first */
static unsigned forking;		/* threads that fork, or wait to replace the entries; they take precedence */

void busy_begin(struct entry *e)
{
	assert_held(&registry.lock);
	e->busy = true;
	e->busy_thread = pthread_self();
	e->next_busy = busy_entries;
	busy_entries = e;
	dat_mutex_unlock(&registry.lock);
}

void busy_end(struct entry *e)
{
	struct entry **at = &busy_entries;

	dat_mutex_lock(&registry.lock);
	while (*at != e)
		at = &(*at)->next_busy;
	*at = e->next_busy;
	e->busy = false;
	pthread_cond_broadcast(&idle);
}

bool busy_by_other(const struct entry *e)
{
	return e && e->busy && !pthread_equal(e->busy_thread, pthread_self());
}

bool busy_by_this_thread(const struct entry *e)
{
	return e && e->busy && pthread_equal(e->busy_thread, pthread_self());
}

struct entry *busy_here(void)
{
	struct entry *e = busy_entries;

	assert_held(&registry.lock);
	while (e && !busy_by_this_thread(e))
		e = e->next_busy;
	return e;
}

bool busy_any(void)
{
	return busy_entries != NULL;
}

struct entry *busy_entry_of_caller(const DAT_PROVIDER_INFO *info)
{
	struct entry *e = busy_here();

	if (e)
		return e;
	for (e = busy_entries; e; e = e->next_busy)
		if (same_key(&e->conf->info, info))
			return e;
	return NULL;
}

/* --- waiting ------------------------------------------------------------------ */

void busy_wait(void)
{
	dat_mutex_wait(&registry.lock, &idle, NULL);
}

void busy_wait_for_forks(void)
{
	while (forking && !busy_here())
		dat_mutex_wait(&registry.lock, &idle, NULL);
}

/* Keeps other threads from beginning to load, and waits until is_busy() returns false, for one second at
 * most. */
static void wait_while(bool (*is_busy)(void))
{
	struct timespec until;

	assert_held(&registry.lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	forking++;
	while (is_busy() && !dat_mutex_wait(&registry.lock, &idle, &until))
		;
}

static void let_others_load(void)
{
	assert_held(&registry.lock);
	forking--;
	pthread_cond_broadcast(&idle);
}

bool busy_wait_until_idle(void)
{
	wait_while(busy_any);
	let_others_load();
	return !busy_entries;
}

static bool busy_elsewhere(void)
{
	struct entry *e = busy_entries;

	while (e && pthread_equal(e->busy_thread, pthread_self()))
		e = e->next_busy;
	return e != NULL;
}

/* A child that is forked while another thread is in dlopen() or dlclose() would inherit the
 * linker's state in the middle of a change. */
void busy_before_fork(void)
{
	wait_while(busy_elsewhere);
}

void busy_after_fork(void)
{
	let_others_load();
}

void busy_after_fork_in_child(void)
{
	struct entry **at = &busy_entries, *e;

	forking = 0;
	idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;	/* its state may count waiters of the parent */
	while ((e = *at)) {
		if (pthread_equal(e->busy_thread, pthread_self())) {
			at = &e->next_busy;
		} else {
			e->busy = false;
			*at = e->next_busy;
		}
	}
}
