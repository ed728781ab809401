/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_busy.c - entries whose library is being loaded: which threads wait for them, and what a fork leaves of them. */
#include "dat/busy.h"
#include "dat/registry_state.h"
#include "test/unit/unit.h"

static struct conf_entry confs[3];
static struct entry entries[3];
static bool begun, may_end;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t loader;

UNIT_FIXTURE(set_up)
{
	memset(entries, 0, sizeof entries);
	for (int i = 0; i < 3; i++) {
		confs[i].info = (DAT_PROVIDER_INFO){ .dapl_version_major = 2 };
		confs[i].info.ia_name[0] = (char)('a' + i);
		entries[i].conf = &confs[i];
	}
	begun = may_end = false;
	dat_mutex_lock(&registry.lock);
}

UNIT_FIXTURE(tear_down) { dat_mutex_unlock(&registry.lock); }

/* Makes entry 1 busy until the test lets it end. */
static void *load(void *unused)
{
	dat_mutex_lock(&registry.lock);
	busy_begin(&entries[1]);
	dat_mutex_lock(&registry.lock);
	begun = true;
	pthread_cond_broadcast(&changed);
	while (!may_end)
		pthread_cond_wait(&changed, &registry.lock.mutex);
	dat_mutex_unlock(&registry.lock);
	busy_end(&entries[1]);
	dat_mutex_unlock(&registry.lock);
	return unused;
}

static void start_loader(void)
{
	assert_int_equal(pthread_create(&loader, NULL, load, NULL), 0);
	while (!begun)
		pthread_cond_wait(&changed, &registry.lock.mutex);
}

static void let_loader_end(void)
{
	may_end = true;
	pthread_cond_broadcast(&changed);
}

static void join_loader(void)
{
	dat_mutex_unlock(&registry.lock);
	pthread_join(loader, NULL);
	dat_mutex_lock(&registry.lock);
}

static void begin(struct entry *e)
{
	busy_begin(e);
	dat_mutex_lock(&registry.lock);
}

static void end(struct entry *e)
{
	dat_mutex_unlock(&registry.lock);
	busy_end(e);
}

UNIT_CASE(entry_is_busy_for_its_thread)
{
	assert_false(busy_any() || busy_by_this_thread(NULL) || busy_by_other(NULL));
	begin(&entries[0]);
	assert_true(busy_any() && busy_by_this_thread(&entries[0]));
	assert_false(busy_by_other(&entries[0]));
	assert_false(busy_by_this_thread(&entries[1]));
	end(&entries[0]);
	assert_false(busy_any() || busy_by_this_thread(&entries[0]));
}

UNIT_CASE(entry_of_another_thread_is_busy_by_other)
{
	start_loader();
	assert_true(busy_by_other(&entries[1]) && !busy_by_this_thread(&entries[1]));
	assert_null(busy_here());
	let_loader_end();
	join_loader();
	assert_false(busy_by_other(&entries[1]));
}

/* A library may open another adapter while it is being loaded. */
UNIT_CASE(latest_entry_of_this_thread_is_here)
{
	begin(&entries[0]);
	start_loader();
	assert_ptr_equal(busy_here(), &entries[0]);
	begin(&entries[2]);
	assert_ptr_equal(busy_here(), &entries[2]);
	end(&entries[2]);
	assert_ptr_equal(busy_here(), &entries[0]);
	end(&entries[0]);
	assert_null(busy_here());
	let_loader_end();
	join_loader();
}

/* An init may register from a thread of its own. */
UNIT_CASE(caller_is_known_by_thread_then_by_key)
{
	start_loader();
	assert_ptr_equal(busy_entry_of_caller(&confs[1].info), &entries[1]);
	assert_null(busy_entry_of_caller(&confs[0].info));
	begin(&entries[0]);
	assert_ptr_equal(busy_entry_of_caller(&confs[1].info), &entries[0]);
	end(&entries[0]);
	let_loader_end();
	join_loader();
}

UNIT_CASE(wait_ends_when_the_entry_is_idle)
{
	start_loader();
	let_loader_end();
	while (entries[1].busy)
		busy_wait();
	assert_false(busy_any());
	join_loader();
}

UNIT_CASE(fork_waits_for_other_threads)
{
	start_loader();
	let_loader_end();
	busy_before_fork();
	assert_false(entries[1].busy);
	busy_after_fork();
	join_loader();
}

/* The parent's thread that was about to fork, too, is not in the child. */
UNIT_CASE(child_waits_for_no_fork_of_its_parent)
{
	busy_before_fork();
	busy_before_fork();
	busy_after_fork_in_child();
	busy_wait_for_forks();
}

/* A program may fork while it is called by the library that it loads. */
UNIT_CASE(fork_does_not_wait_for_itself)
{
	begin(&entries[0]);
	start_loader();
	let_loader_end();
	busy_before_fork();
	assert_true(entries[0].busy && !entries[1].busy);
	busy_wait_for_forks();		/* not for itself */
	busy_after_fork();
	busy_wait_for_forks();		/* no thread forks */
	end(&entries[0]);
	join_loader();
}

UNIT_CASE(provider_that_takes_long_ends_the_wait)
{
	start_loader();
	assert_false(busy_wait_until_idle());
	assert_true(entries[1].busy);
	let_loader_end();
	join_loader();
}

/* The child has this thread alone. */
UNIT_CASE(child_keeps_the_entries_of_its_thread)
{
	begin(&entries[0]);
	start_loader();
	begin(&entries[2]);
	busy_after_fork_in_child();
	assert_true(entries[0].busy && entries[2].busy && !entries[1].busy);
	end(&entries[2]);
	end(&entries[0]);
	assert_false(busy_any());
	begin(&entries[1]);		/* for the loader, which ends it */
	let_loader_end();
	join_loader();
}

UNIT_MAIN(NULL, NULL)
