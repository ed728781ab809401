/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_cause.c - records why a connection fails or breaks (conn_cause.h). */
#include "conn_cause.h"
#include "conn_state.h"

void hw_caused_in(struct dapl_conn *conn, enum dapl_conn_step step, int err, enum dapl_code_kind kind, unsigned code,
		  const char *text)
{
	assert_held(&conn->lock);
	if (conn->caused)
		return;
	conn->caused = true;
	conn->cause = (struct dapl_conn_cause){ .step = step, .err = err, .code_kind = kind,
		.code = code, .text = text };
}

void hw_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code, const char *text)
{
	hw_caused_in(conn, hw_conn_step(conn), err, kind, code, text);
}

void hw_caused_by_errno(struct dapl_conn *conn, int err)
{
	hw_caused(conn, err, DAPL_CODE_NONE, 0, NULL);
}

static const char *event_text(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_ERROR:	return "CM connect error";
	case RDMA_CM_EVENT_UNREACHABLE:		return "CM unreachable";
	case RDMA_CM_EVENT_DEVICE_REMOVAL:	return "the device was removed";
	case RDMA_CM_EVENT_DISCONNECTED:	return "the peer disconnected";
	default:				return NULL;
	}
}

void hw_caused_by_event(struct dapl_conn *conn, const struct rdma_cm_event *event)
{
	const char *text = event_text(event->event);
	int status = event->status;

	if (status < 0)
		hw_caused(conn, -status, DAPL_CODE_CM_STATUS, (unsigned)status, text);
	else if (status && conn->ud)
		hw_caused(conn, 0, DAPL_CODE_SIDR, (unsigned)status, NULL);
	else if (status && event->event == RDMA_CM_EVENT_REJECTED)
		hw_caused(conn, 0, DAPL_CODE_IB_REJECT, (unsigned)status, NULL);
	else if (status)
		hw_caused(conn, 0, DAPL_CODE_CM_STATUS, (unsigned)status, text);
	else
		hw_caused(conn, 0, DAPL_CODE_NONE, 0, text);
}
