/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* top_rows.c - see top_rows.h. */
#include "tools/info/top_rows.h"
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/info/output.h"
#include "tools/info/traffic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- samples ------------------------------------------------------------------------- */

/* Returns a new row at the end, a copy of `from`. */
static struct top_row *add_row(struct top_rows *list, const struct top_row *from)
{
	list->rows = realloc(list->rows, (list->count + 1) * sizeof *list->rows);
	if (!list->rows)
		fail("there is no memory left");
	list->rows[list->count] = *from;
	return &list->rows[list->count++];
}

/* Fills in what each row of a program has: PID, user, job, name. */
static void set_program(struct top_row *row, const json_t *answer)
{
	json_t *owner = json_object();
	const json_t *job;

	memset(row, 0, sizeof *row);
	row->pid = (long)json_integer_value(json_object_get(answer, "pid"));
	row->programs = 1;
	snprintf(row->program, sizeof row->program, "%s", output_get(answer, "program"));
	output_set(owner, "pid", json_integer(row->pid));
	owner_add(owner);
	snprintf(row->user, sizeof row->user, "%s", output_get(owner, "user"));
	job = json_object_get(owner, "slurm_job");
	if (job)
		snprintf(row->job, sizeof row->job, "%lld", (long long)json_integer_value(job));
	else
		snprintf(row->job, sizeof row->job, "%s", output_get(owner, "cgroup"));
	json_decref(owner);
}

static void add_ia(struct top_rows *list, const struct top_row *program, const json_t *ia)
{
	const json_t *totals = json_object_get(ia, "totals");
	struct top_row *row = add_row(list, program);

	snprintf(row->ia, sizeof row->ia, "%s", output_get(ia, "name"));
	snprintf(row->object, sizeof row->object, "%s", output_get(ia, "object"));
	row->endpoints = json_array_size(json_object_get(ia, "endpoints"));
	row->sum[TOP_SENT] = traffic_bytes(totals, TRAFFIC_SEND) + traffic_bytes(totals, TRAFFIC_WRITE);
	row->sum[TOP_RECEIVED] = traffic_bytes(totals, TRAFFIC_RECEIVE);
	row->sum[TOP_READ] = traffic_bytes(totals, TRAFFIC_READ);
	for (int t = 0; t < TRAFFIC_OPERATIONS; t++)
		row->sum[TOP_MESSAGES] += traffic_messages(totals, (enum traffic)t);
}

static long number_of(const json_t *object, const char *key)
{
	return (long)json_integer_value(json_object_get(object, key));
}

/* Leaves out endpoints that are not connected. */
static void add_endpoint(struct top_rows *list, const struct top_row *program, const json_t *endpoint)
{
	const json_t *tcp = json_object_get(endpoint, "tcp");
	struct top_row *row;

	if (!json_is_string(json_object_get(endpoint, "remote")) ||
	    strcmp(output_get(endpoint, "state"), "connected") != 0)
		return;
	row = add_row(list, program);
	row->endpoints = 1;
	snprintf(row->ia, sizeof row->ia, "%s", output_get(endpoint, "ia"));
	snprintf(row->object, sizeof row->object, "%s", output_get(endpoint, "object"));
	snprintf(row->local, sizeof row->local, "%s", output_get(endpoint, "local"));
	snprintf(row->remote, sizeof row->remote, "%s", output_get(endpoint, "remote"));
	snprintf(row->carrier, sizeof row->carrier, "%s", output_get(endpoint, "carrier"));
	row->sum[TOP_SENT] = json_integer_value(json_object_get(endpoint, "bytes_sent"));
	row->sum[TOP_RECEIVED] = json_integer_value(json_object_get(endpoint, "bytes_received"));
	row->sum[TOP_READ] = json_integer_value(json_object_get(endpoint, "bytes_read"));
	row->has_tcp = tcp;
	row->rtt_us = number_of(tcp, "rtt_us");
	row->rtt_var_us = number_of(tcp, "rtt_var_us");
	row->cwnd = number_of(tcp, "cwnd");
	row->retransmits = number_of(tcp, "retransmits");
}

struct top_rows top_rows_take(bool connections)
{
	json_t *answers = control_ask_all(0, connections ? CONTROL_ENDPOINTS : CONTROL_COUNTERS, NULL), *answer, *item;
	struct top_rows list = { .connections = connections };
	struct timespec time;
	size_t i, j;

	clock_gettime(CLOCK_MONOTONIC, &time);
	list.at = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
	json_array_foreach(answers, i, answer) {
		struct top_row program;

		set_program(&program, answer);
		json_array_foreach(json_object_get(answer, connections ? "endpoints" : "ias"), j, item)
			(connections ? add_endpoint : add_ia)(&list, &program, item);
	}
	json_decref(answers);
	return list;
}

static const struct top_row *find(const struct top_rows *list, const struct top_row *row)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->rows[i].pid == row->pid && !strcmp(list->rows[i].object, row->object))
			return &list->rows[i];
	return NULL;
}

/* A sum is lower than before if the program has reset counters. The rate is then 0. */
void top_rows_rate(struct top_rows *now, const struct top_rows *before)
{
	double seconds = now->at - before->at;

	for (size_t i = 0; i < now->count; i++) {
		const struct top_row *old = find(before, &now->rows[i]);

		for (int s = 0; old && seconds > 0 && s < TOP_SUMS; s++)
			if (now->rows[i].sum[s] > old->sum[s])
				now->rows[i].rate[s] = (double)(now->rows[i].sum[s] - old->sum[s]) / seconds;
	}
}

/* --- selection ------------------------------------------------------------------------- */

/* Returns the text by which rows are joined; NULL: each stays as it is. */
static const char *group_of(const struct top_row *row, enum top_by by)
{
	switch (by) {
	case TOP_PROGRAMS: return row->program;
	case TOP_USERS: return row->user;
	case TOP_JOBS: return row->job;
	default: return NULL;
	}
}

/* Returns the row of this group in the list, a new one if there is none. */
static struct top_row *row_of_group(struct top_rows *list, const struct top_row *row, enum top_by by)
{
	static const struct top_row empty;
	const char *group = group_of(row, by);
	struct top_row *new;

	for (size_t i = 0; group && i < list->count; i++)
		if (!strcmp(group_of(&list->rows[i], by), group))
			return &list->rows[i];
	new = add_row(list, group ? &empty : row);
	if (!group)
		return new;
	memcpy(new->program, row->program, by == TOP_PROGRAMS ? sizeof new->program : 0);
	memcpy(new->user, row->user, by == TOP_USERS ? sizeof new->user : 0);
	memcpy(new->job, row->job, by == TOP_JOBS ? sizeof new->job : 0);
	return new;
}

static bool matches(const struct top_row *row, const char *filter)
{
	const char *const texts[] = { row->user, row->program, row->ia, row->job, row->local, row->remote,
		row->carrier };
	char pid[24];

	snprintf(pid, sizeof pid, "%ld", row->pid);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcasestr(texts[i], filter))
			return true;
	return !strcmp(pid, filter);
}

static double busy_of(const struct top_row *row)
{
	return row->rate[TOP_SENT] + row->rate[TOP_RECEIVED] + row->rate[TOP_READ] + row->rate[TOP_MESSAGES];
}

static double key_of(const struct top_row *row, enum top_sort sort)
{
	switch (sort) {
	case TOP_BY_SENT: return row->rate[TOP_SENT];
	case TOP_BY_RECEIVED: return row->rate[TOP_RECEIVED];
	case TOP_BY_READ: return row->rate[TOP_READ];
	case TOP_BY_MESSAGES: return row->rate[TOP_MESSAGES];
	case TOP_BY_RTT: return (double)row->rtt_us;
	case TOP_BY_RETRANSMITS: return (double)row->retransmits;
	case TOP_BY_PID: return 0;
	default: return busy_of(row);
	}
}

static enum top_sort sort_by;	/* of compare() */

/* The largest first. Equal rows are in the order of PIDs and names, so that they keep their places. */
static int compare(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	const double key_x = key_of(x, sort_by), key_y = key_of(y, sort_by);
	int order;

	if (key_x < key_y || key_x > key_y)
		return key_x < key_y ? 1 : -1;
	if (x->pid != y->pid)
		return (x->pid > y->pid) - (x->pid < y->pid);
	order = strcmp(x->object, y->object);
	order = order ? order : strcmp(x->program, y->program);
	order = order ? order : strcmp(x->user, y->user);
	return order ? order : strcmp(x->job, y->job);
}

struct top_rows top_rows_select(const struct top_rows *all, enum top_by by, enum top_sort sort, const char *filter)
{
	struct top_rows list = { .connections = all->connections, .at = all->at };

	for (size_t i = 0; i < all->count; i++) {
		const struct top_row *row = &all->rows[i];
		struct top_row *to;

		if (*filter && !matches(row, filter))
			continue;
		to = row_of_group(&list, row, by);
		if (!group_of(row, by))
			continue;
		to->endpoints += row->endpoints;
		to->programs += !(i && all->rows[i - 1].pid == row->pid);	/* IAs of a program are side by side */
		for (int s = 0; s < TOP_SUMS; s++) {
			to->sum[s] += row->sum[s];
			to->rate[s] += row->rate[s];
		}
	}
	sort_by = sort;
	if (list.count)
		qsort(list.rows, list.count, sizeof *list.rows, compare);
	return list;
}
