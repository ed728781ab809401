/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.h - queue pairs whose RDMA writes complete only when their data is in the peer's memory (delayed_ack).
 * EXT-42, 43. Each write that is to complete is posted with a request behind it that flushes its range at the peer;
 * the completion of both is one. Such requests exist since rdma-core 46 and Linux 6.2, where rxe has them.
 *
 * The peer must permit it: its queue pair and its region need DAPL_ACCESS_FLUSH, which this provider gives where the
 * device can flush. Another peer ends the connection at the first write. */
#ifndef FLUSH_H
#define FLUSH_H
#include <infiniband/verbs.h>
#include <stdbool.h>

/* Tries whether the library and the driver make such queue pairs. */
bool hw_flush_is_offered(struct ibv_pd *pd, struct ibv_cq *cq);
/* Replaces the functions of this context that post sends and poll, after other replacements. Returns 0 or an errno. */
int hw_flush_adopt(struct ibv_context *verbs);
/* The context is about to be closed. Does nothing if it was not adopted. */
void hw_flush_release(struct ibv_context *verbs);

/* ibv_create_qp with room for the flushes: each write takes two places of the send queue. */
struct ibv_qp *hw_flush_make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* Begins to flush what a queue pair of hw_flush_make_qp() writes. Its wr_ids are addresses. Returns 0 or an errno. */
int hw_flush_qp_add(struct ibv_qp *qp);
/* Destroys any queue pair with `destroy`, and returns its result. */
int hw_flush_qp_destroy(struct ibv_qp *qp, int (*destroy)(struct ibv_qp *qp));

#endif
