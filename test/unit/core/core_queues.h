/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_queues.h - the protection domains, memory regions, queue pairs and shared receive queues of the device of
 * core_device.h (core_queues.c). The operations are those of dapl_device_ops; core_device.c has the table. */
#ifndef TEST_CORE_QUEUES_H
#define TEST_CORE_QUEUES_H
#include "dapl/core/dapl.h"

/* That all objects of the device are of. */
struct ibv_context *core_context(void);

int core_alloc_pd(struct dapl_device *dev, struct ibv_pd **pd);
int core_dealloc_pd(struct ibv_pd *pd);
/* The contexts of a region are its number, local, and its number | CORE_REMOTE. */
enum { CORE_REMOTE = 0x10000 };
int core_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name, struct ibv_mr **mr);
int core_dereg_mr(struct ibv_mr *mr);
int core_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
int core_create_delayed_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			   struct ibv_qp **qp);
int core_destroy_qp(struct ibv_qp *qp);
int core_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
int core_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int core_destroy_srq(struct ibv_srq *srq);

#endif
