/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr_map.h - memory of peers that an endpoint's consumer has mapped (dat_map_extensions.h). */
#ifndef DAPL_MAP_H
#define DAPL_MAP_H
#include "dapl/core/dapl.h"

/* dat_map_rmr and dat_map_unmap. Called with no lock held. */
DAT_RETURN dapl_map_rmr(struct dapl_ep *ep, const DAT_RMR_TRIPLET *rmr, DAT_PVOID *address);
DAT_RETURN dapl_map_unmap(struct dapl_ep *ep, DAT_PVOID address);
/* Unmaps all mappings that are left, when the endpoint ends. */
void dapl_map_end(struct dapl_ep *ep);

#endif
