/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_sources.c - which files are read in which order, and where generated entries go. */
#include "dat/sources.h"
#include <limits.h>
#include <sys/stat.h>
#include "common/log.h"
#include "dat/devices.h"
#include "test/unit/file_tree.h"
#include "test/unit/interfaces.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static struct sources sources;
static int result;

/* --- devices and files ---------------------------------------------------------------------- */

static const char *devices[4];	/* names of generated entries; NULL: no more */
static int devices_error;

REPLACE(devices_make_entries)
int __wrap_devices_make_entries(struct conf *conf, const char *sysfs, bool with_soft)
{
	for (int i = 0; devices[i]; i++)
		assert_int_equal(conf_add(conf, devices[i], "libgen.so", ""), 0);
	if (with_soft)
		assert_int_equal(conf_add(conf, "soft", "libgen.so", ""), 0);
	return devices_error;
}

/* A file with an entry for each name. */
static void make_file(const char *name, const char *first, const char *second)
{
	FILE *file = fopen(in_tree(name), "w");

	assert_non_null(file);
	fprintf(file, "%s u2.0 nonthreadsafe default libfile.so dapl.2.0 \"\" \"\"\n", first);
	if (second)
		fprintf(file, "%s u2.0 nonthreadsafe default libfile.so dapl.2.0 \"\" \"\"\n", second);
	fclose(file);
}

#define CONF SYSCONFDIR "/dat.conf"
#define DROP_INS CONF ".d"

UNIT_FIXTURE(set_up)
{
	memset(devices, 0, sizeof devices);
	devices_error = 0;
	clear_interfaces();
	assert_int_equal(tree_begin(state), 0);
	unsetenv("DAT_OVERRIDE");
	tree_directory(DROP_INS);
	memset(&sources, 0, sizeof sources);
}

static int tear_down(void **state)
{
	sources_free(&sources);
	return tree_end(state);
}

static void read_sources(void *with_soft)
{
	log_init("t", NULL, NULL, NULL, 1);
	result = sources_read(&sources, with_soft != NULL);
}

/* Reads, and returns what is printed. */
static const char *read_printed(void) { return printed_by(read_sources, NULL); }

/* Blanks between the names of all entries. */
static void expect_names(const char *expected)
{
	char names[256] = "";

	for (size_t i = 0; i < sources.conf.count; i++) {
		strcat(names, i ? " " : "");
		strcat(names, sources.conf.entries[i].info.ia_name);
	}
	assert_string_equal(names, expected);
}

/* --- tests ----------------------------------------------------------------------------------- */

UNIT_CASE(other_names_are_no_drop_ins)
{
	make_file(CONF, "m1", NULL);
	make_file(DROP_INS "/.hidden.conf", "hidden", NULL);
	make_file(DROP_INS "/a.conf.bak", "backup", NULL);
	make_file(DROP_INS "/conf", "bare", NULL);
	make_file(DROP_INS "/a.b.conf", "dotted", NULL);
	read_printed();
	expect_names("m1 dotted");
}

UNIT_CASE(soft_device_is_generated_if_asked)
{
	tree_directory("/sys/class/net/eth0");
	add_interface("eth0", IFF_UP, "192.0.2.1");
	read_sources(tree_root);
	expect_names("soft ofa-v2-soft-eth0");
}

UNIT_CASE(name_of_a_file_hides_a_device)
{
	devices[0] = "g1";
	devices[1] = "d1";
	devices[2] = "g2";
	make_file(DROP_INS "/a.conf", "d1", NULL);
	read_printed();
	expect_names("g1 g2 d1");
	assert_string_equal(sources.conf.entries[2].library, "libfile.so");
}

UNIT_CASE(file_that_cannot_be_read_is_reported)
{
	tree_directory(CONF);		/* open() succeeds, read() does not */
	tree_directory(DROP_INS "/b.conf");
	make_file(DROP_INS "/c.conf", "d1", NULL);
	assert_int_equal(times_in(read_printed(), "Is a directory; file ignored\n"), 2);
	assert_int_equal(result, 0);
	assert_true(sources.unreadable);
	assert_int_equal(sources.faults, 1);
	expect_names("d1");
}

/* To open a FIFO that has no writer takes for ever. */
UNIT_CASE(files_that_could_wait_are_not_read_again)
{
	assert_int_equal(mkfifo(in_tree(CONF), 0600), 0);
	sources.again = true;
	assert_int_equal(times_in(read_printed(), "file ignored"), 1);
	assert_true(sources.unreadable);
}

UNIT_CASE(shortage_keeps_nothing)
{
	static const int shortages[] = { ENOMEM, EMFILE, ENFILE };

	for (size_t i = 0; i < sizeof shortages / sizeof *shortages; i++) {
		make_file(DROP_INS "/a.conf", "d1", NULL);
		devices_error = shortages[i];
		read_printed();
		assert_int_equal(result, shortages[i]);
		assert_int_equal(sources.conf.count, 0);
		assert_null(sources.origin);
	}
	devices_error = EACCES;		/* lasting: a later call would not find more */
	read_printed();
	assert_int_equal(result, 0);
	expect_names("d1");
}

UNIT_CASE(only_the_directory_makes_a_drop_in)
{
	assert_true(sources_is_drop_in(DROP_INS "/a.conf"));
	assert_true(sources_is_drop_in("/root" DROP_INS "/a.conf"));
	assert_false(sources_is_drop_in(DROP_INS "/deeper/a.conf"));
	assert_false(sources_is_drop_in(CONF));
	assert_false(sources_is_drop_in("a.conf"));
}

UNIT_MAIN(NULL, NULL)
