/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.h - raw Ethernet endpoints: their life, their rules, and the calls of dat_eth_extensions.h. Posting and
 * completions are those of every endpoint (ep/, event/). */
#ifndef DAPL_ETH_H
#define DAPL_ETH_H
#include <stdarg.h>
#include "dapl/core/dapl.h"

struct dapl_group {
	struct dapl_object obj;
	struct ibv_qp *qp;		/* the device's */
	uint16_t members;
	uint32_t table_size;
	uint64_t caps;			/* of the device */
	struct dapl_rule *rules;	/* guarded by rule.c's lock */
};

struct dapl_rule {
	struct dapl_object obj;
	/* Where it is: an endpoint or a group, a reference to it. dat_eth_rule_move() changes both: guarded by rule.c's lock */
	struct dapl_ep *ep;
	struct dapl_group *group;
	/* Guarded by ep->lock, or by rule.c's lock if it is a group's. */
	struct dapl_rule *next;		/* ep->eth->rules, group->rules */
	void *device_rule;		/* NULL: it ended with a disconnect, or with the group */
	DAT_ETH_RULE rule;
};

/* Entries of the provider table: those of ep/ and conn/, and what a raw endpoint needs beyond them. */
DAT_RETURN dapl_eth_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			      DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *handle);
DAT_RETURN dapl_eth_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
				       DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
				       DAT_EP_HANDLE *handle);
DAT_RETURN dapl_eth_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags);
DAT_RETURN dapl_eth_ep_free(DAT_EP_HANDLE handle);

/* Operations DAT_ETH_*_OP. */
DAT_RETURN dapl_eth_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args);

/* send.c */
DAT_RETURN dapl_eth_post_send(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			      const DAT_ETH_SEND *how, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_eth_pace(struct dapl_ep *ep, const DAT_ETH_PACE *pace);

/* group.c */
DAT_RETURN dapl_eth_group_create(DAT_HANDLE ia, DAT_COUNT n, const DAT_EP_HANDLE *eps, const DAT_ETH_RSS *rss,
				 DAT_ETH_GROUP_HANDLE *handle);
DAT_RETURN dapl_eth_group_set(DAT_HANDLE handle, const uint16_t *table);
DAT_RETURN dapl_eth_group_free(DAT_HANDLE handle);
void dapl_eth_group_end(struct dapl_group *group);	/* it is killed, and no call is inside */

/* rule.c */
DAT_RETURN dapl_eth_rule_add(DAT_HANDLE ep_or_group, const DAT_ETH_RULE *rule, DAT_ETH_RULE_HANDLE *handle);
DAT_RETURN dapl_eth_rule_free(DAT_HANDLE handle);
DAT_RETURN dapl_eth_rule_move(DAT_HANDLE handle, DAT_HANDLE to);
DAT_RETURN dapl_eth_rule_query(DAT_HANDLE handle, DAT_ETH_RULE *rule, DAT_UINT64 *frames, DAT_UINT64 *bytes);
void dapl_eth_rule_forks(void);		/* has move_lock taken over each fork */
/* The endpoint is disconnected or freed, and its QP has no rules: ends their handles. ep->lock is not held. */
void dapl_eth_rules_end(struct dapl_ep *ep);
void dapl_eth_group_rules_end(struct dapl_group *group);	/* the same of a group */
/* Around calls of the device for groups: they exclude each other, and moves of rules. */
void dapl_eth_groups_lock(void);
void dapl_eth_groups_unlock(void);

#endif
