/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* top.c - see top.h. Prints the rows of top_rows.c, and acts on keys. */
#include "tools/info/top.h"
#include "tools/cli.h"
#include "tools/info/output.h"
#include "tools/info/screen.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_S 0.2	/* seconds until the first frame, which a user waits for */

enum {
	ROOMY = 10,		/* lines of a screen that has room for an empty one below the title */
	FILTER = 40,		/* bytes */
	ESCAPE = 27, BACKSPACE = 8, DELETE = 127,
};

static const char *const by_names[TOP_BY] = { "adapters", "connections", "programs", "users", "jobs" };
static const struct { const char *name; char key; } sorts[TOP_SORTS] = {
	[TOP_BUSY] = { "busy", 'b' }, [TOP_BY_SENT] = { "sent", 's' }, [TOP_BY_RECEIVED] = { "received", 'r' },
	[TOP_BY_READ] = { "read", 'd' }, [TOP_BY_MESSAGES] = { "messages", 'm' }, [TOP_BY_RTT] = { "rtt", 't' },
	[TOP_BY_RETRANSMITS] = { "retransmits", 'x' }, [TOP_BY_PID] = { "pid", 'p' },
};

/* What the user has selected. */
struct view {
	const struct top_options *o;
	enum top_by by;
	enum top_sort sort;
	char filter[FILTER];
	bool renewed, typing, help;	/* in place; the filter is being typed; the keys are shown */
};

/* --- options --------------------------------------------------------------------------- */

enum top_by top_parse_by(const char *option, const char *text)
{
	for (int i = 0; i < TOP_BY; i++)
		if (!strcmp(by_names[i], text))
			return (enum top_by)i;
	usage_error("%s: \"%s\" found, adapters, connections, programs, users or jobs expected", option, text);
}

enum top_sort top_parse_sort(const char *option, const char *text)
{
	for (int i = 0; i < TOP_SORTS; i++)
		if (!strcmp(sorts[i].name, text))
			return (enum top_sort)i;
	usage_error("%s: \"%s\" found, busy, sent, received, read, messages, rtt, retransmits or pid expected", option,
		    text);
}

/* --- tables ---------------------------------------------------------------------------- */

/* Writes a value such as "1.2G", in at most 5 characters. */
static const char *scaled(char text[16], double value)
{
	static const char units[] = " kMGTP";
	int unit = 0;

	for (; value >= 999.5 && unit < 5; unit++)
		value /= 1000;
	if (!unit)
		snprintf(text, 16, "%.0f", value);
	else
		snprintf(text, 16, "%.*f%c", value < 9.95 ? 1 : 0, value, units[unit]);
	return text;
}

enum { COLUMNS = 11 };

static void add_adapter(struct table *table, const struct top_row *row)
{
	char pid[24], eps[24], text[TOP_SUMS + 2][16];
	const char *cells[COLUMNS] = { pid, row->user, row->program, row->ia, eps };

	snprintf(pid, sizeof pid, "%ld", row->pid);
	snprintf(eps, sizeof eps, "%zu", row->endpoints);
	for (int s = 0; s < TOP_SUMS; s++)
		cells[5 + s] = scaled(text[s], row->rate[s]);
	cells[9] = scaled(text[TOP_SUMS], (double)row->sum[TOP_SENT]);
	cells[10] = scaled(text[TOP_SUMS + 1], (double)row->sum[TOP_RECEIVED]);
	table_add(table, cells);
}

static void add_connection(struct table *table, const struct top_row *row)
{
	char pid[24], rtt[32] = "", resent[24] = "", text[TOP_MESSAGES][16];
	const char *cells[COLUMNS] = { pid, row->user, row->program, row->ia, row->remote, row->carrier,
		scaled(text[TOP_SENT], row->rate[TOP_SENT]), scaled(text[TOP_RECEIVED], row->rate[TOP_RECEIVED]),
		scaled(text[TOP_READ], row->rate[TOP_READ]), rtt, resent };

	snprintf(pid, sizeof pid, "%ld", row->pid);
	if (row->has_tcp) {
		snprintf(rtt, sizeof rtt, "%ld", row->rtt_us);
		snprintf(resent, sizeof resent, "%ld", row->retransmits);
	}
	table_add(table, cells);
}

static void add_group(struct table *table, const struct top_row *row)
{
	char programs[24], eps[24], text[TOP_SUMS + 2][16];
	const char *cells[COLUMNS - 2] = { *row->program ? row->program : *row->user ? row->user : row->job, programs,
		eps };

	snprintf(programs, sizeof programs, "%zu", row->programs);
	snprintf(eps, sizeof eps, "%zu", row->endpoints);
	for (int s = 0; s < TOP_SUMS; s++)
		cells[3 + s] = scaled(text[s], row->rate[s]);
	cells[7] = scaled(text[TOP_SUMS], (double)row->sum[TOP_SENT]);
	cells[8] = scaled(text[TOP_SUMS + 1], (double)row->sum[TOP_RECEIVED]);
	table_add(table, cells);
}

/* A table of a view: heads, columns that give way to a narrow screen, the first to go first. */
static const struct layout {
	int columns;
	const char *heads[COLUMNS];
	int drop[COLUMNS];
	void (*add)(struct table *table, const struct top_row *row);
} layouts[TOP_BY] = {
	[TOP_ADAPTERS] = { 11, { "PID", "USER", "PROGRAM", "IA", "EPS", "SENT/s", "RECV/s", "READ/s", "MSG/s", "SENT",
		"RECV" }, { 10, 9, 4, 7, 3, 1, 8, 6, 0, -1 }, add_adapter },
	[TOP_CONNECTIONS] = { 11, { "PID", "USER", "PROGRAM", "IA", "PEER", "CARRIER", "SENT/s", "RECV/s", "READ/s",
		"RTT us", "RESENT" }, { 8, 1, 3, 5, 0, 10, 7, 9, 6, -1 }, add_connection },
	[TOP_PROGRAMS] = { 9, { "PROGRAM", "COUNT", "EPS", "SENT/s", "RECV/s", "READ/s", "MSG/s", "SENT", "RECV" },
		{ 8, 7, 2, 5, 6, 1, 4, -1 }, add_group },
	[TOP_USERS] = { 9, { "USER", "PROGRAMS", "EPS", "SENT/s", "RECV/s", "READ/s", "MSG/s", "SENT", "RECV" },
		{ 8, 7, 2, 5, 6, 1, 4, -1 }, add_group },
	[TOP_JOBS] = { 9, { "JOB", "PROGRAMS", "EPS", "SENT/s", "RECV/s", "READ/s", "MSG/s", "SENT", "RECV" },
		{ 8, 7, 2, 5, 6, 1, 4, -1 }, add_group },
};

/* Prints the table in the lines that are left of the screen. */
static void print_rows(const struct top_rows *rows, enum top_by by, int lines_before)
{
	const struct layout *layout = &layouts[by];
	struct table *table = table_new(layout->columns, layout->heads);

	for (size_t i = 0; i < rows->count; i++)
		layout->add(table, &rows->rows[i]);
	if (screen_rows() && rows->count)
		table_fit(table, 0, screen_columns(),
			  screen_rows() > lines_before ? screen_rows() - lines_before : 0, layout->drop);
	table_print(table, 0);
}

/* --- JSON ------------------------------------------------------------------------------- */

static void add_tcp(json_t *object, const struct top_row *row)
{
	json_t *tcp = json_object();

	output_set(tcp, "rtt_us", json_integer(row->rtt_us));
	output_set(tcp, "rtt_var_us", json_integer(row->rtt_var_us));
	output_set(tcp, "cwnd", json_integer(row->cwnd));
	output_set(tcp, "retransmits", json_integer(row->retransmits));
	output_set(object, "tcp", tcp);
}

static json_t *json_of(const struct top_row *row, enum top_by by)
{
	static const char *const names[] = { "sent", "received", "read", "messages" };
	json_t *object = json_object(), *rates = json_object();

	if (row->pid) {
		output_set(object, "pid", json_integer(row->pid));
		owner_add(object);
		output_set(object, "program", output_text(row->program));
		output_set(object, "ia", output_text(row->ia));
	} else {
		output_set(object, by == TOP_PROGRAMS ? "program" : by == TOP_USERS ? "user" : "job",
			   output_text(by == TOP_PROGRAMS ? row->program : by == TOP_USERS ? row->user : row->job));
		output_set(object, "programs", json_integer((json_int_t)row->programs));
	}
	if (by == TOP_CONNECTIONS) {
		output_set(object, "local", output_text(row->local));
		output_set(object, "remote", output_text(row->remote));
		output_set(object, "carrier", output_text(row->carrier));
	} else {
		output_set(object, "endpoints", json_integer((json_int_t)row->endpoints));
	}
	if (row->has_tcp)
		add_tcp(object, row);
	for (int s = 0; s < (by == TOP_CONNECTIONS ? TOP_MESSAGES : TOP_SUMS); s++) {
		output_set(object, names[s], json_integer(row->sum[s]));
		output_set(rates, names[s], json_real((double)(int64_t)(row->rate[s] * 10 + 0.5) / 10));
	}
	output_set(object, "per_second", rates);
	return object;
}

static void show_json(const struct top_rows *rows, enum top_by by, bool on_a_line)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->count; i++)
		output_append(list, json_of(&rows->rows[i], by));
	if (on_a_line)
		output_json_line(list);
	else
		output_json(list);
}

/* --- views ------------------------------------------------------------------------------ */

static void print_time(void)
{
	time_t now = time(NULL);
	char text[32];

	strftime(text, sizeof text, "%F %T", localtime(&now));
	printf("%s\n", text);
}

static void print_title(const struct view *view, bool roomy)
{
	char what[60] = "traffic";

	if (view->by != TOP_ADAPTERS || view->sort != TOP_BUSY)
		snprintf(what, sizeof what, "%s by %s", by_names[view->by], sorts[view->sort].name);
	fprintf(output_stream(), "%sRDMA %s of %s programs, every %g s; q ends, h: keys%s", output_bold(), what,
		geteuid() ? "this user's" : "all users'", view->o->seconds, output_plain());
	if (*view->filter || view->typing)
		fprintf(output_stream(), "; /%s%s", view->filter, view->typing ? "_" : "");
	fputs(roomy ? "\n\n" : "\n", output_stream());
}

static void print_keys(void)
{
	fprintf(output_stream(), "1 to 5: adapters, connections, programs, users, jobs\n"
		"b s r d m: sort by all traffic, sent, received, read, messages a second\n"
		"t x: sort by round-trip time and retransmissions of TCP; p: by PID\n"
		"/ TEXT Enter: only rows with this text; Esc: all rows\n"
		"any key: back; q: end\n");
}

/* Shows the table; on a screen that is renewed below a title. */
static void show(const struct view *view, const struct top_rows *all)
{
	struct top_rows rows = top_rows_select(all, view->by, view->sort, view->filter);
	const bool roomy = screen_rows() >= ROOMY;

	if (view->renewed)
		print_title(view, roomy);
	print_rows(&rows, view->by, !view->renewed ? 0 : roomy ? 2 : 1);
	if (!all->count)
		fprintf(output_stream(), "No program of this user has %s in this network namespace.\n",
			view->by == TOP_CONNECTIONS ? "a connection" : "an adapter open");
	else if (!rows.count)
		fputs("No row has this text.\n", output_stream());
	free(rows.rows);
}

static void renew(struct top_rows *all, enum top_by by)
{
	struct top_rows now = top_rows_take(by == TOP_CONNECTIONS);

	if (now.connections == all->connections)
		top_rows_rate(&now, all);
	free(all->rows);
	*all = now;
}

/* Prints tables below each other, until a signal or their number ends it. */
static void show_count(const struct view *view)
{
	struct top_rows all = top_rows_take(view->by == TOP_CONNECTIONS);
	unsigned long count = view->o->count;

	screen_catch_signals();
	while (count-- && screen_wait(view->o->seconds)) {
		renew(&all, view->by);
		if (view->o->json) {
			struct top_rows rows = top_rows_select(&all, view->by, view->sort, view->filter);

			show_json(&rows, view->by, true);
			free(rows.rows);
		} else {
			print_time();
			show(view, &all);
		}
		fflush(stdout);
	}
	free(all.rows);
}

static void show_once(const struct view *view)
{
	struct top_rows all = top_rows_take(view->by == TOP_CONNECTIONS);

	if (screen_wait(view->o->seconds)) {
		renew(&all, view->by);
		if (view->o->json) {
			struct top_rows rows = top_rows_select(&all, view->by, view->sort, view->filter);

			show_json(&rows, view->by, false);
			free(rows.rows);
		} else {
			show(view, &all);
		}
	}
	free(all.rows);
}

/* Adds a key to the filter, or ends its typing. */
static void type_filter(struct view *view, int key)
{
	size_t length = strlen(view->filter);

	if (key == '\n' || key == '\r' || key == ESCAPE)
		view->typing = false;
	if (key == ESCAPE)
		view->filter[0] = '\0';
	else if ((key == BACKSPACE || key == DELETE) && length)
		view->filter[length - 1] = '\0';
	else if (isprint(key) && length + 1 < sizeof view->filter)
		snprintf(view->filter + length, sizeof view->filter - length, "%c", key);
}

/* Acts on a key that does not end the view. */
static void take_key(struct view *view, int key)
{
	if (view->typing) {
		type_filter(view, key);
		return;
	}
	if (view->help) {
		view->help = false;
		return;
	}
	if (key >= '1' && key < '1' + TOP_BY)
		view->by = (enum top_by)(key - '1');
	for (int i = 0; i < TOP_SORTS; i++)
		if (key == sorts[i].key)
			view->sort = (enum top_sort)i;
	view->help = key == 'h' || key == '?';
	view->typing = key == '/';
	if (key == '/' || key == ESCAPE)
		view->filter[0] = '\0';
}

static double seconds_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Renews the table in place. A key shows the rows of the last sample in another way at once; only for a change between
 * adapters and connections other counters are read. */
static void show_renewed(struct view *view)
{
	struct top_rows all = top_rows_take(view->by == TOP_CONNECTIONS);
	double next = seconds_now() + (view->o->seconds > FIRST_S ? FIRST_S : view->o->seconds);
	int key = screen_key(next - seconds_now());

	while (view->typing ? key != SCREEN_END : !screen_key_ends(key)) {
		if (key == SCREEN_TIME) {
			renew(&all, view->by);
			next = seconds_now() + view->o->seconds;
		} else {
			take_key(view, key);
		}
		if (all.connections != (view->by == TOP_CONNECTIONS)) {
			renew(&all, view->by);
			next = seconds_now() + (view->o->seconds > FIRST_S ? FIRST_S : view->o->seconds);
		}
		screen_frame();
		if (view->help)
			print_keys();
		else
			show(view, &all);
		key = screen_key(next - seconds_now());
	}
	free(all.rows);
}

int top_show(const struct top_options *options)
{
	struct view view = { .o = options, .by = options->by, .sort = options->sort };

	snprintf(view.filter, sizeof view.filter, "%s", options->filter);
	if (options->count) {
		show_count(&view);
	} else if (!options->json && screen_begin()) {
		view.renewed = true;
		show_renewed(&view);
		screen_end();
	} else {
		screen_catch_signals();
		show_once(&view);
	}
	return 0;
}
