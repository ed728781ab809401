/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.h - the objects of raw Ethernet endpoints: groups of endpoints, and rules of both. Types only;
 * each file here has a header of its own for its functions. Posting and completions are those of every
 * endpoint (ep/, event/). */
#ifndef DAPL_ETH_H
#define DAPL_ETH_H
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

#endif
