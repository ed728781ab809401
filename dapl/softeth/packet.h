/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.h - counters of a port (packet.c). port.h has the table of the other functions of packet.c. */
#ifndef SOFTETH_PACKET_H
#define SOFTETH_PACKET_H
#include "dapl/softeth/port_types.h"

/* port->lock held. Reads the kernel's counter of dropped frames, which restarts. Returns what was new; 0 on error. */
uint32_t eth_read_drops(struct eth_port *port);
/* port->lock held. Fills in the frame's time, in ns, and losses, and counts it as received. Its flags are
 * set already. */
void eth_account(struct eth_port *port, struct dapl_eth_frame *frame, uint64_t time);

#endif
