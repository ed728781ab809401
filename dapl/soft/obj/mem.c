/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem.c - see mem.h. Does not move bytes. The table of STags is in stags.c, windows are made and bound in window.c. */
#include "dapl/soft/obj/mem.h"
#include "common/compiler.h"
#include "common/lock.h"
#include "common/log.h"
#include "dapl/soft/obj/populate.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/stags.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* --- protection domains ------------------------------------------------------ */

int soft_pd_alloc(struct dapl_device *dev, struct ibv_pd **pd)
{
	static uint64_t last;
	struct soft_pd *new = calloc(1, sizeof *new);

	if (!new)
		return ENOMEM;
	new->id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	new->pd.context = &dev->verbs;
	__atomic_add_fetch(&dev->objects, 1, __ATOMIC_RELAXED);
	*pd = &new->pd;
	return 0;
}

int soft_pd_dealloc(struct ibv_pd *pd)
{
	if (__atomic_load_n(&soft_pd(pd)->refs, __ATOMIC_ACQUIRE))
		return EBUSY;
	__atomic_sub_fetch(&soft_device(pd->context)->objects, 1, __ATOMIC_RELAXED);
	free(pd);
	return 0;
}

/* --- memory regions ---------------------------------------------------------- */

static void mr_free(struct soft_mr *mr)
{
	if (mr->region.file >= 0)
		close(mr->region.file);
	free(mr);
}

int soft_mr_add(struct ibv_pd *pd, const struct soft_memory *memory, int access,
		struct ibv_mr **mr)
{
	struct soft_mr *new = calloc(1, sizeof *new);
	int err;

	if (!new) {
		if (memory->file >= 0)
			close(memory->file);
		return ENOMEM;
	}
	new->region = (struct soft_region){
		.kind = SOFT_MR, .pd = soft_pd(pd), .valid = true, .length = memory->length,
		.base = memory->at, .access = access,
		.first = access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)memory->at,
		.file = memory->file, .offset = memory->offset,
	};
	err = soft_stags_add(soft_device(pd->context), &new->region);
	if (err) {
		mr_free(new);
		return err;
	}
	new->mr = (struct ibv_mr){
		.context = pd->context, .pd = pd, .addr = memory->at, .length = memory->length,
		.lkey = new->region.stag, .rkey = new->region.stag,
	};
	__atomic_add_fetch(&soft_pd(pd)->refs, 1, __ATOMIC_RELAXED);
	*mr = &new->mr;
	return 0;
}

int soft_mr_dereg(struct ibv_mr *ibmr)
{
	struct soft_mr *mr = (struct soft_mr *)ibmr;

	if (__atomic_load_n(&mr->region.windows, __ATOMIC_ACQUIRE))
		return EBUSY;
	soft_stags_remove(soft_device(ibmr->context), mr->region.stag);
	__atomic_sub_fetch(&soft_pd(ibmr->pd)->refs, 1, __ATOMIC_RELEASE);
	mr_free(mr);
	return 0;
}

/* --- checks ------------------------------------------------------------------- */

/* LMR-23, 24, DM-15, 18 */
static enum soft_check in_region(const struct soft_region *region, uint64_t addr,
				 uint64_t length, char **at)
{
	if (addr + length < addr)
		return SOFT_WRAP;
	if (addr < region->first || length > region->length ||
	    addr - region->first > region->length - length)
		return SOFT_BOUNDS;
	*at = region->base + (addr - region->first);
	return SOFT_FINE;
}

/* DAPL_SOFT_GUARD: the consumer may have unmapped or protected the pages since registration. */
static COLD bool is_still_there(uint32_t stag, const char *at, uint64_t length, bool write)
{
	int err = soft_populate(at, length, write);

	if (err)
		log_report(REPORT_MEMORY_GONE, LOG_FIELDS(.err = err),
			   "soft: %llu bytes at %p, of the LMR with context 0x%x, can no longer be %s: unmapped or "
			   "protected while registered; the request fails", (unsigned long long)length,
			   (const void *)at, stag, write ? "written" : "read");
	return !err;
}

bool soft_mem_guard(const struct dapl_device *dev, uint32_t stag, const char *at, uint64_t length)
{
	return likely(!(soft_detours(dev) & SOFT_GUARDED)) || is_still_there(stag, at, length, true);
}

/* DTO-15, 25 */
static enum soft_check local_check(const struct soft_region *region, const struct ibv_pd *pd,
				   const struct ibv_sge *sge, int access, char **at)
{
	if (!region || region->kind != SOFT_MR || region->stag != sge->lkey)
		return SOFT_BAD_STAG;
	if (&region->pd->pd != pd)
		return SOFT_OTHER_STREAM;
	if (access & ~region->access)
		return SOFT_ACCESS;
	return in_region(region, sge->addr, sge->length, at);
}

enum soft_check soft_mem_local(const struct dapl_device *dev, const struct ibv_pd *pd,
			       const struct ibv_sge *sge, int access, char **at)
{
	return local_check(soft_stags_find(dev, sge->lkey), pd, sge, access, at);
}

enum soft_check soft_mem_to_send(struct soft_qp *qp, const struct ibv_sge *sge, char **at)
{
	const struct soft_region *region = soft_stags_find(qp->dev, sge->lkey);
	enum soft_check check = local_check(region, qp->qp.pd, sge, 0, at);

	assert_held(&qp->lock);
	if (check == SOFT_FINE)
		qp->local = (struct soft_local){ sge->lkey, region->first, region->length, region->base };
	return check;
}

/* LMR-20, 21, 24, DM-18, DTO-26, EXT-7 */
static enum soft_check remote_check(const struct soft_qp *qp, const struct soft_region *region,
				    uint32_t stag, uint64_t addr, uint64_t length,
				    int access, char **at)
{
	if (!region->valid || region->stag != stag)
		return SOFT_BAD_STAG;
	if (&region->pd->pd != qp->qp.pd || (region->qp && region->qp != qp))
		return SOFT_OTHER_STREAM;
	if (access & ~region->access)
		return SOFT_ACCESS;
	return in_region(region, addr, length, at);
}

static inline enum soft_check guarded_check(const struct soft_qp *qp,
					    const struct soft_region *region, uint32_t stag,
					    uint64_t addr, uint64_t length, int access, char **at)
{
	enum soft_check check = remote_check(qp, region, stag, addr, length, access, at);

	if (unlikely(soft_detours(qp->dev) & SOFT_GUARDED) && check == SOFT_FINE &&
	    !is_still_there(stag, *at, length, access & ~IBV_ACCESS_REMOTE_READ))
		return SOFT_ACCESS;
	return check;
}

enum soft_check soft_mem_remote(struct soft_qp *qp, uint32_t stag, uint64_t addr,
				uint64_t length, int access, char **at,
				struct soft_region **held)
{
	struct soft_region *region = soft_stags_find(qp->dev, stag);
	enum soft_check check;

	assert_held(&qp->lock);
	*held = NULL;
	if (!region)
		return SOFT_BAD_STAG;
	if (region->kind == SOFT_MR)
		return guarded_check(qp, region, stag, addr, length, access, at);
	dapl_mutex_lock(&region->lock);
	check = guarded_check(qp, region, stag, addr, length, access, at);
	if (check == SOFT_FINE)
		*held = region;
	else
		dapl_mutex_unlock(&region->lock);
	return check;
}

int soft_mem_slice(const struct dapl_device *dev, const struct ibv_pd *pd,
		   const struct ibv_sge *sge, uint32_t sges, uint64_t offset, uint32_t length,
		   int access, struct iovec *iov, int max)
{
	int n = 0;

	for (; sges && length && n < max; sge++, sges--) {
		uint32_t part;
		char *at;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		if (soft_mem_local(dev, pd, sge, access, &at) != SOFT_FINE)
			return -1;
		part = sge->length - offset < length ? sge->length - offset : length;
		if (unlikely(soft_detours(dev) & SOFT_GUARDED) && !is_still_there(sge->lkey, at + offset, part, access))
			return -1;
		iov[n++] = (struct iovec){ at + offset, part };
		length -= part;
		offset = 0;
	}
	return n;
}

bool soft_mem_check_all(const struct dapl_device *dev, const struct ibv_pd *pd,
			const struct ibv_sge *sge, uint32_t sges, int access)
{
	char *at;

	for (; sges; sge++, sges--)
		if (sge->length && soft_mem_local(dev, pd, sge, access, &at) != SOFT_FINE)
			return false;
	return true;
}
