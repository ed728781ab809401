/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* modex.h - the modex of Open MPI for one process: what it publishes, and what its peers have published. */
#ifndef TEST_UNIT_OPENMPI_MODEX_H
#define TEST_UNIT_OPENMPI_MODEX_H
#include "test/unit/openmpi/btl.h"

extern const void *modex_theirs;	/* of every peer; NULL: nothing */
extern size_t modex_theirs_size;
extern uint32_t modex_without;		/* this process (vpid) has published nothing */
extern int modex_put_result;		/* OPAL_SUCCESS at first */
extern int modex_puts;
extern struct udapl_address modex_ours[160];	/* published last */
extern size_t modex_ours_size;		/* in bytes */

/* Replaces the modex of Open MPI until the end of the program. */
void modex_begin(void);

#endif
