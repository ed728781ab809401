/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* top.c - see top.h. Each row is an IA of a program. Rates come from two samples of its counters; an
 * IA that is not in both has a rate of 0. */
#include "tools/info/top.h"
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/control/owner.h"
#include "tools/info/output.h"
#include "tools/info/screen.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_S 0.2	/* seconds until the first frame, which a user waits for */

enum { SENT, RECEIVED, READ, MESSAGES, SUMS };

struct row {
	long pid;
	char user[OWNER_NAME], program[32], ia[64], object[32];
	size_t endpoints;
	int64_t sum[SUMS];
	double rate[SUMS];	/* per second */
};

struct sample {
	struct row *rows;
	size_t count;
	double at;
};

static const struct {
	int sum;
	const char *counter;
} counted[] = {
	{ SENT, "POST_SEND_DATA" }, { SENT, "POST_SEND_UD_DATA" }, { SENT, "POST_WRITE_DATA" },
	{ SENT, "POST_WRITE_IMM_DATA" }, { RECEIVED, "RECV_DATA" }, { RECEIVED, "RECV_UD_DATA" },
	{ RECEIVED, "RECV_IMM_DATA" }, { READ, "POST_READ_DATA" },
	{ MESSAGES, "POST_SEND" }, { MESSAGES, "POST_SEND_UD" }, { MESSAGES, "POST_WRITE" },
	{ MESSAGES, "POST_WRITE_IMM" }, { MESSAGES, "POST_READ" }, { MESSAGES, "POST_CMP_SWAP" },
	{ MESSAGES, "POST_FETCH_ADD" }, { MESSAGES, "RECV" }, { MESSAGES, "RECV_UD" },
	{ MESSAGES, "RECV_IMM" },
};

/* --- samples ------------------------------------------------------------------------- */

static void add_ia(struct sample *sample, const json_t *answer, const json_t *ia)
{
	const json_t *totals = json_object_get(ia, "totals");
	struct row *row;

	sample->rows = realloc(sample->rows, (sample->count + 1) * sizeof *sample->rows);
	if (!sample->rows)
		fail("there is no memory left");
	row = &sample->rows[sample->count++];
	memset(row, 0, sizeof *row);
	row->pid = (long)json_integer_value(json_object_get(answer, "pid"));
	owner_user(row->user, (pid_t)row->pid);
	snprintf(row->program, sizeof row->program, "%s", output_get(answer, "program"));
	snprintf(row->ia, sizeof row->ia, "%s", output_get(ia, "name"));
	snprintf(row->object, sizeof row->object, "%s", output_get(ia, "object"));
	row->endpoints = json_array_size(json_object_get(ia, "endpoints"));
	for (size_t c = 0; c < sizeof counted / sizeof *counted; c++)
		row->sum[counted[c].sum] += json_integer_value(json_object_get(totals, counted[c].counter));
}

static struct sample take_sample(void)
{
	json_t *answers = control_ask_all(0, CONTROL_COUNTERS, NULL), *answer, *ia;
	struct sample sample = { .count = 0 };
	struct timespec time;
	size_t i, j;

	clock_gettime(CLOCK_MONOTONIC, &time);
	sample.at = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "ias"), j, ia)
			add_ia(&sample, answer, ia);
	json_decref(answers);
	return sample;
}

static const struct row *find(const struct sample *sample, const struct row *row)
{
	for (size_t i = 0; i < sample->count; i++)
		if (sample->rows[i].pid == row->pid && !strcmp(sample->rows[i].object, row->object))
			return &sample->rows[i];
	return NULL;
}

/* A sum is lower than before if the program has reset counters. The rate is then 0. */
static void compute_rates(struct sample *now, const struct sample *before)
{
	double seconds = now->at - before->at;

	for (size_t i = 0; i < now->count; i++) {
		const struct row *old = find(before, &now->rows[i]);

		for (int s = 0; old && seconds > 0 && s < SUMS; s++)
			if (now->rows[i].sum[s] > old->sum[s])
				now->rows[i].rate[s] =
					(double)(now->rows[i].sum[s] - old->sum[s]) / seconds;
	}
}

static int busiest_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double busy_x = x->rate[SENT] + x->rate[RECEIVED] + x->rate[READ] + x->rate[MESSAGES];
	double busy_y = y->rate[SENT] + y->rate[RECEIVED] + y->rate[READ] + y->rate[MESSAGES];

	if (busy_x != busy_y)
		return busy_x < busy_y ? 1 : -1;
	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) : strcmp(x->object, y->object);
}

/* --- views ----------------------------------------------------------------------------- */

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

/* Prints the table in the lines that are left of the screen. */
static void print_rows(const struct sample *sample, int lines_before)
{
	static const char *const heads[] = { "PID", "USER", "PROGRAM", "IA", "EPS", "SENT/s", "RECV/s", "READ/s",
		"MSG/s", "SENT", "RECV" };
	static const int drop[] = { 10, 9, 4, 7, 3, 1, 8, 6, 0, -1 };
	struct table *table = table_new(11, heads);

	for (size_t i = 0; i < sample->count; i++) {
		const struct row *row = &sample->rows[i];
		char pid[24], eps[24], text[SUMS + 2][16];
		const char *cells[11] = { pid, row->user, row->program, row->ia, eps };

		snprintf(pid, sizeof pid, "%ld", row->pid);
		snprintf(eps, sizeof eps, "%zu", row->endpoints);
		for (int s = 0; s < SUMS; s++)
			cells[5 + s] = scaled(text[s], row->rate[s]);
		cells[9] = scaled(text[SUMS], (double)row->sum[SENT]);
		cells[10] = scaled(text[SUMS + 1], (double)row->sum[RECEIVED]);
		table_add(table, cells);
	}
	if (screen_rows() && sample->count)
		table_fit(table, 0, screen_columns(),
			  screen_rows() > lines_before ? screen_rows() - lines_before : 0, drop);
	table_print(table, 0);
}

static json_t *json_of(const struct row *row)
{
	static const char *const names[] = { "sent", "received", "read", "messages" };
	json_t *object = json_object(), *rates = json_object();

	output_set(object, "pid", json_integer(row->pid));
	owner_add(object);
	output_set(object, "program", output_text(row->program));
	output_set(object, "ia", output_text(row->ia));
	output_set(object, "endpoints", json_integer((json_int_t)row->endpoints));
	for (int s = 0; s < SUMS; s++) {
		output_set(object, names[s], json_integer(row->sum[s]));
		output_set(rates, names[s], json_real((double)(int64_t)(row->rate[s] * 10 + 0.5) / 10));
	}
	output_set(object, "per_second", rates);
	return object;
}

enum { ROOMY = 10 };	/* lines of a screen that has room for an empty one below the title */

static void show_json(const struct sample *sample, bool on_a_line)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < sample->count; i++)
		output_append(rows, json_of(&sample->rows[i]));
	if (on_a_line)
		output_json_line(rows);
	else
		output_json(rows);
}

static void print_time(void)
{
	time_t now = time(NULL);
	char text[32];

	strftime(text, sizeof text, "%F %T", localtime(&now));
	printf("%s\n", text);
}

/* Shows the table; on a screen that is renewed below a title. */
static void show(const struct sample *sample, bool renewed, double seconds)
{
	int lines = 0;

	if (renewed) {
		lines = screen_rows() < ROOMY ? 1 : 2;
		fprintf(output_stream(), "%sRDMA traffic of %s programs, every %g s; q ends%s%s", output_bold(),
			geteuid() ? "this user's" : "all users'", seconds, output_plain(), lines == 1 ? "\n" : "\n\n");
	}
	print_rows(sample, lines);
	if (!sample->count)
		fputs("No program of this user has an adapter open in this network namespace.\n", output_stream());
}

static struct sample next_sample(struct sample *before)
{
	struct sample now = take_sample();

	compute_rates(&now, before);
	if (now.count)
		qsort(now.rows, now.count, sizeof *now.rows, busiest_first);
	free(before->rows);
	return now;
}

/* Prints tables below each other, until a signal or their number ends it. */
static void show_count(double seconds, unsigned long count, bool json)
{
	struct sample sample = take_sample();

	screen_catch_signals();
	while (count-- && screen_wait(seconds)) {
		sample = next_sample(&sample);
		if (json) {
			show_json(&sample, true);
		} else {
			print_time();
			show(&sample, false, seconds);
		}
		fflush(stdout);
	}
	free(sample.rows);
}

static void show_renewed(double seconds, bool json)
{
	struct sample sample = take_sample();
	bool renewed = !json && screen_begin(), more;

	more = screen_wait(renewed && seconds > FIRST_S ? FIRST_S : seconds);
	while (more) {
		sample = next_sample(&sample);
		screen_frame();
		if (json)
			show_json(&sample, false);
		else
			show(&sample, renewed, seconds);
		more = renewed && screen_wait(seconds);
	}
	screen_end();
	free(sample.rows);
}

int top_show(double seconds, unsigned long count, bool json)
{
	if (count)
		show_count(seconds, count, json);
	else
		show_renewed(seconds, json);
	return 0;
}
