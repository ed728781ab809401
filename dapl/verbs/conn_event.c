/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_event.c - what an event of the connection manager means in each state of a connection
 * (conn_event.h). */
#include <errno.h>
#include <stdlib.h>
#include "conn.h"
#include "conn_cause.h"
#include "conn_event.h"
#include "conn_report.h"
#include "conn_state.h"
#include "initiator.h"
#include "late_refusal.h"

enum {
	REJ_BY_CONSUMER = 28,		/* InfiniBand's code; REJ 8 means no listener */
	REJ_ECE = 35,			/* the reason that hw_report_refusal() sends */
	SIDR_REJECT = 2,		/* 1 means no listener */
};

static void handle_rejection(struct dapl_conn *conn, const struct rdma_cm_event *event, bool by_consumer,
			     const uint8_t *bytes, size_t len)
{
	struct hw_pdata pdata;

	hw_pdata_unpack(&pdata, conn->wire, HW_REJECT, bytes, len);
	if (by_consumer ? pdata.refused : event->status == REJ_ECE)
		hw_caused_in(conn, DAPL_STEP_REPLY, 0, DAPL_CODE_MPA, 0,
			  "refused by the peer's provider");
	else if (by_consumer)
		hw_caused_in(conn, DAPL_STEP_REPLY, 0, DAPL_CODE_MPA, 0,
			  "rejected by the peer's program");
	else
		hw_caused_by_event(conn, event);
	if (!by_consumer || pdata.refused)
		hw_report_failed(conn, DAPL_CONN_REFUSED, NULL, 0);
	else
		hw_report_failed(conn, DAPL_CONN_REJECTED, pdata.data, pdata.len);
}

static bool is_pending(enum conn_state state)
{
	return state >= CONN_RESOLVING_ADDRESS && state <= CONN_ACCEPTING;
}

/* The connection failed or broke, other than by a disconnect. */
static void handle_failure(struct dapl_conn *conn, const struct rdma_cm_event *event, const uint8_t *bytes, size_t len)
{
	int status = event->status;

	if (conn->state == CONN_CONNECTING && event->event == RDMA_CM_EVENT_REJECTED) {
		handle_rejection(conn, event, status == REJ_BY_CONSUMER || status == -ECONNRESET, bytes, len);
	} else if (conn->state == CONN_CONNECTING && conn->ud && status > 0) {
		handle_rejection(conn, event, status == SIDR_REJECT, bytes, len);
	} else if (conn->state == CONN_CONNECTING && event->event == RDMA_CM_EVENT_CONNECT_ERROR &&
		   conn->wire == HW_WIRE_IWARP) {
		/* The peer answered, but the driver did not accept the answer. siw reports this, too, if
		 * the peer's first message follows its answer at once. */
		hw_caused_in(conn, DAPL_STEP_REPLY, abs(status), DAPL_CODE_CM_STATUS, (unsigned)status, NULL);
		hw_report_failed(conn, status == -ETIMEDOUT ? DAPL_CONN_TIMED_OUT : DAPL_CONN_REFUSED, NULL, 0);
	} else if (is_pending(conn->state)) {
		hw_caused_by_event(conn, event);
		hw_report_failed(conn, event->event == RDMA_CM_EVENT_REJECTED ? DAPL_CONN_REFUSED :
			    hw_conn_failure_of(-status), NULL, 0);
	} else if (conn->state == CONN_ESTABLISHED) {
		hw_caused_by_event(conn, event);
		hw_report_disconnected(conn, CONN_CLOSED, false);
	} else {
		hw_caused_by_event(conn, event);
		hw_conn_set_state(conn, CONN_CLOSED);
		dapl_mutex_unlock(&conn->lock);
	}
}

/* After release, an event only decides how long the id must be kept. */
static void event_after_release(struct dapl_conn *conn, enum rdma_cm_event_type type)
{
	bool lingering = conn->lingering;

	if (type == RDMA_CM_EVENT_ADDR_CHANGE) {
		dapl_mutex_unlock(&conn->lock);
		return;
	}
	hw_conn_set_state(conn, CONN_CLOSED);
	dapl_mutex_unlock(&conn->lock);
	if (lingering)
		hw_conn_destroy(conn);
}

/* The connection is established. */
static void handle_peer_closed(struct dapl_conn *conn, const struct rdma_cm_event *event)
{
	bool refused = !event->status && hw_request_was_refused(conn);

	if (conn->released)
		event_after_release(conn, event->event);
	else if (conn->state == CONN_DISCONNECTING)
		hw_report_disconnected(conn, CONN_CLOSED, true);
	else {
		if (event->status)
			hw_caused(conn, abs(event->status), DAPL_CODE_CM_STATUS, (unsigned)event->status, NULL);
		else if (refused)
			hw_caused_in(conn, DAPL_STEP_TRANSFER, 0, DAPL_CODE_NONE, 0, "a request failed");
		hw_report_disconnected(conn, CONN_PEER_CLOSED, !event->status && !refused);
	}
}

static void handle_disconnect(struct dapl_conn *conn, const struct rdma_cm_event *event)
{
	switch (conn->state) {
	case CONN_ACCEPTING:
		/* The connection was established and ended before the last handshake message arrived. */
		hw_report_established(conn, NULL, 0, NULL);
		dapl_mutex_lock(&conn->lock);
		if (conn->state != CONN_ESTABLISHED || conn->released)
			break;
		/* fall through */
	case CONN_ESTABLISHED:
		handle_peer_closed(conn, event);
		return;
	case CONN_DISCONNECTING:
		hw_report_disconnected(conn, CONN_CLOSED, true);
		return;
	case CONN_CONNECTING:
		hw_caused_by_event(conn, event);
		hw_report_failed(conn, DAPL_CONN_REFUSED, NULL, 0);
		return;
	case CONN_REQUESTED:
		hw_caused_by_event(conn, event);
		hw_conn_set_state(conn, CONN_CLOSED);
		break;
	default:
		break;
	}
	dapl_mutex_unlock(&conn->lock);
}

void hw_conn_event(struct dapl_conn *conn, const struct rdma_cm_event *event,
		   const uint8_t *bytes, size_t len)
{
	struct hw_pdata pdata;

	dapl_mutex_lock(&conn->lock);
	if (conn->released) {
		event_after_release(conn, event->event);
		return;
	}
	hw_pdata_unpack(&pdata, conn->wire, HW_ACCEPT, bytes, len);
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (conn->state != CONN_RESOLVING_ADDRESS)
			break;
		hw_initiator_address_resolved(conn);
		return;
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (!is_pending(conn->state))
			break;
		hw_initiator_address_failed(conn, event->status);
		return;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (conn->state != CONN_RESOLVING_ROUTE)
			break;
		hw_initiator_route_resolved(conn);
		return;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		if (!is_pending(conn->state))
			break;
		hw_initiator_route_failed(conn, event->status);
		return;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (conn->state != CONN_CONNECTING)
			break;
		hw_initiator_response(conn, &pdata);
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (conn->state == CONN_CONNECTING && conn->ud)
			hw_initiator_ud_established(conn, event, &pdata);
		else if (conn->state == CONN_CONNECTING)
			hw_initiator_iwarp_established(conn, event, &pdata);
		else if (conn->state == CONN_ACCEPTING)
			hw_report_established(conn, NULL, 0, NULL);
		else
			break;
		return;
	case RDMA_CM_EVENT_CONNECT_ERROR: case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED: case RDMA_CM_EVENT_DEVICE_REMOVAL:
		handle_failure(conn, event, bytes, len);
		return;
	case RDMA_CM_EVENT_DISCONNECTED:
		handle_disconnect(conn, event);
		return;
	default:
		break;
	}
	dapl_mutex_unlock(&conn->lock);
}
