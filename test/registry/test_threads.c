/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Many threads on the registry: REG-49 and REG-51. Also run under the thread sanitizer. */
#include "test/registry/scenario.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define THREADS 8
#define ROUNDS 40

static void in_threads(void *(*body)(void *))
{
	pthread_t threads[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, body, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static pthread_barrier_t all_open;

static void *open_and_wait(void *arg)
{
	DAT_IA_HANDLE ia, again;

	(void)arg;
	OK(open_ia("slow", &ia));
	OK(dats_get_ia_handle(ia, &again));
	pthread_barrier_wait(&all_open);
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	return NULL;
}

static void open_together(void)
{
	pthread_barrier_init(&all_open, NULL, THREADS);
	in_threads(open_and_wait);
	CHECK(noted("init slow 2.0 nonthreadsafe [slow]") == 1);
	CHECK(noted("open slow 8") == THREADS);
	CHECK(noted("open outside init and fini") == 0);
	CHECK(noted("fini slow") == 1);
}

static void REG_49_all_threads_share_one_load_and_one_init(void **state)
{
	(void)state;
	silent("behaviours.conf", open_together);
}

/* Every close may be the last, and race with an open. */
static void *open_and_close(void *arg)
{
	static const char *const names[] = { "good", "extensions", "looks-itself-up" };
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;

	for (int i = 0; i < ROUNDS; i++) {
		OK(open_ia(names[((intptr_t)arg + i) % 3], &ia));
		OK(dat_pz_create(ia, &pz));
		OK(dat_pz_free(pz));
		OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	}
	return NULL;
}

static void open_and_close_all(void)
{
	in_threads(open_and_close);
	CHECK(noted("open good 8") + noted("open extensions 8") +
	      noted("open looks-itself-up 8") == THREADS * ROUNDS);
	CHECK(noted("init good 2.0 nonthreadsafe []") == noted("fini good"));
	CHECK(noted("close: not known any more") == 0);
}

static void REG_51_opens_and_closes_race(void **state)
{
	(void)state;
	silent("behaviours.conf", open_and_close_all);
}

/* Init and fini take longer than anything else: most opens meet one of them. */
static void *open_and_close_slowly(void *arg)
{
	DAT_IA_HANDLE ia;

	for (int i = 0; i < 5; i++) {
		OK(open_ia("slow", &ia));
		usleep((intptr_t)arg * 1000);
		OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
		usleep((intptr_t)arg * 5000);
	}
	return NULL;
}

static void open_and_close_all_slowly(void)
{
	in_threads(open_and_close_slowly);
	CHECK(noted("init slow 2.0 nonthreadsafe [slow]") == noted("fini slow"));
	CHECK(noted("open outside init and fini") == 0);
}

static void opens_lie_between_init_and_fini(void **state)
{
	(void)state;
	silent("behaviours.conf", open_and_close_all_slowly);
}

static DAT_IA_HANDLE shared;
static int closed, refused;

static void *close_shared(void *arg)
{
	DAT_RETURN ret = dat_ia_close(shared, DAT_CLOSE_DEFAULT);

	(void)arg;
	CHECK(ret == DAT_SUCCESS || ret == BAD_IA);
	__atomic_add_fetch(ret ? &refused : &closed, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void close_together(void)
{
	OK(open_ia("slow", &shared));
	in_threads(close_shared);
	CHECK(closed == 1 && refused == THREADS - 1);
	CHECK(noted("close slow 0") == 1);
}

static void only_one_of_many_closes_succeeds(void **state)
{
	(void)state;
	silent("behaviours.conf", close_together);
}

static void *list_and_query(void *arg)
{
	DAT_PROVIDER_INFO info, *list[1] = { &info };
	DAT_HANDLE query;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;
	DAT_COUNT count;

	if ((intptr_t)arg % 2)
		return open_and_close(arg);
	for (int i = 0; i < ROUNDS; i++) {
		OK(dat_registry_list_providers(1, &count, list));
		OK(dat_extension_op(DAT_HANDLE_NULL, DAT_OPEN_EXTENSION_BASE, "good", &query,
				    DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
		OK(dat_extension_op(query, DAT_CLOSE_EXTENSION_BASE));
	}
	return NULL;
}

static void list_and_query_all(void)
{
	in_threads(list_and_query);
}

static void lists_and_queries_race_with_opens(void **state)
{
	(void)state;
	silent("behaviours.conf", list_and_query_all);
}

static void *open_what_fails(void *arg)
{
	DAT_IA_HANDLE ia;

	for (int i = 0; i < ROUNDS / 4; i++) {
		CHECK(open_ia("open-fails", &ia));
		OK(open_ia("x", &ia) == NOT_FOUND ? DAT_SUCCESS : 1);
	}
	return arg;
}

static void opens_that_fail(void)
{
	in_threads(open_what_fails);
	CHECK(noted("init open-fails 2.0 nonthreadsafe [open-fails]") ==
	      noted("fini open-fails"));
}

static void failing_opens_race(void **state)
{
	(void)state;
	silent_but_unknown("behaviours.conf", opens_that_fail, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(REG_49_all_threads_share_one_load_and_one_init),
		cmocka_unit_test(REG_51_opens_and_closes_race),
		cmocka_unit_test(opens_lie_between_init_and_fini),
		cmocka_unit_test(only_one_of_many_closes_succeeds),
		cmocka_unit_test(lists_and_queries_race_with_opens),
		cmocka_unit_test(failing_opens_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
