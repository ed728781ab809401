/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tuning.c - named attributes of an endpoint that set limits of its connection. */
#include "pair.h"
#include <string.h>

#define NAMED (DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR | \
	       DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR)

static const struct {
	const char *name, *most, *beyond;
} limits[] = {
	{ "ack_timeout", "31", "32" }, { "ack_retry", "7", "8" }, { "rnr_timer", "31", "32" },
	{ "rnr_retry", "7", "8" }, { "traffic_class", "255", "256" },
};
#define LIMITS ((int)(sizeof(limits) / sizeof(*limits)))

static DAT_RETURN set(DAT_EP_HANDLE ep, const char *name, const char *value)
{
	DAT_NAMED_ATTR attr = { name, value };
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	param.ep_attr.ep_provider_specific_count = 1;
	param.ep_attr.ep_provider_specific = &attr;
	return dat_ep_modify(ep, NAMED, &param);
}

/* Returns the value that dat_ep_query() has for this name, or NULL. */
static const char *told(DAT_EP_HANDLE ep, const char *name)
{
	DAT_EP_PARAM param;

	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	for (int i = 0; i < param.ep_attr.ep_provider_specific_count; i++)
		if (!strcmp(param.ep_attr.ep_provider_specific[i].name, name))
			return param.ep_attr.ep_provider_specific[i].value;
	return NULL;
}

static bool is_known(DAT_EP_HANDLE ep, int i)
{
	DAT_RETURN ret = set(ep, limits[i].name, "0");

	if (ret == DAT_SUCCESS)
		return true;
	FAILS(ret, DAT_MODEL_NOT_SUPPORTED);
	HOLDS(!told(ep, limits[i].name));
	return false;
}

static void needs_limits(DAT_EP_HANDLE ep)
{
	if (DAT_GET_TYPE(set(ep, "traffic_class", "0")) == DAT_INVALID_PARAMETER)
		skip("the provider has no such attributes");
}

TEST("EXT-32", limits_of_a_connection_are_told_as_they_were_set)
{
	struct end end = AN_END();

	needs_limits(end.ep);
	for (int i = 0; i < LIMITS; i++) {
		if (!is_known(end.ep, i))
			continue;
		HOLDS(!strcmp(told(end.ep, limits[i].name), "0"));
		OK(set(end.ep, limits[i].name, limits[i].most));
		HOLDS(!strcmp(told(end.ep, limits[i].name), limits[i].most));
	}
}

TEST("EXT-32", what_an_endpoint_tells_makes_another_like_it)
{
	struct end end = AN_END();
	DAT_EP_PARAM param;
	DAT_EP_HANDLE other;

	needs_limits(end.ep);
	OK(set(end.ep, "traffic_class", "40"));
	OK(dat_ep_query(end.ep, DAT_EP_FIELD_ALL, &param));
	OK(dat_ep_create(ia(), end.pz, end.recv, end.request, end.conn, &param.ep_attr, &other));
	HOLDS(!strcmp(told(other, "traffic_class"), "40"));
}

TEST("EXT-32", an_endpoint_with_limits_connects)
{
	struct end a = AN_END(), b = AN_END();

	needs_limits(a.ep);
	for (int i = 0; i < LIMITS; i++)
		if (is_known(a.ep, i)) {
			const char *value = strcmp(limits[i].name, "ack_timeout") ? "4" : "20";

			OK(set(a.ep, limits[i].name, value));
			OK(set(b.ep, limits[i].name, value));
		}
	connect_ends(&a, &b);
	WORKS(a, b);
}

TEST("EXT-33", a_limit_out_of_range_is_refused)
{
	static const char *const wrong[] = { "", "-1", "many", "1x", " 1", "0x1", "1000", NULL };
	struct end end = AN_END();

	needs_limits(end.ep);
	for (int i = 0; i < LIMITS; i++) {
		FAILS(set(end.ep, limits[i].name, limits[i].beyond),
		      DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
		for (int j = 0; j < 8; j++)
			FAILS(set(end.ep, limits[i].name, wrong[j]),
			      DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
		HOLDS(!told(end.ep, limits[i].name) || !strcmp(limits[i].name, "traffic_class"));
	}
	FAILS(set(end.ep, "ack_patience", "1"), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("EXT-34", limits_of_a_connected_endpoint_stay)
{
	struct pair p = CONNECTED_PAIR();
	struct end other = AN_END();

	needs_limits(other.ep);
	FAILS(set(p.a.ep, "traffic_class", "8"), DAT_INVALID_STATE);
	HOLDS(!told(p.a.ep, "traffic_class"));
	WORKS(p.a, p.b);
}
