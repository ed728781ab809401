/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.c - addresses of the peers of datagram endpoints. SIDR, the connection manager of datagrams, gives the
 * active side the address of the passive one. For the other direction the active side sends its address in
 * its private data (pdata.h). */
#include "hw.h"
#include "address.h"
#include "conn_qp.h"
#include "pdata.h"
#include "ud.h"
#include "dapl/core/base/settings.h"
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { GIDS = 1024 };	/* more than any port's table has */

/* The lower the better; 3: unusable. */
static int gid_rank(uint32_t type)
{
	return type == IBV_GID_TYPE_ROCE_V2 ? 0 : type == IBV_GID_TYPE_ROCE_V1 ? 1 :
	       type == IBV_GID_TYPE_IB ? 2 : 3;
}

/* The index of the device's GID now, since tables change when addresses come and go; 0 if it is not found. */
static int gid_index(struct dapl_device *dev)
{
	struct ibv_gid_entry *table = calloc(GIDS, sizeof(*table));
	int best = 0, best_rank = 3;
	ssize_t n;

	if (!table)
		return 0;
	n = ibv_query_gid_table(dev->verbs, table, GIDS, 0);
	for (ssize_t i = 0; i < n; i++)
		if (table[i].port_num == dev->attr.port && gid_rank(table[i].gid_type) < best_rank &&
		    memcmp(&table[i].gid, &dev->attr.gid, sizeof(dev->attr.gid)) == 0) {
			best = table[i].gid_index;
			best_rank = gid_rank(table[i].gid_type);
		}
	free(table);
	return best;
}

void hw_ud_self(struct dapl_device *dev, struct ibv_qp *qp, struct hw_ud_self *self)
{
	struct ibv_port_attr port = { 0 };

	ibv_query_port(dev->verbs, dev->attr.port, &port);
	memcpy(self->gid, &dev->attr.gid, sizeof(self->gid));
	self->qpn = qp->qp_num;
	self->qkey = RDMA_UDP_QKEY;
	self->lid = port.lid;
}

static int make_handle(struct ibv_pd *pd, struct ibv_ah_attr *attr, struct dapl_ud_peer *peer)
{
	hw_qp_set_path(attr, NULL);
	peer->ah = ibv_create_ah(pd, attr);
	return peer->ah ? 0 : hw_null_errno();
}

int hw_ud_peer_active(struct dapl_device *dev, struct ibv_pd *pd,
		      const struct rdma_ud_param *param, struct dapl_ud_peer *peer)
{
	struct ibv_ah_attr attr = param->ah_attr;

	attr.port_num = dev->attr.port;
	peer->qpn = param->qp_num;
	peer->qkey = param->qkey;
	return make_handle(pd, &attr, peer);
}

int hw_ud_peer_passive(struct dapl_device *dev, struct ibv_pd *pd,
		       const struct sockaddr *remote, const struct hw_ud_self *self,
		       struct dapl_ud_peer *peer)
{
	struct ibv_ah_attr attr = { .port_num = dev->attr.port };
	struct ibv_port_attr port;
	int err = hw_errno(ibv_query_port(dev->verbs, dev->attr.port, &port));

	if (err)
		return err;
	attr.grh.sgid_index = gid_index(dev);
	attr.grh.hop_limit = 64;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.is_global = 1;	/* the address the request came from, not the GID it claims */
		address_gid(remote, attr.grh.dgid.raw);
	} else {
		attr.dlid = self->lid;
		memcpy(attr.grh.dgid.raw, self->gid, 16);
		attr.is_global = dapl_settings.global_routing ||
				 attr.grh.dgid.global.subnet_prefix != dev->attr.gid.global.subnet_prefix;
	}
	peer->qpn = self->qpn;
	peer->qkey = self->qkey;
	return make_handle(pd, &attr, peer);
}
