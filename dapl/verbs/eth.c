/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.c - the table of the operations for raw Ethernet endpoints. */
#include "eth.h"
#include "eth_attr.h"
#include "eth_clock.h"
#include "eth_cq.h"
#include "eth_group.h"
#include "eth_qp.h"
#include "eth_recv.h"
#include "eth_rule.h"
#include "eth_send.h"
#include <errno.h>

/* Verbs cannot redirect a flow. A second flow to the new QP would deliver frames twice; to destroy the
 * first one before would lose some. */
static int move_rule(struct ibv_qp *from, void *rule, struct ibv_qp *to, void **moved)
{
	(void)from;
	(void)rule;
	(void)to;
	(void)moved;
	return EOPNOTSUPP;
}

const struct dapl_eth_ops hw_eth_ops = {
	.carrier = "VERBS",
	.reads_headers = true,
	.query = hw_eth_query, .begin = hw_eth_begin,
	.add_rule = hw_eth_rule_add, .free_rule = hw_eth_rule_free, .move_rule = move_rule,
	.count_rule = hw_eth_rule_count,
	.poll = hw_eth_ring_poll, .release = hw_eth_ring_release, .arm = hw_eth_ring_arm, .stats = hw_eth_stats,
	.pace = hw_eth_pace, .clock = hw_eth_clock_read, .moderate = hw_eth_moderate,
	.create_group = hw_group_create, .set_group = hw_group_set, .free_group = hw_group_free,
};
