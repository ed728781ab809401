/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_life.h - the verbs that make, change and destroy QPs. */
#ifndef SOFT_VERBS_QP_LIFE_H
#define SOFT_VERBS_QP_LIFE_H
#include <infiniband/verbs.h>
#include <stdint.h>

struct dapl_device;
struct dapl_mapping;

int soft_qp_create(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		   struct ibv_qp **qp);
int soft_qp_reset(struct dapl_device *dev, struct ibv_qp *qp);
int soft_qp_error(struct ibv_qp *qp);
int soft_qp_map_remote(struct ibv_qp *qp, uint32_t rkey, uint64_t remote, uint64_t length,
		       struct dapl_mapping *mapping);
int soft_qp_destroy(struct ibv_qp *qp);

#endif
