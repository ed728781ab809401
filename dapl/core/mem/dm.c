/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.c - memory of the device (dat_dm_extensions.h): its rules, its LMRs, and copies. The device decides
 * where the memory is and how it is accessed. */
#include <pthread.h>
#include <unistd.h>
#include "dapl/core/base/fork.h"
#include "dapl/core/mem/dm.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/zero_based.h"

enum { LOG2_ALIGNMENT_MAX = 12 };	/* a page: more than any device promises */

/* --- fork: a child has no device memory ---------------------------------------------------- */

static unsigned forks;		/* forks from the first ancestor to this process; only a child that has one
				 * thread yet changes it */

static void fork_child(void)
{
	forks++;
}

static void watch_forks(void)
{
	static struct dapl_fork_part part = { .rank = RANK_DEAD_OBJECTS, .child = fork_child };

	dapl_fork_register(&part);
}

/* Enters device memory of this process. Returns NULL also for memory of a parent: it is not mapped in the
 * child. DM-6, 8. */
static struct dapl_dm *enter(DAT_HANDLE handle)
{
	struct dapl_dm *dm = dapl_object_enter(handle, DAPL_DM);

	if (!dm || dm->forks == forks)
		return dm;
	dapl_object_leave(&dm->obj);
	return NULL;
}

#define BAD_DM DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1)

/* --- allocation -------------------------------------------------------------------------- */

static void end_dm(struct dapl_object *obj)
{
	struct dapl_dm *dm = (struct dapl_dm *)obj;

	if (dm->dm)
		dapl_device_ops.free_dm(dm->dm);
}

static uint64_t bytes_in_use(struct dapl_ia *ia)
{
	uint64_t bytes = 0;

	dapl_mutex_lock(&ia->lock);
	for (struct dapl_object *o = ia->objects[DAPL_DM]; o; o = o->next)
		bytes += ((struct dapl_dm *)o)->length;
	dapl_mutex_unlock(&ia->lock);
	return bytes;
}

static DAT_RETURN cannot_allocate(struct dapl_ia *ia, uint64_t length, int err)
{
	DAT_RETURN ret = dapl_status(err, DAT_RESOURCE_MEMORY);

	if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)
		log_report(REPORT_DEVICE_MEMORY, LOG_FIELDS(.ia = ia->ia_attr.adapter_name,
			   .err = err, .result = "DAT_INSUFFICIENT_RESOURCES"),
			   "%s: cannot allocate %llu bytes of device memory: this process uses %llu "
			   "bytes, the device gives out %llu", ia->ia_attr.adapter_name,
			   (unsigned long long)length, (unsigned long long)bytes_in_use(ia),
			   (unsigned long long)ia->attr.dm_size);
	return ret;
}

/* DM-1, 2, 3 */
DAT_RETURN dapl_dm_alloc(DAT_HANDLE handle, DAT_VLEN length, DAT_UINT32 log2_alignment,
			 DAT_DM_HANDLE *made)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(handle);
	struct dapl_dm *dm;
	int err;

	if (!ia || ia->pid != getpid())
		return BAD_HANDLE(IA);
	if (!ia->attr.dm_size)
		return NOT_SUPPORTED;
	if (!length || length > ia->attr.dm_size)
		return BAD_PARAM(3);
	if (log2_alignment > LOG2_ALIGNMENT_MAX)
		return BAD_PARAM(4);
	if (!made)
		return BAD_PARAM(5);
	pthread_once(&once, watch_forks);
	if (!(dm = dapl_object_new(DAPL_DM, sizeof *dm, ia, end_dm)))
		return NO_RESOURCE(MEMORY);
	err = dapl_device_ops.alloc_dm(ia->dev, length, log2_alignment, &dm->dm);
	if (err) {
		dm->dm = NULL;
		dapl_object_put(&dm->obj);
		return cannot_allocate(ia, length, err);
	}
	dm->length = length;
	dm->forks = forks;
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "dm", dm, "alloc", "%llu bytes",
	      (unsigned long long)length);
	dapl_object_publish(&dm->obj);
	*made = (DAT_DM_HANDLE)dm;
	return DAT_SUCCESS;
}

/* DM-5 */
DAT_RETURN dapl_dm_free(DAT_HANDLE handle)
{
	DAPL_ENTERED struct dapl_dm *dm = enter(handle);

	if (!dm)
		return BAD_DM;
	switch (dapl_object_kill_unused(&dm->obj)) {
	case KILL_IN_USE:	return BAD_STATE(LMR_IN_USE);
	case KILL_LOST:		return BAD_DM;
	case KILL_DONE:		break;
	}
	dapl_object_wait_calls(&dm->obj, 1);
	dapl_object_bury(&dm->obj);
	return DAT_SUCCESS;
}

/* --- ranges -------------------------------------------------------------------------------- */

static bool is_good_offset(const struct dapl_dm *dm, uint64_t offset)
{
	return offset <= dm->length && offset % dm->obj.ia->attr.dm_unit == 0;
}

/* The offset is valid. */
static bool is_good_length(const struct dapl_dm *dm, uint64_t offset, uint64_t length)
{
	return length <= dm->length - offset && length % dm->obj.ia->attr.dm_unit == 0;
}

/* --- LMRs ---------------------------------------------------------------------------------- */

static DAT_RETURN make_lmr(struct dapl_dm *dm, uint64_t offset, uint64_t length,
			   struct dapl_pz *pz, DAT_MEM_PRIV_FLAGS priv, struct dapl_lmr **made)
{
	struct dapl_ia *ia = dm->obj.ia;
	struct dapl_lmr *lmr;
	int access, err;

	if (dapl_zero_based_set(pz) || !(lmr = dapl_lmr_new(ia)))
		return NO_RESOURCE(MEMORY);
	access = dapl_lmr_access(ia, priv);
	if (!ia->attr.dm_windows)
		access &= ~IBV_ACCESS_MW_BIND;
	err = dapl_device_ops.reg_dm(pz->pd, dm->dm, offset, length, access, &lmr->mr);
	if (err) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "dm", dm, NULL, "register %llu bytes: errno %d",
		      (unsigned long long)length, err);
		lmr->mr = NULL;
		dapl_object_put(&lmr->obj);
		return dapl_status(err, DAT_RESOURCE_MEMORY_REGION);
	}
	*made = lmr;
	return DAT_SUCCESS;
}

/* DM-9, 10 */
DAT_RETURN dapl_dm_lmr_create(DAT_HANDLE handle, DAT_VLEN offset, DAT_VLEN length,
			      DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS priv,
			      DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			      DAT_RMR_CONTEXT *rmr_context)
{
	DAPL_ENTERED struct dapl_dm *dm = enter(handle);
	DAPL_ENTERED struct dapl_pz *pz = NULL;
	struct dapl_lmr *lmr = NULL;
	DAT_RETURN ret;

	if (!dm)
		return BAD_DM;
	if (!is_good_offset(dm, offset))
		return BAD_PARAM(3);
	if (!length || !is_good_length(dm, offset, length))
		return BAD_PARAM(4);
	if (!(pz = dapl_pz_enter(pz_handle)) || pz->obj.ia != dm->obj.ia)
		return BAD_HANDLE(PZ);
	if (!lmr_handle)
		return BAD_PARAM(7);
	if ((ret = dapl_lmr_check_privileges(dm->obj.ia, priv, BAD_PARAM(6))) ||
	    (ret = make_lmr(dm, offset, length, pz, priv, &lmr)))
		return ret;
	lmr->param = (DAT_LMR_PARAM){ .mem_type = DAT_DM_MEM_TYPE, .region_desc.for_va = handle,
		.length = length, .mem_priv = priv, .va_type = DAT_VA_TYPE_ZB };
	ret = dapl_lmr_publish(lmr, pz, &dm->obj, lmr_handle, lmr_context, rmr_context);
	return ret == BAD_HANDLE(LMR) ? BAD_DM : ret;	/* another thread freed it meanwhile */
}

/* --- access by the program ------------------------------------------------------------------- */

/* DM-12, 13 */
DAT_RETURN dapl_dm_copy(DAT_HANDLE handle, DAT_VLEN offset, void *host, DAT_VLEN length,
			bool to_device)
{
	DAPL_ENTERED struct dapl_dm *dm = enter(handle);

	if (!dm)
		return BAD_DM;
	if (!is_good_offset(dm, offset))
		return BAD_PARAM(3);
	if (!host)
		return BAD_PARAM(4);
	if (!is_good_length(dm, offset, length))
		return BAD_PARAM(5);
	return dapl_status(dapl_device_ops.copy_dm(dm->dm, offset, host, length, to_device),
			   DAT_RESOURCE_MEMORY);
}

/* DM-14 */
DAT_RETURN dapl_dm_map(DAT_HANDLE handle, DAT_PVOID *address)
{
	DAPL_ENTERED struct dapl_dm *dm = enter(handle);

	if (!dm)
		return BAD_DM;
	if (!address)
		return BAD_PARAM(3);
	if (!dapl_device_ops.map_dm)
		return NOT_SUPPORTED;
	return dapl_status(dapl_device_ops.map_dm(dm->dm, address), DAT_RESOURCE_MEMORY);
}
