/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages: which are printed, their destinations, and the variables that control both. */
#include "common/log.h"
#include "test/unit/unit.h"
#include <sys/resource.h>

static char out[8192], err[8192];

/* Captures both streams of body(). */
static void catch(void (*body)(void))
{
	FILE *files[2] = { tmpfile(), tmpfile() };
	char *texts[2] = { out, err };
	int saved[2];

	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		saved[i] = dup(i + 1);
		dup2(fileno(files[i]), i + 1);
	}
	body();
	for (int i = 0; i < 2; i++) {
		ssize_t n = pread(fileno(files[i]), texts[i], sizeof(out) - 1, 0);

		texts[i][n > 0 ? n : 0] = '\0';
		dup2(saved[i], i + 1);
		close(saved[i]);
		fclose(files[i]);
	}
}

UNIT_FIXTURE(fresh)
{
	unsetenv("T_TYPE");
	unsetenv("T_LEVEL");
	unsetenv("T_DEST");
	log_init("t", "T_TYPE", "T_LEVEL", "T_DEST", 3);
}

static void init(void) { log_init("t", "T_TYPE", "T_LEVEL", "T_DEST", 3); }

static void init_with(const char *variable, const char *value)
{
	setenv(variable, value, 1);
	init();
}

static void three_lines(void)
{
	log_line(1, "one %d", 1);
	log_line(4, "four");
	log_line(6, "two or four");
}

#define TEST(name) UNIT_TEST_WITH(name, fresh, NULL)

TEST(lines_have_a_prefix_and_a_mask)
{
	catch(three_lines);
	assert_string_equal(err, "t: one 1\nt: two or four\n");
	assert_string_equal(out, "");
	assert_true(log_on(2));
	assert_false(log_on(4));
}

TEST(the_level_widens_the_mask)
{
	static const unsigned masks[] = { 3, 3, 3, ~0u, ~0u };
	char level[2] = "0";

	for (; level[0] < '5'; level[0]++) {
		setenv("T_LEVEL", level, 1);
		init();
		assert_int_equal(log_mask, masks[level[0] - '0']);
	}
	init_with("T_TYPE", "8");
	assert_int_equal(log_mask, 8);
}

TEST(a_destination_can_be_chosen)
{
	init_with("T_DEST", "1");
	catch(three_lines);
	assert_string_equal(out, "t: one 1\nt: two or four\n");
	assert_string_equal(err, "");
	setenv("T_DEST", "3", 1);	/* standard output and syslog */
	init();
	catch(three_lines);
	assert_string_equal(out, "t: one 1\nt: two or four\n");
	init_with("T_DEST", "2");
	catch(three_lines);
	assert_string_equal(out, "");
	assert_string_equal(err, "");
}

TEST(wrong_values_are_reported_and_ignored)
{
	static const char *const wrong[] = { "", "x", "1x", "-1", "+1", " 1", "0x", "4294967296",
		"99999999999999999999999" };
	char expected[200];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("T_TYPE", wrong[i], 1);
		catch(init);
		snprintf(expected, sizeof(expected), "t: T_TYPE is \"%s\"; expected a number from 0 "
			 "to 4294967295; ignored\n", wrong[i]);
		assert_string_equal(err, expected);
		assert_int_equal(log_mask, 3);
	}
}

static void a_long_line(void)
{
	static char text[5000];

	memset(text, 'x', sizeof(text) - 1);
	log_line(1, "%s", text);
}

TEST(a_long_line_is_cut)
{
	catch(a_long_line);
	assert_int_equal(strlen(err), 1023);
	assert_string_equal(err + 1023 - 7, "xxx...\n");
}

static void a_line_of_several_lines(void) { log_line(1, "one\ntwo\tthree\x7f\xc3\xbc"); }

TEST(control_characters_are_blanks)
{
	catch(a_line_of_several_lines);
	assert_string_equal(err, "t: one two three \xc3\xbc\n");
}

/* --- reports ---------------------------------------------------------------------- */

static void an_error_and_a_warning(void)
{
	errno = ENODEV;
	log_report(REPORT_NO_DEVICE, LOG_FIELDS(.ia = "x", .err = ENODEV), "one %d: %m", 1);
	log_report(REPORT_REFUSED, NULL, "two");
}

TEST(reports_look_like_lines)
{
	catch(an_error_and_a_warning);
	assert_string_equal(err, "t: one 1: No such device\nt: two\n");
}

TEST(priorities_have_bits)
{
	init_with("T_TYPE", "1");
	catch(an_error_and_a_warning);
	assert_string_equal(err, "t: one 1: No such device\n");
	init_with("T_TYPE", "2");
	catch(an_error_and_a_warning);
	assert_string_equal(err, "t: two\n");
	unsetenv("T_TYPE");
	log_init("t", "T_TYPE", NULL, NULL, 1);		/* a library without warnings */
	catch(an_error_and_a_warning);
	assert_string_equal(err, "t: one 1: No such device\nt: two\n");
}

/* A new second may begin once, at any of the 30. */
static void thirty_of_one_kind(void)
{
	for (int i = 0; i < 30; i++)
		log_report(REPORT_REFUSED, NULL, "number %d", i);
	log_report(REPORT_PEER_LOST, NULL, "another");
	log_flush();
	log_flush();
}

TEST(repeated_reports_are_counted)
{
	int told = 0, counted = 0, n;

	catch(thirty_of_one_kind);
	for (char *line = strtok(err, "\n"); line; line = strtok(NULL, "\n"))
		if (sscanf(line, "t: number %d", &n) == 1)
			told++;
		else if (sscanf(line, "t: %d more like this: a connection was refused", &n) == 1)
			counted += n;
		else
			assert_string_equal(line, "t: another");
	assert_int_equal(told + counted, 30);
	assert_in_range(told, 10, 20);
}

TEST(errno_survives)
{
	errno = EBUSY;
	log_line(1 << 20, "not printed");
	assert_int_equal(errno, EBUSY);
	catch(three_lines);
	errno = EBUSY;
	init_with("T_DEST", "2");
	assert_int_equal(errno, EBUSY);
	log_line(1, "%m");
	assert_int_equal(errno, EBUSY);
	log_report(REPORT_REFUSED, NULL, "%m");
	log_flush();
	assert_int_equal(errno, EBUSY);
}

static void three_lines_at_the_limit(void)
{
	struct rlimit before, limit;

	getrlimit(RLIMIT_FSIZE, &before);
	limit = (struct rlimit){ strlen("t: one 1\nt: two"), before.rlim_max };
	setrlimit(RLIMIT_FSIZE, &limit);
	three_lines();
	setrlimit(RLIMIT_FSIZE, &before);
}

/* Nor does the program get a signal. */
TEST(file_at_its_limit_gets_no_lines)
{
	catch(three_lines_at_the_limit);
	assert_string_equal(err, "t: one 1\nt: two");
}

UNIT_MAIN(NULL, NULL)
