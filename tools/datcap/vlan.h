/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* vlan.h - the VLAN tag that the device has stripped from a frame. The kernel cuts a frame to the snap length
 * without it. */
#ifndef TOOLS_DATCAP_VLAN_H
#define TOOLS_DATCAP_VLAN_H
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>
#include "common/bytes.h"

enum { VLAN_OFFSET = 12, VLAN_TAG = 4 };	/* bytes: where the tag is in a frame, its size */

/* Returns the size of the stripped tag, or 0 if the frame has none. */
static inline uint32_t vlan_tag_size(const DAT_ETH_FRAME *f)
{
	return f->flags & DAT_ETH_FRAME_VLAN ? VLAN_TAG : 0;
}

static inline void vlan_put_tag(const DAT_ETH_FRAME *f, uint8_t tag[VLAN_TAG])
{
	put_be16(put_be16(tag, f->vlan_type), f->vlan_tci);
}

#endif
