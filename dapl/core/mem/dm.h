/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.h - device memory as a DAT object (dm.c). */
#ifndef DAPL_DM_H
#define DAPL_DM_H
#include <dat/dat_dm_extensions.h>
#include "dapl/core/dapl.h"

struct dapl_dm {
	struct dapl_object obj;
	struct ibv_dm *dm;
	uint64_t length;		/* bytes that the consumer asked for */
	unsigned forks;			/* value of dm.c's counter of forks when the memory was allocated */
};

/* The operations of dat_dm_extensions.h. */
DAT_RETURN dapl_dm_alloc(DAT_HANDLE ia, DAT_VLEN length, DAT_UINT32 log2_alignment,
			 DAT_DM_HANDLE *dm);
DAT_RETURN dapl_dm_free(DAT_HANDLE dm);
DAT_RETURN dapl_dm_lmr_create(DAT_HANDLE dm, DAT_VLEN offset, DAT_VLEN length, DAT_PZ_HANDLE pz,
			      DAT_MEM_PRIV_FLAGS priv, DAT_LMR_HANDLE *lmr,
			      DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context);
DAT_RETURN dapl_dm_copy(DAT_HANDLE dm, DAT_VLEN offset, void *host, DAT_VLEN length,
			bool to_device);
DAT_RETURN dapl_dm_map(DAT_HANDLE dm, DAT_PVOID *address);

#endif
