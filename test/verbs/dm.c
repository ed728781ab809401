/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.c - device memory for RDMA devices that have none: a library to be preloaded. It replaces
 * operations of each device that is opened (device.c). The memory is the
 * host's; its regions are real ones of the real device, with addresses that count from 0.
 *
 * It has the limits that drivers have: 128 KiB in all, multiples of 4 bytes, no access flags but
 * those of mlx5. New memory holds what an earlier owner left. FAKE_DM=no-copy: as the driver
 * mana, without functions that copy. */
#include "device.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 128 << 10, GRAIN = 64, LEFT_BEHIND = 0xa5 };

struct fake_dm {
	struct ibv_dm dm;
	char *at;
	size_t length, pages;
};

static atomic_size_t used;

static int bad_range(const struct fake_dm *dm, uint64_t offset, size_t length)
{
	if (offset % 4 || length % 4)
		return EINVAL;
	return offset > dm->length || length > dm->length - offset ? EFAULT : 0;
}

static int copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *host, size_t length)
{
	struct fake_dm *dm = (struct fake_dm *)ibdm;
	int err = bad_range(dm, offset, length);

	if (!err)
		memcpy(dm->at + offset, host, length);
	return err;
}

static int copy_from(void *host, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct fake_dm *dm = (struct fake_dm *)ibdm;
	int err = bad_range(dm, offset, length);

	if (!err)
		memcpy(host, dm->at + offset, length);
	return err;
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	const char *how = getenv("FAKE_DM");
	struct fake_dm *dm = calloc(1, sizeof(*dm));
	size_t rounded = (attr->length + GRAIN - 1) / GRAIN * GRAIN;

	if (!dm)
		return NULL;
	if (atomic_fetch_add(&used, rounded) + rounded > SIZE) {
		atomic_fetch_sub(&used, rounded);
		free(dm);
		errno = ENOMEM;
		return NULL;
	}
	dm->length = attr->length;
	dm->pages = (rounded + 4095) / 4096 * 4096;
	dm->at = mmap(NULL, dm->pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (dm->at == MAP_FAILED) {
		atomic_fetch_sub(&used, rounded);
		free(dm);
		return NULL;
	}
	memset(dm->at, LEFT_BEHIND, dm->pages);
	dm->dm.context = context;
	if (!how || strcmp(how, "no-copy")) {
		dm->dm.memcpy_to_dm = copy_to;
		dm->dm.memcpy_from_dm = copy_from;
	}
	return &dm->dm;
}

static int free_dm(struct ibv_dm *ibdm)
{
	struct fake_dm *dm = (struct fake_dm *)ibdm;

	atomic_fetch_sub(&used, (dm->length + GRAIN - 1) / GRAIN * GRAIN);
	munmap(dm->at, dm->pages);
	free(dm);
	return 0;
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset,
				size_t length, unsigned access)
{
	const unsigned allowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
	struct fake_dm *dm = (struct fake_dm *)ibdm;

	if (!(access & IBV_ACCESS_ZERO_BASED) || (access & ~allowed) || offset > dm->length ||
	    length > dm->length - offset) {
		errno = EINVAL;
		return NULL;
	}
	return ibv_reg_mr_iova(pd, dm->at + offset, length, 0, access & ~IBV_ACCESS_ZERO_BASED);
}

void fake_describe(struct ibv_device_attr_ex *attr)
{
	attr->max_dm_size = SIZE;
}

void fake_replace(struct ibv_context *context, struct verbs_context *verbs)
{
	(void)context;
	verbs->alloc_dm = alloc_dm;
	verbs->free_dm = free_dm;
	verbs->reg_dm_mr = reg_dm_mr;
}
