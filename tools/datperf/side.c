/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* side.c - see side.h. */
#include "side.h"
#include "../cli.h"
#include "../version.h"
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 64 };	/* NUMA nodes that are looked at */

/* --- lists of numbers ------------------------------------------------------------ */

/* Reads "0-3,8" into `set`. Returns false if it is no such list. */
static bool read_list(const char *at, cpu_set_t *set)
{
	CPU_ZERO(set);
	for (;; at++) {
		unsigned long from, to;
		char *end;

		if (!isdigit((unsigned char)*at))
			return false;
		from = to = strtoul(at, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			to = strtoul(end + 1, &end, 10);
		if (to < from || to >= CPU_SETSIZE)
			return false;
		for (; from <= to; from++)
			CPU_SET(from, set);
		at = end;
		if (!*at || *at == '\n')
			return true;
		if (*at != ',')
			return false;
	}
}

/* Appends "0-3" or "8" to a list, if it fits. */
static void add_range(char *text, size_t size, int from, int to)
{
	size_t used = strlen(text);
	char range[32];

	if (from == to)
		snprintf(range, sizeof range, "%s%d", used ? "," : "", from);
	else
		snprintf(range, sizeof range, "%s%d-%d", used ? "," : "", from, to);
	if (used + strlen(range) < size)
		strcpy(text + used, range);
}

static void write_list(char *text, size_t size, const cpu_set_t *set)
{
	*text = '\0';
	for (int i = 0; i < CPU_SETSIZE; i++) {
		int from = i;

		if (!CPU_ISSET(i, set))
			continue;
		while (i + 1 < CPU_SETSIZE && CPU_ISSET(i + 1, set))
			i++;
		add_range(text, size, from, i);
	}
}

/* --- this process ------------------------------------------------------------------ */

void side_use_processors(const char *option, const char *list)
{
	cpu_set_t set;

	if (!read_list(list, &set))
		usage_error("%s: \"%s\" found, processors expected, like 0-3,8", option, list);
	if (sched_setaffinity(0, sizeof set, &set))
		usage_error("%s: \"%s\" found, processors that this process may use expected (%s)", option, list,
			    strerror(errno));
}

/* Reads the first line of a file of sysfs. Returns false if there is none. */
static bool read_line(char *line, size_t size, const char *path)
{
	FILE *f = fopen(path, "re");
	bool read = f && fgets(line, (int)size, f);

	if (f)
		fclose(f);
	if (read)
		line[strcspn(line, "\n")] = '\0';
	return read;
}

static void find_nodes(char *text, size_t size, const cpu_set_t *used)
{
	cpu_set_t nodes, processors, both;
	char path[64], line[1024];

	CPU_ZERO(&nodes);
	for (int i = 0; i < NODES; i++) {
		snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", i);
		if (!read_line(line, sizeof line, path) || !read_list(line, &processors))
			continue;
		CPU_AND(&both, &processors, used);
		if (CPU_COUNT(&both))
			CPU_SET(i, &nodes);
	}
	write_list(text, size, &nodes);
}

static void find_governor(char *text, size_t size, const cpu_set_t *used)
{
	char path[96];
	int first = 0;

	while (first < CPU_SETSIZE && !CPU_ISSET(first, used))
		first++;
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", first);
	if (!read_line(text, size, path))
		*text = '\0';
}

void side_read(struct side *s)
{
	cpu_set_t used;

	memset(s, 0, sizeof *s);
	if (gethostname(s->host, sizeof s->host - 1))
		strcpy(s->host, "?");
	snprintf(s->version, sizeof s->version, "%s", tools_version);
	CPU_ZERO(&used);
	if (sched_getaffinity(0, sizeof used, &used))
		return;
	write_list(s->processors, sizeof s->processors, &used);
	find_nodes(s->nodes, sizeof s->nodes, &used);
	find_governor(s->governor, sizeof s->governor, &used);
}

static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (!isprint((unsigned char)*text))
			*text = '?';
}

void side_clean(struct side *s)
{
	clean(s->host, sizeof s->host);
	clean(s->version, sizeof s->version);
	clean(s->processors, sizeof s->processors);
	clean(s->nodes, sizeof s->nodes);
	clean(s->governor, sizeof s->governor);
}
