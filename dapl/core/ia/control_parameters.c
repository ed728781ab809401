/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_parameters.c - see control_parameters.h. */
#include "dapl/core/ia/control_parameters.h"
#include <stdio.h>
#include "dapl/core/base/settings.h"
#include "dapl/core/ia/control_answer.h"

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
	long value = dapl_parameter_value(parameter, &origin);

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

	if (!dapl_parameter_find(name, &parameter)) {
		snprintf(why, size, "provider %s has no parameter %.40s", dapl_device_ops.name, name);
		return why;
	}
	json_write_open(json, "parameters", '[');
	write_parameter(json, &parameter);
	json_write_close(json, ']');
	return NULL;
}

const char *dapl_get_verb(const struct json_object *request, struct json_writer *json, char *why, size_t size)
{
	const struct json_member *name = json_member(request, "name");
	struct dapl_parameter parameter;

	if (name)
		return write_one(json, name->text, why, size);
	json_write_open(json, "parameters", '[');
	for (unsigned i = 0; dapl_parameter_at(i, &parameter); i++)
		write_parameter(json, &parameter);
	json_write_close(json, ']');
	return NULL;
}

const char *dapl_set_verb(const struct json_object *request, struct json_writer *json, char *why, size_t size)
{
	const struct json_member *name = json_member(request, "name");
	const struct json_member *value = json_member(request, "value");

	if (!name || !value)
		return dapl_answer_missing(why, size, name ? "value" : "name");
	if (!dapl_parameter_set(name->text, value->text, why, size))
		return why;
	return write_one(json, name->text, why, size);
}
