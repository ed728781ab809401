/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_sides.h - what one side of a connection stands between: librdmacm, libibverbs and the service thread
 * below, core above. Steps (steps.h) are what others get: "address" and "route" are asked for, "connect", "accept",
 * "establish", "reject" and "refuse" (rdma_reject_ece) go to the peer; "accept:RTS" is sent when the queue pair is in
 * RTS, "accept:handle" when there is an address handle; the capture learns the connection by "tap";
 * "up:established", "up:failed", "up:disconnected" and "up:released" are upcalls. What is made is counted instead: an
 * "id", and the "timer" of a released connection that lingers. "id", "rts" and "handle" can fail, too. */
#ifndef TEST_UNIT_VERBS_CONN_SIDES_H
#define TEST_UNIT_VERBS_CONN_SIDES_H
#include "dapl/core/base/settings.h"
#include "dapl/verbs/conn_types.h"
#include "dapl/verbs/hw.h"
#include "dapl/verbs/siw_queue.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { QP_NUMBER = 33, PEER_QP_NUMBER = 44, MOST_READS = 99 };

extern struct dapl_device dev;		/* 10.0.0.1 */
extern struct rdma_cm_id id;		/* from there to 10.0.0.2 */
extern struct ibv_qp qp;
extern struct dapl_conn *conn;		/* of the case */
extern int owner;

/* What fails. */
extern const char *failing_too;		/* another step that fails; NULL: none */
extern int refusal;			/* errno of the steps that fail */
extern bool peer_is_gone;		/* "rts" fails since the peer is */
extern bool no_memory;
extern bool releases_in_connect;	/* core releases the connection during rdma_connect */

/* The arguments of the last calls of librdmacm. */
extern int ids;				/* alive */
extern enum rdma_port_space asked_space;
extern struct sockaddr_storage asked_remote;
extern int asked_timeout;		/* of an address or a route, ms */
extern int asked_tos, asked_ack_timeout;	/* -1: not set */
extern struct rdma_conn_param asked;
extern uint8_t asked_data[256];
extern int asked_data_length;
extern struct siw_qp siw;		/* of the queue pair, in case that it is one of siw */

/* How long a released connection lingers, us; 0: its timer does not run. */
extern uint64_t lingers_us;

/* What core was told last. */
extern enum dapl_conn_failure why_told;
extern struct dapl_ud_peer peer_told;	/* zeroes: none */
extern char data_told[256];

/* For cmocka, before and after a case. The end destroys what is left in the device's list, and fails if an id
 * or an address handle is left, or a timer runs. */
int sides_begin(void **state);
int sides_end(void **state);
struct dapl_conn_params own_params(void);	/* of `qp`, to 10.0.0.2, 4 reads out and 5 in, data "hello" */
/* A step on the only id, for what a test replaces itself: -1 and `refusal` in errno if it fails. */
int try_on(const struct rdma_cm_id *of, const char *word);
/* What there is now, and what others got since the last comparison, in any order. */
#define left_is(expected) left_is_at(expected, __FILE__, __LINE__)
void left_is_at(const char *expected, const char *file, int line);
void set_address(struct sockaddr *to, const char *text, uint16_t port);
void run_task(void);			/* one must be queued */
bool task_is_queued(void);
void end_linger(void);			/* its time is over */

#endif
