/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* objects.h - protection domains, memory, completion and receive queues, queue pairs (objects.c):
 * operations of dapl/core/device.h, which documents them. They take no lock, and return 0 or a positive
 * errno. */
#ifndef HW_OBJECTS_H
#define HW_OBJECTS_H
#include "dapl/core/device.h"

int hw_alloc_pd(struct dapl_device *dev, struct ibv_pd **pd);
int hw_dealloc_pd(struct ibv_pd *pd);
/* EOPNOTSUPP: IBV_ACCESS_ZERO_BASED for memory that does not begin on a page boundary. `name` is ignored. */
int hw_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name,
	      struct ibv_mr **mr);
int hw_dereg_mr(struct ibv_mr *mr);
int hw_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
int hw_dealloc_mw(struct ibv_mw *mw);
int hw_create_channel(struct dapl_device *dev, struct ibv_comp_channel **channel);
int hw_destroy_channel(struct ibv_comp_channel *channel);
/* The event is acknowledged. EAGAIN: there is none. */
int hw_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq);
/* CQs with a channel are spread over the device's interrupts. */
int hw_create_cq(struct dapl_device *dev, int cqe, void *context,
		 struct ibv_comp_channel *channel, struct ibv_cq **cq);
/* EOPNOTSUPP: the device cannot resize a CQ. */
int hw_resize_cq(struct ibv_cq *cq, int cqe);
int hw_destroy_cq(struct ibv_cq *cq);
int hw_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
int hw_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int hw_destroy_srq(struct ibv_srq *srq);
/* Makes raw packet queue pairs, too. The device may grant fewer bytes of inline data than requested:
 * attr->cap has what it granted. */
int hw_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		 struct ibv_qp **qp);
/* Makes a connected queue pair whose RDMA writes complete when their data is in the peer's memory. Only if the
 * attribute delayed_ack of the device is set. */
int hw_create_delayed_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			 struct ibv_qp **qp);
/* EOPNOTSUPP: a connected queue pair, which is not used again. */
int hw_reset_qp(struct dapl_device *dev, struct ibv_qp *qp);
int hw_error_qp(struct ibv_qp *qp);
int hw_destroy_qp(struct ibv_qp *qp);
int hw_destroy_ah(struct ibv_ah *ah);

#endif
