/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_conn.h - an endpoint of the objects of core_objects.h with a connection, of which the device reports, and what
 * these reports lead to (core_conn.c). The endpoint is `ep` of core_endpoint.h. */
#ifndef TEST_CORE_CONN_H
#define TEST_CORE_CONN_H
#include "dapl/core/ep/ep_state.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { CORE_LOCAL_PORT = 1, CORE_REMOTE_PORT = 2, CORE_NO_COUNTER = 0 };

/* Calls of the device so far, and the error that it reports. */
struct core_conn {
	int made;			/* connections, each with a reference of the endpoint */
	int flushes, disconnects, releases;
	int known_error;		/* errno of the failure; 0: no cause is known */
};
extern struct core_conn core_conn;
extern struct dapl_conn *const core_connection;		/* of the endpoint */

/* For cmocka: an UNCONNECTED endpoint, or one of datagrams. */
int core_conn_open(void **state);
int core_conn_open_datagrams(void **state);
/* Fails if an event or a reference of the endpoint is left, or a lock is held. Frees the endpoint. */
int core_conn_close(void **state);
void core_conn_again(void **state);	/* closes and opens */

/* The endpoint connects (EP_DO_CONNECT) or accepts (EP_DO_ACCEPT). */
void core_conn_begin(enum dapl_ep_event how);
/* The device reports that the connection is established, without addresses. */
void core_conn_establish(void);
/* It has connected, and the event was taken. Nothing is counted so far. */
void core_conn_begin_connected(void);

/* The next event of the endpoint is this one. */
void core_conn_event_is(int number, const char *data, int length);
/* The endpoint must be DISCONNECTED, its posts flushed, and the device called once. */
void core_conn_is_dropped(void);
/* The state must still be this one, without an event or a failure, and the device not called. */
void core_conn_is_unchanged(DAT_EP_STATE before);
/* Of all counters of connections, this one is 1 and the others are 0. */
void core_conn_counted(unsigned counter);

#endif
