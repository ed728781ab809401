/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.h - sends by a port's packet socket (send.c): operations of struct eth_port_ops (port.h). They take no lock. */
#ifndef SOFTETH_SEND_H
#define SOFTETH_SEND_H
#include "dapl/softeth/port.h"

/* EAGAIN: the device's queue is full. EINVAL: `how` does not fit the frame; *wrong says why. */
int eth_send(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how,
	     const char **wrong);
/* One thread at a time. *sent: frames that have left. The result is that of the frame behind them. */
int eth_send_batch(struct eth_port *port, const struct eth_out *frames, int n, int *sent, const char **wrong);
/* The time at which the last frame with ETH_SEND_STAMP left, in ns. EAGAIN: not known yet. */
int eth_send_stamp(struct eth_port *port, uint64_t *time);
/* Checks a frame that is to be sent later. Returns what is wrong with it, or NULL. */
const char *eth_send_check(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how);

#endif
