/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frag.h - descriptors and their registered buffers. */
#ifndef BTL_UDAPL_FRAG_H
#define BTL_UDAPL_FRAG_H

#include "udapl.h"

int udapl_frags_init(mca_btl_udapl_module_t *m);
void udapl_frags_fini(mca_btl_udapl_module_t *m);
mca_btl_base_descriptor_t *udapl_alloc(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
				       uint8_t order, size_t size, uint32_t flags);
int udapl_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *des);
mca_btl_base_descriptor_t *udapl_prepare_src(mca_btl_base_module_t *btl,
					     mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
					     uint8_t order, size_t reserve, size_t *size,
					     uint32_t flags);

#endif
