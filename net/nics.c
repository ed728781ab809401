/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nics.c - dat_net_nics(): the interfaces of the namespace, and the RDMA ports that belong to them. */
#include "net/rdma.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct dat_net_nic *to, const struct net_link *link, const struct net_rdma *port)
{
	memset(to, 0, sizeof *to);
	snprintf(to->netdev, sizeof to->netdev, "%s", link->name);
	to->mtu = link->mtu;
	to->speed_mbit = net_rdma_speed(link->name);
	to->up = net_link_is_up(link);
	to->length = link->length;
	memcpy(to->address, link->lladdr, link->length);
	if (!port)
		return;
	snprintf(to->device, sizeof to->device, "%s", port->device);
	to->port = port->port;
	to->rdma = port->kind;
}

/* An interface without a port is one row, as is each port. */
static int make_list(const struct net_table *table, const struct net_rdma_list *rdma,
		     struct dat_net_nic **list, size_t *count)
{
	size_t most = table->link_count + rdma->count, n = 0;
	struct dat_net_nic *to = calloc(most + 1, sizeof *to);

	if (!to)
		return ENOMEM;
	for (size_t i = 0; i < table->link_count; i++) {
		const struct net_rdma *port = net_rdma_of(rdma, table->links[i].name, NULL);

		do {
			fill(&to[n++], &table->links[i], port);
			port = port ? net_rdma_of(rdma, table->links[i].name, port) : NULL;
		} while (port && n < most);
	}
	*list = to;
	*count = n;
	return 0;
}

NET_PUBLIC int dat_net_nics(struct dat_net_nic **list, size_t *count)
{
	struct net_table table = { 0 };
	struct net_rdma_list rdma = { 0 };
	struct nl_sock *sock;
	int err;

	if (!list || !count)
		return EINVAL;
	err = net_open(&sock);
	if (err)
		return err;
	err = net_table_read(&table, sock);
	if (!err)
		err = net_rdma_read(&rdma, &table);
	if (!err)
		err = make_list(&table, &rdma, list, count);
	net_table_free(&table);
	net_rdma_free(&rdma);
	net_close(sock);
	return err;
}
