/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plot.c - draws the chart of --plot (plot.h). Coordinates are pixels, from the top left corner. */
#include "plot.h"
#include "origin.h"
#include "report.h"
#include "whole_file.h"
#include "../cli.h"
#include "../version.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	WIDTH = 860,
	HEAD = 50,    /* the title */
	PANEL = 380,  /* height of a diagram with its labels */
	LEFT = 80,    /* the labels of the y axis */
	RIGHT = 150,  /* the legend */
	TOP = 20,     /* above the frame of a diagram */
	FOOT = 30,    /* when and where */
	BOTTOM = 60,  /* the labels of the x axis */
	LABEL = 60,   /* least distance of labels on the x axis */
	Y_TICKS = 6,  /* approximate number, on a linear axis */
	DECADES = 3,  /* on a logarithmic axis: with more, only powers of ten have labels */
	LOG_FROM = 10 /* a greater ratio of largest to least value makes the y axis logarithmic */
};

struct point {
	size_t bytes;
	double value;
	bool disturbed;
};

struct series {
	const char *name;
	bool comparison;
	unsigned count;
	struct point points[PLOT_POINTS]; /* sorted by size */
};

static const struct {
	const char *label, *unit;
} panels[PLOT_PANELS] = {
	[PLOT_LATENCY] = { "latency (median), us", "us" },
	[PLOT_BANDWIDTH] = { "bandwidth, MB/s", "MB/s" },
};

static struct {
	struct whole_file file;	/* its name is NULL if there is no chart */
	bool written;
	int error;		/* errno value of the first write that failed */
	char title[512];
	struct {
		unsigned count;
		struct series series[PLOT_SERIES];
	} panels[PLOT_PANELS];
} plot;

/* --- elements ---------------------------------------------------------------- */

static void element(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void element(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(plot.file.file, fmt, args);
	va_end(args);
	fputc('\n', plot.file.file);
}

static void write_escaped(const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '<': fputs("&lt;", plot.file.file); break;
		case '>': fputs("&gt;", plot.file.file); break;
		case '&': fputs("&amp;", plot.file.file); break;
		default: fputc((unsigned char)*text < ' ' ? ' ' : *text, plot.file.file);
		}
}

/* anchor: "start", "middle" or "end". */
static void text_at(double x, double y, const char *anchor, const char *text)
{
	fprintf(plot.file.file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	write_escaped(text);
	fputs("</text>\n", plot.file.file);
}

/* --- axes -------------------------------------------------------------------- */

/* Maps values to pixels. */
struct axis {
	bool logarithmic;
	double least,
		most; /* values; of a logarithmic axis their logarithms, base 2 for x, 10 for y */
	double from, to; /* pixels */
};

static double place(const struct axis *a, double value)
{
	return a->from + (value - a->least) / (a->most - a->least) * (a->to - a->from);
}

static double x_of(const struct axis *a, size_t bytes)
{
	return place(a, log2((double)bytes));
}

static double y_of(const struct axis *a, double value)
{
	return place(a, a->logarithmic ? log10(value) : value);
}

/* Returns the least number, 1, 2 or 5 times a power of ten, that is not less than `value`. */
static double round_up(double value)
{
	double power = pow(10, floor(log10(value)));

	return value <= power       ? power
	       : value <= 2 * power ? 2 * power
	       : value <= 5 * power ? 5 * power
				    : 10 * power;
}

static double round_down(double value)
{
	double power = pow(10, floor(log10(value)));

	return value >= 5 * power ? 5 * power : value >= 2 * power ? 2 * power : power;
}

/* Returns the x axis, from a whole power of two to another. */
static struct axis x_axis(enum plot_panel panel)
{
	struct axis a = { true, INFINITY, 0, LEFT, WIDTH - RIGHT };

	for (unsigned i = 0; i < plot.panels[panel].count; i++) {
		const struct series *s = &plot.panels[panel].series[i];

		a.least = fmin(a.least, floor(log2((double)s->points[0].bytes)));
		a.most = fmax(a.most, ceil(log2((double)s->points[s->count - 1].bytes)));
	}
	if (a.least >= a.most) {
		a.most = a.least + 1;
		a.least = fmax(0, a.least - 1);
	}
	return a;
}

static struct axis y_axis(enum plot_panel panel, double top)
{
	double least = INFINITY, most = 0;
	struct axis a = { .from = top + PANEL - BOTTOM, .to = top + TOP };

	for (unsigned i = 0; i < plot.panels[panel].count; i++)
		for (unsigned k = 0; k < plot.panels[panel].series[i].count; k++) {
			double value = plot.panels[panel].series[i].points[k].value;

			least = fmin(least, value);
			most = fmax(most, value);
		}
	a.logarithmic = most > LOG_FROM * least;
	if (a.logarithmic) {
		a.least = log10(round_down(least));
		a.most = log10(round_up(most));
	} else {
		double step = round_up(most / Y_TICKS);

		a.most = ceil(most / step) * step;
	}
	return a;
}

static void draw_y_tick(const struct axis *x, const struct axis *y, double value)
{
	double at = y_of(y, value);
	char text[32];

	element("<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", x->from, at, x->to);
	snprintf(text, sizeof text, "%.7g", value);
	text_at(x->from - 8, at + 4, "end", text);
}

static void draw_y_ticks(const struct axis *x, const struct axis *y)
{
	static const int steps[] = { 1, 2, 5 };
	double step = round_up(y->most / Y_TICKS);

	if (!y->logarithmic)
		for (double value = 0; value < y->most + step / 2; value += step)
			draw_y_tick(x, y, value);
	for (int decade = (int)floor(y->least); y->logarithmic && decade <= y->most; decade++)
		for (int i = 0; i < (y->most - y->least > DECADES ? 1 : 3); i++) {
			double value = steps[i] * pow(10, decade), exponent = log10(value);

			/* includes both ends of the axis, in spite of rounding errors */
			if (exponent > y->least - 1e-6 && exponent < y->most + 1e-6)
				draw_y_tick(x, y, value);
		}
}

static void draw_x_ticks(const struct axis *x, const struct axis *y)
{
	double pixels = (x->to - x->from) / (x->most - x->least);
	int step = pixels >= LABEL ? 1 : (int)ceil(LABEL / pixels);

	for (int power = (int)x->least; power <= x->most; power += step) {
		double at = x_of(x, (size_t)1 << power);

		element("<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", at, y->from, y->to);
		text_at(at, y->from + 20, "middle", size_text((size_t)1 << power));
	}
}

/* --- diagrams ---------------------------------------------------------------- */

/* An operation has the same colour in both diagrams, and so has its comparison with raw verbs. These colours can be
 * distinguished with any kind of colour vision. */
static const char *colour_of(const char *series)
{
	static const struct {
		const char *part, *colour;
	} colours[] = {
		{ "send", "#0072b2" }, { "write", "#d55e00" }, { "immed", "#cc79a7" }, { "read", "#009e73" },
		{ "atomic", "#e69f00" }, { "TCP", "#56b4e9" }, { "memcpy", "#999999" }, { "ud-", "#000000" },
	};

	for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
		if (strstr(series, colours[i].part))
			return colours[i].colour;
	return "#000000";
}

static void draw_series(enum plot_panel panel, unsigned number, const struct axis *x,
			const struct axis *y)
{
	const struct series *s = &plot.panels[panel].series[number];
	double row = y->to + 10 + 20 * number;
	const char *dashes = s->comparison ? " stroke-dasharray=\"6 4\"" : "";

	element("<g stroke=\"%s\" fill=\"%s\">", colour_of(s->name), colour_of(s->name));
	fputs("<polyline fill=\"none\" stroke-width=\"2\" points=\"", plot.file.file);
	for (unsigned i = 0; i < s->count; i++)
		fprintf(plot.file.file, "%s%.1f,%.1f", i ? " " : "", x_of(x, s->points[i].bytes),
			y_of(y, s->points[i].value));
	element("\"%s/>", dashes);
	for (unsigned i = 0; i < s->count; i++)
		element("<circle r=\"%s cx=\"%.1f\" cy=\"%.1f\"><title>%s%s, %s bytes: %.7g "
			"%s</title></circle>",
			s->points[i].disturbed ? "4\" fill=\"#fff\"" : "3\"", x_of(x, s->points[i].bytes),
			y_of(y, s->points[i].value), s->name,
			s->points[i].disturbed ? ", a side shared its processor" : "", size_text(s->points[i].bytes),
			s->points[i].value, panels[panel].unit);
	element("<path fill=\"none\" stroke-width=\"2\" d=\"M%.1f %.1fh24\"%s/>", x->to + 12, row,
		dashes);
	element("</g>");
	text_at(x->to + 42, row + 4, "start", s->name);
}

static void draw_panel(enum plot_panel panel, double top)
{
	struct axis x = x_axis(panel), y = y_axis(panel, top);
	double middle = (y.from + y.to) / 2;

	draw_x_ticks(&x, &y);
	draw_y_ticks(&x, &y);
	element("<path fill=\"none\" stroke=\"#444\" d=\"M%.1f %.1fV%.1fH%.1f\"/>", x.from, y.to,
		y.from, x.to);
	text_at((x.from + x.to) / 2, y.from + 42, "middle", "bytes of a transfer");
	element("<text transform=\"translate(20 %.1f) rotate(-90)\" "
		"text-anchor=\"middle\">%s</text>",
		middle, panels[panel].label);
	for (unsigned i = 0; i < plot.panels[panel].count; i++)
		draw_series(panel, i, &x, &y);
}

static unsigned count_panels(void)
{
	unsigned count = 0;

	for (int i = 0; i < PLOT_PANELS; i++)
		count += plot.panels[i].count != 0;
	return count;
}

static bool has_disturbed(void)
{
	bool any = false;

	for (int p = 0; p < PLOT_PANELS; p++)
		for (unsigned i = 0; i < plot.panels[p].count; i++)
			for (unsigned k = 0; k < plot.panels[p].series[i].count; k++)
				any |= plot.panels[p].series[i].points[k].disturbed;
	return any;
}

static void draw_foot(double y)
{
	char date[ORIGIN_DATE], host[ORIGIN_HOST], text[sizeof date + sizeof host + 128];

	origin_read(date, host);
	snprintf(text, sizeof text, "%s, %s, datperf %s%s", date, host, tools_version,
		 has_disturbed() ? "; hollow points: a side shared its processor" : "");
	element("<g font-size=\"11\" fill=\"#666\">");
	text_at(LEFT, y, "start", text);
	element("</g>");
}

static void draw(void)
{
	unsigned count = count_panels();
	int height = HEAD + PANEL * (count ? (int)count : 1) + FOOT;
	double top = HEAD;

	element("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
	element("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 "
		"0 %d "
		"%d\" font-family=\"sans-serif\" font-size=\"13\">",
		WIDTH, height, WIDTH, height);
	element("<style>.grid { stroke: #ddd; fill: none; }</style>");
	element("<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>");
	element("<g font-size=\"16\">");
	text_at(LEFT, 30, "start", plot.title);
	element("</g>");
	if (!count)
		text_at(LEFT, HEAD + TOP, "start", "no results");
	for (int i = 0; i < PLOT_PANELS; i++)
		if (plot.panels[i].count) {
			draw_panel(i, top);
			top += PANEL;
		}
	draw_foot(height - FOOT / 2);
	element("</svg>");
}

/* --- the file ---------------------------------------------------------------- */

/* Keeps the first error. Measuring goes on, and plot_close() reports it. */
static void keep_error(void)
{
	if (!plot.error)
		plot.error = errno ? errno : EIO;
}

/* Replaces the file by a whole chart. If that fails, the file stays as it was. */
static void write_file(void)
{
	if (plot.error)
		return;
	if (!whole_file_begin(&plot.file)) {
		keep_error();
		return;
	}
	draw();
	if (whole_file_end(&plot.file))
		plot.written = true;
	else
		keep_error();
}

void plot_open(const char *path)
{
	whole_file_find(&plot.file, "--plot", path);
}

void plot_set_title(const char *title)
{
	snprintf(plot.title, sizeof plot.title, "%s", title);
}

bool plot_close(void)
{
	if (!plot.written)
		write_file();
	if (plot.error)
		cli_warn("--plot: %s: %s", plot.file.name, cli_write_error(plot.error));
	return !plot.error;
}

static struct series *find_series(enum plot_panel panel, const char *name)
{
	struct series *all = plot.panels[panel].series;

	for (unsigned i = 0; i < plot.panels[panel].count; i++)
		if (!strcmp(all[i].name, name))
			return &all[i];
	return plot.panels[panel].count < PLOT_SERIES ? &all[plot.panels[panel].count++] : NULL;
}

/* Inserts a value in the order of sizes, or replaces the value of the same size. */
static void add_point(struct series *s, struct point point)
{
	unsigned at = 0;

	while (at < s->count && s->points[at].bytes < point.bytes)
		at++;
	if (at == s->count || s->points[at].bytes != point.bytes) {
		if (s->count == PLOT_POINTS)
			return;
		memmove(&s->points[at + 1], &s->points[at], (s->count - at) * sizeof *s->points);
		s->count++;
	}
	s->points[at] = point;
}

void plot_add(enum plot_panel panel, const char *name, enum plot_value kind, size_t bytes, double value)
{
	struct series *s;

	if (!plot.file.name || !(value > 0))
		return;
	s = find_series(panel, name);
	if (!s)
		return;
	s->name = name;
	s->comparison = kind == PLOT_COMPARISON;
	add_point(s, (struct point){ bytes, value, kind == PLOT_DISTURBED });
	write_file();
}
