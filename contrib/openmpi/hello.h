/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hello.h - the private data with which two components identify themselves to each other (hello.c). */
#ifndef BTL_UDAPL_HELLO_H
#define BTL_UDAPL_HELLO_H

#include "udapl.h"

struct udapl_hello udapl_hello_own(const mca_btl_udapl_module_t *m);
/* Returns false if the private data is not that of a compatible component. */
bool udapl_hello_parse(const mca_btl_udapl_module_t *m, const void *data, DAT_COUNT size,
		       struct udapl_hello *h);

#endif
