/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw.h - send queues of the kernel's Soft-iWARP, as verbs promise them (siw_queue.h says how). The functions do
 * nothing on objects of other devices. */
#ifndef SIW_H
#define SIW_H
#include <infiniband/verbs.h>

/* Puts these queues between the users of this context and the device, for its data path. */
void hw_siw_adopt(struct ibv_context *verbs);

/* After a CQ was made; errno. */
int hw_siw_cq_add(struct ibv_cq *cq);
/* ibv_destroy_cq, for any CQ. */
int hw_siw_cq_destroy(struct ibv_cq *cq);

/* After a queue pair was made; errno. attr->cap is what the device granted. */
int hw_siw_qp_add(struct ibv_qp *qp, const struct ibv_qp_init_attr *attr);
/* The queue pair is in ERR, and its device has flushed it. No completion of its requests is handed
 * out that was not ready by now. */
void hw_siw_qp_end(struct ibv_qp *qp);
/* ibv_destroy_qp, for any queue pair. */
int hw_siw_qp_destroy(struct ibv_qp *qp);
/* How many RDMA reads the peer lets this queue pair have out. 0: unknown. */
void hw_siw_qp_reads(struct ibv_qp *qp, unsigned reads);

#endif
