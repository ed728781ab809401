/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.h - sending with flow control. */
#ifndef BTL_UDAPL_SEND_H
#define BTL_UDAPL_SEND_H

#include "udapl.h"

int udapl_send(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
	       mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag);
int udapl_sendi_frag(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		     const void *header, size_t header_size, size_t payload_size, uint8_t order,
		     uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des);
bool udapl_pack(void *to, opal_convertor_t *conv, const void *header, size_t header_size,
		size_t payload_size);

#endif
