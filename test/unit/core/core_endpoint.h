/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_endpoint.h - the IA, the EVD and the endpoint of a test program that needs one of each
 * (core_endpoint.c), on the device of core_device.h. */
#ifndef TEST_CORE_ENDPOINT_H
#define TEST_CORE_ENDPOINT_H
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

extern struct dapl_ia *ia;
extern struct dapl_evd *evd;		/* of receives, requests and connection events of `ep` */
extern struct dapl_ep *ep;

/* Makes the three, above a device that succeeds in everything. `flags` are DAT_EVD_FLAGS; without, there is no EVD. */
void core_endpoint_open(int qlen, int flags, uint32_t posts);
/* Frees them; a teardown of cmocka. */
int core_endpoint_close(void **state);
/* The same, after posts: none has left the lock of the requests held, or the endpoint entered. */
int core_endpoint_close_unused(void **state);

#endif
