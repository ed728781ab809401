/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_messages.c - which lines of the libraries a program's handler is offered, and what it takes. */
#include "common/log.h"
#include "common/log_handler.h"
#include <dat/dat_messages.h>
#include <syslog.h>
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static unsigned offered;
static bool takes;
static int priority;
static char library[8], text[80], kind[8], id[40];
static int error;

static DAT_BOOLEAN handle(const DAT_MESSAGE *message)
{
	offered++;
	priority = message->priority;
	snprintf(library, sizeof(library), "%s", message->library);
	snprintf(text, sizeof(text), "%s", message->text);
	snprintf(kind, sizeof(kind), "%s", message->kind ? message->kind : "none");
	snprintf(id, sizeof(id), "%s", message->id ? message->id : "none");
	error = message->error;
	return takes ? DAT_TRUE : DAT_FALSE;
}

UNIT_FIXTURE(set_up)
{
	log_init("t", "T_TYPE", NULL, "T_DEST", 3);
	dats_set_message_handler(handle);
	offered = 0;
	takes = true;
}

UNIT_FIXTURE(tear_down)
{
	dats_set_message_handler(NULL);
	unsetenv("T_TYPE");
	unsetenv("T_DEST");
}

static void report(void *unused)
{
	log_report(REPORT_REFUSED, LOG_FIELDS(.kind = "ep", .err = ECONNREFUSED), "refused %d", 1);
}

static void line(void *unused) { log_line(1, "one\ntwo"); }

UNIT_CASE(line_that_no_handler_takes_is_printed)
{
	assert_string_equal(printed_by(report, NULL), "");
	assert_int_equal(offered, 1);
	takes = false;
	assert_string_equal(printed_by(report, NULL), "t: refused 1\n");
	assert_int_equal(offered, 2);
	dats_set_message_handler(NULL);
	assert_string_equal(printed_by(report, NULL), "t: refused 1\n");
	assert_int_equal(offered, 2);
}

UNIT_CASE(handler_learns_what_the_line_is)
{
	printed_by(report, NULL);
	assert_string_equal(library, "t");
	assert_string_equal(text, "refused 1");
	assert_string_equal(kind, "ep");
	assert_string_equal(id, "9ef3cfafcd534ed4aac4b4a22062b7d8");
	assert_int_equal(error, ECONNREFUSED);
	assert_int_equal(priority, LOG_WARNING);
	printed_by(line, NULL);
	assert_string_equal(text, "one two");
	assert_string_equal(kind, "none");
	assert_string_equal(id, "none");
	assert_int_equal(error, 0);
	assert_int_equal(priority, LOG_ERR);
}

UNIT_CASE(masked_line_is_not_offered)
{
	setenv("T_TYPE", "1", 1);
	log_init("t", "T_TYPE", NULL, "T_DEST", 3);
	printed_by(report, NULL);
	assert_int_equal(offered, 0);
}

/* The user has chosen where lines go. */
UNIT_CASE(line_for_another_destination_is_not_offered)
{
	for (const char *dest = "123"; *dest; dest++) {
		setenv("T_DEST", (const char[]){ *dest, '\0' }, 1);
		log_init("t", "T_TYPE", NULL, "T_DEST", 3);
		printed_by(report, NULL);
		assert_int_equal(offered, 0);
	}
}

UNIT_CASE(provider_is_answered_by_the_handler)
{
	const struct log_message message = { .library = "dapl", .text = "lost", .priority = LOG_ERR,
					     .id = "a1", .error = ENODEV };

	assert_true(dats_offer_message(&message));
	assert_string_equal(library, "dapl");
	assert_string_equal(id, "a1");
	assert_int_equal(error, ENODEV);
	takes = false;
	assert_false(dats_offer_message(&message));
	dats_set_message_handler(NULL);
	assert_false(dats_offer_message(&message));
	assert_int_equal(offered, 2);
}

UNIT_MAIN(NULL, NULL)
