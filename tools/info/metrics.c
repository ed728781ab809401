/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* metrics.c - see metrics.h. Each family of metrics is a table row or a function; a series has the labels of the IA
 * that it belongs to. A value of 0 is printed, because a series that appears late has no first increase. */
#include "tools/info/metrics.h"
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/control/owner.h"
#include "tools/info/output.h"
#include "tools/info/traffic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One value of a family: a counter of an IA. */
struct series {
	const char *label;	/* the value of the label of the family */
	const char *counter;
};

struct family {
	const char *name, *type, *help, *label;
	struct series series[10];
};

static const struct family families[] = {
	{ "dapl_connections_total", "counter", "Connections that were established.", "side", {
		{ "active", "CM_ACTIVE_EST" },
		{ "passive", "CM_PASSIVE_EST" } } },
	{ "dapl_connection_failures_total", "counter", "Connections that were not established, or were broken.",
	  "cause", {
		{ "refused", "CM_ERR_REFUSED" },
		{ "rejected", "CM_USER_REJ_RX" },
		{ "timeout", "CM_ERR_TIMEOUT" },
		{ "broken", "CM_ERR_RESET" } } },
	{ "dapl_requests_refused_total", "counter", "Connection requests of peers that were refused.",
	  "by", {
		{ "program", "CM_USER_REJ_TX" },
		{ "provider", "CM_ERR_REJ_TX" } } },
	{ "dapl_async_errors_total", "counter", "Errors of queue pairs and completion queues from the device.",
	  "object", {
		{ "qp", "ASYNC_QP_ERROR" },
		{ "cq", "ASYNC_CQ_ERROR" } } },
};
enum { FAMILIES = sizeof families / sizeof *families };

/* --- the text format ----------------------------------------------------------------------- */

/* Prints a label. Its value has escapes for backslash, quotation mark and newline; output_get() made it UTF-8. */
static void print_label(FILE *out, const char *before, const char *name, const char *value)
{
	fprintf(out, "%s%s=\"", before, name);
	for (; *value; value++)
		if (*value == '\n')
			fputs("\\n", out);
		else
			fprintf(out, "%s%c", *value == '\\' || *value == '"' ? "\\" : "", *value);
	putc('"', out);
}

/* Prints the name of a series and the labels of the IA. Another label may follow, then print_value(). */
static void print_ia(FILE *out, const char *name, const json_t *answer, const char *adapter)
{
	long long pid = json_integer_value(json_object_get(answer, "pid"));
	char number[24], user[OWNER_NAME];

	snprintf(number, sizeof number, "%lld", pid);
	print_label(out, name, "{adapter", adapter);
	print_label(out, ",", "program", output_get(answer, "program"));
	print_label(out, ",", "pid", number);
	print_label(out, ",", "user", owner_user(user, (pid_t)pid));
}

static void print_value(FILE *out, long long value)
{
	fprintf(out, "} %lld\n", value);
}

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* --- counters -------------------------------------------------------------------------------- */

static void print_series(FILE *out, const char *family, const char *label, const char *label_value,
			 const json_t *answer, const json_t *ia, long long value)
{
	print_ia(out, family, answer, output_get(ia, "name"));
	print_label(out, ",", "handle", output_get(ia, "object"));
	print_label(out, ",", label, label_value);
	print_value(out, value);
}

static void print_family(FILE *out, const struct family *family, const json_t *answers)
{
	json_t *answer, *ia;
	size_t i, j;

	print_head(out, family->name, family->type, family->help);
	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "ias"), j, ia)
			for (const struct series *series = family->series; series->label; series++)
				print_series(out, family->name, family->label, series->label, answer, ia,
					     json_integer_value(json_object_get(json_object_get(ia, "counters"),
										series->counter)));
}

/* Prints the sums over all endpoints that an IA has, or had, for each operation. */
static void print_traffic(FILE *out, const char *name, const char *help,
			  int64_t (*sum)(const json_t *totals, enum traffic operation), const json_t *answers)
{
	json_t *answer, *ia;
	size_t i, j;

	print_head(out, name, "counter", help);
	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "ias"), j, ia)
			for (int t = 0; t < TRAFFIC_OPERATIONS; t++)
				if (sum != traffic_bytes || t != TRAFFIC_ATOMIC)
					print_series(out, name, "operation", traffic_name((enum traffic)t), answer, ia,
						     sum(json_object_get(ia, "totals"), (enum traffic)t));
}

/* --- endpoints ------------------------------------------------------------------------------- */

/* Returns the beginning of the line for endpoints like this one, to be freed. */
static char *series_of(const json_t *answer, const json_t *endpoint)
{
	static const char *const labels[] = { "type", "state", "carrier" };
	size_t length;
	char *text = NULL;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		fail("there is no memory left");
	print_ia(out, "dapl_endpoints", answer, output_get(endpoint, "ia"));
	for (size_t l = 0; l < sizeof labels / sizeof *labels; l++)
		print_label(out, ",", labels[l], output_get(endpoint, labels[l]));
	if (fclose(out) != 0)
		fail("there is no memory left");
	return text;
}

static void count_endpoint(json_t *counts, const json_t *answer, const json_t *endpoint)
{
	char *series = series_of(answer, endpoint);

	output_set(counts, series, json_integer(json_integer_value(json_object_get(counts, series)) + 1));
	free(series);
}

static void print_endpoints(FILE *out, const json_t *answers)
{
	json_t *counts = json_object(), *answer, *endpoint, *count;
	const char *series;
	size_t i, j;

	print_head(out, "dapl_endpoints", "gauge", "Endpoints by state, and what carries their data.");
	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "endpoints"), j, endpoint)
			count_endpoint(counts, answer, endpoint);
	json_object_foreach(counts, series, count) {
		fputs(series, out);
		print_value(out, json_integer_value(count));
	}
	json_decref(counts);
}

/* --- all of them ------------------------------------------------------------------------------ */

char *metrics_text(size_t *length)
{
	json_t *counters = control_ask_all(0, CONTROL_COUNTERS, NULL);
	json_t *endpoints = control_ask_all(0, CONTROL_ENDPOINTS, NULL);
	char *text = NULL;
	FILE *out = open_memstream(&text, length);

	if (!out)
		fail("there is no memory left");
	print_head(out, "dapl_programs", "gauge", "Provider libraries of running programs that have an adapter open.");
	fprintf(out, "dapl_programs %zu\n", json_array_size(counters));
	print_traffic(out, "dapl_bytes_total", "Bytes that the program posted or received.", traffic_bytes, counters);
	print_traffic(out, "dapl_messages_total", "Operations that the program posted, and messages that it received.",
		      traffic_messages, counters);
	for (int f = 0; f < FAMILIES; f++)
		print_family(out, &families[f], counters);
	print_endpoints(out, endpoints);
	json_decref(counters);
	json_decref(endpoints);
	if (fclose(out) != 0)
		fail("there is no memory left");
	return text;
}

int metrics_print(void)
{
	size_t length;
	char *text = metrics_text(&length);

	fwrite(text, 1, length, stdout);
	free(text);
	return 0;
}
