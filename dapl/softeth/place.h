/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.h - rules as objects, at a port or at a group (place.c): operations of struct eth_port_ops. They take the lock
 * of groups, and those of ports. */
#ifndef SOFTETH_PLACE_H
#define SOFTETH_PLACE_H
#include "dapl/softeth/port.h"

/* Returns the errors of eth_rule_attach(), or ENOMEM. */
int eth_place_add(struct eth_place at, const struct dapl_eth_rule *rule, void **added);
/* Does nothing if the rule has ended already. */
void eth_place_free(struct eth_place at, void *rule);
/* Moves a rule without losing a frame. ENOENT: the rule has ended; else the errors of eth_place_add(), and
 * the rule stays. */
int eth_place_move(struct eth_place from, void *rule, struct eth_place to, void **moved);
/* Frames and bytes that the rule has matched, also before it was moved; 0: it has ended. */
void eth_place_count(struct eth_place at, const void *rule, uint64_t *frames, uint64_t *bytes);

#endif
