/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.c - where a datagram endpoint's peer is. SIDR, the connection manager of datagrams,
 * tells the active side where the passive one is; the other direction is ours: the
 * active side says it in its private data (pdata.h). */
#include "hw.h"
#include "address.h"
#include "pdata.h"
#include "common/log.h"
#include "dapl/core/settings.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* GID tables are a few dozen entries long; rxe's and mlx5's limits are 256 to 1024. */
enum { GIDS = 1024 };

/* Where our GID stands now; RoCE v2 preferred, and our network device. */
static int gid_index(struct dapl_device *dev)
{
	static const uint32_t preferred[] = { IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V1,
		IBV_GID_TYPE_IB };
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	int best = -1, best_rank = 3;

	if (ibv_query_port(dev->verbs, dev->attr.port, &port))
		return 0;
	for (int i = 0; i < port.gid_tbl_len && i < GIDS; i++) {
		if (ibv_query_gid_ex(dev->verbs, dev->attr.port, i, &entry, 0) ||
		    memcmp(&entry.gid, &dev->attr.gid, sizeof(entry.gid)) != 0)
			continue;
		for (int r = 0; r < best_rank; r++)
			if (entry.gid_type == preferred[r]) {
				best = i;
				best_rank = r;
			}
	}
	return best < 0 ? 0 : best;
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
	if (dapl_settings.ib_sl)
		attr->sl = dapl_settings.ib_sl;
	if (attr->is_global && dapl_settings.hop_limit)
		attr->grh.hop_limit = dapl_settings.hop_limit;
	if (attr->is_global && dapl_settings.tclass >= 0)
		attr->grh.traffic_class = dapl_settings.tclass;
	peer->ah = ibv_create_ah(pd, attr);
	return peer->ah ? 0 : errno ? errno : EIO;
}

int hw_ud_peer_active(struct dapl_device *dev, struct ibv_pd *pd,
		      const struct rdma_ud_param *told, struct dapl_ud_peer *peer)
{
	struct ibv_ah_attr attr = told->ah_attr;

	attr.port_num = dev->attr.port;
	peer->qpn = told->qp_num;
	peer->qkey = told->qkey;
	return make_handle(pd, &attr, peer);
}

int hw_ud_peer_passive(struct dapl_device *dev, struct ibv_pd *pd,
		       const struct sockaddr *remote, const struct hw_ud_self *told,
		       struct dapl_ud_peer *peer)
{
	struct ibv_ah_attr attr = { .port_num = dev->attr.port };
	struct ibv_port_attr port;

	if (ibv_query_port(dev->verbs, dev->attr.port, &port))
		return EIO;
	attr.grh.sgid_index = gid_index(dev);
	attr.grh.hop_limit = 64;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.is_global = 1;	/* and where its request came from, not what it says */
		hw_address_gid(remote, attr.grh.dgid.raw);
	} else {
		attr.dlid = told->lid;
		memcpy(attr.grh.dgid.raw, told->gid, 16);
		attr.is_global = dapl_settings.global_routing ||
			attr.grh.dgid.global.subnet_prefix != dev->attr.gid.global.subnet_prefix;
	}
	peer->qpn = told->qpn;
	peer->qkey = told->qkey;
	return make_handle(pd, &attr, peer);
}
