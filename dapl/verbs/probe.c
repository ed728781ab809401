/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.c - what a device is and can do. Values that drivers report wrongly are probed instead. */
#include "hw.h"
#include "probe.h"
#include "segments.h"
#include "siw.h"
#include "dm.h"
#include "eth_attr.h"
#include "flush.h"
#include "pdata.h"
#include "common/address.h"
#include "common/log.h"
#include "dapl/core/base/settings.h"
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

/* Bits of device_cap_flags_ex that the kernel's interface has since Linux 6.2. Headers of rdma-core 44 lack their
 * names; its library passes the bits on. */
static const uint64_t cap_flush_global = UINT64_C(1) << 38, cap_flush_persistent = UINT64_C(1) << 39,
	cap_atomic_write = UINT64_C(1) << 40;

#define MESSAGE_MAX (1u << 31)	/* bytes: InfiniBand's limit; siw reports -1 */

static unsigned mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 1024;
}

/* Some drivers fill an int with a number that does not fit, or with -1 for "plenty". */
static void clamp_limit(int *limit, int most)
{
	if (*limit < 0 || *limit > most)
		*limit = most;
}

static void clamp_limits(struct ibv_device_attr *l)
{
	clamp_limit(&l->max_qp, 1 << 24);
	clamp_limit(&l->max_qp_wr, 1 << 20);
	clamp_limit(&l->max_sge, 256);
	clamp_limit(&l->max_sge_rd, l->max_sge);
	clamp_limit(&l->max_cq, 1 << 24);
	clamp_limit(&l->max_cqe, 1 << 24);
	clamp_limit(&l->max_mr, INT_MAX);
	clamp_limit(&l->max_pd, INT_MAX);
	clamp_limit(&l->max_mw, INT_MAX);
	clamp_limit(&l->max_ah, INT_MAX);
	clamp_limit(&l->max_srq, INT_MAX);
	clamp_limit(&l->max_srq_wr, 1 << 20);
	clamp_limit(&l->max_srq_sge, 256);
	clamp_limit(&l->max_qp_rd_atom, 254);	/* to librdmacm 255 means the maximum */
	clamp_limit(&l->max_qp_init_rd_atom, 254);
}

static bool can_make_window(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	if (mw)
		ibv_dealloc_mw(mw);
	return mw != NULL;
}

/* Returns the bytes of inline data that a small queue pair gets, at most `want`. */
static unsigned try_inline(struct ibv_pd *pd, struct ibv_cq *cq, unsigned want)
{
	for (;; want /= 2) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1, .max_inline_data = want },
		};
		struct ibv_qp *qp = ibv_create_qp(pd, &attr);

		if (qp) {
			ibv_destroy_qp(qp);
			return attr.cap.max_inline_data;
		}
		if (!want)
			return 0;
	}
}

/* Probes limits that only an attempt with real objects shows. */
static int probe_objects(struct dapl_device *dev)
{
	struct dapl_device_attr *a = &dev->attr;
	struct ibv_pd *pd = ibv_alloc_pd(dev->verbs);
	struct ibv_cq *cq = ibv_create_cq(dev->verbs, 1, NULL, NULL, 0);
	int err = 0;

	if (pd && cq) {
		a->windows_1 = can_make_window(pd, IBV_MW_TYPE_1);
		a->windows_2 = can_make_window(pd, IBV_MW_TYPE_2);
		a->max_inline = try_inline(pd, cq, dapl_settings.max_inline);
		a->delayed_ack = a->flush_global && hw_flush_is_offered(pd, cq);
	} else {
		err = hw_null_errno();
	}
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
	return err;
}

void hw_probe_port(struct dapl_device *dev, struct dapl_device_attr *a)
{
	struct ibv_port_attr port;

	if (ibv_query_port(dev->verbs, a->port, &port))
		return;
	a->port_active = port.state == IBV_PORT_ACTIVE;
	a->mtu = mtu_bytes(port.active_mtu);
	a->max_message = port.max_msg_sz && port.max_msg_sz < MESSAGE_MAX ? port.max_msg_sz :
		MESSAGE_MAX;
}

/* Sets the P_Key index: that of DAPL_IB_PKEY, else the one that rdma_cm derives from the network device (an
 * IPoIB child has a P_Key of its own), else 0. */
static int find_pkey(struct dapl_device *dev, struct rdma_cm_id *bound)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask = 0, index;

	if (dev->attr.iwarp)
		return 0;
	if (dapl_settings.ib_pkey >= 0) {
		index = ibv_get_pkey_index(dev->verbs, dev->attr.port, htons(dapl_settings.ib_pkey));
		if (index < 0) {
			log_report(REPORT_BAD_VALUE, NULL,
				   "%s port %u: DAPL_IB_PKEY is 0x%x, which is not in the "
				 "port's P_Key table", dev->attr.device, dev->attr.port,
				 dapl_settings.ib_pkey);
			return ENODEV;
		}
		dev->pkey_index = index;
	} else if (!rdma_init_qp_attr(bound, &attr, &mask) && mask & IBV_QP_PKEY_INDEX) {
		dev->pkey_index = attr.pkey_index;
	}
	return 0;
}

/* rdma_cm has the GID of an address, except on iWARP. */
static void find_gid(struct dapl_device *dev, struct rdma_cm_id *bound)
{
	dev->attr.gid = bound->route.addr.addr.ibaddr.sgid;
	if (dev->attr.iwarp || !dev->attr.gid.global.interface_id)
		ibv_query_gid(dev->verbs, dev->attr.port, 0, &dev->attr.gid);
}

#define SIW_FILLER_CQES 16385	/* more than the pages before that offset */

/* libsiw maps each queue at an offset that the kernel returns, that of the first free pages. It takes the
 * offset 0x90000 for an error, so a process could make no more objects once all pages before it are in use.
 * One large CQ, made before any other object, covers that offset: no queue can begin there. */
static void cover_siw_offset(struct dapl_device *dev)
{
	dev->siw_filler = ibv_create_cq(dev->verbs, SIW_FILLER_CQES, NULL, NULL, 0);
}

/* Deviations of the kernel's Soft-iWARP from verbs, seen in Linux 6.1. Its queues are memory that the
 * library writes and the kernel reads. A move to ERR flushes the queued requests once; the kernel never
 * reads later posts. The doorbell may fail although the request is in the queue. No received message counts
 * as solicited. siw_queue.c corrects the send queues. */
static void set_siw_quirks(struct dapl_device *dev)
{
	struct dapl_device_attr *a = &dev->attr;

	cover_siw_offset(dev);
	hw_siw_adopt(dev->verbs);
	a->no_late_flush = true;
	a->no_solicited = true;
	a->no_empty_receive = true;
}

/* The kernel's software devices. Returns 0 or an errno. */
static int set_quirks(struct dapl_device *dev)
{
	enum { SIW_VENDOR = 0x626d74, RXE_VENDOR = 0xffffff };
	unsigned vendor = dev->attr.limits.vendor_id;

	if (dev->attr.iwarp && vendor == SIW_VENDOR)
		set_siw_quirks(dev);
	else if (dev->attr.iwarp || vendor != RXE_VENDOR)
		return 0;
	else
		dev->late_refusals = true;
	return hw_segments_adopt(dev->verbs);
}

static int report_unknown(const struct dapl_device *dev, int err)
{
	log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err),
		   "%s port %u: cannot find out what the device can do: %s", dev->attr.device,
		   dev->attr.port, strerror(err));
	return err;
}

/* A kernel without the extended query has none of these. */
static void probe_placement(struct dapl_device *dev)
{
	struct ibv_device_attr_ex ex;

	if (ibv_query_device_ex(dev->verbs, NULL, &ex))
		return;
	dev->attr.flush_global = ex.device_cap_flags_ex & cap_flush_global;
	dev->attr.flush_persistent = ex.device_cap_flags_ex & cap_flush_persistent;
	dev->attr.atomic_write = ex.device_cap_flags_ex & cap_atomic_write;
}

int hw_probe(struct dapl_device *dev, struct rdma_cm_id *bound)
{
	struct dapl_device_attr *a = &dev->attr;
	struct ibv_device_attr *l = &a->limits;
	enum hw_wire wire;
	int err;

	snprintf(a->device, sizeof(a->device), "%s", ibv_get_device_name(dev->verbs->device));
	a->port = bound->port_num;
	a->iwarp = dev->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	err = hw_errno(ibv_query_device(dev->verbs, l));
	if (!err)
		err = set_quirks(dev);
	if (err)
		return report_unknown(dev, err);
	snprintf(a->vendor, sizeof(a->vendor), "vendor 0x%06x part %u", l->vendor_id,
		 l->vendor_part_id);
	clamp_limits(l);
	hw_probe_port(dev, a);
	find_gid(dev, bound);
	probe_placement(dev);
	err = probe_objects(dev);
	if (!err && a->delayed_ack)
		err = hw_flush_adopt(dev->verbs);
	if (err)
		return report_unknown(dev, err);
	err = find_pkey(dev, bound);
	if (err)
		return err;

	if (!a->windows_1 && !a->windows_2)
		l->max_mw = 0;
	a->atomics = !a->iwarp && l->atomic_cap != IBV_ATOMIC_NONE;
	a->write_immediate = !a->iwarp;
	a->ud = !a->iwarp;
	a->multicast = a->ud && l->max_mcast_grp > 0;
	a->zero_based = !a->iwarp;	/* siw uses the memory's own address all the same */
	a->send_invalidate = a->windows_2 && l->device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
	a->bind_access = a->windows_1 || a->windows_2;
	a->read_sink_remote = a->iwarp;
	a->max_read_sge = l->max_sge_rd ? l->max_sge_rd : a->iwarp ? 1 : l->max_sge;
	wire = a->iwarp ? HW_WIRE_IWARP : HW_WIRE_IB;
	a->tunes = DAPL_TUNES_CLASS | (a->iwarp ? 0 : DAPL_TUNES_ACK | DAPL_TUNES_RNR);
	hw_dm_probe(dev);
	hw_eth_open(dev);
	a->pdata_connect = hw_pdata_room(wire, HW_REQUEST);
	a->pdata_accept = hw_pdata_room(wire, HW_ACCEPT);
	a->pdata_reject = hw_pdata_room(wire, HW_REJECT);

	dev->qp_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	if (a->atomics)
		dev->qp_access |= IBV_ACCESS_REMOTE_ATOMIC;
	if (a->bind_access)	/* cxgb4 does not bind without it */
		dev->qp_access |= IBV_ACCESS_MW_BIND;
	if (a->flush_global)
		dev->qp_access |= DAPL_ACCESS_FLUSH;
	return 0;
}
