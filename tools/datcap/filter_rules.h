/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* filter_rules.h - the part of a capture filter (pcap-filter(7)) that rules of an endpoint can express. */
#ifndef DATCAP_FILTER_RULES_H
#define DATCAP_FILTER_RULES_H
#include <stdbool.h>
#include "datcap.h"

enum { FILTER_TEXT_MAX = 1000 };	/* bytes of a filter that is translated */

/* Each frame that passes the filter matches at least one of the rules. Other frames may match a rule, too,
 * so the filter must still be applied. */
struct filter_rules {
	DAT_ETH_RULE rules[MAX_RULES];	/* only key and mask */
	unsigned n;			/* 0: no part of the filter is expressed */
	/* the terms of the filter that the rules express, and the other terms, as "a and b" */
	char expressed[FILTER_TEXT_MAX + 1], left[FILTER_TEXT_MAX + 1];
};

/* `text` is a filter that libpcap accepts. `promiscuous`: the capture includes frames to other stations. */
void filter_rules_make(struct filter_rules *made, const char *text, bool promiscuous);

#endif
