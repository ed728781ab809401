/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.c - opens and closes a software RNIC, reports what it is (limits, address, abilities, the present MTU and
 * state of its interface), and has the table of operations, which the folders and files beside it implement. A device
 * is one local address. */
#include "config.h"
#include "common/address.h"
#include "common/ia_params.h"
#include "common/interface.h"
#include "common/log.h"
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/cm/acceptor.h"
#include "dapl/soft/cm/cm.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/initiator.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/cm/mcast.h"
#include "dapl/soft/eth/eth.h"
#include "dapl/soft/fork.h"
#include "dapl/soft/local_address.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/obj/stags.h"
#include "dapl/soft/obj/window.h"
#include "dapl/soft/progress/owner.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/settings.h"
#include "dapl/soft/shm/dm.h"
#include "dapl/soft/shm/proto_table.h"
#include "dapl/soft/tunables.h"
#include "dapl/soft/verbs/mr.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "dapl/soft/verbs/tap.h"
#include "dapl/soft/wire/wire.h"
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

static int read_options(struct dapl_device *dev, const char *params)
{
	struct soft_options options;
	char said[80], found[40];
	const char *wrong = soft_settings_read_options(&options, params);

	dev->eth_bypass = options.eth_bypass;
	if (!wrong)
		return 0;
	log_report(REPORT_BAD_PARAMS, NULL, "soft: ia_params \"%s\": option \"%s\": expected eth_qdisc=bypass or "
		   "eth_qdisc=default", ia_params_printable(params, said, sizeof said),
		   ia_params_printable(wrong, found, sizeof found));
	return EINVAL;
}

static void report_failure(const char *params, int err)
{
	char said[80];

	log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err), "soft: open %s: %s",
		   ia_params_printable(params, said, sizeof said), strerror(err));
}

static void fabricate_verbs(struct dapl_device *dev)
{
	dev->identity.node_type = IBV_NODE_RNIC;
	dev->identity.transport_type = IBV_TRANSPORT_IWARP;
	snprintf(dev->identity.name, sizeof dev->identity.name, "soft_%s", dev->netdev);
	dev->verbs.device = &dev->identity;
	dev->verbs.cmd_fd = dev->verbs.async_fd = -1;
	dev->verbs.num_comp_vectors = 1;
	dev->verbs.ops.post_send = soft_qp_post_send;
	dev->verbs.ops.post_recv = soft_qp_post_recv;
	dev->verbs.ops.post_srq_recv = soft_srq_post;
	dev->verbs.ops.poll_cq = soft_cq_poll;
	dev->verbs.ops.req_notify_cq = soft_cq_arm;
	dev->verbs.ops.bind_mw = soft_qp_bind_mw;
}

static void soft_close(struct dapl_device *dev)
{
	soft_fork_remove_device(dev);
	soft_cm_close(dev);
	dapl_timer_drain(&dev->accesses.flush_timer);
	soft_progress_close(dev);
	dapl_service_flush();
	soft_ud_close(dev);
	soft_stags_fini(dev);
	dapl_service_put();
	free(dev);
}

/* A device, and what folders above obj/ keep for it. */
struct rnic {
	struct dapl_device dev;		/* first: it is freed as the device */
	struct shm_proto_tables protocols;
};

static struct dapl_device *allocate(void)
{
	struct rnic *rnic = calloc(1, sizeof *rnic);

	if (!rnic)
		return NULL;
	rnic->dev.shm.protocols = &rnic->protocols;
	return &rnic->dev;
}

static int soft_open(const char *params, void *ia, struct dapl_device **out)
{
	struct dapl_device *dev = allocate();
	struct ifreq ifr;
	int err;

	if (!dev) {
		report_failure(params, ENOMEM);
		return ENOMEM;
	}
	err = read_options(dev, params);
	if (!err)
		err = soft_local_address_find(params, &dev->address, dev->netdev);
	if (!err)
		err = dapl_service_get();
	if (err) {
		free(dev);
		return err;
	}
	dev->ia = ia;
	dev->datagrams.fd = dev->data_epoll = dev->progress.service_epoll = dev->cm.epoll = -1;
	dev->netdev_index = (int)if_nametoindex(dev->netdev);
	dev->mtu = interface_request_index(dev->netdev_index, SIOCGIFMTU, &ifr) ? 1500 : ifr.ifr_mtu;
	dapl_mutex_init(&dev->qps_lock, RANK_SOFT_QPS);
	dapl_mutex_init(&dev->progress_lock, RANK_SOFT_PROGRESS);
	dapl_spin_init(&dev->accesses.lock, RANK_SOFT_ACCESS);
	dapl_mutex_init(&dev->progress.owner_lock, RANK_SOFT_OWNER);
	dapl_mutex_init(&dev->async.lock, RANK_SOFT_EVENTS);
	TAILQ_INIT(&dev->async.list);
	fabricate_verbs(dev);
	soft_settings_read(dev);
	soft_fork_add_device(dev);
	err = soft_stags_init(dev, &soft_mr_directory);
	if (!err)
		err = soft_progress_open(dev);
	if (!err)
		err = soft_cm_open(dev);
	if (err) {
		report_failure(params, err);
		soft_close(dev);
		return err;
	}
	*out = dev;
	return 0;
}

/* --- what the device reports of itself ------------------------------------------------------------ */

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

static int query(struct dapl_device *dev, struct dapl_device_attr *attr)
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

/* --- queue pairs: raw Ethernet ones are of eth/, all others of verbs/ ---------------------------- */

static int create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
{
	return attr->qp_type == IBV_QPT_RAW_PACKET ? soft_eth_create_qp(dev, pd, attr, qp)
						   : soft_qp_create(dev, pd, attr, qp);
}

static int reset_qp(struct dapl_device *dev, struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RAW_PACKET ? soft_eth_reset_qp(dev, qp) : soft_qp_reset(dev, qp);
}

static int error_qp(struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RAW_PACKET ? soft_eth_error_qp(qp) : soft_qp_error(qp);
}

static int destroy_qp(struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RAW_PACKET ? soft_eth_destroy_qp(qp) : soft_qp_destroy(qp);
}

const struct dapl_device_ops dapl_device_ops = {
	.name = "soft", .parameters = soft_parameters, .posts_may_sleep = true, .callbacks_are_short = true,
	.open = soft_open, .close = soft_close, .query = query,
	.alloc_pd = soft_pd_alloc, .dealloc_pd = soft_pd_dealloc,
	.reg_mr = soft_mr_reg, .dereg_mr = soft_mr_dereg,
	.alloc_dm = soft_dm_alloc, .free_dm = soft_dm_free, .reg_dm = soft_dm_reg,
	.copy_dm = soft_dm_copy, .map_dm = soft_dm_map,
	.alloc_mw = soft_mw_alloc, .dealloc_mw = soft_mw_dealloc,
	.create_channel = soft_cq_channel_create, .destroy_channel = soft_cq_channel_destroy,
	.get_cq_event = soft_cq_channel_get,
	.idle = soft_progress_idle, .sleep = soft_owner_block, .work = soft_owner_work,
	.awake = soft_owner_awake,
	.create_cq = soft_cq_create, .resize_cq = soft_cq_resize,
	.destroy_cq = soft_cq_destroy,
	.create_srq = soft_srq_create, .modify_srq = soft_srq_modify,
	.destroy_srq = soft_srq_destroy,
	.create_qp = create_qp, .reset_qp = reset_qp, .error_qp = error_qp, .destroy_qp = destroy_qp,
	.eth = &soft_eth_ops, .map_remote = soft_qp_map_remote,
	.destroy_ah = soft_ud_ah_destroy,
	.join = soft_mcast_join_group, .leave = soft_mcast_leave_group,
	.listen = listen_begin, .unlisten = listen_end,
	.connect = initiator_connect, .accept = acceptor_accept, .reject = acceptor_reject,
	.disconnect = soft_cm_disconnect, .explain = cm_explain,
	.carrier = cm_carrier, .tcp_state = cm_tcp_state, .tap = soft_tap,
	.release = soft_cm_release,
};
