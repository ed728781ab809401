/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_entries.c - what tools ask the registry: what lists tell of each entry, whose memory they are, and what each
 * call leaves when it fails. What makes a line of dat.conf wrong is test_conf.c's, which devices give entries
 * test_devices.c's. */
#include <dat/dat_entries.h>
#include "dat/error.h"
#include "dat/registry_state.h"
#include "test/unit/dat/conf_text.h"
#include "test/unit/unit.h"

#define A LINE("ia_a", "default", "liba.so", "eth0 0")
#define SAFE_A "ia_a u2.1 threadsafe default libs.so dapl.2.0 \"\" \"\"\n"
#define HIDDEN LINE("ia_h", "nondefault", "/usr/lib/libh.so", "")

static const DAT_RETURN no_memory = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
static int allocations_left;		/* before the one that fails */
static bool has_soft;			/* the software device is installed */
static int devices_error;		/* looking for devices fails with it */
static unsigned devices;		/* that are present */

REPLACE(loader_finds, sources_generate)

UNIT_FAIL_MALLOC(allocations_left-- == 0)
UNIT_FAIL_REALLOC(allocations_left-- == 0)

bool __wrap_loader_finds(const char *name)
{
	assert_string_equal(name, "libdaplsoft.so.2");
	return has_soft;
}

/* A failing search may have found some. */
int __wrap_sources_generate(struct conf *conf, bool with_soft)
{
	static const char *const names[] = { "dev0", "dev1" };

	assert_int_equal(with_soft, has_soft);
	for (unsigned i = 0; i < devices; i++)
		assert_int_equal(conf_add(conf, names[i], "libdev.so", "dev 1"), 0);
	return devices_error;
}

static DAT_ENTRY *list;
static DAT_COUNT count;

UNIT_FIXTURE(begin)
{
	allocations_left = INT32_MAX;
	has_soft = false;
	devices_error = conf_shortage = 0;
	devices = 2;
	conf_text = A;
	list = NULL;
	count = 77;
}

UNIT_FIXTURE(end)
{
	allocations_left = INT32_MAX;	/* the end of the process allocates, too: with --enable-coverage */
	free(list);
	list = NULL;
	table_free(&registry.table);
	memset(&registry.table, 0, sizeof registry.table);
	registry.started = false;
}

static void lists(DAT_COUNT expected)
{
	assert_int_equal(dats_list_entries(&list, &count), DAT_SUCCESS);
	assert_int_equal(count, expected);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, end)

/* --- lists ------------------------------------------------------------------------------------------------------ */

TEST(list_tells_all_of_an_entry)
{
	conf_text = "# dat.conf\n" SAFE_A "\n" HIDDEN A;
	lists(3);
	assert_string_equal(list[0].info.ia_name, "ia_a");
	assert_int_equal(list[0].info.dapl_version_major, 2);
	assert_int_equal(list[0].info.dapl_version_minor, 1);
	assert_true(list[0].info.is_thread_safe);
	assert_string_equal(list[0].library, "libs.so");
	assert_string_equal(list[0].ia_params, "");
	assert_string_equal(list[0].file, "dat.conf");
	assert_int_equal(list[0].line, 2);
	assert_int_equal(list[0].origin, DAT_ENTRY_FILE);
	assert_int_equal(list[0].is_default, DAT_TRUE);
	assert_string_equal(list[1].library, "/usr/lib/libh.so");
	assert_int_equal(list[1].line, 4);
	assert_int_equal(list[1].is_default, DAT_FALSE);
	assert_int_equal(list[2].info.is_thread_safe, DAT_FALSE);
	assert_string_equal(list[2].library, "liba.so");
	assert_string_equal(list[2].ia_params, "eth0 0");
	assert_string_equal(list[2].file, "dat.conf");
	assert_int_equal(list[2].line, 5);
}

TEST(later_entries_with_a_key_are_repeated)
{
	conf_text = A SAFE_A A HIDDEN HIDDEN A;
	lists(6);
	assert_int_equal(list[0].is_repeated, DAT_FALSE);
	assert_int_equal(list[1].is_repeated, DAT_FALSE);
	assert_int_equal(list[2].is_repeated, DAT_TRUE);
	assert_int_equal(list[4].is_repeated, DAT_FALSE);	/* it cannot be opened, and repeats nothing */
	assert_int_equal(list[5].is_repeated, DAT_TRUE);
}

TEST(list_is_the_callers)
{
	lists(1);
	memset(registry.table.reading->sources.conf.entries[0].library, 'x', 3);
	table_free(&registry.table);
	assert_string_equal(list[0].library, "liba.so");
	assert_string_equal(list[0].ia_params, "eth0 0");
}

TEST(empty_list_is_null)
{
	DAT_ENTRY entry;

	conf_text = "";
	list = &entry;
	lists(0);
	assert_null(list);
	devices = 0;
	list = &entry;
	count = 77;
	assert_int_equal(dats_list_generated(&list, &count), DAT_SUCCESS);
	assert_int_equal(count, 0);
	assert_null(list);
}

TEST(list_holds_no_reading)
{
	lists(1);
	assert_int_equal(registry.table.reading->refs, 2);	/* the table's, and the entry's */
	free(list);
	allocations_left = 0;
	assert_int_equal(dats_list_entries(&list, &count), no_memory);
	assert_null(list);
	assert_int_equal(registry.table.reading->refs, 2);
}

TEST(files_that_cannot_be_read_give_no_list)
{
	conf_shortage = EMFILE;
	assert_int_equal(dats_list_entries(&list, &count), DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0));
	assert_null(list);
	assert_int_equal(count, 77);
	conf_shortage = 0;
	lists(1);				/* the next call reads again */
}

TEST(devices_that_cannot_be_found_give_no_list)
{
	devices_error = EMFILE;
	assert_int_equal(dats_list_generated(&list, &count), DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0));
	assert_null(list);
	assert_int_equal(count, 77);
}

/* --- the check of a text ---------------------------------------------------------------------------------------- */

static struct {
	unsigned line, column;
	char field[32], found[32], expected[64], message[256];
} faults[4];
static unsigned fault_count;

static void keep(void *arg, const DAT_CONF_FAULT *fault)
{
	assert_ptr_equal(arg, faults);
	assert_true(fault_count < 4);
	faults[fault_count].line = fault->line;
	faults[fault_count].column = fault->column;
	strncpy(faults[fault_count].field, fault->field, 31);
	strncpy(faults[fault_count].found, fault->found, 31);
	strncpy(faults[fault_count].expected, fault->expected, 63);
	strncpy(faults[fault_count++].message, fault->message, 255);
}

static DAT_RETURN check(const char *text, size_t length)
{
	fault_count = 0;
	memset(faults, 0, sizeof faults);
	return dats_check_conf(text, length, keep, faults, &count);
}

TEST(check_needs_its_pointers)
{
	assert_int_equal(dats_check_conf(NULL, 0, keep, NULL, &count),
			 DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	assert_int_equal(dats_check_conf(A, 1, NULL, NULL, &count), DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	assert_int_equal(dats_check_conf(A, 1, keep, NULL, NULL), DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	assert_int_equal(count, 77);
}

TEST(each_fault_is_reported_with_its_place)
{
	static const char text[] = A "ia_b u2.0 sometimes default libb.so dapl.2.0 \"\" \"\"\n" SAFE_A "ia_c\n";

	assert_int_equal(check(text, strlen(text)), DAT_SUCCESS);
	assert_int_equal(count, 2);
	assert_int_equal(fault_count, 2);
	assert_int_equal(faults[0].line, 2);
	assert_int_equal(faults[0].column, 11);
	assert_string_equal(faults[0].field, "threadsafety");
	assert_non_null(strstr(faults[0].found, "sometimes"));
	assert_non_null(strstr(faults[0].expected, "nonthreadsafe"));
	assert_non_null(strstr(faults[0].message, "sometimes"));
	assert_non_null(strstr(faults[0].message, "nonthreadsafe"));
	assert_int_equal(faults[1].line, 4);
}

TEST(check_without_memory_fails)
{
	DAT_RETURN ret;
	int tries = 0;

	do {
		allocations_left = tries++;
		ret = check(A, strlen(A));
		assert_true(ret == DAT_SUCCESS || ret == no_memory);
		assert_int_equal(fault_count, 0);
		assert_int_equal(count, ret ? 0 : 1);
	} while (ret);
	assert_in_range(tries, 2, 20);
}

UNIT_MAIN(NULL, NULL)
