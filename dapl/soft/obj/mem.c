/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem.c - protection domains, memory regions, windows, and the table of STags; says
 * whether an access is allowed and where the memory is. Does not move bytes.
 *
 * Looking up an STag takes no lock of the table: the caller holds the lock of some QP. Removing an
 * entry waits until every QP lock has been free once (quiesce); only then are the entry and the
 * consumer's memory released. So no thread touches memory after dereg_mr, at no cost to the data path.
 * A window can be changed by another QP than the one that uses it, so a window has a lock of its own,
 * held for the length of an access. */
#include "dapl/soft/obj/mem.h"
#include "common/lock.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/populate.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct stag_entry {
	struct stag_entry *next;
	uint32_t index;			/* STag without its low byte, the key */
	struct soft_region *region;
};

struct soft_stags {
	uint32_t mask, count;
	struct stag_entry *bucket[];
};

static uint32_t stag_hash(uint32_t index)
{
	return index * 0x9e3779b1u >> 8;
}

static struct soft_region *stag_find(const struct dapl_device *dev, uint32_t stag)
{
	const struct soft_stags *table = __atomic_load_n(&dev->stags, __ATOMIC_ACQUIRE);
	uint32_t index = stag >> 8;
	struct stag_entry *e = __atomic_load_n(&table->bucket[stag_hash(index) & table->mask],
					       __ATOMIC_ACQUIRE);

	while (e && e->index != index)
		e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE);
	return e ? e->region : NULL;
}

/* Waits until no thread uses the old contents of the table any more: a thread that looks up an STag
 * holds the lock of a QP. Afterwards no QP remembers a region. */
static void quiesce(struct dapl_device *dev)
{
	struct soft_qp *qp;

	dapl_mutex_lock(&dev->qps_lock);
	LIST_FOREACH(qp, &dev->qps, link) {
		dapl_mutex_lock(&qp->lock);
		qp->local = (struct soft_local){ 0 };
		dapl_mutex_unlock(&qp->lock);
	}
	dapl_mutex_unlock(&dev->qps_lock);
}

static struct soft_stags *stags_new(uint32_t buckets)
{
	struct soft_stags *table = calloc(1, sizeof *table + buckets * sizeof table->bucket[0]);

	if (table)
		table->mask = buckets - 1;
	return table;
}

static void stags_free(struct soft_stags *table)
{
	for (uint32_t i = 0; table && i <= table->mask; i++) {
		struct stag_entry *e = table->bucket[i], *next;

		for (; e; e = next) {
			next = e->next;
			free(e);
		}
	}
	free(table);
}

static bool stags_insert(struct soft_stags *table, uint32_t index, struct soft_region *region)
{
	struct stag_entry **bucket = &table->bucket[stag_hash(index) & table->mask];
	struct stag_entry *e = malloc(sizeof *e);

	if (!e)
		return false;
	*e = (struct stag_entry){ .next = *bucket, .index = index, .region = region };
	__atomic_store_n(bucket, e, __ATOMIC_RELEASE);
	table->count++;
	return true;
}

/* Called with stags_lock held. A table that is too small is replaced by a copy: a reader sees the old or
 * the new table. */
static void stags_grow(struct dapl_device *dev)
{
	struct soft_stags *old = dev->stags, *table = stags_new(4 * (old->mask + 1));

	assert_held(&dev->stags_lock);
	for (uint32_t i = 0; table && i <= old->mask; i++)
		for (struct stag_entry *e = old->bucket[i]; e; e = e->next)
			if (!stags_insert(table, e->index, e->region)) {
				stags_free(table);
				return;		/* only makes lookups slower */
			}
	if (!table)
		return;
	__atomic_store_n(&dev->stags, table, __ATOMIC_RELEASE);
	quiesce(dev);
	stags_free(old);
}

static int stag_add(struct dapl_device *dev, struct soft_region *region)
{
	bool done;

	dapl_mutex_lock(&dev->stags_lock);
	if (dev->stags->count > 2 * dev->stags->mask)
		stags_grow(dev);
	do {
		region->stag = soft_random();
	} while (!(region->stag >> 8) || stag_find(dev, region->stag));
	done = stags_insert(dev->stags, region->stag >> 8, region);
	if (done)
		dev->directory->publish(dev->process, region);
	dapl_mutex_unlock(&dev->stags_lock);
	return done ? 0 : ENOMEM;
}

/* Revokes the access to the region in three phases: unpublishes the STag under the lock, waits without
 * a lock for those that found it before, frees the entry. LMR-19, DM-18, RMR-10. */
static void stag_del(struct dapl_device *dev, uint32_t stag)
{
	struct soft_stags *table;
	struct stag_entry **link, *e;
	bool writable;

	dapl_mutex_lock(&dev->stags_lock);
	table = dev->stags;
	link = &table->bucket[stag_hash(stag >> 8) & table->mask];
	while ((e = *link)->index != stag >> 8)
		link = &e->next;
	__atomic_store_n(link, e->next, __ATOMIC_RELEASE);
	table->count--;
	writable = dev->directory->withdraw(dev->process, e->region);
	dapl_mutex_unlock(&dev->stags_lock);
	quiesce(dev);
	if (writable)
		dev->directory->wait_for_writers(dev);
	free(e);
}

int soft_mem_init(struct dapl_device *dev, const struct soft_directory *directory)
{
	dev->directory = directory;
	dev->stags = stags_new(STAGS_MIN);
	if (!dev->stags)
		return ENOMEM;
	dapl_mutex_init(&dev->stags_lock, RANK_SOFT_STAGS);
	return 0;
}

void soft_mem_fini(struct dapl_device *dev)
{
	stags_free(dev->stags);
}

void soft_mem_publish_all(struct dapl_device *dev, struct shm_process *process)
{
	dapl_mutex_lock(&dev->stags_lock);
	for (uint32_t i = 0; i <= dev->stags->mask; i++)
		for (struct stag_entry *e = dev->stags->bucket[i]; e; e = e->next)
			dev->directory->publish(process, e->region);
	__atomic_store_n(&dev->process, process, __ATOMIC_RELEASE);
	dapl_mutex_unlock(&dev->stags_lock);
}

/* --- protection domains ------------------------------------------------------ */

static struct soft_pd *soft_pd(struct ibv_pd *pd)
{
	return (struct soft_pd *)pd;
}

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
	err = stag_add(soft_device(pd->context), &new->region);
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
	stag_del(soft_device(ibmr->context), mr->region.stag);
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
static __attribute__((noinline, cold))
bool is_still_there(uint32_t stag, const char *at, uint64_t length, bool write)
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
	return likely(!dev->guards) || is_still_there(stag, at, length, true);
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
	return local_check(stag_find(dev, sge->lkey), pd, sge, access, at);
}

enum soft_check soft_mem_to_send(struct soft_qp *qp, const struct ibv_sge *sge, char **at)
{
	const struct soft_region *region = stag_find(qp->dev, sge->lkey);
	enum soft_check check = local_check(region, qp->qp.pd, sge, 0, at);

	assert_held(&qp->lock);
	if (check == SOFT_FINE)
		qp->local = (struct soft_local){ sge->lkey, region->first, region->length,
						 region->base };
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

	if (unlikely(qp->dev->guards) && check == SOFT_FINE &&
	    !is_still_there(stag, *at, length, access & ~IBV_ACCESS_REMOTE_READ))
		return SOFT_ACCESS;
	return check;
}

enum soft_check soft_mem_remote(struct soft_qp *qp, uint32_t stag, uint64_t addr,
				uint64_t length, int access, char **at,
				struct soft_region **held)
{
	struct soft_region *region = stag_find(qp->dev, stag);
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
		if (unlikely(dev->guards) && !is_still_there(sge->lkey, at + offset, part, access))
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

/* --- windows ------------------------------------------------------------------ */

int soft_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw)
{
	struct soft_mw *new;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return EINVAL;
	new = calloc(1, sizeof *new);
	if (!new)
		return ENOMEM;
	dapl_mutex_init(&new->region.lock, RANK_SOFT_WINDOW);
	new->region.kind = type == IBV_MW_TYPE_1 ? SOFT_WINDOW_1 : SOFT_WINDOW_2;
	new->region.file = -1;
	new->region.pd = soft_pd(pd);
	err = stag_add(soft_device(pd->context), &new->region);
	if (err) {
		free(new);
		return err;
	}
	new->mw = (struct ibv_mw){
		.context = pd->context, .pd = pd, .rkey = new->region.stag, .type = type,
	};
	__atomic_add_fetch(&soft_pd(pd)->refs, 1, __ATOMIC_RELAXED);
	*mw = &new->mw;
	return 0;
}

/* Called with the window's lock held, or when no QP can find it any more. */
static void window_unbind(struct soft_region *window)
{
	if (window->parent)
		__atomic_sub_fetch(&window->parent->windows, 1, __ATOMIC_RELEASE);
	window->parent = NULL;
	window->valid = false;
	window->qp = NULL;
}

int soft_mw_dealloc(struct ibv_mw *ibmw)
{
	struct soft_mw *mw = (struct soft_mw *)ibmw;

	stag_del(soft_device(ibmw->context), mw->region.stag);
	window_unbind(&mw->region);
	__atomic_sub_fetch(&soft_pd(ibmw->pd)->refs, 1, __ATOMIC_RELEASE);
	free(mw);
	return 0;
}

/* Returns what is wrong with a bind, or NULL. */
static const char *bind_fault(const struct soft_qp *qp, const struct soft_swqe *wqe)
{
	const struct soft_region *mr = &wqe->bind.mr->region;
	int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	uint64_t offset;

	if (wqe->bind.mw->mw.pd != qp->qp.pd || wqe->bind.mr->mr.pd != qp->qp.pd)
		return "other protection domain";
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return "region without bind right";
	if ((wqe->bind.access & writes) && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return "region is read-only";
	if (wqe->bind.addr < mr->first)
		return "outside the region";
	offset = wqe->bind.addr - mr->first;
	if (offset > mr->length || wqe->bind.length > mr->length - offset)
		return "outside the region";
	return NULL;
}

/* RMR-3, 8 */
enum ibv_wc_status soft_mw_bind(struct soft_qp *qp, const struct soft_swqe *wqe)
{
	struct soft_region *window = &wqe->bind.mw->region, *mr;
	bool type1 = window->kind == SOFT_WINDOW_1;
	const char *fault = NULL;

	assert_held(&qp->lock);
	if (type1 != wqe->bind_type1)
		return IBV_WC_MW_BIND_ERR;
	if (wqe->bind.mr && wqe->bind.length)
		fault = bind_fault(qp, wqe);
	dapl_mutex_lock(&window->lock);
	if (!type1 && window->valid)
		fault = "still bound";
	else if (window->stag >> 8 != wqe->rkey >> 8)
		fault = "STag of another window";
	if (!fault) {
		window_unbind(window);
		window->stag = wqe->rkey;
	}
	if (!fault && wqe->bind.mr && wqe->bind.length) {
		mr = &wqe->bind.mr->region;
		__atomic_add_fetch(&mr->windows, 1, __ATOMIC_RELAXED);
		window->parent = mr;
		window->base = mr->base + (wqe->bind.addr - mr->first);
		window->first = wqe->bind.access & IBV_ACCESS_ZERO_BASED ? 0 : wqe->bind.addr;
		window->length = wqe->bind.length;
		window->access = wqe->bind.access;
		window->qp = type1 ? NULL : qp;
		window->valid = true;
	}
	dapl_mutex_unlock(&window->lock);
	if (fault)
		soft_trace(TRC_LVL_ERROR, "qp", qp, "bind refused: %s", fault);
	return fault ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS;
}

enum ibv_wc_status soft_mw_invalidate(struct soft_qp *qp, uint32_t stag)
{
	struct soft_region *window = stag_find(qp->dev, stag);
	bool mine;

	assert_held(&qp->lock);
	if (!window || window->kind != SOFT_WINDOW_2)
		return IBV_WC_MW_BIND_ERR;
	dapl_mutex_lock(&window->lock);
	mine = window->valid && window->qp == qp && window->stag == stag;
	if (mine)
		window_unbind(window);
	dapl_mutex_unlock(&window->lock);
	return mine ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

void soft_mem_forget_qp(struct soft_qp *qp)
{
	struct dapl_device *dev = qp->dev;

	dapl_mutex_lock(&dev->stags_lock);
	for (uint32_t i = 0; i <= dev->stags->mask; i++)
		for (struct stag_entry *e = dev->stags->bucket[i]; e; e = e->next) {
			struct soft_region *region = e->region;

			if (region->kind != SOFT_WINDOW_2)
				continue;
			dapl_mutex_lock(&region->lock);
			if (region->qp == qp)
				window_unbind(region);
			dapl_mutex_unlock(&region->lock);
		}
	dapl_mutex_unlock(&dev->stags_lock);
}
