/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_dm.c - see core_dm.h. */
#include <stdlib.h>
#include "test/unit/core/core_dm.h"
#include "test/unit/core/core_queues.h"

struct core_dm core_dm;

static int note(const struct core_dm_call *call)
{
	core_dm.last = *call;
	core_dm.calls++;
	if (core_dm.in_call)
		core_dm.in_call();
	return core_dm.error;
}

/* What a failed call leaves in the output is no object. */
static void *rubbish(void) { return &core_dm; }

static int alloc_dm(struct dapl_device *dev, uint64_t length, unsigned log_align, struct ibv_dm **dm)
{
	int err = note(&(struct core_dm_call){ .length = length, .log_align = log_align });

	(void)dev;
	*dm = err ? rubbish() : calloc(1, sizeof **dm);
	if (!err)
		__atomic_add_fetch(&core_dm.dms, 1, __ATOMIC_SEQ_CST);
	return err;
}

static int free_dm(struct ibv_dm *dm)
{
	free(dm);
	__atomic_sub_fetch(&core_dm.dms, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int reg_dm(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, uint64_t length, int access,
		  struct ibv_mr **mr)
{
	int err = note(&(struct core_dm_call){ .pd = pd, .dm = dm, .offset = offset, .length = length,
		.access = access });

	*mr = rubbish();
	return err ? err : core_reg_mr(pd, NULL, length, access, NULL, mr);
}

static int copy_dm(struct ibv_dm *dm, uint64_t offset, void *host, uint64_t length, bool to_device)
{
	return note(&(struct core_dm_call){ .dm = dm, .offset = offset, .length = length, .host = host,
		.to_device = to_device });
}

static int map_dm(struct ibv_dm *dm, void **at)
{
	int err = note(&(struct core_dm_call){ .dm = dm });

	if (!err)
		*at = &core_dm.mapped;
	return err;
}

void core_dm_start(struct dapl_device_ops *ops)
{
	core_dm = (struct core_dm){ .error = 0 };
	ops->alloc_dm = alloc_dm;
	ops->free_dm = free_dm;
	ops->reg_dm = reg_dm;
	ops->copy_dm = copy_dm;
	ops->map_dm = map_dm;
}
