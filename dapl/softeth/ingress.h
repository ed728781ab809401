/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ingress.h - a port's program on the ingress of its network device (ingress.c). port->lock is held, except by
 * eth_steer_count(). */
#ifndef SOFTETH_INGRESS_H
#define SOFTETH_INGRESS_H
#include "dapl/softeth/port_types.h"

/* Replaces the program by one for the port's rules; detaches it if there is no TAKE or DROP rule, unless it is an XDP
 * program. After an errno it is as it was. */
int eth_steer_renew(struct eth_port *port);
void eth_steer_detach(struct eth_port *port);
/* Frames and bytes that the program has dropped for a rule of mode DROP, or an errno. The lock of groups is held: the
 * rule stays. */
int eth_steer_count(const struct eth_port *port, const struct eth_rule *rule, uint64_t *frames, uint64_t *bytes);
/* Reserve counters for a rule of mode DROP, and release them. An errno: the counters cannot be set to 0. */
int eth_steer_get_counter(struct eth_port *port, struct eth_rule *rule);
void eth_steer_put_counter(struct eth_port *port, struct eth_rule *rule);

#endif
