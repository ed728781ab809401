/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pz.c - protection zones as objects. What they protect is in lmr.c, dto.c and rmr.c. */
#include "pair.h"

TEST("PZ-1", a_pz_tells_its_ia)
{
	DAT_PZ_PARAM param;

	OK(dat_pz_query(a_pz(), DAT_PZ_FIELD_ALL, &param));
	EQUAL(param.ia_handle, ia());
}

TEST("PZ-2", a_pz_with_an_lmr_is_in_use)
{
	DAT_PZ_HANDLE pz = a_pz();
	struct region region = a_region(pz, 4096, LOCAL_RIGHTS);

	FAILS(dat_pz_free(pz), DAT_INVALID_STATE | DAT_INVALID_STATE_PZ_IN_USE);
	OK(dat_lmr_free(region.lmr));
	OK(dat_pz_free(pz));
}

TEST("PZ-3", a_pz_with_an_ep_is_in_use)
{
	struct end end = AN_END();

	OK(dat_lmr_free(end.mem.lmr));
	FAILS(dat_pz_free(end.pz), DAT_INVALID_STATE | DAT_INVALID_STATE_PZ_IN_USE);
	OK(dat_ep_free(end.ep));
	OK(dat_pz_free(end.pz));
}

TEST("PZ-4", an_empty_pz_is_freed)
{
	OK(dat_pz_free(a_pz()));
}

TEST("PZ-5", a_pz_has_one_field)
{
	DAT_PZ_PARAM param;

	FAILS(dat_pz_query(a_pz(), (DAT_PZ_PARAM_MASK)2, &param),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("PZ-6", pz_create_wants_room_for_the_handle)
{
	FAILS(dat_pz_create(ia(), NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}
