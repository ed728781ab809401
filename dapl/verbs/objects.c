/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* objects.c - protection domains, memory, completion and receive queues, queue pairs: one libibverbs call
 * each, with its errors made uniform. Connected queue pairs go no further than INIT here; conn_qp.c moves
 * them on. */
#include "hw.h"
#include "eth_qp.h"
#include "flush.h"
#include "objects.h"
#include "segments.h"
#include "siw.h"
#include "common/log.h"
#include "dapl/core/base/settings.h"
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <unistd.h>

int hw_alloc_pd(struct dapl_device *dev, struct ibv_pd **pd)
{
	*pd = ibv_alloc_pd(dev->verbs);
	return *pd ? 0 : hw_null_errno();
}

int hw_dealloc_pd(struct ibv_pd *pd)
{
	return hw_errno(ibv_dealloc_pd(pd));
}

/* The kernel registers memory whose addresses count from 0 only if it begins on a page boundary. LMR-26. */
static int reg_zero_based(struct ibv_pd *pd, void *addr, size_t length, int access,
			  struct ibv_mr **mr)
{
	if ((uintptr_t)addr % sysconf(_SC_PAGESIZE)) {
		log_line(LOG_BIT_WARNING, "%s: memory at %p cannot be registered with DAT_VA_TYPE_ZB: it "
			 "begins within a page, expected the start of one",
			 ibv_get_device_name(pd->context->device), addr);
		return EOPNOTSUPP;
	}
	*mr = ibv_reg_mr_iova(pd, addr, length, 0, access & ~IBV_ACCESS_ZERO_BASED);
	return hw_segments_add(*mr, 0);
}

int hw_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name,
	      struct ibv_mr **mr)
{
	(void)name;	/* the device maps pages, shared or not */
	if (access & IBV_ACCESS_ZERO_BASED)
		return reg_zero_based(pd, addr, length, access, mr);
	*mr = ibv_reg_mr(pd, addr, length, access);
	return hw_segments_add(*mr, (uintptr_t)addr);
}

int hw_dereg_mr(struct ibv_mr *mr)
{
	return hw_errno(hw_segments_dereg(mr));
}

int hw_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw)
{
	*mw = ibv_alloc_mw(pd, type);
	return *mw ? 0 : hw_null_errno();
}

int hw_dealloc_mw(struct ibv_mw *mw)
{
	return hw_errno(ibv_dealloc_mw(mw));
}

int hw_create_channel(struct dapl_device *dev, struct ibv_comp_channel **channel)
{
	struct ibv_comp_channel *c = ibv_create_comp_channel(dev->verbs);

	if (!c)
		return hw_null_errno();
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) || fcntl(c->fd, F_SETFD, FD_CLOEXEC)) {
		int err = errno;

		ibv_destroy_comp_channel(c);
		return err;
	}
	*channel = c;
	return 0;
}

int hw_destroy_channel(struct ibv_comp_channel *channel)
{
	return hw_errno(ibv_destroy_comp_channel(channel));
}

int hw_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	void *context;

	if (ibv_get_cq_event(channel, cq, &context))
		return hw_null_errno();
	ibv_ack_cq_events(*cq, 1);
	return 0;
}

int hw_create_cq(struct dapl_device *dev, int cqe, void *context,
		 struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	unsigned vectors = dev->verbs->num_comp_vectors > 0 ? dev->verbs->num_comp_vectors : 1;
	unsigned vector = __atomic_fetch_add(&dev->next_vector, 1, __ATOMIC_RELAXED) % vectors;
	int err;

	*cq = ibv_create_cq(dev->verbs, cqe, context, channel, channel ? vector : 0);
	if (!*cq)
		return hw_null_errno();
	err = hw_siw_cq_add(*cq);
	if (err)
		ibv_destroy_cq(*cq);
	return err;
}

int hw_resize_cq(struct ibv_cq *cq, int cqe)
{
	int err = hw_errno(ibv_resize_cq(cq, cqe));

	return err == ENOSYS || err == ENOTSUP ? EOPNOTSUPP : err;
}

int hw_destroy_cq(struct ibv_cq *cq)
{
	return hw_errno(hw_siw_cq_destroy(cq));
}

int hw_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
{
	*srq = ibv_create_srq(pd, attr);
	return *srq ? 0 : hw_null_errno();
}

int hw_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return hw_errno(ibv_modify_srq(srq, attr, mask));
}

int hw_destroy_srq(struct ibv_srq *srq)
{
	return hw_errno(ibv_destroy_srq(srq));
}

/* Moves a queue pair to INIT. rdma_cm does not do so, since the queue pair belongs to no rdma_cm_id yet.
 * iWARP has neither P_Keys nor ports. */
static int to_init(struct dapl_device *dev, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = dev->attr.port,
		.pkey_index = dev->pkey_index,
		.qp_access_flags = dev->qp_access,
		.qkey = RDMA_UDP_QKEY,
	};
	int mask = IBV_QP_STATE;

	if (qp->qp_type == IBV_QPT_UD)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	else if (dev->attr.iwarp)
		mask |= IBV_QP_ACCESS_FLAGS;
	else
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	return hw_errno(ibv_modify_qp(qp, &attr, mask));
}

/* Moves a datagram queue pair to RTS: it needs no connection. */
static int to_rts_unconnected(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int err = hw_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE));

	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTS;
	return hw_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static int make_ready(struct dapl_device *dev, struct ibv_qp *qp)
{
	int err = to_init(dev, qp);

	if (!err && qp->qp_type == IBV_QPT_UD)
		err = to_rts_unconnected(qp);
	return err;
}

/* Makes a queue pair with `make`, whose `attr` is changed as by ibv_create_qp. */
static int create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **out,
		     struct ibv_qp *(*make)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr))
{
	struct ibv_qp_init_attr want = *attr;
	uint32_t inline_data = attr->cap.max_inline_data;
	struct ibv_qp *qp;
	int err;

	/* No call reports the inline size that is possible with the other sizes, so smaller ones are tried. */
	while (!(qp = make(pd, &want))) {
		err = hw_null_errno();
		if (!inline_data || err == EMFILE || err == EPERM)
			return err;
		inline_data /= 2;
		want = *attr;
		want.cap.max_inline_data = inline_data;
	}
	err = make_ready(dev, qp);
	if (err) {
		log_line(LOG_BIT_ERROR, "%s: cannot move a new queue pair to INIT: %s",
			 dev->attr.device, strerror(err));
		ibv_destroy_qp(qp);
		return err;
	}
	*attr = want;
	*out = qp;
	return 0;
}

/* Keeps a new queue pair for the caller, or destroys it if it could not be begun. */
static int keep_qp(struct ibv_qp *qp, int err, struct ibv_qp **out)
{
	if (err)
		ibv_destroy_qp(qp);
	else
		*out = qp;
	return err;
}

int hw_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		 struct ibv_qp **out)
{
	struct ibv_qp *qp;
	int err;

	if (attr->qp_type == IBV_QPT_RAW_PACKET)
		return hw_eth_create_qp(dev, pd, attr, out);
	err = create_qp(dev, pd, attr, &qp, ibv_create_qp);
	return err ? err : keep_qp(qp, hw_siw_qp_add(qp, attr), out);
}

int hw_create_delayed_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			 struct ibv_qp **out)
{
	struct ibv_qp *qp;
	int err = create_qp(dev, pd, attr, &qp, hw_flush_make_qp);

	return err ? err : keep_qp(qp, hw_flush_qp_add(qp), out);
}

/* A connected QP is not used again. The connection managers of both ends keep the number of the peer's QP
 * until the old connection is over. Until then they refuse a new connection of that number as stale (reason
 * 10 of the IB CM's REJ). siw leaves the QP in ERR. */
int hw_reset_qp(struct dapl_device *dev, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int err;

	if (qp->qp_type == IBV_QPT_RAW_PACKET)
		return hw_eth_reset_qp(qp);
	if (qp->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	err = hw_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	return err ? err : make_ready(dev, qp);
}

int hw_error_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int err;

	if (qp->qp_type == IBV_QPT_RAW_PACKET)
		return hw_eth_error_qp(qp);
	err = hw_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	hw_siw_qp_end(qp);
	return err;
}

int hw_destroy_qp(struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RAW_PACKET ? hw_eth_destroy_qp(qp) :
		hw_errno(hw_flush_qp_destroy(qp, hw_siw_qp_destroy));
}

int hw_destroy_ah(struct ibv_ah *ah)
{
	return hw_errno(ibv_destroy_ah(ah));
}
