/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_rule.h - rules of raw QPs and of groups as flows of the device (eth_rule.c). */
#ifndef VERBS_ETH_RULE_H
#define VERBS_ETH_RULE_H
#include "eth_types.h"

/* Operations of struct dapl_eth_ops on a QP or a group. They take the lock of its rules, the first two groups_lock
 * before if it is a group. EEXIST: there is an equal rule; ENOSPC: there are HW_ETH_MAX_RULES; EOPNOTSUPP: the device
 * has no such flow. */
int hw_eth_rule_add(struct ibv_qp *qp, const struct dapl_eth_rule *rule, void **added);
void hw_eth_rule_free(struct ibv_qp *qp, void *rule);
/* ~0: not known. */
void hw_eth_rule_count(struct ibv_qp *qp, void *rule, uint64_t *frames, uint64_t *bytes);

/* Ends all rules. Takes rules->lock; if they are a group's, groups_lock is held. */
void hw_eth_rules_end(struct hw_eth_rules *rules);
/* groups_lock held. Replaces the rule's flow by one to this QP. On failure the rule has no flow. */
int hw_eth_rule_redirect(struct hw_eth_rules *rules, struct hw_eth_rule *rule, struct ibv_qp *target);
/* q->lock held. Counts a frame for the rule of its flow tag, and returns that rule's tag; 0: it is gone. */
uint32_t hw_eth_rule_hit(struct hw_eth *q, uint32_t tag, uint32_t length);

#endif
