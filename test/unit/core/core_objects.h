/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_objects.h - what endpoints and SRQs are made from: an IA with limits, a PZ and EVDs, with the service
 * thread, on the device of core_device.h (core_objects.c). For tests whose endpoints are made by ep.c. */
#ifndef TEST_CORE_OBJECTS_H
#define TEST_CORE_OBJECTS_H
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

extern struct dapl_ia *core_ia;
extern struct dapl_pz *core_pz;
extern struct dapl_evd *core_dto_evd, *core_conn_evd;

/* Makes them, above a device that succeeds in everything. */
int core_objects_open(void **state);
/* Frees them. Fails if an object that was made from them is left, or one of the device. */
int core_objects_close(void **state);
/* An UNCONNECTED endpoint of all four, published; dapl_ep_free frees it. `attr` NULL: the default. */
struct dapl_ep *core_objects_ep(struct dapl_srq *srq, const DAT_EP_ATTR *attr);
/* Takes the next event of an EVD. Returns its number, or 0 if there is none. */
int core_next_event(struct dapl_evd *evd, DAT_EVENT *event);

#endif
