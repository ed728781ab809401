/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - what any layer reports of a connection: the cause of its end, upcalls that are owed, and
 * the events that epoll reports of its socket. The upcalls are made by cm/conn.c. */
#include "dapl/soft/obj/conn.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include <sys/epoll.h>
#include <sys/socket.h>

enum dapl_conn_step soft_conn_step(const struct dapl_conn *conn)
{
	switch (__atomic_load_n(&conn->state, __ATOMIC_RELAXED)) {
	case SOFT_NEW:
	case SOFT_CONNECTING:	return DAPL_STEP_CONNECT;
	case SOFT_WAIT_REPLY:
	case SOFT_ATTACHING:	return DAPL_STEP_REPLY;
	case SOFT_WAIT_REQUEST:	return DAPL_STEP_REQUEST;
	case SOFT_REQUESTED:	return conn->owner ? DAPL_STEP_ACCEPT : DAPL_STEP_REQUEST;
	case SOFT_WAIT_FIRST:	return DAPL_STEP_READY;
	default:		return DAPL_STEP_TRANSFER;
	}
}

void soft_conn_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code, const char *text)
{
	if (conn->caused)
		return;
	conn->caused = true;
	conn->cause.step = soft_conn_step(conn);
	conn->cause.err = err;
	conn->cause.code_kind = kind;
	conn->cause.code = code;
	conn->cause.text = text;
}

void soft_conn_explain(const struct dapl_conn *conn, struct dapl_conn_cause *cause)
{
	struct soft_conn_cause why = conn->caused ? conn->cause :
		(struct soft_conn_cause){ .step = soft_conn_step(conn) };

	*cause = (struct dapl_conn_cause){
		.step = why.step, .err = why.err, .code_kind = why.code_kind, .code = why.code, .text = why.text,
		.local = conn->local, .remote = conn->remote,
	};
}

void soft_conn_socket_error(struct dapl_conn *conn)
{
	int err = 0;
	socklen_t length = sizeof err;

	getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &length);
	soft_conn_caused(conn, err, DAPL_CODE_NONE, 0, err ? NULL : "the peer's stream ended");
}

void soft_conn_queue_upcall(struct dapl_conn *conn, uint32_t what)
{
	__atomic_or_fetch(&conn->up, what, __ATOMIC_RELEASE);
	dapl_task_queue(&conn->task, conn->events->work);
}

/* A paused socket is not read, so its end of file cannot be seen by reading: EPOLLRDHUP reports it. */
void soft_conn_interest(struct dapl_conn *conn)
{
	uint32_t interest = (conn->stream.rx.paused ? EPOLLRDHUP : EPOLLIN) | (conn->stream.tx.blocked ? EPOLLOUT : 0);
	struct epoll_event event = soft_input_event(&conn->progress.input, interest);

	if (!conn->progress.in_data || conn->progress.interest == interest || conn->shm)
		return;
	conn->progress.interest = interest;
	epoll_ctl(conn->dev->data_epoll, EPOLL_CTL_MOD, conn->fd, &event);
}
