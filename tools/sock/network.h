/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.h - datsock enable --network and disable --network: whether the ends of connections between hosts learn of
 * each other. */
#ifndef SOCK_NETWORK_H
#define SOCK_NETWORK_H

/* Attaches the programs of the kernel and starts datsockd, now and at each start of the system. With a control group,
 * only the former. Both end the program with a line if something fails. */
void network_enable(const char *cgroup);
void network_disable(void);

#endif
