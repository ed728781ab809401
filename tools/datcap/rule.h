/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rule.h - rules of raw Ethernet endpoints in words (datcap(1), RULES). */
#ifndef DATCAP_RULE_H
#define DATCAP_RULE_H
#include <stdbool.h>
#include <stddef.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

/* Fills in key and mask of the headers; the rest of *rule stays. False: `wrong` says why. */
bool rule_parse(const char *text, DAT_ETH_RULE *rule, char *wrong, size_t size);
/* Whether it leaves any frame out: 'tos 0/0' and 'inner' do not. */
bool rule_has_condition(const DAT_ETH_RULE *rule);
/* Whether its destination is an IP multicast group. */
bool rule_names_group(const DAT_ETH_RULE *rule);
/* "02:00:00:00:00:01" */
bool rule_parse_mac(const char *text, uint8_t mac[6]);

#endif
