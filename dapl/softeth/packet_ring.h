/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_ring.h - ring receive of a port (packet_ring.c). port->lock is held, or no other thread uses the port. */
#ifndef SOFTETH_PACKET_RING_H
#define SOFTETH_PACKET_RING_H
#include "dapl/softeth/port_types.h"

/* A ring for so many frames of up to max_frame bytes. An errno: no memory, or what the kernel refuses. */
int packet_ring_open(struct eth_port *port, uint32_t frames, uint32_t max_frame);
/* Does nothing on a port without a ring. */
void packet_ring_close(struct eth_port *port);
/* The next frames, which stay in the ring until they are released. Returns how many. */
int packet_ring_poll(struct eth_port *port, struct dapl_eth_frame *frames, int max);
/* Gives back the `oldest` oldest frames that were polled. EINVAL: fewer are out. */
int packet_ring_release(struct eth_port *port, uint32_t oldest);

#endif
