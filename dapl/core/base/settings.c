/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.c - reads the provider's environment variables (settings.h). */
#include <stddef.h>
#include "common/log.h"
#include "dapl/core/base/settings.h"

struct dapl_settings dapl_settings;

/* Members are unsigned or int; int ones have -1 for "unset". Both are read as numbers in
 * [min, max]. */
static const struct variable {
	const char *name;
	size_t offset;
	unsigned long min, max;
	int by_default;
} variables[] = {
#define FIELD(member) offsetof(struct dapl_settings, member)
	{ "DAPL_MAX_INLINE",		FIELD(max_inline),	0, 65536,	64 },
	{ "DAPL_WR_MAX",		FIELD(wr_max),		1, 1 << 20,	0 },
	{ "DAPL_IB_MTU",		FIELD(ib_mtu),		256, 4096,	0 },
	{ "DAPL_IB_PKEY",		FIELD(ib_pkey),		0, 65535,	-1 },
	{ "DAPL_IB_SL",			FIELD(ib_sl),		0, 15,		0 },
	{ "DAPL_GLOBAL_ROUTING",	FIELD(global_routing),	0, 1,		0 },
	{ "DAPL_HOP_LIMIT",		FIELD(hop_limit),	0, 255,		0 },
	{ "DAPL_TCLASS",		FIELD(tclass),		0, 255,		-1 },
	{ "DAPL_ACK_RETRY",		FIELD(ack_retry),	0, 7,		7 },
	{ "DAPL_ACK_TIMER",		FIELD(ack_timer),	0, 31,		-1 },
	{ "DAPL_RNR_RETRY",		FIELD(rnr_retry),	0, 7,		7 },
	{ "DAPL_RNR_TIMER",		FIELD(rnr_timer),	0, 31,		12 },
	{ "DAPL_CM_ARP_TIMEOUT_MS",	FIELD(arp_timeout_ms),	1, 600000,	4000 },
	{ "DAPL_CM_ARP_RETRY_COUNT",	FIELD(arp_retries),	0, 1000,	15 },
	{ "DAPL_CM_ROUTE_TIMEOUT_MS",	FIELD(route_timeout_ms), 1, 600000,	4000 },
	{ "DAPL_CM_ROUTE_RETRY_COUNT",	FIELD(route_retries),	0, 1000,	15 },
	{ "DAPL_CM_TOS",		FIELD(tos),		0, 255,		-1 },
	{ "DAPL_MAX_CM_RESPONSE_TIME",	FIELD(cm_response_time), 0, 31,		0 },
	{ "DAPL_MAX_CM_RETRIES",	FIELD(cm_retries),	0, 15,		0 },
#undef FIELD
};

void dapl_settings_read(void)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		const struct variable *v = &variables[i];
		unsigned long value = (unsigned long)v->by_default;

		log_env_number(v->name, v->min, v->max, &value);
		*(int *)((char *)&dapl_settings + v->offset) = (int)value;
	}
}
