/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The default files, and entries generated from the devices present, on a root directory
 * of the test's own: CFG-4 and registry.md 4.1. */
#include "test/registry/scenario.h"
#include <dat/dat_entries.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static struct outcome outcome;
static char root[] = "/tmp/test_devices.XXXXXX";

/* Writes ROOT/path, making its directories. */
static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		assert_true(!mkdir(full, 0755) || errno == EEXIST);
		*at = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int new_root(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	if (!mkdtemp(root))
		return -1;
	setenv("DAT_TEST_ROOT", root, 1);
	return unsetenv("DAT_OVERRIDE");
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

#define CONF SYSCONFDIR "/dat.conf"
#define ENTRY(name, params) name " u2.0 nonthreadsafe default ./mock.so mock.1.0 \"" params "\" \"\"\n"
#define PORT(device, port) "/sys/class/infiniband/" device "/ports/" port

static void infiniband(void)
{
	put("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
	put(PORT("mlx5_0", "1") "/link_layer", "InfiniBand\n");
	put(PORT("mlx5_0", "2") "/link_layer", "InfiniBand\n");
	put("/sys/class/infiniband/mlx5_0/device/net/ib0/type", "32\n");
	put("/sys/class/infiniband/mlx5_0/device/net/eth5/type", "1\n");
}

static void roce(void)
{
	put("/sys/class/infiniband/mlx5_10/node_type", "1: CA\n");
	put(PORT("mlx5_10", "1") "/link_layer", "Ethernet\n");
	put(PORT("mlx5_10", "1") "/gid_attrs/ndevs/0", "eth2\n");
	put(PORT("mlx5_10", "1") "/gid_attrs/ndevs/1", "eth2\n");
	put(PORT("mlx5_10", "1") "/gid_attrs/ndevs/2", "");
	put(PORT("mlx5_10", "1") "/gid_attrs/ndevs/3", "eth2.7\n");
}

static void iwarp(void)
{
	put("/sys/class/infiniband/siw0/node_type", "4: RNIC\n");
	put(PORT("siw0", "1") "/link_layer", "Ethernet\n");
	put(PORT("siw0", "1") "/gids/0", "0a1b:2c3d:4e5f:0000:0000:0000:0000:0000\n");
	put("/sys/class/net/eth0/address", "0a:1b:2c:3d:4e:50\n");
	put("/sys/class/net/eth1/address", "0a:1b:2c:3d:4e:5f\n");
	put("/sys/class/net/lo/address", "00:00:00:00:00:00\n");
}

static void print_list(void)
{
	printf("%s", listed());
}

/* libdaplsoft may be installed on this machine, or not; see test_load.c. */
static void take_away(const char *name)
{
	char *at = strstr(outcome.out, name);

	if (at)
		memmove(at, at + strlen(name), strlen(at + strlen(name)) + 1);
}

static void lists(const char *names)
{
	scenario(&outcome, NULL, print_list);
	take_away("ofa-v2-soft ");
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.err, "");
	assert_string_equal(outcome.out, names);
}

static void CFG_4_the_default_file_is_read(void **state)
{
	(void)state;
	put(CONF, ENTRY("one", "") ENTRY("two", ""));
	roce();
	lists("one two ");
}

static void no_file_is_the_devices_present(void **state)
{
	(void)state;
	lists("");
	infiniband();
	lists("ofa-v2-ib0 ofa-v2-mlx5_0-1 ofa-v2-mlx5_0-2 ofa-v2-mlx5_0-1s ofa-v2-mlx5_0-2s "
	      "ofa-v2-mlx5_0-1u ofa-v2-mlx5_0-2u ");
}

static void roce_and_iwarp_devices(void **state)
{
	(void)state;
	put(CONF, "include auto\n");
	roce();
	iwarp();
	lists("ofa-v2-eth2 ofa-v2-eth2.7 ofa-v2-eth1 ofa-v2-mlx5_10-1 ofa-v2-siw0-1 "
	      "ofa-v2-mlx5_10-1s ofa-v2-siw0-1s ofa-v2-mlx5_10-1u ofa-v2-siw0-1u "
	      "ofa-v2-cma-roe-eth2 ofa-v2-cma-roe-eth2.7 ");
}

static void devices_are_in_the_order_of_their_numbers(void **state)
{
	(void)state;
	roce();
	infiniband();
	scenario(&outcome, NULL, print_list);
	assert_non_null(strstr(outcome.out, "ofa-v2-mlx5_0-1 ofa-v2-mlx5_0-2 ofa-v2-mlx5_10-1 "));
}

static void include_auto_has_a_place(void **state)
{
	(void)state;
	roce();
	put(CONF, ENTRY("first", "") "include auto\n" ENTRY("last", "") "include auto\n");
	lists("first ofa-v2-eth2 ofa-v2-eth2.7 ofa-v2-mlx5_10-1 ofa-v2-mlx5_10-1s "
	      "ofa-v2-mlx5_10-1u ofa-v2-cma-roe-eth2 ofa-v2-cma-roe-eth2.7 last ");
}

/* Also one that comes later, stands in another file, or is nondefault, which hides. */
static void an_entry_wins_over_a_generated_one(void **state)
{
	(void)state;
	roce();
	put(CONF, "include auto\n" ENTRY("ofa-v2-eth2", "mine"));
	put(CONF ".d/more.conf", ENTRY("ofa-v2-mlx5_10-1", "mine")
	    "ofa-v2-eth2.7 u2.0 nonthreadsafe nondefault ./mock.so mock.1.0 \"\" \"\"\n");
	lists("ofa-v2-mlx5_10-1s ofa-v2-mlx5_10-1u ofa-v2-cma-roe-eth2 ofa-v2-cma-roe-eth2.7 "
	      "ofa-v2-eth2 ofa-v2-mlx5_10-1 ");
}

static void drop_in_files_follow_in_the_order_of_their_names(void **state)
{
	(void)state;
	put(CONF, ENTRY("main", ""));
	put(CONF ".d/b.conf", ENTRY("b", ""));
	put(CONF ".d/B.conf", ENTRY("B", ""));
	put(CONF ".d/a.conf", ENTRY("a", "") ENTRY("main", "late"));
	put(CONF ".d/c.conf.rpmsave", ENTRY("saved", ""));
	put(CONF ".d/.hidden.conf", ENTRY("hidden", ""));
	lists("main B a b ");
}

static void an_override_is_the_only_file(void **state)
{
	(void)state;
	put(CONF, ENTRY("main", ""));
	put(CONF ".d/a.conf", ENTRY("a", ""));
	scenario(&outcome, "good.conf", print_list);
	assert_string_equal(outcome.out, "good ");
}

static void open_first(void)
{
	DAT_IA_HANDLE ia;

	OK(open_ia("main", &ia));
	CHECK(noted("init main 2.0 nonthreadsafe [early]") == 1);
	OK(dat_ia_close(ia, DAT_CLOSE_DEFAULT));
}

static void the_main_file_wins_over_drop_ins(void **state)
{
	(void)state;
	put(CONF, ENTRY("main", "early"));
	put(CONF ".d/a.conf", ENTRY("main", "late"));
	silent(NULL, open_first);
}

static void the_file_at_fault_is_named(void **state)
{
	(void)state;
	put(CONF, ENTRY("main", ""));
	put(CONF ".d/a.conf", "\nshort line\n");
	scenario(&outcome, NULL, print_list);
	assert_string_equal(outcome.out, "main ");
	assert_non_null(strstr(outcome.err, CONF ".d/a.conf:2: \"short\": 2 fields; expected 8"));
}

/* The list is the main file's, and one line names the directory and the reason. */
static void tells_of_drop_in_directory(void (*body)(void), const char *reason)
{
	char line[1024];

	scenario(&outcome, NULL, body);
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.out, "main ");
	snprintf(line, sizeof(line), "dat: cannot read the directory %s%s.d: %s; its files are "
		 "ignored\n", root, CONF, reason);
	assert_string_equal(outcome.err, line);
}

static void a_drop_in_directory_that_is_a_file_is_told(void **state)
{
	(void)state;
	put(CONF, ENTRY("main", ""));
	put(CONF ".d", ENTRY("a", ""));
	tells_of_drop_in_directory(print_list, "Not a directory");
}

static void a_drop_in_directory_that_leads_nowhere_is_told(void **state)
{
	char path[512];

	(void)state;
	put(CONF, ENTRY("main", ""));
	snprintf(path, sizeof(path), "%s%s.d", root, CONF);
	assert_int_equal(symlink("dat.conf.d", path), 0);
	tells_of_drop_in_directory(print_list, "Too many levels of symbolic links");
}

static void print_list_unprivileged(void)
{
	CHECK(geteuid() || !setuid(65534));
	print_list();
}

static void an_unreadable_drop_in_directory_is_told(void **state)
{
	char path[512];

	(void)state;
	put(CONF, ENTRY("main", ""));
	put(CONF ".d/a.conf", ENTRY("a", ""));
	snprintf(path, sizeof(path), "%s%s.d", root, CONF);
	assert_int_equal(chmod(root, 0755), 0);
	assert_int_equal(chmod(path, 0), 0);
	tells_of_drop_in_directory(print_list_unprivileged, "Permission denied");
	assert_int_equal(chmod(path, 0755), 0);
}

/* What we install must be understood, and list the devices. */
static void the_shipped_file_lists_the_devices(void **state)
{
	(void)state;
	roce();
	scenario(&outcome, SHIPPED_CONF, print_list);
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.err, "");
	assert_memory_equal(outcome.out, "ofa-v2-eth2 ", strlen("ofa-v2-eth2 "));
}

/* Its examples too, with the comment sign taken away. */
static void the_examples_in_the_shipped_file(void **state)
{
	char text[16384] = "", line[1024];
	FILE *f = fopen(SHIPPED_CONF, "r");

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		strcat(text, !strncmp(line, "#ofa", 4) ? line + 1 : "");
	fclose(f);
	put(CONF, text);
	lists("ofa-v2-ib0 ofa-v2-storage ofa-v2-mlx5_0-1 ofa-v2-soft-eth0 ");
}

/* Paths begin with the test's root, which is left out. */
static void print_entries(DAT_RETURN (*list_entries)(DAT_ENTRY **, DAT_COUNT *))
{
	static const char *const origins[] = { "file", "drop-in", "generated" };
	DAT_ENTRY *list;
	DAT_COUNT count;

	OK(list_entries(&list, &count));
	for (DAT_COUNT i = 0; i < count; i++)
		if (strncmp(list[i].info.ia_name, "ofa-v2-soft", strlen("ofa-v2-soft")))
			printf("%s %s %s:%u %s \"%s\"%s%s\n", list[i].info.ia_name,
			       origins[list[i].origin],
			       list[i].file ? list[i].file + strlen(root) : "", list[i].line,
			       list[i].library, list[i].ia_params,
			       list[i].is_default ? "" : " nondefault",
			       list[i].is_repeated ? " repeated" : "");
	free(list);
}

static void print_all_entries(void)
{
	print_entries(dats_list_entries);
}

static void print_generated(void)
{
	print_entries(dats_list_generated);
}

static void entries_say_where_they_come_from(void **state)
{
	(void)state;
	put(CONF, "# comment\n" ENTRY("one", "a 0") "include auto\n"
	    "two u2.0 nonthreadsafe nondefault ./mock.so mock.1.0 \"\" \"\"\n");
	put(CONF ".d/local.conf", "\n\n" ENTRY("one", "b 0"));
	infiniband();
	scenario(&outcome, NULL, print_all_entries);
	assert_string_equal(outcome.err, "");
	assert_string_equal(outcome.out,
		"one file " CONF ":2 ./mock.so \"a 0\"\n"
		"ofa-v2-ib0 generated :0 libdaplofa.so.2 \"ib0 0\"\n"
		"ofa-v2-mlx5_0-1 generated :0 libdaplofa.so.2 \"mlx5_0 1\"\n"
		"ofa-v2-mlx5_0-2 generated :0 libdaplofa.so.2 \"mlx5_0 2\"\n"
		"ofa-v2-mlx5_0-1s generated :0 libdaplofa.so.2 \"mlx5_0 1\"\n"
		"ofa-v2-mlx5_0-2s generated :0 libdaplofa.so.2 \"mlx5_0 2\"\n"
		"ofa-v2-mlx5_0-1u generated :0 libdaplofa.so.2 \"mlx5_0 1\"\n"
		"ofa-v2-mlx5_0-2u generated :0 libdaplofa.so.2 \"mlx5_0 2\"\n"
		"two file " CONF ":4 ./mock.so \"\" nondefault\n"
		"one drop-in " CONF ".d/local.conf:3 ./mock.so \"b 0\" repeated\n");
}

/* A network device has several GIDs in the table of its port, and one entry. */
static void device_with_several_gids_has_one_entry(void **state)
{
	(void)state;
	put(CONF, "include auto\n");
	roce();
	scenario(&outcome, NULL, print_all_entries);
	assert_string_equal(outcome.out,
		"ofa-v2-eth2 generated :0 libdaplofa.so.2 \"eth2 0\"\n"
		"ofa-v2-eth2.7 generated :0 libdaplofa.so.2 \"eth2.7 0\"\n"
		"ofa-v2-mlx5_10-1 generated :0 libdaplofa.so.2 \"mlx5_10 1\"\n"
		"ofa-v2-mlx5_10-1s generated :0 libdaplofa.so.2 \"mlx5_10 1\"\n"
		"ofa-v2-mlx5_10-1u generated :0 libdaplofa.so.2 \"mlx5_10 1\"\n"
		"ofa-v2-cma-roe-eth2 generated :0 libdaplofa.so.2 \"eth2 0\"\n"
		"ofa-v2-cma-roe-eth2.7 generated :0 libdaplofa.so.2 \"eth2.7 0\"\n");
}

/* The names of adapters are shorter than those of files. */
static void device_with_too_long_a_name_is_left_out(void **state)
{
	char path[400], name[252];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	put(CONF, "include auto\n");
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/link_layer", name);
	put(path, "InfiniBand\n");
	roce();
	lists("ofa-v2-eth2 ofa-v2-eth2.7 ofa-v2-mlx5_10-1 ofa-v2-mlx5_10-1s ofa-v2-mlx5_10-1u "
	      "ofa-v2-cma-roe-eth2 ofa-v2-cma-roe-eth2.7 ");
}

static void generated_entries_need_no_include(void **state)
{
	(void)state;
	put(CONF, ENTRY("one", "") ENTRY("ofa-v2-siw0-1", "mine"));
	iwarp();
	scenario(&outcome, NULL, print_generated);
	assert_string_equal(outcome.err, "");
	assert_string_equal(outcome.out,
		"ofa-v2-eth1 generated :0 libdaplofa.so.2 \"eth1 0\"\n"
		"ofa-v2-siw0-1 generated :0 libdaplofa.so.2 \"siw0 1\"\n"
		"ofa-v2-siw0-1s generated :0 libdaplofa.so.2 \"siw0 1\"\n"
		"ofa-v2-siw0-1u generated :0 libdaplofa.so.2 \"siw0 1\"\n");
	scenario(&outcome, NULL, print_all_entries);
	assert_string_equal(outcome.out, "one file " CONF ":1 ./mock.so \"\"\n"
			    "ofa-v2-siw0-1 file " CONF ":2 ./mock.so \"mine\"\n");
}

static void wrong_arguments(void)
{
	DAT_ENTRY *list;
	DAT_COUNT count;

	RETURNS(dats_list_entries(NULL, &count), FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	RETURNS(dats_list_entries(&list, NULL), FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	RETURNS(dats_list_generated(&list, NULL), FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	RETURNS(dats_check_conf(NULL, 0, NULL, NULL, &count),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	RETURNS(dats_check_conf("", 0, NULL, NULL, &count),
		FAILURE(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
}

static void lists_need_their_pointers(void **state)
{
	(void)state;
	silent(NULL, wrong_arguments);
}

static void print_fault(void *arg, const DAT_CONF_FAULT *fault)
{
	CHECK(arg == print_fault);
	printf("%u:%u %s|%s|%s\n", fault->line, fault->column, fault->field, fault->found,
	       fault->expected);
}

static void check_a_text(void)
{
	static const char text[] = ENTRY("good", "") "bad u2.x threadsafe default lib.so x.1.2 \"\" \"\"\n";
	DAT_COUNT entries = -1;

	OK(dats_check_conf(text, sizeof(text) - 1, print_fault, print_fault, &entries));
	CHECK(entries == 1);
}

static void a_text_is_checked_without_a_file(void **state)
{
	(void)state;
	scenario(&outcome, NULL, check_a_text);
	assert_string_equal(outcome.err, "");
	assert_int_equal(outcome.status, 0);
	assert_string_equal(outcome.out, "2:5 api_version|u2.x|u<major>.<minor>, as in \"u2.0\"\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_root, remove_root)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(CFG_4_the_default_file_is_read),
		TEST(no_file_is_the_devices_present),
		TEST(roce_and_iwarp_devices),
		TEST(devices_are_in_the_order_of_their_numbers),
		TEST(include_auto_has_a_place),
		TEST(an_entry_wins_over_a_generated_one),
		TEST(drop_in_files_follow_in_the_order_of_their_names),
		TEST(an_override_is_the_only_file),
		TEST(the_main_file_wins_over_drop_ins),
		TEST(the_file_at_fault_is_named),
		TEST(a_drop_in_directory_that_is_a_file_is_told),
		TEST(a_drop_in_directory_that_leads_nowhere_is_told),
		TEST(an_unreadable_drop_in_directory_is_told),
		TEST(entries_say_where_they_come_from),
		TEST(device_with_several_gids_has_one_entry),
		TEST(device_with_too_long_a_name_is_left_out),
		TEST(generated_entries_need_no_include),
		TEST(lists_need_their_pointers),
		TEST(a_text_is_checked_without_a_file),
		TEST(the_shipped_file_lists_the_devices),
		TEST(the_examples_in_the_shipped_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
