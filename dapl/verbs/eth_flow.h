/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_flow.h - a rule of a raw Ethernet endpoint as a flow of libibverbs (eth_flow.c). Plain C, without a device. */
#ifndef VERBS_ETH_FLOW_H
#define VERBS_ETH_FLOW_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include "dapl/core/eth_device.h"

enum { HW_FLOW_SPECS = 8 };	/* two headers of three layers, a tunnel, an action */

/* How every specification begins. They follow each other without gaps, aligned to 4 bytes; struct ibv_flow_spec
 * itself wants 8. */
struct hw_spec_head {
	enum ibv_flow_spec_type type;
	uint16_t size;
};

struct hw_flow {
	struct ibv_flow_attr attr;	/* the specifications follow it without a gap */
	uint8_t specs[HW_FLOW_SPECS * sizeof(struct ibv_flow_spec)];
	bool partial;			/* a mask is neither full nor 0 */
	bool tagged;			/* has IBV_FLOW_SPEC_ACTION_TAG */
};

/* Makes a flow that matches what the rule matches. `tag` 0: no tag. Returns why there is none, or NULL. */
const char *hw_flow_build(const struct dapl_eth_rule *rule, uint8_t port, uint32_t tag, struct hw_flow *flow);

#endif
