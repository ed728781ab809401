/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.h - the types of objects of raw Ethernet endpoints: groups of endpoints, and rules of endpoints and
 * groups. Functions are declared in the header of their file. Posts and completions are the same as those
 * of other endpoints (ep/, event/). */
#ifndef DAPL_ETH_H
#define DAPL_ETH_H
#include "dapl/core/dapl.h"

struct dapl_group {
	struct dapl_object obj;
	struct ibv_qp *qp;		/* the group's QP in the device */
	uint16_t members;
	uint32_t table_size;
	uint64_t caps;			/* capabilities of the device */
	struct dapl_rule *rules;	/* guarded by rule.c's lock */
};

struct dapl_rule {
	struct dapl_object obj;
	/* The place of the rule: an endpoint or a group, with a reference; the other is NULL.
	 * dat_eth_rule_move() changes both. Guarded by rule.c's lock. */
	struct dapl_ep *ep;
	struct dapl_group *group;
	/* Guarded by ep->lock, or by rule.c's lock for a rule of a group. */
	struct dapl_rule *next;		/* ep->eth->rules, group->rules */
	void *device_rule;		/* NULL: the rule ended with a disconnect, or with the group */
	DAT_ETH_RULE rule;
};

#endif
