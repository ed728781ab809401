/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pz.c - protection zones (PZ). Each is a protection domain of verbs. */
#include <errno.h>
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/base/service.h"
#include "dapl/core/mem/pz.h"

/* A datagram endpoint may be freed while the service thread reports a peer to it. The upcall destroys the
 * address handle of the peer, which uses the domain until then. Called with no lock held. */
static void end_pz(struct dapl_object *obj)
{
	struct dapl_pz *pz = (struct dapl_pz *)obj;

	if (pz->pd && dapl_device_ops.dealloc_pd(pz->pd) == EBUSY) {
		dapl_service_flush();
		dapl_device_ops.dealloc_pd(pz->pd);
	}
}

/* dat_pz_create (doc/spec/calls.md 6). PZ-1, 6. */
DAT_RETURN dapl_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct dapl_pz *pz;
	int err;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!handle)
		return BAD_PARAM(2);
	pz = dapl_object_new(DAPL_PZ, sizeof *pz, ia, end_pz);
	if (!pz)
		return NO_RESOURCE(MEMORY);
	err = dapl_device_ops.alloc_pd(ia->dev, &pz->pd);
	if (err) {
		pz->pd = NULL;
		dapl_object_put(&pz->obj);
		return dapl_status(err, DAT_RESOURCE_PROTECTION_DOMAIN);
	}
	dapl_object_publish(&pz->obj);
	dapl_count(ia, DCNT_IA_PZ_CREATE);
	*handle = (DAT_PZ_HANDLE)pz;
	return DAT_SUCCESS;
}

/* PZ-5 */
DAT_RETURN dapl_pz_query(DAT_PZ_HANDLE handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	DAPL_ENTERED struct dapl_pz *pz = dapl_pz_enter(handle);

	if (!pz)
		return BAD_HANDLE(PZ);
	if (mask & ~DAT_PZ_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	param->ia_handle = dapl_ia_handle(pz->obj.ia);
	return DAT_SUCCESS;
}

/* PZ-2, 3, 4 */
DAT_RETURN dapl_pz_free(DAT_PZ_HANDLE handle)
{
	DAPL_ENTERED struct dapl_pz *pz = dapl_pz_enter(handle);

	if (!pz)
		return BAD_HANDLE(PZ);
	switch (dapl_object_kill_unused(&pz->obj)) {
	case KILL_IN_USE:	return BAD_STATE(PZ_IN_USE);
	case KILL_LOST:		return BAD_HANDLE(PZ);
	case KILL_DONE:		break;
	}
	dapl_object_wait_calls(&pz->obj, 1);
	dapl_count(pz->obj.ia, DCNT_IA_PZ_FREE);
	dapl_object_bury(&pz->obj);
	return DAT_SUCCESS;
}
