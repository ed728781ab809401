/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* limits.c - see limits.h. */
#include "limits.h"
#include "report.h"

/* The worst result of each kind; `test` is TESTS until there is one. */
static struct worst {
	enum test test;
	size_t size;
	double value; /* us or bits a second */
	bool shared;
} highest_latency = { .test = TESTS }, lowest_bandwidth = { .test = TESTS };

bool limits_given(const struct limits *l)
{
	return l->latency > 0 || l->bandwidth > 0;
}

static void keep(struct worst *w, const struct setting *s, const struct result *r, double value)
{
	*w = (struct worst){ .test = s->test, .size = s->size, .value = value, .shared = r->shared };
}

void limits_note(const struct setting *s, const struct result *r)
{
	double bits = r->bytes * 8;

	if (tests[s->test].kind == KIND_LATENCY &&
	    (highest_latency.test == TESTS || r->latency.median > highest_latency.value))
		keep(&highest_latency, s, r, r->latency.median);
	if (tests[s->test].kind == KIND_BANDWIDTH &&
	    (lowest_bandwidth.test == TESTS || bits < lowest_bandwidth.value))
		keep(&lowest_bandwidth, s, r, bits);
}

static bool latency_kept(const struct limits *l)
{
	return !(l->latency > 0) || (highest_latency.test != TESTS && highest_latency.value <= l->latency);
}

static bool bandwidth_kept(const struct limits *l)
{
	return !(l->bandwidth > 0) || (lowest_bandwidth.test != TESTS && lowest_bandwidth.value >= l->bandwidth);
}

bool limits_kept(const struct limits *l)
{
	return latency_kept(l) && bandwidth_kept(l);
}

static void print_worst(FILE *f, const char *what, const struct worst *w, double unit, const char *unit_name)
{
	if (w->test == TESTS)
		fprintf(f, "no %s was measured", what);
	else
		fprintf(f, "%s %.2f %s (%s, %s%s)", what, w->value / unit, unit_name, tests[w->test].name,
			size_text(w->size), w->size < 1 << 10 ? " bytes" : "");
}

void limits_print(FILE *f, const struct limits *l)
{
	fprintf(f, "%s: ", limits_kept(l) ? "within the limits" : "outside the limits");
	if (l->latency > 0) {
		print_worst(f, "latency", &highest_latency, 1, "us");
		fprintf(f, ", at most %.10g us%s", l->latency, l->bandwidth > 0 ? "; " : "");
	}
	if (l->bandwidth > 0) {
		print_worst(f, "bandwidth", &lowest_bandwidth, 1e9, "Gbit/s");
		fprintf(f, ", at least %.10g Gbit/s", l->bandwidth / 1e9);
	}
	fprintf(f, "%s\n", (l->latency > 0 && highest_latency.shared) || (l->bandwidth > 0 && lowest_bandwidth.shared) ?
		"; a side shared its processor" : "");
}

void limits_print_json(const struct limits *l)
{
	printf(",\n  \"limits\": { ");
	if (l->latency > 0)
		printf("\"max_latency_us\": %.10g, ", l->latency);
	if (l->bandwidth > 0)
		printf("\"min_bits_per_second\": %.10g, ", l->bandwidth);
	printf("\"kept\": %s }", limits_kept(l) ? "true" : "false");
}
