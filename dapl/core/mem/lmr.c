/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lmr.c - local memory regions: registered memory. Memory windows are in rmr.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "common/mapping.h"
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/mem/dm.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/rmr.h"
#include "dapl/core/mem/zero_based.h"

#define PRIVILEGES (DAT_MEM_PRIV_ALL_FLAG | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
#define REMOTE_PRIVILEGES (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG | \
			   (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)

/* Verbs require local write access wherever the peer may write. LMR-21. */
int dapl_lmr_access(const struct dapl_ia *ia, DAT_MEM_PRIV_FLAGS priv)
{
	int access = 0;

	if (priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IBV_ACCESS_REMOTE_READ;
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE |
			  (ia->attr.flush_global ? DAPL_ACCESS_FLUSH : 0);
	if (priv & (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	if (ia->attr.bind_access)
		access |= IBV_ACCESS_MW_BIND;
	return access;
}

static void end_lmr(struct dapl_object *obj)
{
	struct dapl_lmr *lmr = (struct dapl_lmr *)obj;

	if (lmr->mr)
		dapl_device_ops.dereg_mr(lmr->mr);	/* LMR-19, DM-18 */
	if (lmr->base)		/* after the region, which may lie in this device memory */
		dapl_object_put(lmr->base);
}

void dapl_lmr_destroy(struct dapl_lmr *lmr)
{
	dapl_unuse(&lmr->pz->obj);
	if (lmr->base)
		dapl_unuse(lmr->base);
	dapl_object_bury(&lmr->obj);
}

/* True if [start, start + length) consists of mappings that processes can share. Only such memory may be
 * registered under a shared name. Also true if the mappings are unknown. */
static bool is_shared(uintptr_t start, uint64_t length)
{
	FILE *list = mapping_open();
	uintptr_t at = start;
	struct mapping m;

	if (!list)
		return true;
	while (at < start + length && mapping_next(list, &m))
		if (m.from <= at && at < m.to) {
			if (!m.shared)
				break;
			at = m.to;
		}
	fclose(list);
	return at >= start + length;
}

/* False if an LMR of this process has the same shared name with another length. Other processes are not
 * checked. */
static bool name_fits(struct dapl_ia *ia, const void *cookie, uint64_t length)
{
	bool fits = true;

	dapl_mutex_lock(&ia->lock);
	for (struct dapl_object *o = ia->objects[DAPL_LMR]; o; o = o->next) {
		struct dapl_lmr *other = (struct dapl_lmr *)o;

		if (other->param.mem_type == DAT_MEM_TYPE_SHARED_VIRTUAL &&
		    !memcmp(other->cookie, cookie, sizeof other->cookie))
			fits &= other->param.length == length;
	}
	dapl_mutex_unlock(&ia->lock);
	return fits;
}

/* Resolves the address, length and shared name of the memory to register. The caller sets *base to NULL,
 * and leaves it afterwards, also after an error. LMR-5, 9, 10, 11. */
static DAT_RETURN resolve(struct dapl_ia *ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			  DAT_VLEN *length, void **start, const void **name,
			  struct dapl_lmr **base)
{
	*name = NULL;
	switch (type) {
	case DAT_MEM_TYPE_VIRTUAL:
		*start = region.for_va;
		break;
	case DAT_MEM_TYPE_LMR:
		*base = dapl_lmr_enter(region.for_lmr_handle);
		if (!*base || (*base)->obj.ia != ia)
			return BAD_HANDLE(LMR);
		if ((*base)->param.mem_type == DAT_DM_MEM_TYPE)
			return BAD_PARAM(3);	/* dat_dm_lmr_create makes such an LMR. DM-11 */
		*start = (*base)->mr->addr;
		*length = (*base)->param.length;
		return DAT_SUCCESS;
	case DAT_MEM_TYPE_SHARED_VIRTUAL:
		*start = region.for_shared_memory.virtual_address;
		*name = region.for_shared_memory.shared_memory_id;
		if (!*name)
			return BAD_PARAM(3);
		break;
	default:
		return BAD_PARAM(2);
	}
	if (!*length)	/* LMR-4, but dapltest expects this code */
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	if (*length > ia->ia_attr.max_lmr_block_size ||
	    *length > UINTPTR_MAX - (uintptr_t)*start)	/* wraps around the address space */
		return BAD_PARAM(4);
	if (*name && !name_fits(ia, *name, *length))
		return BAD_PARAM(4);
	if (*name && !is_shared((uintptr_t)*start, *length))
		return BAD_STATE(LMR_FREE);
	return DAT_SUCCESS;
}

/* Reports a failed registration. If the limit of locked memory is 0, the kernel returns EPERM, and if the
 * limit is too low, ENOMEM. Both get a line that names the limit, the most frequent cause of failed
 * registrations. */
static DAT_RETURN cannot_register(const struct dapl_ia *ia, DAT_VLEN length, int err)
{
	struct rlimit locked;

	if ((err == EPERM || err == ENOMEM) && !getrlimit(RLIMIT_MEMLOCK, &locked) &&
	    locked.rlim_cur < RLIM_INFINITY)
		log_report(REPORT_MEMLOCK, LOG_FIELDS(.ia = ia->ia_attr.adapter_name, .err = err,
			   .result = "DAT_INSUFFICIENT_RESOURCES"),
			   "%s: cannot register %llu bytes of memory: %s; this process may lock "
			   "%llu bytes (ulimit -l)", ia->ia_attr.adapter_name,
			 (unsigned long long)length, strerror(err),
			 (unsigned long long)locked.rlim_cur);
	if (err == EPERM)
		err = ENOMEM;
	return dapl_status(err, DAT_RESOURCE_MEMORY_REGION);
}

struct dapl_lmr *dapl_lmr_new(struct dapl_ia *ia)
{
	return dapl_object_new(DAPL_LMR, sizeof(struct dapl_lmr), ia, end_lmr);
}

DAT_RETURN dapl_lmr_check_privileges(const struct dapl_ia *ia, DAT_MEM_PRIV_FLAGS priv,
				     DAT_RETURN bad)
{
	if (priv & ~PRIVILEGES)
		return bad;
	return (priv & (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC) && !ia->attr.atomics ? NOT_SUPPORTED :
		DAT_SUCCESS;
}

DAT_RETURN dapl_lmr_publish(struct dapl_lmr *lmr, struct dapl_pz *pz, struct dapl_object *base,
			    DAT_LMR_HANDLE *handle, DAT_LMR_CONTEXT *lmr_context,
			    DAT_RMR_CONTEXT *rmr_context)
{
	DAT_LMR_PARAM *param = &lmr->param;

	if (!dapl_use(&pz->obj)) {
		dapl_object_put(&lmr->obj);
		return BAD_HANDLE(PZ);
	}
	if (base && !dapl_use(base)) {
		dapl_unuse(&pz->obj);
		dapl_object_put(&lmr->obj);
		return BAD_HANDLE(LMR);
	}
	lmr->pz = pz;
	if (base) {
		lmr->base = base;
		dapl_object_get(base);
	}
	param->pz_handle = (DAT_PZ_HANDLE)pz;
	param->registered_size = param->length;
	param->lmr_context = lmr->mr->lkey;
	param->rmr_context = param->mem_priv & REMOTE_PRIVILEGES ? lmr->mr->rkey : 0;	/* LMR-3 */
	if (lmr_context)
		*lmr_context = param->lmr_context;
	if (rmr_context)
		*rmr_context = param->rmr_context;
	dapl_object_publish(&lmr->obj);
	dapl_count(lmr->obj.ia, DCNT_IA_LMR_CREATE);
	*handle = (DAT_LMR_HANDLE)lmr;
	return DAT_SUCCESS;
}

/* dat_lmr_create (doc/spec/calls.md 6). The memory stays the consumer's. LMR-1, 2, 6, 7, 8, 12. */
DAT_RETURN dapl_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			   DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type, DAT_LMR_HANDLE *handle,
			   DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			   DAT_VLEN *registered_size, DAT_VADDR *registered_address)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	DAPL_ENTERED struct dapl_lmr *base = NULL;
	DAPL_ENTERED struct dapl_pz *pz = NULL;
	struct dapl_lmr *lmr;
	const void *name;
	DAT_RETURN ret;
	void *start;
	int access, err;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!(pz = dapl_pz_enter(pz_handle)) || pz->obj.ia != ia)
		return BAD_HANDLE(PZ);
	if ((ret = dapl_lmr_check_privileges(ia, priv, BAD_PARAM(6))) == BAD_PARAM(6))
		return ret;
	if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
		return BAD_PARAM(7);
	if (!handle)
		return BAD_PARAM(8);
	if (va_type == DAT_VA_TYPE_ZB && !ia->attr.zero_based)	/* LMR-26 */
		return NOT_SUPPORTED;
	if (ret != DAT_SUCCESS)
		return ret;
	if ((ret = resolve(ia, type, region, &length, &start, &name, &base)))
		return ret;
	if (va_type == DAT_VA_TYPE_ZB && dapl_zero_based_set(pz))
		return NO_RESOURCE(MEMORY);
	if (!(lmr = dapl_lmr_new(ia)))
		return NO_RESOURCE(MEMORY);
	access = dapl_lmr_access(ia, priv) | (va_type == DAT_VA_TYPE_ZB ? IBV_ACCESS_ZERO_BASED : 0);
	err = dapl_device_ops.reg_mr(pz->pd, start, length, access, name, &lmr->mr);
	if (err) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ia", ia, NULL, "register %p, %llu bytes: %s",
		      start, (unsigned long long)length, strerror(err));
		lmr->mr = NULL;
		dapl_object_put(&lmr->obj);
		return cannot_register(ia, length, err);
	}
	if (name)
		memcpy(lmr->cookie, name, sizeof lmr->cookie);
	lmr->param = (DAT_LMR_PARAM){ .mem_type = type, .region_desc = region, .length = length,
		.mem_priv = priv, .va_type = va_type,
		.registered_address = va_type == DAT_VA_TYPE_ZB ? 0 : (uintptr_t)start };	/* LMR-22 */
	if (registered_size)
		*registered_size = length;
	if (registered_address)
		*registered_address = lmr->param.registered_address;
	return dapl_lmr_publish(lmr, pz, base ? &base->obj : NULL, handle, lmr_context, rmr_context);
}

/* LMR-13, 14 */
DAT_RETURN dapl_lmr_query(DAT_LMR_HANDLE handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param)
{
	DAPL_ENTERED struct dapl_lmr *lmr = dapl_lmr_enter(handle);

	if (!lmr)
		return BAD_HANDLE(LMR);
	if (mask & ~DAT_LMR_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	*param = lmr->param;
	param->ia_handle = dapl_ia_handle(lmr->obj.ia);
	return DAT_SUCCESS;
}

/* LMR-15, 16 */
DAT_RETURN dapl_lmr_free(DAT_LMR_HANDLE handle)
{
	DAPL_ENTERED struct dapl_lmr *lmr = dapl_lmr_enter(handle);

	if (!lmr)
		return BAD_HANDLE(LMR);
	switch (dapl_object_kill_unused(&lmr->obj)) {
	case KILL_IN_USE:	return BAD_STATE(LMR_IN_USE);
	case KILL_LOST:		return BAD_HANDLE(LMR);
	case KILL_DONE:		break;
	}
	dapl_object_wait_calls(&lmr->obj, 1);
	dapl_count(lmr->obj.ia, DCNT_IA_LMR_FREE);
	dapl_lmr_destroy(lmr);
	return DAT_SUCCESS;
}

/* --- contexts back to LMRs; not on the data path ----------------------------------------- */

bool dapl_lmr_holds(const struct dapl_lmr *lmr, DAT_VADDR va, uint64_t len)
{
	DAT_VADDR start = lmr->param.registered_address;

	return va >= start && len <= lmr->param.registered_size && va - start <= lmr->param.registered_size - len;
}

/* Enters the first live LMR that satisfies `is`. Returns NULL if there is none. */
static struct dapl_lmr *find(struct dapl_ia *ia,
			     bool (*is)(const struct dapl_lmr *, const void *), const void *arg)
{
	struct dapl_object *o;

	dapl_mutex_lock(&ia->lock);
	for (o = ia->objects[DAPL_LMR]; o && !is((struct dapl_lmr *)o, arg); o = o->next)
		;
	if (o)
		o = dapl_object_enter((DAT_HANDLE)o, DAPL_LMR);
	dapl_mutex_unlock(&ia->lock);
	return (struct dapl_lmr *)o;
}

static bool has_local(const struct dapl_lmr *lmr, const void *arg)
{
	const DAT_LMR_TRIPLET *t = arg;

	return lmr->param.lmr_context == t->lmr_context && dapl_lmr_holds(lmr, t->virtual_address, t->segment_length);
}

static bool has_remote(const struct dapl_lmr *lmr, const void *arg)
{
	const DAT_RMR_TRIPLET *t = arg;

	return lmr->param.rmr_context && lmr->param.rmr_context == t->rmr_context &&
	       dapl_lmr_holds(lmr, t->virtual_address, t->segment_length);
}

bool dapl_lmr_sink(struct dapl_ia *ia, struct dapl_pz *pz, const DAT_RMR_TRIPLET *remote,
		   DAT_LMR_TRIPLET *local)
{
	DAPL_ENTERED struct dapl_lmr *lmr = find(ia, has_remote, remote);

	if (!lmr)
		lmr = dapl_rmr_target(ia, remote);
	if (!lmr || lmr->pz != pz)
		return false;
	*local = (DAT_LMR_TRIPLET){ .virtual_address = remote->virtual_address,
		.segment_length = remote->segment_length, .lmr_context = lmr->param.lmr_context };
	return true;
}

/* Devices and processors share coherent memory here, so a barrier suffices: it orders the consumer's plain
 * stores and loads around the call. LMR-17, 18, 25. */
static DAT_RETURN sync_memory(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *triplets,
			      DAT_VLEN n)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);

	if (!ia)
		return BAD_HANDLE(IA);
	if (!triplets && n)
		return BAD_PARAM(2);
	for (DAT_VLEN i = 0; i < n; i++)
		if (triplets[i].segment_length) {
			DAPL_ENTERED struct dapl_lmr *lmr = find(ia, has_local, &triplets[i]);

			if (!lmr)
				return BAD_PARAM(2);
		}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *triplets, DAT_VLEN n)
{
	return sync_memory(ia, triplets, n);
}

DAT_RETURN dapl_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *triplets, DAT_VLEN n)
{
	return sync_memory(ia, triplets, n);
}
