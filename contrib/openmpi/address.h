/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.h - finds the module's own address, and an address of a peer that the module can reach. */
#ifndef BTL_UDAPL_ADDRESS_H
#define BTL_UDAPL_ADDRESS_H

#include "udapl.h"

bool udapl_address_own(mca_btl_udapl_module_t *m);
const struct udapl_address *udapl_address_match(mca_btl_udapl_module_t *m,
						const opal_proc_t *proc,
						const struct udapl_address *of, size_t n);

#endif
