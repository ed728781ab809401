/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.h - reads the counters of a port: frames received and sent, those that the kernel or the device dropped.
 * rule_find.c counts the frames that are received. */
#ifndef SOFTETH_COUNTERS_H
#define SOFTETH_COUNTERS_H
#include "dapl/softeth/port_types.h"

/* port->lock held. Reads the kernel's counter of dropped frames, which restarts. Returns what was new; 0 on error. */
uint32_t eth_counters_read_drops(struct eth_port *port);
/* Takes port->lock. Reads all counters, and those of the kernel and the device. */
void eth_counters_read(struct eth_port *port, struct dapl_eth_stats *stats);
/* For a new port. Reads the device's counters, so that eth_counters_read() tells how much they have grown since. */
void eth_counters_begin(struct eth_port *port);

#endif
