/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_parameters.c - which of the sources of a parameter counts, and what of dapl.conf is taken. */
#include <limits.h>
#include <sys/stat.h>
#include "common/log.h"
#include "common/parameters.h"
#include "test/unit/unit.h"

static char root[64];

/* Makes the directories of the path, too. */
static void write_file(const char *text, mode_t mode)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof path, "%s", parameters_file());
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	unlink(path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static void expect(const char *name, const char *text, enum parameter_origin from)
{
	char buffer[PARAMETER_NUMBER];
	enum parameter_origin origin;
	const char *found = parameter_text(name, buffer, &origin);

	assert_int_equal(origin, from);
	if (text)
		assert_string_equal(found, text);
	else
		assert_null(found);
}

UNIT_FIXTURE(make_root)
{
	strcpy(root, "/tmp/dapl-parameters-XXXXXX");
	assert_non_null(mkdtemp(root));
	setenv("DAT_TEST_ROOT", root, 1);
	log_init("t", NULL, NULL, NULL, 3);
}

UNIT_FIXTURE(remove_root)
{
	char path[512];

	snprintf(path, sizeof path, "%s", parameters_file());
	unlink(path);
	for (char *slash; strlen(path) > strlen(root) && (slash = strrchr(path, '/')); ) {
		*slash = '\0';
		rmdir(path);
	}
	unsetenv("DAPL_CM_TOS");
	parameters_fini();
}

static char message[512];	/* the last one, of several if `messages` is not 1 */
static int messages;

static void keep(const char *text)
{
	snprintf(message, sizeof message, "%s", text);
	messages++;
}

UNIT_TEST_WITH(what_is_set_comes_before_environment_and_file, make_root, remove_root)
{
	unsigned long value = 7;

	expect("DAPL_CM_TOS", NULL, PARAMETER_DEFAULT);
	assert_false(log_env_number("DAPL_CM_TOS", 0, 255, &value));
	write_file("DAPL_CM_TOS = 8 # expedited\n\n# DAPL_IB_SL=3\n  DAPL_ACK_TIMER=0x0e", 0644);
	parameters_read_file(keep);
	expect("DAPL_CM_TOS", "8", PARAMETER_FILE);
	expect("DAPL_ACK_TIMER", "0x0e", PARAMETER_FILE);
	expect("DAPL_IB_SL", NULL, PARAMETER_DEFAULT);
	assert_true(log_env_number("DAPL_ACK_TIMER", 0, 31, &value));
	assert_int_equal(value, 14);
	setenv("DAPL_CM_TOS", "16", 1);
	expect("DAPL_CM_TOS", "16", PARAMETER_ENVIRONMENT);
	assert_true(parameter_set("DAPL_CM_TOS", 0));
	expect("DAPL_CM_TOS", "0", PARAMETER_SET);
	assert_true(parameter_set("DAPL_CM_TOS", UINT32_MAX));
	expect("DAPL_CM_TOS", "4294967295", PARAMETER_SET);
#if ULONG_MAX > UINT32_MAX
	assert_false(parameter_set("DAPL_CM_TOS", UINT32_MAX + 1ul));
#endif
	assert_false(parameter_set("PATH", 1));
}

/* The lines around a bad one count. Paths and switches for tests are no parameters for all. */
UNIT_TEST_WITH(bad_lines_are_left_out, make_root, remove_root)
{
	static const char *const bad[] = { "DAPL_CM_TOS", "NO_SUCH=1", "DAT_OVERRIDE=/tmp/x",
		"DAT_TEST_ROOT=1", "DAPL_CM_TOS=", "DAPL_CM_TOS=1234567890123456789012345" };
	char text[256];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "DAPL_ACK_RETRY=1\n%s\nDAPL_IB_SL=2\n", bad[i]);
		write_file(text, 0644);
		parameters_read_file(NULL);
		expect("DAPL_ACK_RETRY", "1", PARAMETER_FILE);
		expect("DAPL_IB_SL", "2", PARAMETER_FILE);
		expect("DAPL_CM_TOS", NULL, PARAMETER_DEFAULT);
	}
}

UNIT_TEST_WITH(a_file_that_others_may_write_is_ignored, make_root, remove_root)
{
	write_file("DAPL_CM_TOS=8\n", 0666);
	parameters_read_file(NULL);
	expect("DAPL_CM_TOS", NULL, PARAMETER_DEFAULT);
	write_file("DAPL_CM_TOS=8\n", 0644);
	if (getuid() == 0) {
		assert_int_equal(chown(parameters_file(), 65534, 65534), 0);
		parameters_read_file(NULL);
		expect("DAPL_CM_TOS", NULL, PARAMETER_DEFAULT);
		assert_int_equal(chown(parameters_file(), 0, 0), 0);
	}
	parameters_read_file(NULL);
	expect("DAPL_CM_TOS", "8", PARAMETER_FILE);
}

/* A line that is cut could have another number. */
UNIT_TEST_WITH(long_file_is_ignored, make_root, remove_root)
{
	static char text[65536 + 1];

	memset(text, '\n', sizeof text - 1);
	memcpy(text + 1, "DAPL_CM_TOS=33\n", 15);
	write_file(text + 1, 0644);		/* 65535 bytes */
	parameters_read_file(keep);
	expect("DAPL_CM_TOS", "33", PARAMETER_FILE);
	memcpy(text, "DAPL_CM_TOS=33\n", 15);
	write_file(text, 0644);
	parameters_read_file(keep);
	expect("DAPL_CM_TOS", NULL, PARAMETER_DEFAULT);
}

UNIT_TEST_WITH(file_that_is_no_text_is_ignored_with_one_message, make_root, remove_root)
{
	static const char binary[] = "DAPL_CM_TOS=8\nxx\n\0\1\2\nyy\n";
	char expected[512];
	FILE *file;

	write_file("", 0644);
	file = fopen(parameters_file(), "w");
	assert_int_equal(fwrite(binary, 1, sizeof binary - 1, file), sizeof binary - 1);
	fclose(file);
	messages = 0;
	parameters_read_file(keep);
	expect("DAPL_CM_TOS", NULL, PARAMETER_DEFAULT);
	assert_int_equal(messages, 1);
	snprintf(expected, sizeof expected, "%s is ignored: it has a NUL byte, expected a text file",
		 parameters_file());
	assert_string_equal(message, expected);
}

UNIT_MAIN(NULL, NULL)
