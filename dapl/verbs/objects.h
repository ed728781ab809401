/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* objects.h - protection domains, memory, completion and receive queues, queue pairs (objects.c): operations of
 * dapl/core/device.h, which has their promises. They take no lock, and return 0 or a positive errno. */
#ifndef HW_OBJECTS_H
#define HW_OBJECTS_H
#include "dapl/core/device.h"

int hw_alloc_pd(struct dapl_device *dev, struct ibv_pd **pd);
int hw_dealloc_pd(struct ibv_pd *pd);
/* EOPNOTSUPP: IBV_ACCESS_ZERO_BASED of memory that does not begin with a page. `name` is not looked at. */
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
/* EOPNOTSUPP: the device cannot. */
int hw_resize_cq(struct ibv_cq *cq, int cqe);
int hw_destroy_cq(struct ibv_cq *cq);
int hw_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
int hw_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int hw_destroy_srq(struct ibv_srq *srq);
/* Also of raw packet queue pairs. The bytes of inline data may be fewer than asked for: attr->cap says how many. */
int hw_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		 struct ibv_qp **qp);
/* EOPNOTSUPP: it was a connected one. */
int hw_reset_qp(struct dapl_device *dev, struct ibv_qp *qp);
int hw_error_qp(struct ibv_qp *qp);
int hw_destroy_qp(struct ibv_qp *qp);
int hw_destroy_ah(struct ibv_ah *ah);

#endif
