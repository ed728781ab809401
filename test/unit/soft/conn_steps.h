/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_steps.h - a connection of the software device alone, between sockets and core, which are replaced. The replaced
 * functions check which locks are held. Steps (steps.h) are what others get: the upcalls "established", "failed",
 * "disconnected:orderly" and "released"; "socket:close" of close(2); and "task". A program may replace these, too:
 * "closed:failed" of cm_set_state(), with the cause; "rings_free". */
#ifndef TEST_UNIT_SOFT_CONN_STEPS_H
#define TEST_UNIT_SOFT_CONN_STEPS_H
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { EPOLL = 33, DATA_EPOLL, SOCKET = 44, LOCAL_PORT = 4444, REMOTE_PORT = 5555, DEVICE_PORT = 6666 };

extern struct dapl_device dev;
extern struct soft_qp qp;		/* in INIT, without a connection */
extern struct dapl_conn *conn;		/* of cm_conn_new(), in the list of the device */
extern int owner;			/* its address is what core gave */
extern struct shm_conn rings;

extern int allocations_left;		/* until one fails; -1: none does */
extern unsigned progress_locks;		/* calls of soft_progress_lock() */
extern struct told {			/* core, by the last upcall of a failure */
	const void *pdata;
	size_t length;
} told;

/* For cmocka, before and after a case. The end frees the connection, and fails if memory is left. */
int conn_begin(void **state);
int conn_end(void **state);
/* The connection was freed, and nothing of it is left. */
void conn_is_gone(void);

/* What there is now, and what others got since the last comparison, in any order: "cm" and "data" if an
 * epoll set has the socket, "half_open", "upcall" if one is due, "freed" if the connection is. */
#define left_is(expected) left_is_at(expected, __FILE__, __LINE__)
void left_is_at(const char *expected, const char *file, int line);

struct ibv_ah *new_ah(void);
/* The task of the connection runs, for these upcalls. */
void work(uint32_t up);
void lock(void);	/* takes the progress lock */
void unlock(void);	/* and no other is held afterwards */
void no_lock_is_held(void);
void set_address(struct sockaddr_storage *storage, uint16_t port);
uint16_t port_of(const struct sockaddr_storage *storage);

#endif
