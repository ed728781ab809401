/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rule.h - parses the text of rules of raw Ethernet endpoints (datcap(1), RULES). */
#ifndef DATCAP_RULE_H
#define DATCAP_RULE_H
#include <stdbool.h>
#include <stddef.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

/* Fills in the keys and masks of *rule, and leaves its other fields alone. If the text is wrong, returns
 * false, and stores the reason in `wrong`. */
bool rule_parse(const char *text, DAT_ETH_RULE *rule, char *wrong, size_t size);
/* Returns whether any frame does not match the rule. 'tos 0/0' and 'inner' match each frame. */
bool rule_has_condition(const DAT_ETH_RULE *rule);
/* Returns whether the destination of the rule is an IP multicast group. */
bool rule_names_group(const DAT_ETH_RULE *rule);
/* Parses text like "02:00:00:00:00:01". */
bool rule_parse_mac(const char *text, uint8_t mac[6]);

#endif
