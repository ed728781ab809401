/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* filter_rules.h - the part of a capture filter (pcap-filter(7)) that rules of an endpoint can express. */
#ifndef DATCAP_FILTER_RULES_H
#define DATCAP_FILTER_RULES_H
#include <stdbool.h>
#include "datcap.h"

enum { FILTER_TEXT_MAX = 1000 };	/* bytes of a filter that is translated */

/* A frame that passes the filter matches one of the rules at least, but perhaps others do, too: the filter still decides. */
struct filter_rules {
	DAT_ETH_RULE rules[MAX_RULES];	/* only key and mask */
	unsigned n;			/* 0: no part of the filter is expressed */
	char expressed[FILTER_TEXT_MAX + 1], left[FILTER_TEXT_MAX + 1];	/* the parts of the filter, "a and b" */
};

/* `text` is a filter that libpcap accepts. `promiscuous`: rules do not depend on the station to which a frame goes. */
void filter_rules_make(struct filter_rules *made, const char *text, bool promiscuous);

#endif
