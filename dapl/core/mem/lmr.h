/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lmr.h - local memory regions (lmr.c). */
#ifndef DAPL_LMR_H
#define DAPL_LMR_H
#include "dapl/core/dapl.h"

/* Returns a new LMR without a region, which dapl_object_put ends, or NULL. */
struct dapl_lmr *dapl_lmr_new(struct dapl_ia *ia);
/* Translates DAT privileges to IBV_ACCESS_*. */
int dapl_lmr_access(const struct dapl_ia *ia, DAT_MEM_PRIV_FLAGS priv);
/* Returns `bad` if there are unknown privileges, NOT_SUPPORTED if the device cannot grant them. */
DAT_RETURN dapl_lmr_check_privileges(const struct dapl_ia *ia, DAT_MEM_PRIV_FLAGS priv,
				     DAT_RETURN bad);
/* Last step of a create: lmr->mr is registered, and lmr->param has mem_type, region_desc, length, mem_priv,
 * va_type and registered_address. `base` is the entered object that the region is made from, or NULL. After
 * an error the LMR is freed. The contexts may be NULL. */
DAT_RETURN dapl_lmr_publish(struct dapl_lmr *lmr, struct dapl_pz *pz, struct dapl_object *base,
			    DAT_LMR_HANDLE *handle, DAT_LMR_CONTEXT *lmr_context,
			    DAT_RMR_CONTEXT *rmr_context);
/* Ends an LMR that was killed before. */
void dapl_lmr_destroy(struct dapl_lmr *lmr);
/* True if the LMR contains [va, va + len). */
bool dapl_lmr_holds(const struct dapl_lmr *lmr, DAT_VADDR va, uint64_t len);

/* Translates the RMR triplet of a read's sink to a local triplet. Returns false if no LMR of the PZ has
 * that range. */
bool dapl_lmr_sink(struct dapl_ia *ia, struct dapl_pz *pz, const DAT_RMR_TRIPLET *remote,
		   DAT_LMR_TRIPLET *local);
DAT_RETURN dapl_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			   DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type, DAT_LMR_HANDLE *handle,
			   DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			   DAT_VLEN *registered_size, DAT_VADDR *registered_address);
DAT_RETURN dapl_lmr_query(DAT_LMR_HANDLE handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param);
DAT_RETURN dapl_lmr_free(DAT_LMR_HANDLE handle);
DAT_RETURN dapl_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *triplets, DAT_VLEN n);
DAT_RETURN dapl_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *triplets, DAT_VLEN n);

#endif
