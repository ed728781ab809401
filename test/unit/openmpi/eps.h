/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eps.h - the DAT endpoints below the BTL component: they are made, connected, accepted and freed, but the library only
 * records it. The first endpoint is that of `conn` (btl.h). */
#ifndef TEST_UNIT_OPENMPI_EPS_H
#define TEST_UNIT_OPENMPI_EPS_H
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/hello.h"

struct test_ep {
	bool exists;
	DAT_CONTEXT context;
	DAT_EP_ATTR attr;
	DAT_SRQ_HANDLE srq;		/* NULL: it has receives of its own */
	int disconnects;
	DAT_CLOSE_FLAGS close_flags;	/* of the last dat_ep_disconnect() */
	const void *to;			/* of dat_ep_connect(); NULL: not called */
	DAT_CONN_QUAL qualifier;
	DAT_TIMEOUT timeout;
	DAT_CR_HANDLE cr;		/* of dat_cr_accept() */
	struct udapl_hello hello;	/* private data of dat_ep_connect() or dat_cr_accept() */
};

extern struct test_ep eps[32];
extern int num_eps;			/* made, among them those that were freed */
/* The endpoint of this handle, which exists. */
struct test_ep *ep_of(DAT_EP_HANDLE ep);
int eps_existing(void);

/* What the calls return from now on; DAT_SUCCESS at first. */
struct ep_results {
	DAT_RETURN create, set_context, connect, disconnect, accept, resize, srq_query, cr_query;
};
extern struct ep_results ep_results;

/* Whether dat_ep_disconnect() raises the event of the disconnect. */
extern bool disconnects_succeed;

extern int evd_lengths[8], evd_resizes;	/* lengths of the calls of dat_evd_resize() */
extern DAT_COUNT srq_room;		/* receives that the shared queue can hold */
extern struct udapl_hello cr_hello;	/* private data of each connection request, in network order */
extern DAT_COUNT cr_hello_size;
extern int rejects;			/* calls of dat_cr_reject() */

/* For btl.c: before a case. */
void eps_begin(void);

#endif
