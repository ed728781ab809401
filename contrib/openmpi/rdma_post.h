/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_post.h - posting of RDMA operations (rdma_post.c). */
#ifndef BTL_UDAPL_RDMA_POST_H
#define BTL_UDAPL_RDMA_POST_H

#include "udapl.h"

/* Called with e->lock held. Returns false if the post failed; the operation is then in e->flushed_rdmas. */
bool udapl_rdma_post(struct udapl_conn *c, struct udapl_rdma *r);
/* Frees the operation, then calls its callback. */
void udapl_rdma_done(struct udapl_rdma *r, int status);

#endif
