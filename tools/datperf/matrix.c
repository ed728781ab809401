/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* matrix.c - see matrix.h; matrix_draw() is in heatmap.c. */
#include "matrix.h"
#include "../cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double FACTOR = 1.5;	/* more than that is no scatter of one fabric any more */

const struct pair *matrix_pair(const struct matrix *m, int a, int b)
{
	return a == b ? NULL : a < b ? &m->pairs[a][b] : &m->pairs[b][a];
}

/* --- the verdict ------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns what a quarter of the pairs reaches: the latency that they do not exceed, or their least bandwidth. The
 * median would be that of a slow host where there are three hosts, as two of the three pairs have it. */
static double usual(const struct matrix *m, bool latency)
{
	static double values[MATRIX_HOSTS * MATRIX_HOSTS];
	int n = 0;

	for (int a = 0; a < m->count; a++)
		for (int b = a + 1; b < m->count; b++)
			if (m->pairs[a][b].measured)
				values[n++] = latency ? m->pairs[a][b].latency : m->pairs[a][b].bytes;
	qsort(values, (size_t)n, sizeof *values, by_value);
	return !n ? 0 : latency ? values[n / 4] : values[n - 1 - n / 4];
}

/* Counts the pairs that were measured, those with the host or those without it, and the slow ones among them. */
static int count_pairs(const struct matrix *m, int host, bool with, int *slow)
{
	int n = 0;

	*slow = 0;
	for (int a = 0; a < m->count; a++)
		for (int b = a + 1; b < m->count; b++) {
			if (!m->pairs[a][b].measured || (a == host || b == host) != with)
				continue;
			n++;
			*slow += m->pairs[a][b].slow;
		}
	return n;
}

void matrix_judge(struct matrix *m)
{
	double latency = usual(m, true), bytes = usual(m, false);

	for (int a = 0; a < m->count; a++)
		for (int b = a + 1; b < m->count; b++) {
			struct pair *p = &m->pairs[a][b];

			p->slow = p->measured && (p->latency > FACTOR * latency || p->bytes * FACTOR < bytes);
		}
	for (int h = 0; h < m->count; h++) {
		int slow_with, slow_without;
		int with = count_pairs(m, h, true, &slow_with), without = count_pairs(m, h, false, &slow_without);

		m->slow[h] = with > 1 && slow_with == with && slow_without < without;
	}
}

static bool pair_keeps(const struct pair *p, const struct limits *limits)
{
	return p->measured && (!(limits->latency > 0) || p->latency <= limits->latency) &&
	       (!(limits->bandwidth > 0) || p->bytes * 8 >= limits->bandwidth);
}

bool matrix_keeps(const struct matrix *m, const struct limits *limits)
{
	for (int a = 0; a < m->count; a++)
		for (int b = a + 1; b < m->count; b++)
			if (!pair_keeps(&m->pairs[a][b], limits))
				return false;
	return true;
}

/* --- the output -------------------------------------------------------------------- */

static void print_table(const struct matrix *m, bool latency)
{
	printf("\n%s\n%12s", latency ? "latency of 8 bytes (send-lat, median), us" :
	       "bandwidth of 1 MiB (write-bw), Gbit/s", "");
	for (int b = 0; b < m->count; b++)
		printf(" %10.10s", m->hosts[b]);
	putchar('\n');
	for (int a = 0; a < m->count; a++) {
		printf("%-12.12s", m->hosts[a]);
		for (int b = 0; b < m->count; b++) {
			const struct pair *p = matrix_pair(m, a, b);

			if (!p || !p->measured)
				printf(" %10s", p ? "failed" : "-");
			else
				printf(" %9.2f%s", latency ? p->latency : p->bytes * 8 / 1e9, p->slow ? "*" : " ");
		}
		putchar('\n');
	}
}

static void print_pair(const struct matrix *m, int a, int b)
{
	const struct pair *p = &m->pairs[a][b];

	printf("%s - %s: %.2f us, %.2f Gbit/s", m->hosts[a], m->hosts[b], p->latency, p->bytes * 8 / 1e9);
}

void matrix_print(const struct matrix *m, const struct limits *limits)
{
	print_table(m, true);
	print_table(m, false);
	if (usual(m, true) > 0)
		printf("\na quarter of the pairs reaches %.2f us, %.2f Gbit/s\n", usual(m, true),
		       usual(m, false) * 8 / 1e9);
	else
		printf("\nno pair was measured\n");
	for (int h = 0; h < m->count; h++)
		if (m->slow[h])
			printf("slow host: %s\n", m->hosts[h]);
	for (int a = 0; a < m->count; a++)
		for (int b = a + 1; b < m->count; b++) {
			if (!m->pairs[a][b].slow || m->slow[a] || m->slow[b])
				continue;
			printf("slow pair: ");
			print_pair(m, a, b);
			putchar('\n');
		}
	for (int a = 0; limits_given(limits) && a < m->count; a++)
		for (int b = a + 1; b < m->count; b++)
			if (m->pairs[a][b].measured && !pair_keeps(&m->pairs[a][b], limits)) {
				printf("outside the limits: ");
				print_pair(m, a, b);
				putchar('\n');
			}
}

static void print_json_pair(const struct matrix *m, int a, int b, const struct limits *limits)
{
	const struct pair *p = &m->pairs[a][b];

	printf("{ \"client\": ");
	cli_print_json_string(m->hosts[a]);
	printf(", \"server\": ");
	cli_print_json_string(m->hosts[b]);
	printf(", \"measured\": %s", p->measured ? "true" : "false");
	if (p->measured)
		printf(", \"latency_us\": %.3f, \"bytes_per_second\": %.0f, \"slow\": %s", p->latency, p->bytes,
		       p->slow ? "true" : "false");
	if (limits_given(limits))
		printf(", \"kept\": %s", pair_keeps(p, limits) ? "true" : "false");
	printf(" }");
}

static void print_json_hosts(const struct matrix *m, bool slow_only)
{
	int n = 0;

	for (int h = 0; h < m->count; h++)
		if (!slow_only || m->slow[h]) {
			printf("%s", n++ ? ", " : " ");
			cli_print_json_string(m->hosts[h]);
		}
	printf(" ]");
}

void matrix_print_json(const struct matrix *m, const struct limits *limits)
{
	int n = 0;

	printf("{ \"hosts\": [");
	print_json_hosts(m, false);
	printf(",\n  \"pairs\": [");
	for (int a = 0; a < m->count; a++)
		for (int b = a + 1; b < m->count; b++) {
			printf("%s\n    ", n++ ? "," : "");
			print_json_pair(m, a, b, limits);
		}
	printf(" ],\n  \"slow_hosts\": [");
	print_json_hosts(m, true);
	printf(" }\n");
}
