/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_verbs.c - the table of the control socket's verbs, and those about parameters, trace records and the
 * registry. */
#include "dapl/core/ia/control_verbs.h"
#include <dat/dat_entries.h>
#include <dat/dat_trace.h>
#include <stdio.h>
#include "common/control.h"
#include "common/trace.h"
#include "dapl/core/base/control.h"
#include "dapl/core/base/registry.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/base/status.h"
#include "dapl/core/ia/control_answer.h"
#include "dapl/core/ia/control_objects.h"
#include "dapl/core/ia/tap.h"

/* --- parameters -------------------------------------------------------------------------------- */

/* Writes null for a value below the range: the device or the path decides. */
static void write_value(struct json_writer *json, const char *key, long value, unsigned long min)
{
	value < (long)min ? json_write_text(json, key, NULL) : json_write_number(json, key, value);
}

static void write_parameter(struct json_writer *json, const struct dapl_parameter *parameter)
{
	static const char *const whens[] = { "now", "next IA", "never" };
	static const char *const origins[] = { "default", "dapl.conf", "environment", "set" };
	enum parameter_origin origin;
	long value = dapl_settings_value(parameter, &origin);

	json_write_open(json, NULL, '{');
	json_write_text(json, "name", parameter->name);
	write_value(json, "value", value, parameter->min);
	write_value(json, "default", parameter->by_default, parameter->min);
	json_write_count(json, "min", parameter->min);
	json_write_count(json, "max", parameter->max);
	json_write_text(json, "when", whens[parameter->when]);
	json_write_text(json, "from", origins[origin]);
	json_write_close(json, '}');
}

static const char *write_one(struct json_writer *json, const char *name, char *why, size_t size)
{
	struct dapl_parameter parameter;

	if (!dapl_settings_find(name, &parameter)) {
		snprintf(why, size, "provider %s has no parameter %.40s", dapl_device_ops.name, name);
		return why;
	}
	json_write_open(json, "parameters", '[');
	write_parameter(json, &parameter);
	json_write_close(json, ']');
	return NULL;
}

static const char *get_parameters(const struct json_object *request, struct json_writer *json, char *why, size_t size)
{
	const struct json_member *name = json_member(request, "name");
	struct dapl_parameter parameter;

	if (name)
		return write_one(json, name->text, why, size);
	json_write_open(json, "parameters", '[');
	for (unsigned i = 0; dapl_settings_at(i, &parameter); i++)
		write_parameter(json, &parameter);
	json_write_close(json, ']');
	return NULL;
}

static const char *set_parameter(const struct json_object *request, struct json_writer *json, char *why, size_t size)
{
	const struct json_member *name = json_member(request, "name");
	const struct json_member *value = json_member(request, "value");

	if (!name || !value)
		return dapl_answer_missing(why, size, name ? "value" : "name");
	if (!dapl_settings_set(name->text, value->text, why, size))
		return why;
	return write_one(json, name->text, why, size);
}

/* --- trace --------------------------------------------------------------------------- */

/* The registry has a level of its own; registries of other projects lack the function. */
static void set_registry_level(unsigned level)
{
	DAT_TRCLVL_MODIFY_FUNC modify =
		(DAT_TRCLVL_MODIFY_FUNC)dapl_registry_function("dat_trclvl_modify");

	if (modify)
		modify(DAT_TRC_DAT, level);
}

static const char *set_trace(const struct json_object *request, struct json_writer *json, char *why,
			     size_t size)
{
	const struct json_member *level = json_member(request, "level");

	if (!level)
		return dapl_answer_missing(why, size, "level");
	json_write_count(json, "was", __atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	if (!dapl_settings_set("DAPL_TRACE_LEVEL", level->text, why, size))
		return why;
	set_registry_level(__atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	json_write_count(json, "level", __atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	return NULL;
}

static void write_record(void *json, const char *text, size_t length)
{
	json_write_bytes(json, NULL, text, length);
}

static const char *dump(const struct json_object *request, struct json_writer *json, char *why,
			size_t size)
{
	(void)request, (void)why, (void)size;
	json_write_count(json, "level", __atomic_load_n(&trace_level, __ATOMIC_RELAXED));
	json_write_open(json, "records", '[');
	trace_each(write_record, json);
	json_write_close(json, ']');
	return NULL;
}

/* --- reread -------------------------------------------------------------------------- */

typedef DAT_RETURN (*reread_func)(DAT_COUNT *entries);

/* Runs on the service thread: libdat2 waits for loads and unloads of other threads, a second at most. */
static const char *reread(const struct json_object *request, struct json_writer *json, char *why,
			  size_t size)
{
	reread_func reread_files = (reread_func)dapl_registry_function("dats_reread");
	DAT_COUNT entries = 0;
	DAT_RETURN ret;

	(void)request, (void)why, (void)size;
	if (!reread_files)
		return "its registry is not this project's, and reads its files once";
	ret = reread_files(&entries);
	if (DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER)
		return "a file cannot be read, or has a bad line; the program has reported it, and keeps "
		       "the old entries";
	if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED)
		return "libraries are being loaded or unloaded; try again";
	if (ret)
		return "the registry lacks memory or descriptors, and keeps the old entries";
	json_write_number(json, "entries", entries);
	return NULL;
}

/* --- the table ----------------------------------------------------------------------- */

static dapl_control_verb *const verbs[CONTROL_VERBS] = {
	[CONTROL_LIST] = dapl_list_verb,
	[CONTROL_GET] = get_parameters,
	[CONTROL_SET] = set_parameter,
	[CONTROL_TRACE] = set_trace,
	[CONTROL_DUMP] = dump,
	[CONTROL_COUNTERS] = dapl_counters_verb,
	[CONTROL_ENDPOINTS] = dapl_endpoints_verb,
	[CONTROL_REREAD] = reread,
	[CONTROL_SERVICE_POINTS] = dapl_service_points_verb,
	[CONTROL_TAP] = dapl_tap_verb,
};

void dapl_control_verbs_init(void)
{
	dapl_control_serve(verbs, CONTROL_VERBS);
}
