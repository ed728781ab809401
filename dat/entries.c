/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entries.c - the registry's functions for tools: its entries, those that the devices present would give,
 * and what is wrong with the text of a dat.conf. Reads no file itself. */
#include <dat/dat_entries.h>
#include "dat/conf.h"
#include "dat/devices.h"
#include "dat/entry_table.h"
#include "dat/error.h"
#include "dat/loader.h"
#include "dat/registry.h"
#include "dat/sources.h"
#include <stdlib.h>
#include <string.h>

/* --- lists -------------------------------------------------------------------- */

static size_t text_size(const struct conf_entry *e)
{
	return strlen(e->library) + strlen(e->ia_params) + (e->file ? strlen(e->file) : 0) + 3;
}

static const char *put(char **at, const char *text)
{
	const char *copy = *at;

	*at = stpcpy(*at, text) + 1;
	return copy;
}

static void copy_entry(DAT_ENTRY *to, const struct conf_entry *from, char **texts)
{
	to->info = from->info;
	to->library = put(texts, from->library);
	to->ia_params = put(texts, from->ia_params);
	to->file = from->file ? put(texts, from->file) : NULL;
	to->line = from->line;
	to->is_default = from->is_default ? DAT_TRUE : DAT_FALSE;
	to->is_repeated = DAT_FALSE;
	if (!from->file)
		to->origin = DAT_ENTRY_GENERATED;
	else
		to->origin = sources_is_drop_in(from->file) ? DAT_ENTRY_DROP_IN : DAT_ENTRY_FILE;
}

/* One block: the entries, then their texts. */
static DAT_RETURN copy_entries(const struct conf *conf, DAT_ENTRY **list, DAT_COUNT *count)
{
	size_t size = conf->count * sizeof(**list);
	char *texts;

	*list = NULL;
	*count = (DAT_COUNT)conf->count;
	if (!conf->count)
		return DAT_SUCCESS;
	for (size_t i = 0; i < conf->count; i++)
		size += text_size(&conf->entries[i]);
	*list = malloc(size);
	if (!*list)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	texts = (char *)(*list + conf->count);
	for (size_t i = 0; i < conf->count; i++)
		copy_entry(&(*list)[i], &conf->entries[i], &texts);
	return DAT_SUCCESS;
}

static DAT_RETURN check_list(DAT_ENTRY **list, const DAT_COUNT *count)
{
	if (!list)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	return count ? DAT_SUCCESS : DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

EXPORT DAT_RETURN dats_list_entries(DAT_ENTRY **list, DAT_COUNT *count)
{
	DAT_RETURN ret = check_list(list, count);
	struct reading *reading;

	if (ret)
		return ret;
	reading = registry_hold_reading();
	if (!reading)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0);	/* the files are not read */
	ret = copy_entries(&reading->sources.conf, list, count);
	for (DAT_COUNT i = 0; !ret && i < *count; i++)
		(*list)[i].is_repeated = reading->repeated[i] ? DAT_TRUE : DAT_FALSE;
	reading_put(reading);
	return ret;
}

EXPORT DAT_RETURN dats_list_generated(DAT_ENTRY **list, DAT_COUNT *count)
{
	DAT_RETURN ret = check_list(list, count);
	struct conf conf = { .entries = NULL };

	if (ret)
		return ret;
	ret = sources_generate(&conf, loader_finds(SOFT_LIBRARY)) ?
		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0) : copy_entries(&conf, list, count);
	conf_free(&conf);
	return ret;
}

/* --- the check ------------------------------------------------------------------ */

struct check {
	DAT_CONF_FAULT_FUNC report;
	void *arg;
};

static void pass_on(void *arg, const struct conf_fault *fault)
{
	const struct check *check = arg;
	DAT_CONF_FAULT copy = {
		.line = fault->line,
		.column = fault->column,
		.field = fault->field,
		.found = fault->found,
		.expected = fault->expected,
		.message = fault->message,
	};

	check->report(check->arg, &copy);
}

EXPORT DAT_RETURN dats_check_conf(const char *text, size_t length, DAT_CONF_FAULT_FUNC report,
				  void *arg, DAT_COUNT *entries)
{
	struct check check = { report, arg };
	struct conf conf = { .entries = NULL };
	int err;

	if (!text)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!report)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!entries)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	err = conf_parse(&conf, text, length, "", pass_on, &check);
	*entries = (DAT_COUNT)conf.count;
	conf_free(&conf);
	return err ? DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY) : DAT_SUCCESS;
}
