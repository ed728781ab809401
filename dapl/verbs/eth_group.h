/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_group.h - groups of raw QPs over tables of work queues (eth_group.c). */
#ifndef VERBS_ETH_GROUP_H
#define VERBS_ETH_GROUP_H
#include "dapl/core/device.h"
#include "dapl/core/eth_device.h"

struct hw_eth;
struct hw_eth_rules;
struct hw_group;

/* Operations of struct dapl_eth_ops. They take groups_lock, and return an errno; EINVAL: the table names a
 * QP that has left. The QP that hw_group_create() makes stands for the group. */
int hw_group_create(struct dapl_device *dev, struct ibv_qp *const *qps, uint32_t n, const struct dapl_eth_rss *rss,
		    struct ibv_qp **made);
int hw_group_set(struct ibv_qp *qp, const uint16_t *table);
void hw_group_free(struct ibv_qp *qp);

/* No lock is needed. */
struct hw_eth_rules *hw_group_rules(struct ibv_qp *qp);
/* The rules of a group, if the tag is one of theirs; else NULL. The lock of a member is held, or groups_lock. */
struct hw_eth_rules *hw_group_rules_of_tag(struct hw_group *group, uint32_t tag);
/* groups_lock held: the QP for the flow of this rule, made if there is none. Returns 0 or an errno. EOPNOTSUPP: no QP
 * can serve the rule, and *why says why; *why is NULL otherwise. */
int hw_group_target(struct hw_group *group, const struct dapl_eth_rule *rule, struct ibv_qp **qp, const char **why);
/* Takes groups_lock. The QP leaves its groups: its work queue gets none of their frames any more. */
void hw_group_leave_all(struct hw_eth *q);

#endif
