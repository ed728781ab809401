/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_tuning.c - limits of one connection: timers, retries, traffic class. An attribute that is not set has
 * the value of its environment variable (settings.h). The device applies the values. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/ep/ep_tuning.h"

static const struct tuned {
	const char *name;
	size_t offset;
	unsigned max;
	unsigned needs;		/* DAPL_TUNES_* */
} tuned[DAPL_EP_TUNED] = {
#define FIELD(member) offsetof(struct dapl_conn_tuning, member)
	{ "ack_timeout",	FIELD(ack_timeout),	31,	DAPL_TUNES_ACK },
	{ "ack_retry",		FIELD(ack_retry),	7,	DAPL_TUNES_ACK },
	{ "rnr_timer",		FIELD(rnr_timer),	31,	DAPL_TUNES_RNR },
	{ "rnr_retry",		FIELD(rnr_retry),	7,	DAPL_TUNES_RNR },
	{ "traffic_class",	FIELD(traffic_class),	255,	DAPL_TUNES_CLASS },
#undef FIELD
};

static uint16_t *field(struct dapl_conn_tuning *tuning, const struct tuned *t)
{
	return (uint16_t *)((char *)tuning + t->offset);
}

/* Reads one to three decimal digits. Returns false for other text, and for numbers above max. */
static bool read_number(const char *text, unsigned max, unsigned *number)
{
	size_t digits = text ? strspn(text, "0123456789") : 0;

	if (!digits || digits > 3 || text[digits])
		return false;
	*number = (unsigned)atoi(text);
	return *number <= max;
}

DAT_RETURN dapl_ep_tune(const struct dapl_ia *ia, const DAT_NAMED_ATTR *attr,
			struct dapl_conn_tuning *tuning, DAT_RETURN bad)
{
	for (const struct tuned *t = tuned; t < tuned + DAPL_EP_TUNED; t++) {
		unsigned number;

		if (strcmp(attr->name, t->name))
			continue;
		if (!read_number(attr->value, t->max, &number)) {
			trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ia", ia, NULL,
			      "attribute %s is \"%.20s\", expected a number from 0 to %u", t->name,
			      attr->value ? attr->value : "", t->max);
			return bad;
		}
		if (!(ia->attr.tunes & t->needs))
			return NOT_SUPPORTED;
		*field(tuning, t) = number + 1;
		return DAT_SUCCESS;
	}
	return bad;
}

int dapl_ep_list_tuning(struct dapl_ep *ep, int n)
{
	assert_held(&ep->lock);
	for (int i = 0; i < DAPL_EP_TUNED; i++) {
		unsigned wanted = *field(&ep->tuning, &tuned[i]);

		if (!wanted)
			continue;
		snprintf(ep->tuned_value[i], sizeof ep->tuned_value[i], "%u", (wanted - 1) % 1000);
		ep->provider_attr[n++] = (DAT_NAMED_ATTR){ tuned[i].name, ep->tuned_value[i] };
	}
	return n;
}
