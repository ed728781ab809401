/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* namespace.h - a network namespace that a test describes, in place of the kernel's: net_open(), net_table_read(),
 * net_rdma_read() and what undoes them. */
#ifndef TEST_NET_NAMESPACE_H
#define TEST_NET_NAMESPACE_H
#include "net/rdma.h"

extern struct net_table given_table;		/* interfaces and addresses */
extern struct net_rdma_list given_ports;
extern const char *failing;			/* "open", "table" or "rdma" fails with ENFILE; NULL: nothing */
extern int held;				/* sockets, tables and lists that were not given back yet */

int namespace_result(const char *function);	/* ENFILE if it is the one that fails, else 0 */

#endif
