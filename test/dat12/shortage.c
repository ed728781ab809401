/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shortage.c - dat_lmr_create() of the DAT 1.2 header when libdat2's table of LMRs has no memory: the
 * error is that of a shortage, and no region is left. The table itself forgets the regions of an IA
 * that closes, and each region that is freed. */
#include "pair.h"
#include <dlfcn.h>

/* In place of libdat2's functions, for this program. */
static int table_is_full;
static DAT_RETURN (*real_add)(DAT_IA_HANDLE, DAT_LMR_CONTEXT, DAT_LMR_HANDLE);
DAT_RETURN dats_lmr_add(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr)
{
	if (table_is_full)
		return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY;
	return real_add(ia, context, lmr);
}

int main(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context = 0x5a5a;
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;
	struct pair p;

	*(void **)&real_add = dlsym(RTLD_NEXT, "dats_lmr_add");
	EXPECT(real_add != NULL);
	use_soft_device();
	pair_prepare(&p);
	OK(dat_pz_create(p.ia, &pz));
	region.for_va = p.memory;
	table_is_full = 1;
	FAILS(dat_lmr_create(p.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
		&context, NULL, NULL, NULL), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	EXPECT(context == 0x5a5a);
	OK(dat_pz_free(pz));	/* fails while the zone has a region */

	table_is_full = 0;
	OK(dat_lmr_create(p.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, p.pz, DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, NULL,
			  NULL, NULL));
	EXPECT(dats_lmr_find(p.ia, context) == lmr);
	OK(dat_lmr_free(lmr));
	EXPECT(dats_lmr_find(p.ia, context) == DAT_HANDLE_NULL);
	EXPECT(dats_lmr_find(p.ia, p.lmr_context) == p.lmr);
	FAILS(dat_lmr_free(lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	pair_close(&p);
	EXPECT(dats_lmr_find(p.ia, p.lmr_context) == DAT_HANDLE_NULL);
	return 0;
}
