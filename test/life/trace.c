/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace.c - trace records: their form, which levels and bits choose which of them, changes at run time, and
 * the dump of the records kept in memory. */
#include "life.h"
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dat/dat_trace.h>

/* Every line is a record: class, time, thread, kind, object, state, text. */
static void only_records(char *text, const char *classes)
{
	char pattern[200];
	regex_t record;

	snprintf(pattern, sizeof pattern, "^(%s) [0-9]+\\.[0-9]{6} [0-9]+ [a-z_]+ (0x[0-9a-f]+|\\(nil\\)) "
		 "[a-z_-]+( .*)?$", classes);
	EXPECT(!regcomp(&record, pattern, REG_EXTENDED | REG_NOSUB));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (regexec(&record, line, 0, NULL, 0))
			fail("not a trace record: %s", line);
	regfree(&record);
}

static void trace_records_by_level(void)
{
	int of_states = 0;

	for (int level = 0; level <= 10; level++) {
		struct child_result result;
		char number[8];

		snprintf(number, sizeof number, "%d", level);
		setenv("DAPL_TRACE_LEVEL", number, 1);
		result = run(in_session, NULL);
		EXPECT(!result.status);
		if (!level)
			EXPECT(!result.lines);
		if (level == 3) {
			EXPECT(strstr(result.text, " connected "));
			of_states = result.lines;
		}
		if (level == 10) {
			EXPECT(result.lines > of_states);
			EXPECT(strstr(result.text, " connected "));
			EXPECT(strstr(result.text, " ep 0x"));
			EXPECT(strstr(result.text, " ia 0x"));
		}
		only_records(result.text, "5C3|5C4");
	}
}

/* What is wrong with the arguments of dat_ep_create, and the words that the record has for it. */
enum mistake { BAD_PZ, BAD_EVD, BAD_DTOS, BAD_FLAGS, BAD_SHARING, BAD_NAMED_ATTR, MISTAKES };
static const char *const words[MISTAKES] = {
	[BAD_PZ] = "no PZ of this IA", [BAD_EVD] = "request_evd is no EVD of this IA for DTOs",
	[BAD_DTOS] = "max_recv_dtos", [BAD_FLAGS] = "completion flags",
	[BAD_SHARING] = "request_completion_flags 0x4 refused: the EVD takes SOLICITED_WAIT receives",
	[BAD_NAMED_ATTR] = "ep_provider_specific",
};

static void create_wrongly(const void *arg)
{
	enum mistake mistake = *(const enum mistake *)arg;
	DAT_NAMED_ATTR odd = { "odd", "true" };
	DAT_EP_ATTR attr = { .max_recv_dtos = 4, .max_request_dtos = 4 };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, dto, conn;
	DAT_EP_HANDLE ep;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;

	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	OK(dat_pz_create(ia, &pz));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn));
	if (mistake == BAD_DTOS)
		attr.max_recv_dtos = -1;
	if (mistake == BAD_FLAGS)
		attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	if (mistake == BAD_SHARING) {
		attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
		attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	}
	if (mistake == BAD_NAMED_ATTR) {
		attr.ep_provider_specific_count = 1;
		attr.ep_provider_specific = &odd;
	}
	EXPECT(dat_ep_create(ia, mistake == BAD_PZ ? dto : pz, dto, mistake == BAD_EVD ? conn : dto,
			     conn, &attr, &ep) != DAT_SUCCESS);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void a_refused_ep_create_says_why(void)
{
	setenv("DAPL_TRACE_LEVEL", "1", 1);
	for (enum mistake mistake = 0; mistake < MISTAKES; mistake++) {
		struct child_result result = run(create_wrongly, &mistake);

		EXPECT(!result.status);
		if (result.lines != 1 || !strstr(result.text, words[mistake]))
			fail("expected one line with \"%s\", found %d: %s", words[mistake], result.lines,
			     result.text);
		only_records(result.text, "5C4");
	}
}

static void the_registry_traces_too(void)
{
	struct child_result result;

	setenv("DAT_TRACE_LEVEL", "10", 1);
	result = run(in_session, NULL);
	EXPECT(!result.status);
	EXPECT(result.lines > 0);
	only_records(result.text, "5C7|5C8");
}

static void *attribute(DAT_IA_HANDLE ia, const char *name)
{
	DAT_IA_ATTR attr;

	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	for (int i = 0; i < attr.num_vendor_attr; i++)
		if (!strcmp(attr.vendor_attr[i].name, name))
			return (void *)(uintptr_t)attr.vendor_attr[i].value;
	fail("no attribute %s", name);
}

/* Waits for the service thread, which may be printing a record: dat_cno_free() waits for callbacks. */
static void let_callbacks_end(DAT_IA_HANDLE ia)
{
	static const DAT_OS_WAIT_PROXY_AGENT none;
	DAT_CNO_HANDLE cno;

	OK(dat_cno_create(ia, none, &cno));
	OK(dat_cno_free(cno));
}

static void trace_for_a_while(const void *arg)
{
	struct session *s = malloc(sizeof *s);
	DAT_TRCLVL_QUERY_FUNC query;
	DAT_TRCLVL_MODIFY_FUNC modify;
	DAT_UINT32 level = 99;

	OK(session_open(s, MOMENT));
	EXPECT(!strcmp(attribute(s->ia, DAT_ATTR_VENDOR_EXTENSION), "1.0"));
	query = (DAT_TRCLVL_QUERY_FUNC)attribute(s->ia, DAT_ATTR_DEBUG_QUERY);
	modify = (DAT_TRCLVL_MODIFY_FUNC)attribute(s->ia, DAT_ATTR_DEBUG_MODIFY);
	OK(query(DAT_TRC_DAPL, &level));
	EXPECT(level == 0);
	EXPECT(session_exchange(s, 1));
	dprintf(2, "on\n");
	for (int i = 0; i < 2; i++) {
		OK(modify(DAT_TRC_DAPL, DAT_TRC_LVL_MAX));
		OK(query(DAT_TRC_DAPL, &level));
		EXPECT(level == DAT_TRC_LVL_MAX);
		EXPECT(session_exchange(s, 1));
		OK(dat_ep_disconnect(s->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		OK(await(s->a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
		OK(await(s->b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
		OK(dat_ep_reset(s->a.ep));
		OK(dat_ep_reset(s->b.ep));
		OK(session_connect(s, MOMENT));
		OK(modify(DAT_TRC_DAPL, 0));
	}
	let_callbacks_end(s->ia);
	usleep(200000);		/* another thread may still be printing its last record */
	dprintf(2, "off\n");
	EXPECT(modify(DAT_TRC_DAPL, 11) == (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	EXPECT(modify((DAT_TRC_COMPONENT)7, 1) == (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1));
	EXPECT(DAT_GET_TYPE(query(DAT_TRC_DAPL, NULL)) == DAT_INVALID_PARAMETER);
	OK(query(DAT_TRC_DAT, &level));
	OK(query(DAT_TRC_DAPL, &level));
	EXPECT(level == 0);
	EXPECT(session_exchange(s, 1));
	if (arg)
		((DAT_TRC_DUMP_FUNC)attribute(s->ia, DAT_ATTR_DEBUG_DUMP))(2);
	OK(session_close(s));
	free(s);
}

static void trace_levels_change_at_run_time(void)
{
	struct child_result result = run(trace_for_a_while, NULL);
	char *on = strstr(result.text, "on\n"), *off = strstr(result.text, "off\n");

	EXPECT(!result.status);
	EXPECT(on == result.text);	/* nothing before */
	EXPECT(off && !off[4]);		/* nor after */
	*off = '\0';
	EXPECT(strstr(on, "5C3 "));
	only_records(on + 3, "5C3|5C4");
}

/* The third word of a record. */
static long thread_of(const char *line)
{
	long thread = 0;

	EXPECT(sscanf(line, "%*s %*s %ld", &thread) == 1);
	return thread;
}

/* Returns the lines of one thread. The caller frees them. */
static char *story_of(long thread, const char *text)
{
	char *story = calloc(1, strlen(text) + 1), *end = story;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		if (thread_of(line) == thread)
			end = mempcpy(end, line, strchr(line, '\n') + 1 - line);
	return story;
}

/* The dump has the records that each thread printed, in the same order; if there were many, the last ones.
 * */
static void trace_records_are_dumped_on_request(void)
{
	struct child_result result = run(trace_for_a_while, "dump");
	char *off = strstr(result.text, "off\n"), *on = result.text + 3, *printed, *dumped;
	long thread = 0;

	EXPECT(!result.status);
	EXPECT(off && off[4]);
	*off = '\0';
	off += 4;
	for (const char *line = off; *line; line = strchr(line, '\n') + 1) {
		if (thread_of(line) == thread)
			continue;
		thread = thread_of(line);
		printed = story_of(thread, on);
		dumped = story_of(thread, off);
		EXPECT(strlen(dumped) <= strlen(printed));
		EXPECT(!strcmp(dumped, printed + strlen(printed) - strlen(dumped)));
		free(printed);
		free(dumped);
	}
	only_records(off, "5C3|5C4");
}

static void bits_choose_kinds_of_messages(void)
{
	static const struct {
		const char *mask, *kinds;
	} rows[] = {
		{ "0x3", "none" }, { "0x10", "ep|qp" }, { "0x20", "ia|provider" },
		{ "0x38", "ep|qp|conn|sp|port|ia|provider" },
	};
	char pattern[200];
	regex_t line_of;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct child_result result;

		setenv("DAPL_DBG_TYPE", rows[i].mask, 1);
		result = run(in_session, NULL);
		EXPECT(!result.status);
		EXPECT(i ? result.lines > 0 : !result.lines);
		snprintf(pattern, sizeof pattern, "^dapl: 5C[34] [0-9.]+ [0-9]+ (%s) 0x", rows[i].kinds);
		EXPECT(!regcomp(&line_of, pattern, REG_EXTENDED | REG_NOSUB));
		for (char *line = strtok(result.text, "\n"); line; line = strtok(NULL, "\n"))
			if (regexec(&line_of, line, 0, NULL, 0))
				fail("DAPL_DBG_TYPE %s gives: %s", rows[i].mask, line);
		regfree(&line_of);
	}
}

/* Both DAPL_TRACE_LEVEL and DAPL_DBG_TYPE want the records. Those of higher levels are printed as lines of the log. */
static void a_record_is_printed_once(void)
{
	struct child_result result;

	setenv("DAPL_DBG_TYPE", "255", 1);
	setenv("DAPL_TRACE_LEVEL", "3", 1);
	result = run(in_session, NULL);
	EXPECT(!result.status);
	EXPECT(result.lines > 0);
	EXPECT(strstr(result.text, " ep 0x"));
	for (char *line = strstr(result.text, "dapl: 5C"); line; line = strstr(line + 1, "dapl: 5C")) {
		const char *record = line + strlen("dapl: ");
		char text[512];

		snprintf(text, sizeof text, "\n%.*s\n", (int)strcspn(record, "\n"), record);
		if (strstr(result.text, text))
			fail("printed twice:%s", text);
	}
	unsetenv("DAPL_TRACE_LEVEL");
}

static const struct life_case cases[] = {
	CASE(trace_records_by_level),
	CASE(a_refused_ep_create_says_why),
	CASE(the_registry_traces_too),
	CASE(trace_levels_change_at_run_time),
	CASE(trace_records_are_dumped_on_request),
	CASE(bits_choose_kinds_of_messages),
	CASE(a_record_is_printed_once),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
