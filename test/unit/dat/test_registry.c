/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_registry.c - the start of the registry and reading the files again: shortages, faults, libraries that are
 * being loaded meanwhile, and what a fork leaves to both processes. A change of files as programs see it is
 * test/registry/test_reread.c's. */
#include "dat/registry.h"
#include <sched.h>
#include <dat/dat_entries.h>
#include "dat/busy.h"
#include "dat/error.h"
#include "dat/ia.h"
#include "dat/registry_state.h"
#include "test/unit/child.h"
#include "test/unit/dat/conf_text.h"
#include "test/unit/unit.h"

#define A LINE("ia_a", "default", "liba.so", "eth0 0")
#define B LINE("ia_b", "default", "libb.so", "eth0 0")

static int allocations_left;		/* before the one that fails */

EXTEND(pthread_mutex_lock, pthread_mutex_unlock)

UNIT_FAIL_CALLOC(allocations_left-- == 0)
UNIT_FAIL_REALLOC(allocations_left-- == 0)

static _Thread_local bool keeps;	/* the next unlock of this thread waits */
static pthread_mutex_t *kept;		/* atomic: the mutex of that unlock */
static bool let_go;			/* atomic: it returns */

/* A thread that finds the mutex kept lets it go. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (__atomic_load_n(&kept, __ATOMIC_ACQUIRE) == mutex)
		__atomic_store_n(&let_go, true, __ATOMIC_RELEASE);
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (keeps) {
		keeps = false;
		__atomic_store_n(&kept, mutex, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
			sched_yield();
	}
	return __real_pthread_mutex_unlock(mutex);
}

/* --- fixture ----------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	allocations_left = INT32_MAX;
	conf_text = A B;
	conf_shortage = 0;
	conf_unreadable = false;
	conf_reads = 0;
}

static int tear_down(void **state)
{
	allocations_left = INT32_MAX;
	table_free(&registry.table);
	memset(&registry.table, 0, sizeof registry.table);
	registry.started = false;
	return busy_any() ? -1 : 0;
}

static const char *next_text = B;	/* of the files that are read again */

/* Reads other files. If that fails, nothing is changed. */
static DAT_RETURN reread(void)
{
	struct entry *const first = registry.table.entries[0];
	struct reading *const reading = registry.table.reading;
	DAT_COUNT count = 77;
	DAT_RETURN ret;

	conf_text = next_text;
	ret = dats_reread(&count);
	if (ret == DAT_SUCCESS)
		return ret;
	assert_int_equal(count, 77);
	assert_int_equal(registry.table.count, 2);
	assert_ptr_equal(registry.table.entries[0], first);
	assert_ptr_equal(registry.table.reading, reading);
	assert_false(first->replaced);
	return ret;
}

static void reread_fails(DAT_RETURN expected) { assert_int_equal(reread(), expected); }

/* A thread that begins to load an entry, and ends before it has. */
static void *load(void *entry)
{
	dat_mutex_lock(&registry.lock);
	busy_begin(entry);
	return NULL;
}

static void another_thread_loads(struct entry *e)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, load, e), 0);
	pthread_join(thread, NULL);
}

static void loaded(struct entry *e)
{
	busy_end(e);
	dat_mutex_unlock(&registry.lock);
}

/* --- start ------------------------------------------------------------------------------------------------------ */

UNIT_CASE(files_with_faults_are_read_once_too)
{
	conf_text = A B "no entry\n";
	registry_start();
	registry_start();
	assert_int_equal(conf_reads, 1);
	assert_int_equal(registry.table.count, 2);
}

UNIT_CASE(next_call_reads_after_a_shortage)
{
	static const int shortages[] = { ENOMEM, EMFILE };

	for (int i = 0; i < 2; i++) {
		conf_shortage = shortages[i];
		registry_start();
		assert_false(registry_has_started());
		assert_null(registry.table.reading);
	}
	conf_shortage = 0;
	registry_start();
	assert_true(registry_has_started());
	assert_int_equal(conf_reads, 3);
}

UNIT_CASE(start_survives_each_lack_of_memory)
{
	int tries = 0;

	while (!registry_has_started()) {
		assert_null(registry.table.reading);
		assert_int_equal(registry.table.count, 0);
		assert_in_range(tries, 0, 50);
		allocations_left = tries++;
		registry_start();
	}
	assert_in_range(tries, 5, 50);
	assert_int_equal(registry.table.count, 2);
}

UNIT_CASE(held_reading_outlives_the_next_one)
{
	struct reading *held;

	held = registry_hold_reading();			/* starts the registry */
	assert_ptr_equal(held, registry.table.reading);
	conf_text = B;
	assert_int_equal(dats_reread(NULL), DAT_SUCCESS);
	assert_ptr_not_equal(held, registry.table.reading);
	assert_int_equal(held->refs, 1);
	assert_string_equal(held->sources.conf.entries[0].info.ia_name, "ia_a");
	reading_put(held);
}

UNIT_CASE(nothing_is_held_of_files_that_were_not_read)
{
	conf_shortage = ENOMEM;
	assert_null(registry_hold_reading());
}

/* --- reading again ---------------------------------------------------------------------------------------------- */

UNIT_CASE(reread_starts_the_registry_and_counts_entries)
{
	DAT_COUNT count = 77;

	assert_int_equal(dats_reread(&count), DAT_SUCCESS);
	assert_int_equal(count, 2);
	assert_int_equal(conf_reads, 2);
	conf_text = B;
	assert_int_equal(dats_reread(&count), DAT_SUCCESS);
	assert_int_equal(count, 1);
	assert_string_equal(registry.table.entries[0]->conf->info.ia_name, "ia_b");
	conf_text = "";
	assert_int_equal(dats_reread(NULL), DAT_SUCCESS);
	assert_int_equal(registry.table.count, 0);
}

UNIT_CASE(files_with_faults_change_nothing)
{
	registry_start();
	next_text = B "no entry\n";
	reread_fails(DAT_ERROR(DAT_INVALID_PARAMETER, 0));
	next_text = B;
	conf_unreadable = true;
	reread_fails(DAT_ERROR(DAT_INVALID_PARAMETER, 0));
}

UNIT_CASE(shortages_change_nothing)
{
	DAT_RETURN ret;
	int tries = 0;

	registry_start();
	conf_shortage = EMFILE;
	reread_fails(DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0));
	conf_shortage = 0;
	do {
		allocations_left = tries++;
		ret = reread();
		assert_true(!ret || DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES);
	} while (ret);
	assert_in_range(tries, 5, 50);
	assert_int_equal(registry.table.count, 1);
}

UNIT_CASE(registry_that_cannot_start_is_not_read_again)
{
	DAT_COUNT count = 77;

	conf_shortage = EMFILE;
	assert_int_equal(dats_reread(&count), DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0));
	assert_int_equal(count, 77);
	assert_int_equal(conf_reads, 1);
}

/* It would wait for itself. */
UNIT_CASE(init_of_a_provider_cannot_reread)
{
	registry_start();
	dat_mutex_lock(&registry.lock);
	busy_begin(registry.table.entries[1]);
	reread_fails(DAT_ERROR(DAT_INVALID_STATE, 0));
	loaded(registry.table.entries[1]);
}

UNIT_CASE(reread_waits_no_longer_than_a_second_for_a_load)
{
	registry_start();
	another_thread_loads(registry.table.entries[0]);
	reread_fails(DAT_ERROR(DAT_TIMEOUT_EXPIRED, 0));
	loaded(registry.table.entries[0]);
	assert_int_equal(dats_reread(NULL), DAT_SUCCESS);
	assert_int_equal(registry.table.count, 1);
}

static DAT_RETURN close_query(DAT_HANDLE handle, ...)
{
	DAT_RETURN ret;
	va_list args;

	va_start(args, handle);
	ret = ia_query_close(handle, args);
	va_end(args);
	return ret;
}

static void *close_query_slowly(void *handle)
{
	keeps = true;
	close_query(handle);
	return NULL;
}

/* The thread that holds the lock of queries is not in the child. */
UNIT_CASE(child_can_close_queries)
{
	pthread_t thread;
	int status, none;
	pid_t pid;

	kept = NULL;
	let_go = false;
	assert_int_equal(pthread_create(&thread, NULL, close_query_slowly, &none), 0);
	while (!__atomic_load_n(&kept, __ATOMIC_ACQUIRE))
		sched_yield();
	pid = fork();
	if (!pid) {
		alarm(10);		/* ends a child that waits for ever */
		_exit(DAT_GET_TYPE(close_query(&none)) == DAT_INVALID_HANDLE ? 0 : 1);
	}
	__atomic_store_n(&let_go, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

UNIT_MAIN(NULL, NULL)
