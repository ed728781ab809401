/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lookup_busy.c - opens and closes while a library is being loaded or unloaded: by its own init and fini, by other
 * threads, and during a fork. */
#include "dat/busy.h"
#include "dat/error.h"
#include "dat/lookup.h"
#include "test/unit/dat/libraries.h"
#include "test/unit/unit.h"

static const DAT_RETURN not_found = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);

static _Thread_local bool is_other;	/* the thread that meets the program's first */
static pthread_t other;
static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;	/* guards what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool waits;			/* it has begun to wait for a library, or for a fork */
static bool acted;			/* it has loaded a library, or its call is over */
static bool forks;			/* the program does */
static DAT_RETURN other_result;
static struct provider *other_provider;

EXTEND(busy_wait, busy_wait_for_forks)

static void tell(bool *what)
{
	pthread_mutex_lock(&meeting);
	*what = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&meeting);
}

/* Called with the registry's lock held, which the wait drops. */
void __wrap_busy_wait(void)
{
	if (is_other)
		tell(&waits);
	__real_busy_wait();
}

void __wrap_busy_wait_for_forks(void)
{
	if (is_other && forks)
		tell(&waits);
	__real_busy_wait_for_forks();
}

static void note_load(void)
{
	if (is_other)
		tell(&acted);
}

UNIT_FIXTURE(begin)
{
	libraries_begin(state);
	during_load = note_load;
	forks = waits = acted = false;
	other_provider = NULL;
}

static DAT_RETURN results[2];

static void open_own_and_other(void)
{
	struct provider *p;

	results[0] = get_ia("ia_a", &p);
	results[1] = get_ia("ia_b", &p);
	if (!results[1])
		registry_put(p);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, libraries_end)

TEST(init_can_open_any_adapter_but_its_own)
{
	struct provider *p;

	during_init = open_own_and_other;
	p = opened("ia_a");
	took("open:liba.so init:ia_a[eth0 0] open:libb.so init:ia_b[eth0 0] fini:ia_b close ");
	assert_int_equal(results[0], not_found);
	assert_int_equal(results[1], DAT_SUCCESS);
	assert_int_equal(p->users, 1);
}

TEST(fini_can_open_any_adapter_but_its_own)
{
	during_fini = open_own_and_other;
	registry_put(opened("ia_a"));
	took("open:liba.so init:ia_a[eth0 0] fini:ia_a open:libb.so init:ia_b[eth0 0] fini:ia_b close close ");
	assert_int_equal(results[0], not_found);
	assert_int_equal(results[1], DAT_SUCCESS);
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

static pthread_t other;

static void *open_a(void *unused)
{
	is_other = true;
	other_result = get_ia("ia_a", &other_provider);
	tell(&acted);
	return unused;
}

static void *close_a(void *provider)
{
	is_other = true;
	registry_put(provider);
	tell(&acted);
	return NULL;
}

/* Starts a thread that must wait, and goes on when it does. */
static void start_waiter(void *(*body)(void *arg), void *arg)
{
	bool has_acted;

	assert_int_equal(pthread_create(&other, NULL, body, arg), 0);
	pthread_mutex_lock(&meeting);
	while (!waits && !acted)
		pthread_cond_wait(&changed, &meeting);
	has_acted = acted;
	pthread_mutex_unlock(&meeting);
	assert_false(has_acted);
}

static void start_opener(void) { start_waiter(open_a, NULL); }

static void start_opener_then_register(void)
{
	start_opener();
	register_ia("ia_a", 2, 0, DAT_FALSE);
}

static void other_opened(struct provider *expected)
{
	pthread_join(other, NULL);
	assert_int_equal(other_result, DAT_SUCCESS);
	assert_ptr_equal(other_provider, expected);
}

TEST(threads_that_open_one_name_share_its_load)
{
	struct provider *p;

	registers = false;
	during_init = start_opener_then_register;
	p = opened("ia_a");
	other_opened(p);
	assert_int_equal(p->users, 2);
	took("open:liba.so init:ia_a[eth0 0] ");
}

TEST(registered_provider_serves_no_other_thread_before_its_init_is_over)
{
	struct provider *p;

	during_init = start_opener;
	p = opened("ia_a");
	other_opened(p);
	assert_int_equal(p->users, 2);
	took("open:liba.so init:ia_a[eth0 0] ");
}

TEST(open_during_an_unload_loads_again)
{
	during_fini = start_opener;
	registry_put(opened("ia_a"));
	pthread_join(other, NULL);
	assert_int_equal(other_result, DAT_SUCCESS);
	assert_int_equal(other_provider->users, 1);
	took("open:liba.so init:ia_a[eth0 0] fini:ia_a close open:liba.so init:ia_a[eth0 0] ");
}

static void between_forks(void *(*body)(void *arg), void *arg)
{
	dat_mutex_lock(&registry.lock);
	busy_before_fork();
	dat_mutex_unlock(&registry.lock);
	forks = true;
	waits = acted = false;
	start_waiter(body, arg);
	took("");
	dat_mutex_lock(&registry.lock);
	busy_after_fork();
	dat_mutex_unlock(&registry.lock);
	pthread_join(other, NULL);
}

TEST(no_library_is_loaded_or_unloaded_during_a_fork)
{
	between_forks(open_a, NULL);
	assert_int_equal(other_result, DAT_SUCCESS);
	took("open:liba.so init:ia_a[eth0 0] ");
	between_forks(close_a, other_provider);
	took("fini:ia_a close ");
}

UNIT_MAIN(NULL, NULL)
