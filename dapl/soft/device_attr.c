/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_attr.c - see device_attr.h. */
#include "config.h"
#include "dapl/soft/device_attr.h"
#include "common/address.h"
#include "common/interface.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/tunables.h"
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

static void fill_limits(struct ibv_device_attr *limits)
{
	struct rlimit files;
	int connections = SOFT_USUAL_FILES;

	if (!getrlimit(RLIMIT_NOFILE, &files))
		connections = files.rlim_cur < SOFT_MAX_QP ? (int)files.rlim_cur : SOFT_MAX_QP;
	*limits = (struct ibv_device_attr){
		.fw_ver = PACKAGE_VERSION, .max_mr_size = INT64_MAX, .page_size_cap = 4096,
		.max_qp = connections, .max_qp_wr = SOFT_MAX_WR,
		.device_cap_flags = IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = SOFT_MAX_SGE, .max_sge_rd = SOFT_MAX_SGE,
		.max_cq = connections, .max_cqe = SOFT_MAX_CQE, .max_mr = SOFT_MAX_MR,
		.max_pd = SOFT_MAX_PD, .max_qp_rd_atom = SOFT_MAX_READS,
		.max_res_rd_atom = INT32_MAX, .max_qp_init_rd_atom = SOFT_MAX_READS,
		.atomic_cap = IBV_ATOMIC_GLOB, .max_mw = SOFT_MAX_MR, .max_ah = SOFT_MAX_AH,
		.max_srq = SOFT_MAX_SRQ, .max_srq_wr = SOFT_MAX_WR, .max_srq_sge = SOFT_MAX_SGE,
		.max_pkeys = 1, .phys_port_cnt = 1,
	};
}

static unsigned present_mtu(const struct dapl_device *dev)
{
	struct ifreq ifr;
	unsigned mtu = interface_request_index(dev->netdev_index, SIOCGIFMTU, &ifr) ? dev->mtu : (unsigned)ifr.ifr_mtu;

	return mtu < SOFT_UD_MTU ? mtu : SOFT_UD_MTU;
}

int soft_device_query(struct dapl_device *dev, struct dapl_device_attr *attr)
{
	struct ifreq ifr;

	*attr = (struct dapl_device_attr){
		.vendor = "software RNIC", .address = dev->address, .port = 1,
		.mtu = present_mtu(dev),
		.iwarp = true, .atomics = true, .write_immediate = true,
		.send_invalidate = true, .ud = true, .multicast = true, .raw_ethernet = true, .windows_1 = true,
		.windows_2 = true, .bind_access = true, .delayed_ack = true, .zero_based = true,
		.inline_by_lkey = true, .tunes = DAPL_TUNES_ACK | DAPL_TUNES_CLASS,
		.dm_size = dev->shm.dm_size, .dm_unit = 1, .dm_windows = true, .max_read_sge = SOFT_MAX_SGE,
		.max_inline = SOFT_MAX_INLINE, .max_message = SOFT_MAX_MESSAGE,
		.pdata_connect = WIRE_PDATA_MAX, .pdata_accept = WIRE_PDATA_MAX,
		.pdata_reject = WIRE_PDATA_MAX,
	};
	snprintf(attr->device, sizeof attr->device, "%s", dev->identity.name);
	snprintf(attr->netdev, sizeof attr->netdev, "%s", dev->netdev);
	attr->netdev_index = dev->netdev_index;
	address_set_port((struct sockaddr *)&attr->address, 0);
	fill_limits(&attr->limits);
	address_gid((const struct sockaddr *)&dev->address, attr->gid.raw);
	memcpy(&attr->limits.node_guid, attr->gid.raw + 8, 8);
	attr->limits.sys_image_guid = attr->limits.node_guid;
	attr->port_active = !interface_request_index(dev->netdev_index, SIOCGIFFLAGS, &ifr) &&
			    (ifr.ifr_flags & IFF_UP) && (ifr.ifr_flags & IFF_RUNNING);
	return 0;
}
