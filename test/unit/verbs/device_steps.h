/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_steps.h - what an RDMA device is made of: librdmacm, libibverbs, the service thread, core, and what finds and
 * asks hardware are replaced. What is made is counted; `failing` (steps.h) names what fails: "places" finds addresses,
 * "channel", "id", "bind" and "verbs" make what librdmacm and libibverbs have, "probe" asks what the device can do,
 * "cm" and "watch" begin to watch for events. The steps "up" and "ack" are those of an asynchronous event. */
#ifndef TEST_UNIT_VERBS_DEVICE_STEPS_H
#define TEST_UNIT_VERBS_DEVICE_STEPS_H
#include <rdma/rdma_cma.h>
#include "common/log.h"
#include "dapl/verbs/address.h"
#include "dapl/verbs/hw.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { PLACES = 3, EVENTS = 3 };

/* Where the device may be: 10.0.0.1 of eth0, 10.0.0.2 of eth1, 10.0.0.3 of eth2; only the first counts before
 * a case. */
extern struct hw_places here;
extern struct ibv_device hardware[PLACES];	/* that a place belongs to: dev0 the first, others none ("") */
extern uint8_t ports[PLACES];		/* and its port, 1 */
extern const char *text_of_places;	/* the last question */
extern struct ia_params params_told;

extern int refusal;			/* errno of the step that fails */
extern bool has_filler, no_memory;
extern struct rdma_event_channel channel;
extern struct ibv_context context;	/* of the open device */
extern bool watches_cm, watches_async, keeps_librdmacm;
extern int asked;			/* how often something was asked for that may fail */
extern const struct rdma_cm_id *notified;	/* by the last rdma_notify */
extern void *ethernet;			/* what the device has for raw Ethernet; NULL: freed */
extern int ia;				/* what core calls the device */
extern struct dapl_device *dev;		/* of the case */

/* Asynchronous events: `coming` of them, then an errno. */
extern struct ibv_async_event events[EVENTS];
extern int coming, taken, end_of_events;
extern void (*ready)(struct dapl_watch *);
extern struct ibv_qp qp;

/* The messages: how many, and the last one. */
extern int reports, err_reported;
extern enum log_id id_reported;
extern char reported[512];

/* For cmocka, before and after a case. The end fails if something is left. */
int steps_begin(void **state);
int steps_end(void **state);
bool nothing_is_left(void);

#endif
