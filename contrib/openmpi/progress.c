/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c - polling: rings each time; completions as often, while an RDMA operation is under way, of
 * ours or on memory of ours, or there are no rings, else less often; connections now and then.
 *
 * Where peers map our rings, a look at completions only delays the message that comes meanwhile. Where
 * they do not, it is what brings the messages. So a module that looks in vain while messages come
 * is more patient the next time, and one that finds something by looking is less. */
#include "udapl.h"
#include <time.h>
#include "opal/util/output.h"

enum {
	BATCH = 16,	/* completions taken at a time */
	PATIENT = 256,	/* messages from rings for one look at completions, at most, */
	IN_VAIN = 256,	/* ... or polls in a row that found none, */
	AGAIN = 32,	/* ... or so many more, for to look is to let others have the processor, too, */
	SELDOM = 128	/* ... and for one at connections, about */
};

/* Held by the thread that handles connections. */
static opal_atomic_lock_t connecting = { .u.lock = OPAL_ATOMIC_LOCK_UNLOCKED };

double udapl_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void failed(struct udapl_conn *c, DAT_DTO_COMPLETION_STATUS status)
{
	/* Flushed means that the connection ended: an event tells. */
	if (c && status != DAT_DTO_SUCCESS && status != DAT_DTO_ERR_FLUSHED)
		udapl_conn_broken(c, "a request failed");
}

static void completion(mca_btl_udapl_module_t *m, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct udapl_work *work = dto->user_cookie.as_ptr;

	switch (work->kind) {
	case UDAPL_RECEIVE:
		udapl_received(m, CONTAINER_OF(work, udapl_frag_t, work), dto);
		break;
	case UDAPL_SEND:
	case UDAPL_CONTROL:
		failed(work->conn, dto->status);
		udapl_sent(CONTAINER_OF(work, udapl_frag_t, work), dto->status);
		break;
	case UDAPL_STAGED:
		failed(work->conn ? work->conn : udapl_conn_from(dto->ep_handle), dto->status);
		if (work->conn)
			udapl_sent_staged(work->conn);
		break;
	case UDAPL_RDMA:
		failed(work->conn, dto->status);
		udapl_rdma_completed(CONTAINER_OF(work, udapl_rdma_t, work), dto->status);
		break;
	}
}

static int take_completions(mca_btl_udapl_module_t *m, int most)
{
	bool taking = m->taking;
	DAT_EVENT event;
	int n = 0;

	m->taking = true;
	while (n < most && dat_evd_dequeue(m->dto_evd, &event) == DAT_SUCCESS) {
		if (event.event_number == DAT_DTO_COMPLETION_EVENT ||
		    event.event_number == (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT)
			completion(m, &event);
		n++;
	}
	m->taking = taking;
	return n;
}

/* The only RDMA operation under way may have completed when it was posted; then its consumer is told
 * before he goes on, so that what he does next is not late. Not with threads, as he may hold locks;
 * and not from within completions, which are being taken already. */
void udapl_take_rdma(mca_btl_udapl_module_t *m)
{
	if (opal_using_threads() || m->taking)
		return;
	while (m->rdma_outstanding > 0 && take_completions(m, 1))
		;
}

static void take_async(mca_btl_udapl_module_t *m)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(m->async_evd, &event) == DAT_SUCCESS)
		opal_output_verbose(1, opal_btl_base_framework.framework_output,
				    "btl:udapl: %s: asynchronous event 0x%x", m->name,
				    event.event_number);
}

/* A goodbye is among the completions that come before the end of a connection: all of them
 * are taken before ends are judged. */
static int look_at_connections(mca_btl_udapl_module_t *m)
{
	DAT_EVENT event;
	int n = 0;

	while (dat_evd_dequeue(m->conn_evd, &event) == DAT_SUCCESS) {
		udapl_conn_event(m, &event);
		n++;
	}
	take_async(m);
	while (take_completions(m, BATCH) == BATCH)
		;
	udapl_conn_look_after(m);
	return n;
}

static bool came(const mca_btl_udapl_module_t *m)
{
	return m->may_come < m->granted;
}

static int more_patient(int patience)
{
	return patience < PATIENT / 2 ? 2 * patience + 1 : PATIENT;
}

/* When is the next look? */
static void plan(mca_btl_udapl_module_t *m)
{
	bool soon = m->asked | m->rdma_outstanding | m->exposed;

	m->granted = m->may_come = soon ? 0 : m->patience;
	m->vain_polls = 1 + (m->granted < IN_VAIN ? m->granted : IN_VAIN);
}

/* Looks at completions. What they bring may be in a ring. What is noted meanwhile is for the next look. */
static int look(mca_btl_udapl_module_t *m, bool connections)
{
	int n;

	m->asked = false;
	n = take_completions(m, BATCH);
	if (connections && !opal_atomic_trylock(&connecting)) {
		n += look_at_connections(m);
		opal_atomic_unlock(&connecting);
	}
	n += udapl_rings_poll(m);
	if (n)
		m->patience /= 2;
	else if (came(m))
		m->patience = more_patient(m->patience);
	plan(m);
	return n;
}

int udapl_progress_module(mca_btl_udapl_module_t *m, bool connections)
{
	int n = udapl_rings_poll(m);

	return n + look(m, connections);
}

int udapl_look_now(mca_btl_udapl_module_t *m)
{
	bool connections, idle = !came(m);
	int n;

	m->polls_before += m->vain_polls < AGAIN ? m->vain_polls : AGAIN;
	connections = m->polls_before >= SELDOM;
	if (connections)
		m->polls_before = 0;
	n = look(m, connections);
	m->polls_left = idle && !n && m->vain_polls > AGAIN ? AGAIN : m->vain_polls;
	return n;
}
