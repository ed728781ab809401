/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* module.h - opening, populating and closing an adapter. */
#ifndef BTL_UDAPL_MODULE_H
#define BTL_UDAPL_MODULE_H

#include "udapl.h"

mca_btl_udapl_module_t *udapl_module_open(const char *name);
int udapl_add_procs(mca_btl_base_module_t *btl, size_t n, opal_proc_t **procs,
		    mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable);
int udapl_del_procs(mca_btl_base_module_t *btl, size_t n, opal_proc_t **procs,
		    mca_btl_base_endpoint_t **endpoints);
int udapl_finalize(mca_btl_base_module_t *btl);

#endif
