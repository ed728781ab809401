/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.c - prints the results as tables, CSV and JSON (report.h). */
#include "report.h"
#include "origin.h"
#include "plot.h"
#include "../cli.h"
#include "../version.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 50 }; /* columns of the longest bar of a histogram */

static struct {
	enum format format;
	bool compares, verbs, gigabits, timed, datagrams;
	bool marked; /* a line has the mark of report_mark() */
	bool progress; /* a line of progress is on the terminal */
	unsigned endpoints, threads;
	int rows;
	int table; /* the test whose table is open; -1: none */
	char title[DAT_NAME_MAX_LENGTH + 256];
} report = { .table = -1 };

const char *size_text(size_t size)
{
	static char text[32];

	if (size >= 1 << 20 && size % (1 << 20) == 0)
		snprintf(text, sizeof text, "%zu MiB", size >> 20);
	else if (size >= 1 << 10 && size % (1 << 10) == 0)
		snprintf(text, sizeof text, "%zu KiB", size >> 10);
	else
		snprintf(text, sizeof text, "%zu", size);
	return text;
}

void report_progress(const struct setting *s)
{
	if (!isatty(STDERR_FILENO))
		return;
	report_end_progress();
	fprintf(stderr, "%s %s ...", tests[s->test].name, size_text(s->size));
	fflush(stderr);
	report.progress = true;
}

void report_end_progress(void)
{
	if (report.progress)
		fputs("\r\033[K", stderr);
	fflush(stderr);
	report.progress = false;
}

void report_use(bool gigabits, bool timed, bool datagrams)
{
	report.datagrams = datagrams;
	report.gigabits = gigabits;
	report.timed = timed;
}

double report_rate(double bytes)
{
	return report.gigabits ? bytes * 8 / 1e9 : bytes / 1e6;
}

const char *report_rate_name(void)
{
	return report.gigabits ? "Gbit/s" : "MB/s";
}

int report_decimals(void)
{
	return report.gigabits ? 3 : 1;
}

/* Prints the time at the begin of a line, if lines have it. */
static void print_time(const char *behind)
{
	char date[ORIGIN_DATE], host[ORIGIN_HOST];

	if (!report.timed)
		return;
	origin_read(date, host);
	printf("%s%s", date, behind);
}

const char *report_mark(const struct result *r)
{
	report.marked |= r->shared;
	return r->shared ? " *" : "";
}

/* Writes "IA, connected to PEER over CARRIER, N threads, N endpoints each, SRQ". */
static void describe(char *text, size_t size, const struct group *g, const char *peer)
{
	char threads[32] = "", endpoints[32] = "";

	if (g->threads > 1)
		snprintf(threads, sizeof threads, ", %u threads", g->threads);
	if (g->endpoints > 1)
		snprintf(endpoints, sizeof endpoints, ", %u endpoints%s", g->endpoints,
			 g->threads > 1 ? " each" : "");
	snprintf(text, size, "%s, connected to %s%s%s%s%s%s", g->adapter.name, peer, *g->carrier ? " over " : "",
		 g->carrier, threads, endpoints, g->srq ? ", SRQ" : "");
}

static void print_json_origin(void)
{
	char date[ORIGIN_DATE], host[ORIGIN_HOST];

	origin_read(date, host);
	printf(",\n  \"date\": \"%s\", \"host\": ", date);
	cli_print_json_string(host);
	printf(", \"version\": \"%s\"", tools_version);
}

static void print_json_side(const char *name, const struct side *s)
{
	printf(",\n  \"%s\": { \"host\": ", name);
	cli_print_json_string(s->host);
	printf(", \"version\": ");
	cli_print_json_string(s->version);
	printf(", \"processors\": ");
	cli_print_json_string(s->processors);
	printf(", \"numa_nodes\": ");
	cli_print_json_string(s->nodes);
	if (*s->governor) {
		printf(", \"governor\": ");
		cli_print_json_string(s->governor);
	}
	printf(" }");
}

static void begin_json(struct group *g, const char *peer, const char *no_verbs)
{
	struct side client, server = measure_server_side(g);

	side_read(&client);
	printf("{ \"ia\": ");
	cli_print_json_string(g->adapter.name);
	printf(", \"peer\": ");
	cli_print_json_string(peer);
	if (*g->carrier) {
		printf(", \"carrier\": ");
		cli_print_json_string(g->carrier);
	}
	print_json_origin();
	print_json_side("client", &client);
	print_json_side("server", &server);
	printf(", \"data_checked\": true,\n  \"threads\": %u, \"endpoints\": %u, \"srq\": %s,\n",
	       g->threads, g->endpoints, g->srq ? "true" : "false");
	if (no_verbs) {
		printf("  \"verbs_left_out\": ");
		cli_print_json_string(no_verbs);
		printf(",\n");
	}
	printf("  \"results\": [");
}

static void begin_csv(const char *no_verbs)
{
	printf("%stest,bytes,rounds,min_us,median_us,mean_us,p99_us,p999_us,max_us,"
	       "bytes_per_second,messages_per_second%s%s\n",
	       report.timed ? "date," : "", report.datagrams ? ",lost" : "",
	       report.compares ? ",tcp_us,tcp_bytes_per_second,memcpy_bytes_per_second,verbs_us,"
				 "verbs_bytes_per_second"
			       : "");
	if (no_verbs)
		fprintf(stderr, "datperf: raw verbs left out, %s\n", no_verbs);
}

void report_begin(enum format format, struct group *g, const char *peer, bool compares,
		  const char *no_verbs)
{
	const char *text = report.title;

	describe(report.title, sizeof report.title, g, peer);
	plot_set_title(text);
	report.format = format;
	report.compares = compares;
	report.verbs = compares && !no_verbs;
	report.endpoints = g->endpoints;
	report.threads = g->threads;
	report.rows = 0;
	report.table = -1;
	switch (format) {
	case FORMAT_JSON: begin_json(g, peer, no_verbs); break;
	case FORMAT_CSV: begin_csv(no_verbs); break;
	case FORMAT_LIMITS: break;
	case FORMAT_TABLE:
		printf("datperf: %s\nversion %s\n", text, tools_version);
		if (no_verbs)
			printf("raw verbs left out, %s\n", no_verbs);
		break;
	}
	fflush(stdout);
}

static const char *wake_text(enum wake wake)
{
	return wake == WAKE_POLL ? "polling" : wake == WAKE_WAIT ? "waiting" : "waiting for a CNO";
}

/* Returns the columns of the time in front of a line. */
static int time_width(void)
{
	return report.timed ? (int)strlen("2026-01-31T23:59:59Z ") : 0;
}

static void print_lost_heading(const struct test_info *test)
{
	if (test->datagrams)
		printf("       lost  lost %%");
}

static void open_table(const struct setting *s)
{
	const struct test_info *test = &tests[s->test];

	report.table = s->test;
	printf("\n%s: %s", test->name, test->title);
	if (test->kind == KIND_BANDWIDTH) {
		printf(", up to %u at a time%s%s\n%*s     bytes   messages %10s  messages/s", s->depth,
		       report.endpoints * report.threads > 1 ? " of each endpoint" : "",
		       s->both_ways ? ", both ways together" : "", time_width(), "", report_rate_name());
		print_lost_heading(test);
		if (report.compares)
			printf(report.gigabits ? " TCP Gbit/s memcpy Gbit/s" : "   TCP MB/s  memcpy MB/s");
		printf("%s\n", !report.verbs ? "" : report.gigabits ? " verbs Gb/s" : "  verbs MB/s");
		return;
	}
	printf(", %s, us\n%*s     bytes     rounds     min  median    mean    99 %%  99.9 %%       "
	       "max",
	       test->kind == KIND_CONNECT ? "until established" : wake_text(s->wake), time_width(), "");
	print_lost_heading(test);
	if (test->kind == KIND_CONNECT)
		printf("  connections/s\n");
	else
		printf("%s%s\n", report.compares ? "     TCP" : "", report.verbs ? "   verbs" : "");
}

/* Prints a column of a table; "-" if there is no value. */
static void print_cell(double value, int width, int decimals)
{
	if (value > 0)
		printf(" %*.*f", width, decimals, value);
	else
		printf(" %*s", width, "-");
}

static void print_comparison(const struct setting *s, const struct comparison *c)
{
	if (tests[s->test].kind == KIND_BANDWIDTH) {
		print_cell(report_rate(c->tcp_bytes), 10, report_decimals());
		print_cell(report_rate(c->memcpy_bytes), 12, report_decimals());
		if (report.verbs)
			print_cell(report_rate(c->verbs_bytes), 11, report_decimals());
	} else {
		print_cell(c->tcp_us, 7, 2);
		if (report.verbs)
			print_cell(c->verbs_us, 7, 2);
	}
}

static void print_row(const struct setting *s, const struct result *r, const struct comparison *c)
{
	const struct stats *t = &r->latency;

	if (report.table != (int)s->test)
		open_table(s);
	print_time(" ");
	if (tests[s->test].kind == KIND_BANDWIDTH)
		printf("%10s %10u %10.*f %11.0f", size_text(s->size), t->count, report_decimals(),
		       report_rate(r->bytes), r->messages);
	else
		printf("%10s %10u %7.2f %7.2f %7.2f %7.2f %7.2f %9.2f", size_text(s->size),
		       t->count, t->min, t->median, t->mean, t->p99, t->p999, t->max);
	if (tests[s->test].datagrams)
		printf(" %10u %7.3f", r->lost, 100.0 * r->lost / t->count);
	if (tests[s->test].kind == KIND_CONNECT)
		printf(" %14.0f", r->messages);
	else if (report.compares)
		print_comparison(s, c);
	puts(report_mark(r));
}

/* Prints a column of CSV; empty if the value does not apply. */
static void print_column(double value, int decimals)
{
	putchar(',');
	if (value > 0)
		printf("%.*f", decimals, value);
}

static void print_csv(const struct setting *s, const struct result *r, const struct comparison *c)
{
	const struct stats *t = &r->latency;

	print_time(",");
	printf("%s,%zu,%u", tests[s->test].name, s->size, t->count);
	if (tests[s->test].kind == KIND_BANDWIDTH)
		printf(",,,,,,,%.0f,%.1f", r->bytes, r->messages);
	else
		printf(",%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,,%.1f", t->min, t->median, t->mean, t->p99,
		       t->p999, t->max, r->messages);
	if (tests[s->test].datagrams)
		printf(",%u", r->lost);
	else if (report.datagrams)
		putchar(',');
	if (report.compares) {
		print_column(c->tcp_us, 3);
		print_column(c->tcp_bytes, 0);
		print_column(c->memcpy_bytes, 0);
		print_column(c->verbs_us, 3);
		print_column(c->verbs_bytes, 0);
	}
	putchar('\n');
}

static void draw_histogram(const struct histogram *h)
{
	uint32_t most = 1;

	for (unsigned i = 0; i < h->buckets; i++)
		if (h->counts[i] > most)
			most = h->counts[i];
	for (unsigned i = 0; i < h->buckets; i++) {
		int bar = (int)((double)h->counts[i] * BAR / most + 0.5);

		printf("  from %8.2f us %8u  %.*s\n", h->from[i], h->counts[i], bar,
		       "##################################################");
	}
}

static void print_json_histogram(const struct histogram *h)
{
	printf(",\n      \"histogram\": [");
	for (unsigned i = 0; i < h->buckets; i++)
		printf("%s { \"from_us\": %.3f, \"count\": %u }", i ? "," : "", h->from[i],
		       h->counts[i]);
	printf(" ]");
}

static void print_json(const struct setting *s, const struct result *r, const struct comparison *c,
		       bool histogram)
{
	const struct stats *t = &r->latency;

	printf("%s\n    { \"test\": \"%s\", \"bytes\": %zu, \"rounds\": %u", report.rows ? "," : "",
	       tests[s->test].name, s->size, t->count);
	if (report.timed) {
		printf(", \"date\": \"");
		print_time("\"");
	}
	if (tests[s->test].kind == KIND_BANDWIDTH)
		printf(", \"depth\": %u, \"both_ways\": %s, \"bytes_per_second\": %.0f", s->depth,
		       s->both_ways ? "true" : "false", r->bytes);
	else
		printf(", \"min_us\": %.3f, \"median_us\": %.3f, \"mean_us\": %.3f, \"p99_us\": "
		       "%.3f, "
		       "\"p999_us\": %.3f, \"max_us\": %.3f",
		       t->min, t->median, t->mean, t->p99, t->p999, t->max);
	printf(", \"messages_per_second\": %.1f", r->messages);
	if (tests[s->test].datagrams)
		printf(", \"lost\": %u", r->lost);
	if (c->tcp_us > 0)
		printf(", \"tcp_us\": %.3f", c->tcp_us);
	if (c->tcp_bytes > 0)
		printf(", \"tcp_bytes_per_second\": %.0f", c->tcp_bytes);
	if (c->memcpy_bytes > 0)
		printf(", \"memcpy_bytes_per_second\": %.0f", c->memcpy_bytes);
	if (c->verbs_us > 0)
		printf(", \"verbs_us\": %.3f", c->verbs_us);
	if (c->verbs_bytes > 0)
		printf(", \"verbs_bytes_per_second\": %.0f", c->verbs_bytes);
	printf(", \"client_preempted\": %llu, \"server_preempted\": %llu, \"shared_processor\": %s",
	       (unsigned long long)r->client_preempted, (unsigned long long)r->server_preempted,
	       r->shared ? "true" : "false");
	printf(", \"client_processors_used\": %.3f, \"server_processors_used\": %.3f", r->client_load, r->server_load);
	if (histogram)
		print_json_histogram(&r->histogram);
	printf(" }");
}

static void draw_result(const struct setting *s, const struct result *r, const struct comparison *c)
{
	const struct test_info *test = &tests[s->test];
	enum plot_value kind = r->shared ? PLOT_DISTURBED : PLOT_RESULT;

	if (test->kind == KIND_LATENCY) {
		plot_add(PLOT_LATENCY, test->name, kind, s->size, r->latency.median);
		plot_add(PLOT_LATENCY, test->verbs, PLOT_COMPARISON, s->size, c->verbs_us);
		plot_add(PLOT_LATENCY, "TCP", PLOT_COMPARISON, s->size, c->tcp_us);
	} else if (test->kind == KIND_BANDWIDTH) {
		plot_add(PLOT_BANDWIDTH, test->name, kind, s->size, r->bytes / 1e6);
		plot_add(PLOT_BANDWIDTH, test->verbs, PLOT_COMPARISON, s->size, c->verbs_bytes / 1e6);
		plot_add(PLOT_BANDWIDTH, "TCP", PLOT_COMPARISON, s->size, c->tcp_bytes / 1e6);
		plot_add(PLOT_BANDWIDTH, "memcpy", PLOT_COMPARISON, s->size, c->memcpy_bytes / 1e6);
	}
}

void report_result(const struct setting *s, const struct result *r, const struct comparison *c,
		   bool histogram)
{
	report_end_progress();
	switch (report.format) {
	case FORMAT_TABLE: print_row(s, r, c); break;
	case FORMAT_CSV: print_csv(s, r, c); break;
	case FORMAT_JSON: print_json(s, r, c, histogram); break;
	case FORMAT_LIMITS: break;
	}
	if (histogram && report.format == FORMAT_TABLE)
		draw_histogram(&r->histogram);
	report.rows++;
	fflush(stdout);
	draw_result(s, r, c);
	limits_note(s, r);
}

void report_skipped(enum test test, const char *why)
{
	report_end_progress();
	if (report.format == FORMAT_TABLE)
		printf("\n%s: left out, %s\n", tests[test].name, why);
	else
		fprintf(stderr, "datperf: %s left out, %s\n", tests[test].name, why);
}

void report_larger_left_out(enum test test, size_t limit)
{
	char why[96];

	snprintf(why, sizeof why, tests[test].datagrams ? "sizes above %s: the MTU of a side" :
		 "sizes above %s: a side has no more device memory", size_text(limit));
	report_skipped(test, why);
}

void report_end(bool interrupted, const struct limits *limits)
{
	report_end_progress();
	if (report.marked)
		printf("\n* a side was preempted: it shared its processor with the other side or another program\n");
	if (report.format == FORMAT_JSON) {
		printf(" ],\n  \"interrupted\": %s", interrupted ? "true" : "false");
		if (limits_given(limits))
			limits_print_json(limits);
		printf(" }\n");
		return;
	}
	if (limits_given(limits)) {
		if (report.format == FORMAT_TABLE)
			putchar('\n');
		else
			fprintf(report.format == FORMAT_CSV ? stderr : stdout, "datperf: %s: ", report.title);
		limits_print(report.format == FORMAT_CSV ? stderr : stdout, limits);
	}
	if (interrupted)
		fprintf(stderr, "datperf: interrupted; the results above are complete\n");
}
