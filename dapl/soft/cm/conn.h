/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - the connection object: what connection management keeps of it, life and upcalls. obj/conn.h has
 * what all folders know of it. */
#ifndef SOFT_CM_CONN_H
#define SOFT_CM_CONN_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/core/device.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"

struct attach_offer;
struct soft_port;
struct soft_qp;

/* Bytes of a Request or Reply of this implementation without private data. */
enum { MPA_SHORT = WIRE_MPA_HEADER + WIRE_MPA_ENHANCED + WIRE_TRAILER };

/* What connection management keeps of a connection: the handshake, deadlines, and what upcalls report. Guarded
 * by the progress lock. */
struct soft_cm_conn {
	bool in_cm;			/* the cm epoll set has fd */
	bool ud;
	bool released;
	bool wakes_late;		/* SO_RCVLOWAT of its socket is more than 1 */
	bool fell_back;			/* tried with revision 1 */
	bool free_in_task;		/* the next run of the task frees the connection */
	uint8_t rev;			/* MPA revision in use */
	uint64_t deadline_ns;		/* 0: none */
	uint64_t silent_ns;		/* since when an answer of the peer's TCP is due; 0: none is */
	enum dapl_qos qos;
	struct dapl_conn_tuning tuning;
	struct soft_port *port;		/* WAIT_REQUEST: that accepted it */
	TAILQ_ENTRY(dapl_conn) half_open_link;	/* dev->half_open.list */

	struct wire_mpa mpa;		/* the peer's Request or Reply */
	uint8_t *frame;			/* MPA frame being received: short_frame, or longer. NULL: no more */
	uint32_t frame_length, frame_need;
	uint8_t short_frame[MPA_SHORT];
	uint8_t *pdata;			/* private data, until it is sent */
	uint32_t pdata_length;

	struct attach_offer *offer;	/* passive: memory is offered until the first FPDU */
	int attach_fd;			/* ATTACHING: socket that the memory comes by, else -1 */
	uint8_t attach_token[16];	/* the acceptor's offer */
	uint64_t attach_end_ns;		/* ATTACHING: no retry after this */
	struct dapl_conn *acceptor;	/* set if the acceptor is of this device: it is given the
					 * segment directly, not by a frame */

	enum dapl_conn_failure failure;
	const uint8_t *up_pdata;	/* points into frame */
	uint32_t up_pdata_length;
	struct dapl_ud_peer peer;
};

/* Operations of the device (core/device.h). */
void cm_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause);
const char *cm_carrier(struct dapl_conn *conn);
/* What connection management does for the layers below it. */
extern const struct soft_conn_events cm_conn_events;

/* --- progress lock held ---------------------------------------------------------------------- */

/* Adds the socket to the cm epoll set, or changes its events. If that fails, the connection ends
 * soon. */
void cm_watch(struct dapl_conn *conn, uint32_t events);
void cm_unwatch(struct dapl_conn *conn);
/* The step of the handshake that had a deadline is done. */
void cm_leave_handshake(struct dapl_conn *conn);
/* Closes the socket to the peer process that shares memory, if it is open. */
void cm_end_attach(struct dapl_conn *conn);
/* Moves to CLOSED. The lock of the QP is held, too, if there is one. */
void cm_close_socket(struct dapl_conn *conn);
/* Sets conn->local, unless it is known. */
void cm_learn_address(struct dapl_conn *conn);

/* Returns NULL without memory. */
struct dapl_conn *cm_conn_new(struct dapl_device *dev);
/* For a connection that is in no list. */
void cm_conn_free(struct dapl_conn *conn);
/* Nothing but its task refers to the connection any more: closes it and has the task free it. */
void cm_conn_retire(struct dapl_conn *conn);
/* Attaches the QP. Returns 0 or EINVAL if the QP has a connection or is in a wrong state. */
int cm_attach_qp(struct dapl_conn *conn, const struct dapl_conn_params *params);
/* Detaches the QP from its connection, if any. */
void cm_detach(struct soft_qp *qp);
/* The handshake failed. `err` 0: the text says why. */
void cm_fail(struct dapl_conn *conn, enum dapl_conn_failure why, int err, const char *text);
/* Ends an open stream in a disorderly way. */
void cm_end_stream(struct dapl_conn *conn, int err, const char *why);

#endif
