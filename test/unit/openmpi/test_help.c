/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_help.c - messages for users: from which file, what is printed of them, and the text of DAT errors. */
#include "test/unit/openmpi/btl.h"
#include <dlfcn.h>
#include "contrib/openmpi/help.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static char directory[256];
static const char *component_path;	/* NULL: unknown */
static bool no_text;

char *__wrap_opal_show_help_vstring(const char *file, const char *topic, bool header, va_list args);
int __wrap_opal_show_help_add_dir(const char *dir);
REPLACE(dladdr)

char *__wrap_opal_show_help_vstring(const char *file, const char *topic, bool header, va_list args)
{
	char *text = NULL;

	assert_string_equal(file, "help-mpi-btl-udapl.txt");
	assert_string_equal(topic, "topic");
	assert_true(header);
	if (!no_text && vasprintf(&text, "%s and %s\n", args) < 0)
		fail();
	return text;
}

int __wrap_opal_show_help_add_dir(const char *dir)
{
	snprintf(directory, sizeof directory, "%s", dir);
	return OPAL_SUCCESS;
}

int __wrap_dladdr(const void *address, Dl_info *info)
{
	assert_ptr_equal(address, &mca_btl_udapl_component);
	info->dli_fname = component_path;
	return component_path != NULL;
}

static void show(void *arg) { udapl_show_help("topic", "first", "second"); }

UNIT_TEST(text_is_printed_by_this_process)
{
	no_text = false;
	assert_string_equal(printed_by(show, NULL), "first and second\n");
}

UNIT_TEST(topic_without_a_text_prints_nothing)
{
	no_text = true;
	assert_string_equal(printed_by(show, NULL), "");
}

static const char *directory_of(const char *path)
{
	component_path = path;
	directory[0] = 0;
	udapl_add_help_dir();
	return directory;
}

UNIT_TEST(help_is_beside_the_component)
{
	assert_string_equal(directory_of("/usr/lib/dapl/openmpi/mca_btl_udapl.so"), "/usr/lib/dapl/openmpi");
	assert_string_equal(directory_of("mca_btl_udapl.so"), "");
	assert_string_equal(directory_of(NULL), "");
}

UNIT_TEST(error_has_the_names_of_dat)
{
	assert_string_equal(udapl_error(UDAPL_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED)),
			    "DAT_INVALID_STATE DAT_INVALID_STATE_EP_CONNECTED");
	assert_string_equal(udapl_error(UDAPL_ERROR(0x2abc0000, DAT_NO_SUBTYPE)), "unknown error ");
}

UNIT_TEST(first_process_of_a_node_reports)
{
	opal_process_info.my_local_rank = 0;
	assert_true(udapl_is_first_on_node());
	opal_process_info.my_local_rank = 1;
	assert_false(udapl_is_first_on_node());
}

UNIT_MAIN(NULL, NULL)
