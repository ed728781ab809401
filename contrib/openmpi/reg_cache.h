/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reg_cache.h - registration cache. */
#ifndef BTL_UDAPL_REG_CACHE_H
#define BTL_UDAPL_REG_CACHE_H

#include "udapl.h"

int udapl_rcache_init(mca_btl_udapl_module_t *m);
mca_btl_base_registration_handle_t *udapl_register_mem(mca_btl_base_module_t *btl,
						       mca_btl_base_endpoint_t *e, void *base,
						       size_t size, uint32_t flags);
int udapl_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *h);
uint32_t udapl_frag_lmr(const opal_free_list_item_t *item);

#endif
