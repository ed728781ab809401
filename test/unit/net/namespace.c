/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* namespace.c - see namespace.h. */
#include "test/unit/net/namespace.h"
#include "test/unit/unit.h"

struct net_table given_table;
struct net_rdma_list given_ports;
const char *failing;
int held;

static int a_socket;

int namespace_result(const char *function) { return failing && !strcmp(function, failing) ? ENFILE : 0; }

REPLACE(net_open, net_close, net_table_read, net_table_free, net_rdma_read, net_rdma_free)

int __wrap_net_open(struct nl_sock **sock)
{
	int err = namespace_result("open");

	if (err)
		return err;
	*sock = (struct nl_sock *)(void *)&a_socket;
	held++;
	return 0;
}

void __wrap_net_close(struct nl_sock *sock)
{
	if (sock != (struct nl_sock *)(void *)&a_socket)
		abort();
	held--;
}

/* A table is freed after a failure, too. */
int __wrap_net_table_read(struct net_table *table, struct nl_sock *sock)
{
	*table = given_table;
	held++;
	return namespace_result("table");
}

void __wrap_net_table_free(struct net_table *table)
{
	held -= table->links != NULL;
	*table = (struct net_table){ .links = NULL };
}

int __wrap_net_rdma_read(struct net_rdma_list *list, const struct net_table *table)
{
	*list = given_ports;
	held++;
	return namespace_result("rdma");
}

void __wrap_net_rdma_free(struct net_rdma_list *list)
{
	held -= list->ports != NULL;
	list->ports = NULL;
}
