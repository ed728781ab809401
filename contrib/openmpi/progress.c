/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c - decides what is polled when. The rings are polled at each call. The CQ is polled at each
 * call while an RDMA operation is outstanding on either side, or if there are no rings; otherwise less
 * often. Connections are polled rarely.
 *
 * If peers have mapped the rings, a poll of the CQ only delays the next message. If they have not,
 * polling the CQ drives the device that delivers messages. So a module has a budget: the number of ring
 * messages between two polls of the CQ. A poll that finds nothing, although ring messages have arrived
 * since the previous poll, doubles the budget. A poll that finds something halves it. */
#include "progress.h"
#include "completed.h"
#include "conn.h"
#include "connect.h"
#include "rdma.h"
#include "receive.h"
#include "ring_poll.h"
#include "send.h"
#include "opal/util/output.h"

/* Held by the thread that handles connections. */
static udapl_lock_t conn_lock;

static void check_status(struct udapl_conn *c, DAT_DTO_COMPLETION_STATUS status)
{
	/* A flushed request means that the connection ended: an event reports that. */
	if (c && status != DAT_DTO_SUCCESS && status != DAT_DTO_ERR_FLUSHED)
		udapl_conn_broken(c, "a request failed");
}

static void handle_completion(mca_btl_udapl_module_t *m, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct udapl_work *work = dto->user_cookie.as_ptr;

	switch (work->kind) {
	case UDAPL_RECEIVE:
		udapl_receive_completed(m, CONTAINER_OF(work, udapl_frag_t, work), dto);
		break;
	case UDAPL_SEND:
	case UDAPL_CONTROL:
		check_status(work->conn, dto->status);
		udapl_send_completed(CONTAINER_OF(work, udapl_frag_t, work), dto->status);
		break;
	case UDAPL_STAGED:
		check_status(work->conn ? work->conn : udapl_conn_from(dto->ep_handle), dto->status);
		if (work->conn)
			udapl_staged_completed(work->conn);
		break;
	case UDAPL_RDMA:
		check_status(work->conn, dto->status);
		udapl_rdma_completed(CONTAINER_OF(work, udapl_rdma_t, work), dto->status);
		break;
	}
}

static int dequeue_completions(mca_btl_udapl_module_t *m, int most)
{
	bool in_completions = m->in_completions;
	DAT_EVENT event;
	int n = 0;

	m->in_completions = true;
	while (n < most && dat_evd_dequeue(m->dto_evd, &event) == DAT_SUCCESS) {
		if (event.event_number == DAT_DTO_COMPLETION_EVENT ||
		    event.event_number == (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT)
			handle_completion(m, &event);
		n++;
	}
	m->in_completions = in_completions;
	return n;
}

/* The callback runs before the caller continues, so that the next operation is not delayed. Does
 * nothing with threads, since the caller may hold locks, and while completions are being dequeued. */
void udapl_reap_rdma(mca_btl_udapl_module_t *m)
{
	if (opal_using_threads() || m->in_completions)
		return;
	while (m->rdma_outstanding > 0 && dequeue_completions(m, 1))
		;
}

static void drain_async(mca_btl_udapl_module_t *m)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(m->async_evd, &event) == DAT_SUCCESS)
		opal_output_verbose(1, opal_btl_base_framework.framework_output,
				    "btl:udapl: %s: asynchronous event 0x%x", m->name,
				    event.event_number);
}

/* The close notification is among the completions that precede the disconnect event. So all
 * completions are dequeued before udapl_conn_housekeep() resolves disconnects. */
static int poll_connections(mca_btl_udapl_module_t *m)
{
	DAT_EVENT event;
	int n = 0;

	while (dat_evd_dequeue(m->conn_evd, &event) == DAT_SUCCESS) {
		udapl_conn_event(m, &event);
		n++;
	}
	drain_async(m);
	while (dequeue_completions(m, UDAPL_CQ_BATCH) == UDAPL_CQ_BATCH)
		;
	udapl_conn_housekeep(m);
	return n;
}

static bool budget_used(const mca_btl_udapl_module_t *m)
{
	return m->budget_left < m->budget;
}

static int grow_budget(int max_budget)
{
	return max_budget < UDAPL_MAX_BUDGET / 2 ? 2 * max_budget + 1 : UDAPL_MAX_BUDGET;
}

/* Sets the budgets that decide when the CQ is polled next. */
static void schedule_next(mca_btl_udapl_module_t *m)
{
	bool soon = m->poll_requested | m->rdma_outstanding | m->exposed;

	m->budget = m->budget_left = soon ? 0 : m->max_budget;
	m->empty_polls_limit = 1 + (m->budget < UDAPL_MAX_EMPTY_POLLS ? m->budget : UDAPL_MAX_EMPTY_POLLS);
}

/* Polls the CQ, then the rings, since a completion may announce a message there. A poll that is
 * requested meanwhile takes place at the next call. */
static int poll_cq(mca_btl_udapl_module_t *m, bool connections)
{
	int n;

	m->poll_requested = false;
	n = dequeue_completions(m, UDAPL_CQ_BATCH);
	if (connections && udapl_trylock(&conn_lock)) {
		n += poll_connections(m);
		udapl_unlock(&conn_lock);
	}
	n += udapl_rings_poll(m);
	if (n)
		m->max_budget /= 2;
	else if (budget_used(m))
		m->max_budget = grow_budget(m->max_budget);
	schedule_next(m);
	return n;
}

int udapl_progress_module(mca_btl_udapl_module_t *m, bool connections)
{
	int n = udapl_rings_poll(m);

	return n + poll_cq(m, connections);
}

int udapl_poll_completions(mca_btl_udapl_module_t *m)
{
	bool connections, idle = !budget_used(m);
	int n;

	m->polls_since_conn += m->empty_polls_limit < UDAPL_IDLE_EMPTY_POLLS ?
		m->empty_polls_limit : UDAPL_IDLE_EMPTY_POLLS;
	connections = m->polls_since_conn >= UDAPL_CONN_POLLS;
	if (connections)
		m->polls_since_conn = 0;
	n = poll_cq(m, connections);
	m->empty_polls_left = idle && !n && m->empty_polls_limit > UDAPL_IDLE_EMPTY_POLLS
				      ? UDAPL_IDLE_EMPTY_POLLS
				      : m->empty_polls_limit;
	return n;
}
