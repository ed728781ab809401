/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm_channel.h - the event channel of a device: events that come, what handles them, and a listener that requests come
 * to. librdmacm and the service thread below and core above are replaced here and by conn_sides.c; its steps have
 * these besides: "flush" of the service thread, "unwatch" of the channel, "up:request" and "up:async". */
#ifndef TEST_UNIT_VERBS_CM_CHANNEL_H
#define TEST_UNIT_VERBS_CM_CHANNEL_H
#include "test/unit/unit.h"
#include "test/unit/verbs/conn_sides.h"

enum { PORT = 2, MANY_EVENTS = 1000, STATUS = -71 };

extern int watch_result;		/* of dapl_watch_start */
extern int channel_error;		/* of a channel without events; 0: EAGAIN */
extern void (*during_flush)(void);	/* runs in dapl_service_flush, if set, */
extern void (*during_ack)(void);	/* and this at the end of rdma_ack_cm_event */

/* Events that come. */
extern struct rdma_cm_event queue[MANY_EVENTS];
extern int queued, acked;
extern uint8_t arrived[256];		/* private data of the last; gone when it was acknowledged */

/* The function that handled the last event other than a request, and its arguments. */
extern int handled;			/* how many there were */
extern const void *handler;
extern struct rdma_cm_event event_told;
extern uint8_t bytes_told[256];
extern size_t length_told;

/* Requests come to this listener, whose id is not that of the request. */
extern struct dapl_listener listener;
extern struct rdma_cm_id listen_id;
extern int ia, sp;			/* what core calls the device and the listener */
extern struct dapl_request request_told;	/* its data are in bytes_told, its connection in `conn` */

/* Before a case, in place of sides_begin: the channel is watched. */
int channel_begin(void **state);
void channel_begin_on(void **state, enum hw_wire wire);	/* again, over a wire */
void read_channel(void);
/* An event of `id`, with as much private data of `arrived`. */
void event_comes(enum rdma_cm_event_type type, size_t length);
/* A request with the data "hello", the address of the peer, and `id`. */
void request_comes(void);

#endif
