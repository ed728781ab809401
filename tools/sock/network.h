/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.h - datsock enable --network and disable --network: whether the ends of connections between hosts learn of
 * each other. */
#ifndef SOCK_NETWORK_H
#define SOCK_NETWORK_H

/* Attaches the programs of the kernel to a control group, NULL: to the root of all. Both end the program with a line if
 * that fails. */
void network_enable(const char *cgroup);
void network_disable(void);

#endif
