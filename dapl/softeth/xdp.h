/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xdp.h - receive by AF_XDP sockets: calls of a port for which eth_xdp_open() has made port->xdp (xdp.c). port->lock
 * is held, except by the first two and eth_xdp_descriptor(). An int without explanation is 0 or an errno. */
#ifndef SOFTETH_XDP_H
#define SOFTETH_XDP_H
#include "dapl/softeth/port_types.h"

bool eth_xdp_is_there(void);		/* whether the kernel has AF_XDP sockets */
/* Opens a socket for each receive queue, with room for so many frames, and attaches the program. Returns 0 or an
 * errno, with *tried; eth_xdp_close() is called in both cases. */
int eth_xdp_open(struct eth_port *port, uint32_t frames, uint32_t max_frame, const char **tried);
void eth_xdp_close(struct eth_port *port);
int eth_xdp_sockets(const struct eth_xdp *xdp);		/* the descriptor of the map for the program */
/* Readable when a socket has frames, or the packet socket an error or a time of departure. */
int eth_xdp_descriptor(const struct eth_xdp *xdp);
bool eth_xdp_is_zero_copy(const struct eth_xdp *xdp);	/* at all queues */
bool eth_xdp_has_frame(const struct eth_port *port);
int eth_xdp_poll(struct eth_port *port, struct dapl_eth_frame *frames, int max);	/* how many */
int eth_xdp_release(struct eth_port *port, uint32_t oldest);	/* EINVAL: so many are not out */
uint32_t eth_xdp_read_drops(struct eth_port *port);	/* counts them, and returns the new ones */

#endif
