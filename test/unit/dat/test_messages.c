/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_messages.c - which lines of the libraries a program's handler is offered, and what it takes. */
#include "common/log.h"
#include "common/log_handler.h"
#include <dat/dat_messages.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <cmocka.h>
#include "test/unit/printed.h"

static unsigned offered;
static bool takes;
static int priority;
static char library[8], text[80], kind[8];

static DAT_BOOLEAN handle(const DAT_MESSAGE *message)
{
	offered++;
	priority = message->priority;
	snprintf(library, sizeof(library), "%s", message->library);
	snprintf(text, sizeof(text), "%s", message->text);
	snprintf(kind, sizeof(kind), "%s", message->kind ? message->kind : "none");
	return takes ? DAT_TRUE : DAT_FALSE;
}

static int set_up(void **state)
{
	(void)state;
	log_init("t", "T_TYPE", NULL, "T_DEST", 3);
	dats_set_message_handler(handle);
	offered = 0;
	takes = true;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dats_set_message_handler(NULL);
	unsetenv("T_TYPE");
	unsetenv("T_DEST");
	return 0;
}

static void report(void *unused)
{
	(void)unused;
	log_report(REPORT_REFUSED, LOG_FIELDS(.kind = "ep"), "refused %d", 1);
}

static void line(void *unused)
{
	(void)unused;
	log_line(1, "one\ntwo");
}

static void line_that_is_taken_is_not_printed(void **state)
{
	(void)state;
	assert_string_equal(printed_by(report, NULL), "");
	assert_int_equal(offered, 1);
}

static void line_that_is_left_is_printed(void **state)
{
	(void)state;
	takes = false;
	assert_string_equal(printed_by(report, NULL), "t: refused 1\n");
	assert_int_equal(offered, 1);
}

static void handler_learns_what_the_line_is(void **state)
{
	(void)state;
	printed_by(report, NULL);
	assert_string_equal(library, "t");
	assert_string_equal(text, "refused 1");
	assert_string_equal(kind, "ep");
	assert_int_equal(priority, LOG_WARNING);
	printed_by(line, NULL);
	assert_string_equal(text, "one two");
	assert_string_equal(kind, "none");
	assert_int_equal(priority, LOG_ERR);
}

static void masked_line_is_not_offered(void **state)
{
	(void)state;
	setenv("T_TYPE", "1", 1);
	log_init("t", "T_TYPE", NULL, "T_DEST", 3);
	printed_by(report, NULL);
	assert_int_equal(offered, 0);
}

/* The user has chosen where lines go. */
static void line_for_another_destination_is_not_offered(void **state)
{
	(void)state;
	for (const char *dest = "123"; *dest; dest++) {
		setenv("T_DEST", (const char[]){ *dest, '\0' }, 1);
		log_init("t", "T_TYPE", NULL, "T_DEST", 3);
		printed_by(report, NULL);
		assert_int_equal(offered, 0);
	}
}

static void without_a_handler_lines_are_printed(void **state)
{
	(void)state;
	dats_set_message_handler(NULL);
	assert_string_equal(printed_by(report, NULL), "t: refused 1\n");
	assert_int_equal(offered, 0);
}

static void provider_is_answered_by_the_handler(void **state)
{
	const struct log_message message = { .library = "dapl", .text = "lost", .priority = LOG_ERR };

	(void)state;
	assert_true(dats_offer_message(&message));
	assert_string_equal(library, "dapl");
	takes = false;
	assert_false(dats_offer_message(&message));
	dats_set_message_handler(NULL);
	assert_false(dats_offer_message(&message));
	assert_int_equal(offered, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(line_that_is_taken_is_not_printed),
		CASE(line_that_is_left_is_printed),
		CASE(handler_learns_what_the_line_is),
		CASE(masked_line_is_not_offered),
		CASE(line_for_another_destination_is_not_offered),
		CASE(without_a_handler_lines_are_printed),
		CASE(provider_is_answered_by_the_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
