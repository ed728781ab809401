/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rule.h - rules of raw Ethernet endpoints and of groups, and the lock of both (rule.c). Called with no
 * lock held, except dapl_eth_groups_unlock(). */
#ifndef DAPL_ETH_RULE_H
#define DAPL_ETH_RULE_H
#include "dapl/core/dapl.h"

struct dapl_group;

/* dat_eth_rule_add(), _free(), _move() and _query(), with their errors. */
DAT_RETURN dapl_eth_rule_add(DAT_HANDLE ep_or_group, const DAT_ETH_RULE *rule, DAT_ETH_RULE_HANDLE *handle);
DAT_RETURN dapl_eth_rule_free(DAT_HANDLE handle);
DAT_RETURN dapl_eth_rule_move(DAT_HANDLE handle, DAT_HANDLE to);
DAT_RETURN dapl_eth_rule_query(DAT_HANDLE handle, DAT_ETH_RULE *rule, DAT_UINT64 *frames, DAT_UINT64 *bytes);
/* Registers a fork handler that takes the lock of rules and groups over each fork. */
void dapl_eth_rule_forks(void);
/* Ends the handles of an endpoint's rules, after it was disconnected or freed and its QP lost the rules. */
void dapl_eth_rules_end(struct dapl_ep *ep);
/* Ends the handles of a group's rules. The group was killed, and no call is inside it. */
void dapl_eth_group_rules_end(struct dapl_group *group);
/* Called around operations of the device for groups, to serialise them with each other and with moves of
 * rules. */
void dapl_eth_groups_lock(void);
void dapl_eth_groups_unlock(void);

#endif
