/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* metrics.c - see metrics.h. Each family of metrics is a table row or a function; a series has the labels of the IA
 * that it belongs to. A value of 0 is printed, because a series that appears late has no first increase. */
#include "tools/info/metrics.h"
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/control/owner.h"
#include "tools/info/output.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One value of a family: the sum of some counters of an IA ("totals": those of its endpoints). */
struct series {
	const char *label;	/* the value of the label of the family */
	const char *counters[5];
};

struct family {
	const char *name, *type, *help, *label;
	const char *member;	/* "totals" or "counters" of an IA's answer */
	struct series series[10];
};

static const struct family families[] = {
	{ "dapl_bytes_total", "counter", "Bytes that the program posted or received.", "operation", "totals", {
		{ "send", { "POST_SEND_DATA", "POST_SEND_UD_DATA" } },
		{ "write", { "POST_WRITE_DATA", "POST_WRITE_IMM_DATA" } },
		{ "read", { "POST_READ_DATA" } },
		{ "receive", { "RECV_DATA", "RECV_UD_DATA", "RECV_IMM_DATA" } } } },
	{ "dapl_messages_total", "counter", "Operations that the program posted, and messages that it received.",
	  "operation", "totals", {
		{ "send", { "POST_SEND", "POST_SEND_UD" } },
		{ "write", { "POST_WRITE", "POST_WRITE_IMM" } },
		{ "read", { "POST_READ" } },
		{ "atomic", { "POST_CMP_SWAP", "POST_FETCH_ADD" } },
		{ "receive", { "RECV", "RECV_UD", "RECV_IMM", "RECV_RDMA_IMM" } } } },
	{ "dapl_connections_total", "counter", "Connections that were established.", "side", "counters", {
		{ "active", { "CM_ACTIVE_EST" } },
		{ "passive", { "CM_PASSIVE_EST" } } } },
	{ "dapl_connection_failures_total", "counter", "Connections that were not established, or were broken.",
	  "cause", "counters", {
		{ "refused", { "CM_ERR_REFUSED" } },
		{ "rejected", { "CM_USER_REJ_RX" } },
		{ "timeout", { "CM_ERR_TIMEOUT" } },
		{ "broken", { "CM_ERR_RESET" } } } },
	{ "dapl_requests_refused_total", "counter", "Connection requests of peers that were refused.",
	  "by", "counters", {
		{ "program", { "CM_USER_REJ_TX" } },
		{ "provider", { "CM_ERR_REJ_TX" } } } },
	{ "dapl_async_errors_total", "counter", "Errors of queue pairs and completion queues from the device.",
	  "object", "counters", {
		{ "qp", { "ASYNC_QP_ERROR" } },
		{ "cq", { "ASYNC_CQ_ERROR" } } } },
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

static void print_series(FILE *out, const struct family *family, const struct series *series, const json_t *answer,
			 const json_t *ia)
{
	const json_t *counters = json_object_get(ia, family->member);
	long long sum = 0;

	for (int c = 0; series->counters[c]; c++)
		sum += json_integer_value(json_object_get(counters, series->counters[c]));
	print_ia(out, family->name, answer, output_get(ia, "name"));
	print_label(out, ",", "handle", output_get(ia, "object"));
	print_label(out, ",", family->label, series->label);
	print_value(out, sum);
}

static void print_family(FILE *out, const struct family *family, const json_t *answers)
{
	json_t *answer, *ia;
	size_t i, j;

	print_head(out, family->name, family->type, family->help);
	json_array_foreach(answers, i, answer)
		json_array_foreach(json_object_get(answer, "ias"), j, ia)
			for (const struct series *series = family->series; series->label; series++)
				print_series(out, family, series, answer, ia);
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
