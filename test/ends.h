/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.h - one end of a connection: an IA, and what an endpoint needs of it. For tests of several directories. The
 * caller zeroes it, and may set members: they are then not made. */
#ifndef TEST_ENDS_H
#define TEST_ENDS_H
#include <stddef.h>
#include <dat/udat.h>

struct end {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr, recv, request, conn;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	char *memory;		/* of the LMR */
	const char *step;	/* the call that failed, of those below */
};
/* Entries of the EVDs; 0: none. Without `request`, requests complete on the EVD of receives. */
struct end_events {
	DAT_COUNT cr, recv, request, conn;
};
/* Opens the IA, makes the PZ and the EVDs. Returns the first failure; closing the IA frees what was made before it. */
DAT_RETURN end_open(struct end *e, const char *ia, struct end_events events);
/* Registers memory with all rights. */
DAT_RETURN end_register(struct end *e, void *memory, size_t size);
/* Makes the endpoint. attr: NULL for the defaults. */
DAT_RETURN end_create_ep(struct end *e, const DAT_EP_ATTR *attr);
DAT_LMR_TRIPLET end_segment(const struct end *e, const void *at, size_t length);
DAT_RETURN end_close(struct end *e);	/* abruptly, with all that belongs to the IA */

#endif
