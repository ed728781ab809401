/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.h - memory of an RDMA device (dm.c); the operations of dapl/core/device.h. */
#ifndef VERBS_DM_H
#define VERBS_DM_H
#include "dapl/core/device.h"

/* Fills in dev->attr.dm_size and dm_unit, which stay 0 if the device has no usable memory. */
void hw_dm_probe(struct dapl_device *dev);
int hw_dm_alloc(struct dapl_device *dev, uint64_t length, unsigned log_align, struct ibv_dm **dm);
int hw_dm_free(struct ibv_dm *dm);
int hw_dm_reg(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, uint64_t length, int access,
	      struct ibv_mr **mr);
int hw_dm_copy(struct ibv_dm *dm, uint64_t offset, void *host, uint64_t length, bool to_device);

#endif
