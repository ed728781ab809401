/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapters.c - see adapters.h. The properties of an entry are gathered as JSON first. The table and the list
 * of attributes are printed from that. */
#include "tools/info/adapters.h"
#include "tools/info/output.h"
#include "tools/info/probe.h"
#include "tools/info/remedy.h"
#include "tools/cli.h"
#include "common/nearest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- gathering ---------------------------------------------------------------------- */

static bool has_name(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static const char *origin_name(DAT_ENTRY_ORIGIN origin)
{
	switch (origin) {
	case DAT_ENTRY_FILE: return "file";
	case DAT_ENTRY_DROP_IN: return "drop-in";
	default: return "generated";
	}
}

static json_t *describe(const DAT_ENTRY *e)
{
	json_t *to = json_object();

	output_set(to, "ia", output_text(e->info.ia_name));
	output_set(to, "api_version", output_format("%u.%u", e->info.dapl_version_major,
						    e->info.dapl_version_minor));
	output_set(to, "threadsafe", json_boolean(e->info.is_thread_safe));
	output_set(to, "default", json_boolean(e->is_default));
	output_set(to, "library", output_text(e->library));
	output_set(to, "ia_params", output_text(e->ia_params));
	output_set(to, "origin", output_text(origin_name(e->origin)));
	output_set(to, "file", output_text(e->file));
	output_set(to, "line", e->file ? json_integer(e->line) : json_null());
	return to;
}

/* Returns why no program can open the entry by dat_ia_open(), or NULL if programs can. */
static const char *why_not_opened(const DAT_ENTRY *e)
{
	if (!e->is_default)
		return "nondefault";
	if (e->is_repeated)
		return "repeated";
	return e->info.dapl_version_major != DAT_VERSION_MAJOR ? "other API" : NULL;
}

static void examine(json_t *to, const DAT_ENTRY *e, unsigned seconds)
{
	const char *reason = why_not_opened(e);
	struct remedy remedy;
	json_t *probe;

	if (reason) {
		output_set(to, "state", output_text(reason));
		return;
	}
	probe = probe_ia(&e->info, seconds);
	if (remedy_find(&remedy, e, probe)) {
		output_set(to, "cause", output_text(remedy.cause));
		output_set(to, "fix", output_text(remedy.fix));
	}
	json_object_update(to, probe);
	json_decref(probe);
}

static bool is_asked(const struct adapters_options *o, const char *name)
{
	return !o->count || has_name((const char *const *)o->names, (size_t)o->count, name);
}

static json_t *gather(const struct adapters_options *o, const DAT_ENTRY *list, DAT_COUNT count)
{
	json_t *entries = json_array();

	for (DAT_COUNT i = 0; i < count; i++) {
		json_t *entry;

		if (!is_asked(o, list[i].info.ia_name))
			continue;
		entry = describe(&list[i]);
		examine(entry, &list[i], o->seconds);
		output_append(entries, entry);
	}
	return entries;
}

/* --- printing ------------------------------------------------------------------------- */

static const char *place(const json_t *entry)
{
	static char text[600];
	const char *file = output_get(entry, "file");

	if (*file)
		snprintf(text, sizeof text, "%s:%lld", file,
			 (long long)json_integer_value(json_object_get(entry, "line")));
	else
		snprintf(text, sizeof text, "generated");
	return text;
}

static void print_table(const json_t *entries)
{
	static const char *const heads[] = { "IA", "STATE", "ADDRESS", "DEVICE", "RDMA MTU", "FROM" };
	struct table *table = table_new(6, heads);
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)entries, i, entry) {
		const json_t *named = json_object_get(entry, "named");
		const char *cells[] = {
			output_get(entry, "ia"), output_get(entry, "state"),
			output_get(json_object_get(entry, "ia_attributes"), "ia_address"),
			output_get(named, "DAT_IB_DEVICE_NAME"),
			output_get(named, "DAT_IB_TRANSPORT_MTU"), place(entry),
		};

		table_add(table, cells);
	}
	table_print(table, 0);
}

static void print_causes(const json_t *entries)
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)entries, i, entry) {
		if (!*output_get(entry, "cause"))
			continue;
		output_print(output_get(entry, "ia"));
		printf(": ");
		output_print(output_get(entry, "cause"));
		printf("; ");
		output_print(output_get(entry, "fix"));
		putchar('\n');
	}
}

/* Writes a value on one line: "yes", "12", "a, b". */
static const char *value_text(const json_t *value, char *text, size_t size)
{
	size_t i, at = 0;
	json_t *item;

	text[0] = '\0';
	if (json_is_string(value))
		snprintf(text, size, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(text, size, "%lld", (long long)json_integer_value(value));
	else if (json_is_boolean(value))
		snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
	json_array_foreach((json_t *)value, i, item)
		if (at < size)
			at += snprintf(text + at, size - at, "%s%s", i ? ", " : "", json_string_value(item));
	return text;
}

static void print_attributes(const json_t *entry, const char *member, const char *title)
{
	json_t *attributes = json_object_get(entry, member), *value;
	struct table *table;
	const char *name;
	char text[1024];

	if (!json_object_size(attributes))
		return;
	printf("  %s%s%s\n", output_bold(), title, output_plain());
	table = table_new(2, NULL);
	json_object_foreach(attributes, name, value) {
		const char *cells[] = { name, value_text(value, text, sizeof text) };

		table_add(table, cells);
	}
	table_print(table, 4);
}

static void print_entry(const json_t *entry)
{
	char text[1024];
	const char *cells[][2] = {
		{ "library", output_get(entry, "library") },
		{ "ia_params", output_get(entry, "ia_params") },
		{ "api_version", output_get(entry, "api_version") },
		{ "threadsafe", json_is_true(json_object_get(entry, "threadsafe")) ? "yes" : "no" },
		{ "extensions", value_text(json_object_get(entry, "extensions"), text, sizeof text) },
	};
	struct table *table = table_new(2, NULL);

	fputs(output_bold(), stdout);
	output_print(output_get(entry, "ia"));
	printf("%s  %s, from %s\n", output_plain(), output_get(entry, "state"), place(entry));
	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
		table_add(table, cells[i]);
	table_print(table, 2);
	print_attributes(entry, "ia_attributes", "IA attributes");
	print_attributes(entry, "provider_attributes", "provider attributes");
	print_attributes(entry, "named", "named attributes");
}

static void print_verbose(const json_t *entries)
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)entries, i, entry) {
		if (i)
			putchar('\n');
		print_entry(entry);
	}
}

/* Prints what the registry reported when it read its files, such as wrong lines of dat.conf. */
static void print_messages(const json_t *messages)
{
	json_t *message;
	size_t i;

	json_array_foreach((json_t *)messages, i, message) {
		output_print(json_string_value(message));
		putchar('\n');
	}
}

/* --- exit status ----------------------------------------------------------------------- */

static bool is_open(const json_t *entries, const char *name)
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)entries, i, entry)
		if (!strcmp(output_get(entry, "state"), "open") &&
		    (!name || !strcmp(output_get(entry, "ia"), name)))
			return true;
	return false;
}

static int exit_status(const struct adapters_options *o, const json_t *entries)
{
	if (!o->count)
		return is_open(entries, NULL) ? 0 : CLI_FAILURE;
	for (int i = 0; i < o->count; i++)
		if (!is_open(entries, o->names[i]))
			return CLI_FAILURE;
	return 0;
}

/* Writes the different names of the entries: "a, b, c". As many as fit; then "and 3 more". */
static void join_names(char *text, size_t size, const char *const *names, size_t count)
{
	size_t at = 0;

	*text = '\0';
	for (size_t i = 0; i < count; i++) {
		if (at + strlen(names[i]) + sizeof ", and 4294967295 more" > size) {
			snprintf(text + at, size - at, " and %zu more", count - i);
			return;
		}
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", names[i]);
	}
}

/* Prints a line for each name that no entry has. Returns whether there is such a name. */
static bool report_unknown_names(const struct adapters_options *o, const DAT_ENTRY *list, DAT_COUNT count)
{
	const char **names = calloc((size_t)count + 1, sizeof *names), *near;
	char joined[800];
	bool unknown = false;
	size_t n = 0;

	if (!names)
		fail("there is no memory left");
	for (DAT_COUNT i = 0; i < count; i++)
		if (!has_name(names, n, list[i].info.ia_name))
			names[n++] = list[i].info.ia_name;
	join_names(joined, sizeof joined, names, n);
	for (int i = 0; i < o->count; i++) {
		if (has_name(names, n, o->names[i]))
			continue;
		near = nearest_name(o->names[i], names, n);
		cli_warn("there is no interface adapter \"%.100s\"%s%s%s; %s%s", o->names[i], near ? "; is " : "",
			 near ? near : "", near ? " meant?" : "", n ? "there are: " : "there is none", joined);
		unknown = true;
	}
	free(names);
	return unknown;
}

int adapters_show(const struct adapters_options *o)
{
	json_t *entries, *messages, *all;
	DAT_ENTRY *list;
	DAT_COUNT count;
	bool unknown;
	int status;

	probe_init();
	if (probe_entries(&list, &count, &messages))
		fail("the registry cannot read its files: %s",
		     json_array_size(messages) ? json_string_value(json_array_get(messages, 0)) :
						 "there is no memory or no descriptor left");
	unknown = report_unknown_names(o, list, count);
	entries = gather(o, list, count);
	free(list);
	status = exit_status(o, entries);
	if (o->json) {
		all = json_object();
		output_set(all, "entries", entries);
		output_set(all, "messages", messages);
		output_json(all);
		return status;
	}
	if (json_array_size(entries) && o->verbose)
		print_verbose(entries);
	else if (json_array_size(entries))
		print_table(entries);
	print_causes(entries);
	print_messages(messages);
	if (!json_array_size(entries) && !unknown)
		puts(json_array_size(messages) ? "datinfo --conf prints entries for this machine" :
		     "no interface adapter is configured; datinfo --conf prints entries for this machine");
	json_decref(entries);
	json_decref(messages);
	return status;
}
