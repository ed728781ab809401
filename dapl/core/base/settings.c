/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.c - reads the provider's environment variables, and changes those that a running program
 * may change (settings.h). */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "common/log.h"
#include "common/parameters.h"
#include "common/trace.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/device.h"

struct dapl_settings dapl_settings;

/* Members are unsigned or int; int ones have -1 for "unset". Both are read as numbers in
 * [min, max]. */
static const struct variable {
	const char *name;
	size_t offset;
	unsigned long min, max;
	int by_default;
	enum dapl_parameter_when when;
	enum { ALL, RDMA } devices;	/* RDMA: only devices whose operations have rdma_parameters set */
} variables[] = {
#define FIELD(member) offsetof(struct dapl_settings, member)
	{ "DAPL_MAX_INLINE",		FIELD(max_inline),	0, 65536,	64, PARAMETER_NEXT_IA, RDMA },
	{ "DAPL_WR_MAX",		FIELD(wr_max),		1, 1 << 20,	0, PARAMETER_NEXT_IA, ALL },
	{ "DAPL_IB_MTU",		FIELD(ib_mtu),		256, 4096,	0, PARAMETER_NOW, RDMA },
	{ "DAPL_IB_PKEY",		FIELD(ib_pkey),		0, 65535,	-1, PARAMETER_NEXT_IA, RDMA },
	{ "DAPL_IB_SL",			FIELD(ib_sl),		0, 15,		0, PARAMETER_NOW, RDMA },
	{ "DAPL_GLOBAL_ROUTING",	FIELD(global_routing),	0, 1,		0, PARAMETER_NOW, RDMA },
	{ "DAPL_HOP_LIMIT",		FIELD(hop_limit),	0, 255,		0, PARAMETER_NOW, RDMA },
	{ "DAPL_TCLASS",		FIELD(tclass),		0, 255,		-1, PARAMETER_NOW, RDMA },
	{ "DAPL_ACK_RETRY",		FIELD(ack_retry),	0, 7,		7, PARAMETER_NOW, ALL },
	{ "DAPL_ACK_TIMER",		FIELD(ack_timer),	0, 31,		-1, PARAMETER_NOW, ALL },
	{ "DAPL_RNR_RETRY",		FIELD(rnr_retry),	0, 7,		7, PARAMETER_NOW, RDMA },
	{ "DAPL_RNR_TIMER",		FIELD(rnr_timer),	0, 31,		12, PARAMETER_NOW, RDMA },
	{ "DAPL_CM_ARP_TIMEOUT_MS",	FIELD(arp_timeout_ms),	1, 600000,	4000, PARAMETER_NOW, RDMA },
	{ "DAPL_CM_ARP_RETRY_COUNT",	FIELD(arp_retries),	0, 1000,	15, PARAMETER_NOW, RDMA },
	{ "DAPL_CM_ROUTE_TIMEOUT_MS",	FIELD(route_timeout_ms), 1, 600000,	4000, PARAMETER_NOW, RDMA },
	{ "DAPL_CM_ROUTE_RETRY_COUNT",	FIELD(route_retries),	0, 1000,	15, PARAMETER_NOW, RDMA },
	{ "DAPL_CM_TOS",		FIELD(tos),		0, 255,		-1, PARAMETER_NOW, ALL },
	/* code points that RFC 4594 has for such traffic: AF11, EF, CS1, AF41 */
	{ "DAPL_DSCP_HIGH_THROUGHPUT",	FIELD(dscp_high_throughput), 0, 63,	10, PARAMETER_NOW, ALL },
	{ "DAPL_DSCP_LOW_LATENCY",	FIELD(dscp_low_latency), 0, 63,		46, PARAMETER_NOW, ALL },
	{ "DAPL_DSCP_ECONOMY",		FIELD(dscp_economy),	0, 63,		8, PARAMETER_NOW, ALL },
	{ "DAPL_DSCP_PREMIUM",		FIELD(dscp_premium),	0, 63,		34, PARAMETER_NOW, ALL },
	{ "DAPL_MAX_CM_RESPONSE_TIME",	FIELD(cm_response_time), 0, 31,		0, PARAMETER_NEVER, RDMA },
	{ "DAPL_MAX_CM_RETRIES",	FIELD(cm_retries),	0, 15,		0, PARAMETER_NEVER, RDMA },
#undef FIELD
};

enum { VARIABLES = sizeof variables / sizeof *variables };

void dapl_settings_read(void)
{
	for (size_t i = 0; i < VARIABLES; i++) {
		const struct variable *v = &variables[i];
		unsigned long value = (unsigned long)v->by_default;

		log_env_number(v->name, v->min, v->max, &value);
		*(int *)((char *)&dapl_settings + v->offset) = (int)value;
	}
}

/* --- parameters ------------------------------------------------------------------------- */

/* Parameters that log.h, trace.h and control.c read, with their ranges. */
static const struct dapl_parameter messages[] = {
	{ "DAPL_TRACE_LEVEL", TRC_LVL_OFF, TRC_LVL_MAX, TRC_LVL_OFF, PARAMETER_NOW },
	{ "DAPL_DBG_TYPE", 0, UINT_MAX, 3, PARAMETER_NOW },
	{ "DAPL_DBG_DEST", LOG_TO_STDERR, LOG_TO_JOURNAL_AND_STDERR, LOG_TO_STDERR, PARAMETER_NOW },
	{ "DAPL_CONTROL", 0, 1, 1, PARAMETER_NEVER },
};
enum { MESSAGES = sizeof messages / sizeof *messages };

/* Returns the variable with this index among those that the device uses; the software device uses few of
 * them. Returns NULL if there are no more; then *index is reduced by their number. */
static const struct variable *variable_at(unsigned *index)
{
	for (const struct variable *v = variables; v < variables + VARIABLES; v++)
		if ((v->devices == ALL || dapl_device_ops.rdma_parameters) && !(*index)--)
			return v;
	return NULL;
}

bool dapl_settings_at(unsigned index, struct dapl_parameter *parameter)
{
	const struct dapl_parameter *of_device = dapl_device_ops.parameters;
	const struct variable *v;

	if (index < MESSAGES) {
		*parameter = messages[index];
		return true;
	}
	index -= MESSAGES;
	v = variable_at(&index);
	if (v) {
		*parameter = (struct dapl_parameter){ v->name, v->min, v->max, v->by_default, v->when };
		return true;
	}
	for (; of_device && of_device->name; of_device++, index--)
		if (!index) {
			*parameter = *of_device;
			return true;
		}
	return false;
}

bool dapl_settings_find(const char *name, struct dapl_parameter *parameter)
{
	for (unsigned i = 0; dapl_settings_at(i, parameter); i++)
		if (!strcmp(parameter->name, name))
			return true;
	return false;
}

/* The trace level and the mask of messages are those in use, which may differ from the text: the attribute
 * DAT_ATTR_DEBUG_MODIFY changes the level, DAPL_DBG_LEVEL is another name for the mask. */
long dapl_settings_value(const struct dapl_parameter *parameter, enum parameter_origin *origin)
{
	char buffer[PARAMETER_NUMBER];
	const char *text = parameter_text(parameter->name, buffer, origin);
	unsigned long value;

	if (!strcmp(parameter->name, "DAPL_TRACE_LEVEL"))
		return __atomic_load_n(&trace_level, __ATOMIC_RELAXED);
	if (!strcmp(parameter->name, "DAPL_DBG_TYPE"))
		return __atomic_load_n(&log_mask, __ATOMIC_RELAXED);
	if (text && parameter_number_in(text, parameter->min, parameter->max, &value))
		return (long)value;
	*origin = PARAMETER_DEFAULT;	/* a bad value was reported, and counts as unset */
	return parameter->by_default;
}

/* The value of the environment or of dapl.conf, else the default. */
static long value_at_start(const struct dapl_parameter *parameter)
{
	unsigned long value = (unsigned long)parameter->by_default;

	log_env_number(parameter->name, parameter->min, parameter->max, &value);
	return (long)value;
}

/* Sets a parameter. Some parameters have copies in other files, which change, too. */
static void apply(const char *name, long value)
{
	if (!strcmp(name, "DAPL_TRACE_LEVEL")) {
		trace_set_level(value);
	} else if (!strcmp(name, "DAPL_DBG_TYPE")) {
		log_set_mask(value);
		trace_log_again();
	} else if (!strcmp(name, "DAPL_DBG_DEST")) {
		log_set_dest(value);
	}
	for (unsigned i = 0; i < VARIABLES; i++)
		if (!strcmp(variables[i].name, name))
			__atomic_store_n((int *)((char *)&dapl_settings + variables[i].offset),
					 (int)value, __ATOMIC_RELAXED);
}

bool dapl_settings_set(const char *name, const char *text, char *why, size_t size)
{
	struct dapl_parameter parameter;
	unsigned long value;

	if (!dapl_settings_find(name, &parameter)) {
		snprintf(why, size, "provider %s has no parameter %.40s", dapl_device_ops.name, name);
		return false;
	}
	if (parameter.when == PARAMETER_NEVER) {
		snprintf(why, size, "%s cannot be changed in a running program: %s", parameter.name,
			 strcmp(name, "DAPL_CONTROL") ? "it has no effect" :
			 "it is read when the program opens its first adapter");
		return false;
	}
	if (!strcmp(text, "default")) {
		parameter_unset(parameter.name);
		apply(parameter.name, value_at_start(&parameter));
		return true;
	}
	if (!parameter_number_in(text, parameter.min, parameter.max, &value)) {
		snprintf(why, size, "%s: \"%.40s\" found, a number from %lu to %lu, or \"default\", "
			 "expected", parameter.name, text, parameter.min, parameter.max);
		return false;
	}
	parameter_set(parameter.name, value);
	apply(parameter.name, (long)value);
	return true;
}
