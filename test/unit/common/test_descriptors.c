/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_descriptors.c - the line about a lack of file descriptors. */
#include "common/descriptors.h"
#include "common/log.h"
#include <sys/resource.h>
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static const char *text;

static void report(void *err)
{
	log_init("t", NULL, NULL, NULL, 3);
	report_no_descriptors("ia0", *(int *)err, "cannot open a socket");
}

/* Reports `err`, and returns what standard error gets. */
static const char *reported(int err) { return text = printed_by(report, &err); }

UNIT_TEST(other_errors_are_not_reported)
{
	static const int errors[] = { 0, ENOMEM, EACCES, EBADF, ENOBUFS };

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		assert_false(is_out_of_descriptors(errors[i]));
		assert_string_equal(reported(errors[i]), "");
	}
}

UNIT_TEST(process_limit_is_in_the_line)
{
	struct rlimit limit;
	char expected[64];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	snprintf(expected, sizeof expected, "the limit is %llu;", (unsigned long long)limit.rlim_cur);
	assert_true(is_out_of_descriptors(EMFILE));
	assert_non_null(strstr(reported(EMFILE), "ia0: cannot open a socket: Too many open files ("));
	assert_non_null(strstr(text, expected));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* ulimit does not help against the limit of the system. */
UNIT_TEST(system_limit_has_no_advice)
{
	assert_true(is_out_of_descriptors(ENFILE));
	assert_non_null(strstr(reported(ENFILE), "ia0: cannot open a socket: "));
	assert_null(strstr(text, "ulimit"));
}

UNIT_MAIN(NULL, NULL)
