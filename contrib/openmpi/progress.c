/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c - polling: rings each time; completions as often, while an RDMA operation is under way or
 * there are no rings, else less often; connections now and then. */
#include "udapl.h"
#include <time.h>
#include "opal/util/output.h"

enum {
	BATCH = 16,	/* completions taken at a time */
	OFTEN = 8,	/* polls of rings for one look at completions, */
	SELDOM = 32	/* ... and at connections */
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
	DAT_EVENT event;
	int n = 0;

	while (n < most && dat_evd_dequeue(m->dto_evd, &event) == DAT_SUCCESS) {
		if (event.event_number == DAT_DTO_COMPLETION_EVENT ||
		    event.event_number == (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT)
			completion(m, &event);
		n++;
	}
	return n;
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

int udapl_progress_module(mca_btl_udapl_module_t *m, bool all)
{
	int n = udapl_rings_poll(m) + take_completions(m, BATCH);

	if (all && !opal_atomic_trylock(&connecting)) {
		n += look_at_connections(m);
		opal_atomic_unlock(&connecting);
	}
	return n;
}

int udapl_progress(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;
	unsigned polls = ++c->polls;
	int n = 0;

	for (int i = 0; i < c->num_modules; i++) {
		mca_btl_udapl_module_t *m = c->modules[i];

		if (polls % OFTEN == 0 || !m->num_rings || m->rdma_outstanding > 0)
			n += udapl_progress_module(m, polls % SELDOM == 0);
		else
			n += udapl_rings_poll(m);
	}
	return n;
}
