/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf_file.c - see conf_file.h. The registry generates the entries, and its parser checks the text. */
#include "tools/info/conf_file.h"
#include "tools/info/output.h"
#include "tools/info/probe.h"
#include "tools/cli.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_SIZE_MAX (16u << 20)	/* bytes; the registry has the same limit */

/* --- a file for this machine ------------------------------------------------------------ */

static json_t *entry(const char *name, const char *library, const char *params)
{
	json_t *to = json_object();

	output_set(to, "ia", output_text(name));
	output_set(to, "library", output_text(library));
	output_set(to, "ia_params", output_text(params));
	return to;
}

static json_t *generate(void)
{
	json_t *entries = json_array();
	DAT_ENTRY *list;
	DAT_COUNT count;

	if (dats_list_generated(&list, &count))
		fail("there is no memory or no descriptor left");
	for (DAT_COUNT i = 0; i < count; i++)
		output_append(entries, entry(list[i].info.ia_name, list[i].library, list[i].ia_params));
	free(list);
	return entries;
}

void conf_file_print(bool json)
{
	json_t *entries, *e, *all;
	size_t i;

	probe_init();
	entries = generate();
	if (json) {
		all = json_object();
		output_set(all, "entries", entries);
		output_json(all);
		return;
	}
	puts("# dat.conf of the devices present, made by datinfo --conf; see dat.conf(5).\n"
	     "# ia_name api_version threadsafety default lib_path provider_version ia_params\n"
	     "# platform_params");
	json_array_foreach(entries, i, e)
		printf("%s u2.0 nonthreadsafe default %s dapl.2.0 \"%s\" \"\"\n", output_get(e, "ia"),
		       output_get(e, "library"), output_get(e, "ia_params"));
	if (!i)
		puts("# No RDMA device is present, and libdaplsoft.so.2 is not installed.");
	json_decref(entries);
}

/* --- the check ------------------------------------------------------------------------------ */

static char *read_all(const char *file, size_t *length)
{
	FILE *f = strcmp(file, "-") ? fopen(file, "re") : stdin;
	char *text = NULL;
	size_t room = 0, n;

	if (!f)
		fail("%s: %s", file, strerror(errno));
	*length = 0;
	do {
		if (*length == room) {
			room = room ? 2 * room : 16384;
			text = realloc(text, room);
			if (!text || room > 2 * FILE_SIZE_MAX)
				fail("%s: it is too large", file);
		}
		errno = 0;
		n = fread(text + *length, 1, room - *length, f);
		*length += n;
	} while (n);
	if (ferror(f)) {
		const char *why = strerror(errno ? errno : EIO);

		free(text);
		fail("%s: %s", file, why);
	}
	if (f != stdin)
		fclose(f);
	return text;
}

static void note(void *faults, const DAT_CONF_FAULT *fault)
{
	json_t *to = json_object();

	output_set(to, "line", json_integer(fault->line));
	output_set(to, "column", json_integer(fault->column));
	output_set(to, "field", output_text(fault->field));
	output_set(to, "found", output_text(fault->found));
	output_set(to, "expected", output_text(fault->expected));
	output_append(faults, to);
}

static void print_faults(const char *file, const json_t *faults)
{
	json_t *fault;
	size_t i;

	json_array_foreach((json_t *)faults, i, fault) {
		const char *field = output_get(fault, "field");

		printf("%s:%lld:%lld: %s%sfound %s, expected %s\n", file,
		       (long long)json_integer_value(json_object_get(fault, "line")),
		       (long long)json_integer_value(json_object_get(fault, "column")), field,
		       *field ? ": " : "", *output_get(fault, "found") ? output_get(fault, "found") : "\"\"",
		       output_get(fault, "expected"));
	}
}

int conf_file_check(const char *file, bool json)
{
	json_t *faults = json_array(), *all;
	DAT_COUNT entries = 0;
	size_t length, count;
	char *text;

	probe_init();
	text = read_all(file, &length);
	if (dats_check_conf(text, length, note, faults, &entries))
		fail("there is no memory left");
	free(text);
	count = json_array_size(faults);
	if (json) {
		all = json_object();
		output_set(all, "file", output_text(file));
		output_set(all, "entries", json_integer(entries));
		output_set(all, "faults", faults);
		output_json(all);
		return count ? CLI_FAILURE : 0;
	}
	print_faults(file, faults);
	printf("%s: %d entr%s, %zu fault%s\n", file, entries, entries == 1 ? "y" : "ies", count,
	       count == 1 ? "" : "s");
	json_decref(faults);
	return count ? CLI_FAILURE : 0;
}
