/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.h - device memory of the software device (dm.c); the operations of dapl/core/device.h. */
#ifndef SOFT_SHM_DM_H
#define SOFT_SHM_DM_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct dapl_device;

int soft_dm_alloc(struct dapl_device *dev, uint64_t length, unsigned log_align, struct ibv_dm **dm);
int soft_dm_free(struct ibv_dm *dm);
int soft_dm_reg(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, uint64_t length, int access,
		struct ibv_mr **mr);
int soft_dm_copy(struct ibv_dm *dm, uint64_t offset, void *host, uint64_t length, bool to_device);
int soft_dm_map(struct ibv_dm *dm, void **at);

#endif
