/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw.h - makes send queues of the kernel's Soft-iWARP behave as verbs specify (siw_queue.h explains how).
 * The functions do nothing on objects of other devices. */
#ifndef SIW_H
#define SIW_H
#include <infiniband/verbs.h>

/* Replaces the functions of this context that post sends and poll CQs by those of siw.c. */
void hw_siw_adopt(struct ibv_context *verbs);

/* Called after a CQ was made. Returns 0 or an errno. */
int hw_siw_cq_add(struct ibv_cq *cq);
/* ibv_destroy_cq, for any CQ. */
int hw_siw_cq_destroy(struct ibv_cq *cq);

/* Called after a queue pair was made. attr->cap is what the device granted. Returns 0 or an errno. */
int hw_siw_qp_add(struct ibv_qp *qp, const struct ibv_qp_init_attr *attr);
/* Called when the queue pair is in ERR and its device has flushed it. Completions of its requests that are
 * not ready by now are not handed out any more. */
void hw_siw_qp_end(struct ibv_qp *qp);
/* ibv_destroy_qp, for any queue pair. */
int hw_siw_qp_destroy(struct ibv_qp *qp);
/* Sets how many RDMA reads the peer allows to be outstanding. 0: unknown, so nothing changes. */
void hw_siw_qp_reads(struct ibv_qp *qp, unsigned reads);

#endif
