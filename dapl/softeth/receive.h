/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.h - receives a frame at a time from the packet socket, into memory of the program. Ring receive is in
 * packet_ring.c. */
#ifndef SOFTETH_RECEIVE_H
#define SOFTETH_RECEIVE_H
#include <sys/uio.h>
#include "dapl/softeth/port_types.h"

/* These take port->lock, and are the operations `receive` and `has_frame` of port.h. */
int eth_receive(struct eth_port *port, struct iovec *iov, int n, struct dapl_eth_frame *frame);
bool eth_receive_is_ready(struct eth_port *port);

#endif
