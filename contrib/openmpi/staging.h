/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* staging.h - the fast path of short messages. */
#ifndef BTL_UDAPL_STAGING_H
#define BTL_UDAPL_STAGING_H

#include "udapl.h"

int udapl_sendi(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		void *header, size_t header_size, size_t payload_size, uint8_t order,
		uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des);
/* A message longer than `most` is sent only if the ring is mapped. */
bool udapl_send_copy(mca_btl_base_endpoint_t *e, const void *payload, size_t length,
		     mca_btl_base_tag_t tag, size_t most);

#endif
