/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.h - endpoints of a module, by process name. */
#ifndef BTL_UDAPL_ENDPOINT_H
#define BTL_UDAPL_ENDPOINT_H

#include "udapl.h"

/* Returns the endpoint of this process, created if it is new. NULL if there is no memory. */
mca_btl_base_endpoint_t *udapl_endpoint_of(mca_btl_udapl_module_t *m, opal_process_name_t name);

#endif
