/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.h - the verb that registers memory. */
#ifndef SOFT_VERBS_MR_H
#define SOFT_VERBS_MR_H
#include <infiniband/verbs.h>
#include <stddef.h>

int soft_mr_reg(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name,
		struct ibv_mr **mr);

/* What soft_stags_init() needs. */
struct soft_directory;
extern const struct soft_directory soft_mr_directory;

#endif
