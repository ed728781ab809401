/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapters.h - the adapters below the BTL component: the library only records what is opened and created. EVDs and the
 * SRQ have the handles of `module` (btl.h). */
#ifndef TEST_UNIT_OPENMPI_ADAPTERS_H
#define TEST_UNIT_OPENMPI_ADAPTERS_H
#include "test/unit/openmpi/btl.h"

/* What the calls return from now on; DAT_SUCCESS at first. */
struct adapter_results {
	DAT_RETURN open, query, pz, dto_evd, conn_evd, psp, srq;
};
extern struct adapter_results adapter_results;
extern DAT_IA_ATTR adapter_attr;	/* with an address */
extern DAT_PROVIDER_ATTR adapter_provider;
extern int adapters_open, psps, srqs;	/* that exist */
extern char adapter_name[DAT_NAME_MAX_LENGTH];	/* that was opened last */
extern DAT_SRQ_ATTR srq_attr;		/* of the last dat_srq_create() */

enum { ADAPTER_QUALIFIER = 0x5d01 };	/* of each service point */

/* Before a case, after btl_begin(). */
void adapters_begin(void);

#endif
