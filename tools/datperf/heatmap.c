/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* heatmap.c - draws the results of all pairs of hosts (matrix_draw()): a square for each pair, the worse the
 * darker, with the value in it. Coordinates are pixels, from the top left corner. */
#include "matrix.h"
#include "origin.h"
#include "../cli.h"
#include "../version.h"
#include <errno.h>
#include <stdio.h>

enum {
	CELL = 56,	/* a side of a square: room for 6 characters */
	LEFT = 130,	/* the names of hosts */
	TOP = 60,	/* the title and the names */
	GAP = 40,	/* between the two diagrams */
	FOOT = 30	/* when and where */
};

static void write_escaped(FILE *f, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '&': fputs("&amp;", f); break;
		default: fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
		}
}

static void text_at(FILE *f, int x, int y, const char *anchor, const char *text)
{
	fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", x, y, anchor);
	write_escaped(f, text);
	fputs("</text>\n", f);
}

static double value_of(const struct pair *p, bool latency)
{
	return latency ? p->latency : p->bytes * 8 / 1e9;
}

/* Stores the least and the greatest value. */
static void find_range(const struct matrix *m, bool latency, double *least, double *most)
{
	*least = *most = 0;
	for (int a = 0; a < m->count; a++)
		for (int b = a + 1; b < m->count; b++) {
			double value = value_of(&m->pairs[a][b], latency);

			if (!m->pairs[a][b].measured)
				continue;
			*least = !(*most > 0) || value < *least ? value : *least;
			*most = value > *most ? value : *most;
		}
}

/* Returns the lightness in percent: 95 for the best value, 45 for the worst. */
static int lightness(double value, double least, double most, bool latency)
{
	double part = most > least ? (value - least) / (most - least) : 0;

	return 95 - (int)(50 * (latency ? part : most > least ? 1 - part : 0));
}

static void draw_cell(FILE *f, const struct matrix *m, int a, int b, bool latency, int top)
{
	const struct pair *p = matrix_pair(m, a, b);
	int x = LEFT + b * CELL, y = top + a * CELL;
	double least, most;
	char text[32];

	find_range(m, latency, &least, &most);
	if (p && p->measured)
		fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"hsl(25,90%%,%d%%)\"%s><title>",
			x, y, CELL - 1, CELL - 1, lightness(value_of(p, latency), least, most, latency),
			p->slow ? " stroke=\"#000\" stroke-width=\"2\"" : "");
	else
		fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%s\"><title>", x, y,
			CELL - 1, CELL - 1, p ? "999" : "fff");
	write_escaped(f, m->hosts[a]);
	fputs(" - ", f);
	write_escaped(f, m->hosts[b]);
	fputs("</title></rect>\n", f);
	if (p && p->measured)
		snprintf(text, sizeof text, "%.4g", value_of(p, latency));
	else
		snprintf(text, sizeof text, "%s", p ? "failed" : "");
	text_at(f, x + CELL / 2, y + CELL / 2 + 4, "middle", text);
}

static void draw_table(FILE *f, const struct matrix *m, bool latency, int top)
{
	text_at(f, LEFT, top - 36, "start", latency ? "latency of 8 bytes, us" : "bandwidth of 1 MiB, Gbit/s");
	for (int a = 0; a < m->count; a++) {
		char name[10];

		snprintf(name, sizeof name, "%s", m->hosts[a]);
		text_at(f, LEFT + a * CELL + CELL / 2, top - 10, "middle", name);
		text_at(f, LEFT - 8, top + a * CELL + CELL / 2 + 4, "end", m->hosts[a]);
		for (int b = 0; b < m->count; b++)
			draw_cell(f, m, a, b, latency, top);
	}
}

static void draw_all(FILE *f, const struct matrix *m)
{
	int side = m->count * CELL, width = LEFT + side + 20, height = 2 * (TOP + side) + GAP + FOOT;
	char date[ORIGIN_DATE], host[ORIGIN_HOST], text[sizeof date + sizeof host + 64];

	if (width < 420)	/* room for the last line */
		width = 420;
	fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", width, height, width, height);
	draw_table(f, m, true, TOP);
	draw_table(f, m, false, 2 * TOP + side + GAP);
	origin_read(date, host);
	snprintf(text, sizeof text, "%s, %s, datperf %s; framed: slow", date, host, tools_version);
	text_at(f, 20, height - FOOT / 2, "start", text);
	fputs("</svg>\n", f);
}

void matrix_draw(const struct matrix *m, struct whole_file *file)
{
	bool written = whole_file_begin(file);

	if (written)
		draw_all(file->file, m);
	if (!written || !whole_file_end(file))
		fail("--plot: %s: %s", file->name, cli_write_error(errno));
}
