/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.c - memory of an RDMA device: one libibverbs call each, with the limits that drivers have.
 *
 * A driver without device memory has max_dm_size 0, and its calls give EOPNOTSUPP. One driver (mana) has
 * device memory without functions that copy: ibv_memcpy_to_dm would call through NULL. Memory that cannot
 * be written cannot be cleared for its consumer, so it is not offered. */
#include "dm.h"
#include "hw.h"
#include "segments.h"
#include <errno.h>

enum {
	DM_UNIT = 4,		/* bytes that mlx5 copies; on all devices, so that programs are portable */
	CLEAR_CHUNK = 4096,	/* bytes that are cleared at once */
};

static bool can_copy(const struct ibv_dm *dm)
{
	return dm->memcpy_to_dm && dm->memcpy_from_dm;
}

static uint64_t whole_units(uint64_t length)
{
	return (length + DM_UNIT - 1) & ~(uint64_t)(DM_UNIT - 1);
}

/* Only allocated memory shows whether the driver can copy. If none is free at the moment, hw_dm_alloc()
 * checks it later. */
static bool is_usable(struct dapl_device *dev)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_UNIT };
	struct ibv_dm *dm = ibv_alloc_dm(dev->verbs, &attr);
	bool usable;

	if (!dm)
		return errno == ENOMEM || errno == ENOSPC;
	usable = can_copy(dm);
	ibv_free_dm(dm);
	return usable;
}

void hw_dm_probe(struct dapl_device *dev)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(dev->verbs, NULL, &attr) || attr.max_dm_size < DM_UNIT ||
	    !is_usable(dev))
		return;
	dev->attr.dm_size = attr.max_dm_size & ~(uint64_t)(DM_UNIT - 1);
	dev->attr.dm_unit = DM_UNIT;
}

/* Overwrites what an earlier owner left. DM-4. */
static int clear(struct ibv_dm *dm, uint64_t length)
{
	static const char zeroes[CLEAR_CHUNK];
	int err = 0;

	for (uint64_t at = 0; at < length && !err; at += CLEAR_CHUNK)
		err = hw_errno(dm->memcpy_to_dm(dm, at, zeroes, length - at < CLEAR_CHUNK ?
						length - at : CLEAR_CHUNK));
	return err;
}

int hw_dm_alloc(struct dapl_device *dev, uint64_t length, unsigned log_align, struct ibv_dm **dm)
{
	struct ibv_alloc_dm_attr attr = {
		.length = whole_units(length), .log_align_req = log_align,
	};
	int err;

	*dm = ibv_alloc_dm(dev->verbs, &attr);
	if (!*dm)
		return hw_null_errno();
	err = can_copy(*dm) ? clear(*dm, attr.length) : EOPNOTSUPP;
	if (err)
		ibv_free_dm(*dm);
	return err;
}

int hw_dm_free(struct ibv_dm *dm)
{
	return hw_errno(ibv_free_dm(dm));
}

/* DM-15, 16, 17 */
int hw_dm_reg(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, uint64_t length, int access,
	      struct ibv_mr **mr)
{
	*mr = ibv_reg_dm_mr(pd, dm, offset, length, access | IBV_ACCESS_ZERO_BASED);
	return hw_segments_add(*mr, 0);
}

int hw_dm_copy(struct ibv_dm *dm, uint64_t offset, void *host, uint64_t length, bool to_device)
{
	if (!length)
		return 0;
	return hw_errno(to_device ? dm->memcpy_to_dm(dm, offset, host, length) :
			dm->memcpy_from_dm(host, dm, offset, length));
}
