/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dats_reread(): what a program sees of a dat.conf that changes while it runs. */
#include "test/registry/scenario.h"
#include <dat/dat_entries.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define THREADS 8
#define CHANGES 1000
#define BAD_FILE FAILURE(DAT_INVALID_PARAMETER, 0)

static char dir[] = "/tmp/dapl-reread-XXXXXX", path[64], fresh[64];

/* Replaces the file as an editor does. */
static void write_conf(const char *text)
{
	FILE *file = fopen(fresh, "w");

	CHECK(file && fputs(text, file) >= 0 && !fclose(file));
	CHECK(!rename(fresh, path));
}

#define LINE(name, params) name " u2.0 nonthreadsafe default ./mock.so dapl.2.0 \"" params "\" \"\"\n"

static DAT_RETURN open_twice(const char *name)
{
	DAT_IA_HANDLE ia;
	DAT_RETURN ret = open_ia(name, &ia);

	if (!ret)
		OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	return ret;
}

static int count_entries(void)
{
	DAT_COUNT count = -1;

	OK(dats_reread(&count));
	return count;
}

static void add_and_remove(void)
{
	CHECK(!strcmp(listed(), "one two "));
	OK(open_twice("one"));
	write_conf(LINE("three", "") LINE("two", ""));
	CHECK(!strcmp(listed(), "one two "));		/* a program that is not asked does not change */
	CHECK(count_entries() == 2);
	CHECK(!strcmp(listed(), "three two "));
	RETURNS(open_twice("one"), NOT_FOUND);
	OK(open_twice("two"));
	OK(open_twice("three"));
	write_conf("");
	CHECK(count_entries() == 0);
	RETURNS(open_twice("three"), NOT_FOUND);
	write_conf(LINE("one", "") LINE("two", ""));
	CHECK(count_entries() == 2);
	OK(open_twice("one"));
	OK(dats_reread(NULL));
}

/* An open IA works until it is closed, and its library is unloaded then. */
static void remove_in_use(void)
{
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;

	OK(open_ia("one", &ia));
	write_conf(LINE("two", ""));
	CHECK(count_entries() == 1);
	CHECK(!strcmp(listed(), "two "));
	RETURNS(open_twice("one"), NOT_FOUND);
	OK(dat_pz_create(ia, &pz));
	OK(dat_pz_free(pz));
	CHECK(noted("fini one") == 0);
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini one") == 1);
}

/* All IAs of a name that are open at a time have the same ia_params. */
static void change_in_use(void)
{
	DAT_IA_HANDLE old, new;

	OK(open_ia("one", &old));
	CHECK(noted("init one 2.0 nonthreadsafe []") == 1);
	write_conf(LINE("one", "changed") LINE("two", ""));
	CHECK(count_entries() == 2);
	OK(open_ia("one", &new));
	CHECK(noted("init one 2.0 nonthreadsafe [changed]") == 0);
	CHECK(!strcmp(listed(), "one two "));
	OK(dat_ia_close(old, DAT_CLOSE_DEFAULT));
	OK(open_twice("one"));
	OK(dat_ia_close(new, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini one") == 1);
	OK(open_twice("one"));
	CHECK(noted("init one 2.0 nonthreadsafe [changed]") == 1);
	CHECK(noted("fini one") == 2);
}

/* An entry that is the same, wherever it stands, keeps its library loaded: no second init. */
static void keep_in_use(void)
{
	DAT_IA_HANDLE ia;

	OK(open_ia("two", &ia));
	write_conf("# moved\n\n" LINE("zero", "") LINE("two", "") LINE("one", ""));
	CHECK(count_entries() == 3);
	OK(open_twice("two"));
	CHECK(noted("init two 2.0 nonthreadsafe []") == 1);
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
	CHECK(noted("fini two") == 1);
}

static void bad_files(void)
{
	CHECK(!strcmp(listed(), "one two "));
	write_conf(LINE("three", "") "no entry\n");
	RETURNS(dats_reread(NULL), BAD_FILE);
	CHECK(!strcmp(listed(), "one two "));
	CHECK(!unlink(path));
	RETURNS(dats_reread(NULL), BAD_FILE);
	CHECK(!mkdir(path, 0700));
	RETURNS(dats_reread(NULL), BAD_FILE);
	CHECK(!rmdir(path));
	CHECK(!mkfifo(path, 0600));	/* reading it would wait for ever */
	RETURNS(dats_reread(NULL), BAD_FILE);
	CHECK(!unlink(path));
	CHECK(!strcmp(listed(), "one two "));
	OK(open_twice("one"));
	write_conf(LINE("three", ""));
	CHECK(count_entries() == 1);
}

/* --- threads ---------------------------------------------------------------------- */

static bool done;	/* atomic */
static int opened, absent;	/* atomic */

/* "two" is always there; "one" comes, goes and changes. */
static void *open_and_close(void *arg)
{
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_RETURN ret;

	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		const char *name = (intptr_t)arg % 2 ? "one" : "two";

		ret = open_ia(name, &ia);
		if (ret == NOT_FOUND && !strcmp(name, "one")) {
			__atomic_add_fetch(&absent, 1, __ATOMIC_RELAXED);
			continue;
		}
		OK(ret);
		OK(dat_pz_create(ia, &pz));
		OK(dat_pz_free(pz));
		OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
		__atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *list_and_look(void *arg)
{
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		DAT_ENTRY *entries;
		DAT_COUNT count;

		OK(dats_list_entries(&entries, &count));
		CHECK(count >= 1 && count <= 3);
		for (DAT_COUNT i = 0; i < count; i++)
			CHECK(!strcmp(entries[i].library, "./mock.so") && entries[i].file);
		free(entries);
	}
	return arg;
}

static void change_all_the_time(void)
{
	static const char *const texts[] = { LINE("one", "") LINE("two", ""), LINE("two", ""),
		LINE("two", "") LINE("one", "b"), LINE("zero", "") LINE("two", "") LINE("one", "b") };
	pthread_t threads[THREADS + 1];

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, open_and_close, (void *)i));
	CHECK(!pthread_create(&threads[THREADS], NULL, list_and_look, NULL));
	for (int i = 0; i < CHANGES; i++) {
		write_conf(texts[i % 4]);
		OK(dats_reread(NULL));
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS + 1; i++)
		pthread_join(threads[i], NULL);
	CHECK(opened > THREADS);
	OK(open_twice("one"));
	CHECK(noted("init two 2.0 nonthreadsafe []") == noted("fini two"));
	CHECK(noted("init one 2.0 nonthreadsafe []") + noted("init one 2.0 nonthreadsafe [b]") ==
	      noted("fini one"));
}

/* --- cases ------------------------------------------------------------------------- */

static int make_file(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof path, "%s/dat.conf", dir);
	snprintf(fresh, sizeof fresh, "%s/new", dir);
	write_conf(LINE("one", "") LINE("two", ""));
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	unlink(path);
	unlink(fresh);
	return rmdir(dir);
}

static void entries_come_and_go(void **state)
{
	(void)state;
	silent_but_unknown(path, add_and_remove, 2);
}

static void an_entry_that_is_gone_stays_for_open_ias(void **state)
{
	(void)state;
	silent_but_unknown(path, remove_in_use, 1);
}

static void a_changed_entry_counts_when_its_ias_are_closed(void **state)
{
	(void)state;
	silent(path, change_in_use);
}

static void an_unchanged_entry_stays_loaded(void **state)
{
	(void)state;
	silent(path, keep_in_use);
}

static void a_bad_file_changes_nothing(void **state)
{
	static struct outcome outcome;

	(void)state;
	scenario(&outcome, path, bad_files);
	assert_int_equal(outcome.status, 0);
	assert_non_null(strstr(outcome.err, ":2: "));
	assert_non_null(strstr(outcome.err, "No such file or directory"));
}

/* The messages of unknown adapters are limited, and of no interest here. */
static void threads_open_and_close_while_the_file_changes(void **state)
{
	static struct outcome outcome;

	(void)state;
	scenario(&outcome, path, change_all_the_time);
	if (outcome.status)
		fail_msg("status %d: %.2000s", outcome.status, outcome.err);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)
	const struct CMUnitTest tests[] = {
		TEST(entries_come_and_go),
		TEST(an_entry_that_is_gone_stays_for_open_ias),
		TEST(a_changed_entry_counts_when_its_ias_are_closed),
		TEST(an_unchanged_entry_stays_loaded),
		TEST(a_bad_file_changes_nothing),
		TEST(threads_open_and_close_while_the_file_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
