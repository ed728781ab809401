/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_entry_text.c - keys and positions of entries, as messages and DAT_DBG_TYPE show them. */
#include "dat/entry_text.h"
#include "common/log.h"
#include "dat/debug.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static char library[] = "liba.so", params[] = "eth0 0";
static struct conf_entry conf = { .info = { .ia_name = "ia_a", .dapl_version_major = 2, .dapl_version_minor = 1 },
	.library = library, .ia_params = params, .file = "/etc/dat.conf", .line = 12 };
static struct entry entry = { .conf = &conf };

UNIT_FIXTURE(begin)
{
	conf.file = "/etc/dat.conf";
	conf.info.is_thread_safe = DAT_FALSE;
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(position_is_a_line_of_a_file)
{
	struct where w;

	assert_string_equal(entry_where(&entry, &w), "/etc/dat.conf:12");
}

TEST(generated_entry_comes_from_the_devices)
{
	struct where w;

	conf.file = NULL;
	assert_string_equal(entry_where(&entry, &w), "devices present");
}

TEST(longest_path_leaves_room_for_the_line)
{
	static char path[PATH_MAX], expected[PATH_MAX + 16];
	struct where w;

	memset(path, 'p', sizeof path - 1);
	conf.file = path;
	conf.line = UINT32_MAX;
	snprintf(expected, sizeof expected, "%s:%u", path, conf.line);
	assert_string_equal(entry_where(&entry, &w), expected);
	conf.line = 12;
}

static void log_entry(void *types)
{
	log_init("t", NULL, NULL, NULL, *(unsigned *)types);
	entry_log(&entry);
}

TEST(log_has_key_library_and_parameters)
{
	unsigned types = DBG_STATIC;

	assert_non_null(strstr(printed_by(log_entry, &types),
			       "/etc/dat.conf:12: \"ia_a\" u2.1 nonthreadsafe liba.so \"eth0 0\"\n"));
	conf.info.is_thread_safe = DAT_TRUE;
	assert_non_null(strstr(printed_by(log_entry, &types), "\"ia_a\" u2.1 threadsafe"));
}

TEST(log_of_other_types_has_no_entries)
{
	unsigned types = DBG_ERROR | DBG_GENERIC | DBG_DYNAMIC | DBG_PROVIDER_API | DBG_CONSUMER_API;

	assert_string_equal(printed_by(log_entry, &types), "");
}

UNIT_MAIN(NULL, NULL)
