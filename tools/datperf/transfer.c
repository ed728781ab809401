/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transfer.c - posts requests and receives of a link, and takes their completions (link.h). */
#include "link.h"
#include "patience.h"
#include "../call.h"
#include "../cli.h"
#include "../messages.h"
#include "../names.h"
#include <dat/dat_ib_extensions.h>
#include <sched.h>
#include <time.h>

enum {
	CHECK_INTERVAL = 1, /* seconds between checks of the connections during a wait */
	LOOK_US = 10000     /* sleep of link_look(), after which its caller looks elsewhere */
};

static DAT_LMR_TRIPLET local(struct link *l, const char *from, size_t size)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)from,
				  .segment_length = size,
				  .lmr_context = l->lmr_context };
}

static DAT_RMR_TRIPLET remote(struct link *l, size_t size)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = l->peer_target,
				  .segment_length = size,
				  .rmr_context = l->peer_context };
}

const DAT_DTO_COMPLETION_EVENT_DATA *link_completion(const DAT_EVENT *e, const char *what)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &e->event_data.dto_completion_event_data;
	char cause[CAUSE_TEXT];

	if (e->event_number != DAT_DTO_COMPLETION_EVENT && (int)e->event_number != DAT_IB_DTO_EVENT)
		fail("%s: %s instead of a completion", what, event_name(e->event_number));
	if (dto->status != DAT_DTO_SUCCESS && *completion_cause(e, cause))
		fail("%s failed: %s%s", what, dto_status_name(dto->status), cause);
	if (dto->status != DAT_DTO_SUCCESS)
		fail("%s failed: %s%s", what, dto_status_name(dto->status),
		     dto->status == DAT_DTO_ERR_FLUSHED
			     ? " (the connection broke: has the peer ended?)"
			     : "");
	return dto;
}

/* Returns an endpoint whose connection has ended, or NULL. No completion reports that to a thread that polls
 * memory, or whose receives are in an SRQ, which are not flushed. */
static DAT_EP_HANDLE lost_connection(struct link *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		DAT_EP_STATE state;

		good(dat_ep_get_status(l->endpoints[i].ep, &state, NULL, NULL),
		     "dat_ep_get_status");
		if (state != DAT_EP_STATE_CONNECTED)
			return l->endpoints[i].ep;
	}
	return DAT_HANDLE_NULL;
}

/* Fails if the connection is lost, or after LINK_TIMEOUT. Checks the connections each CHECK_INTERVAL. */
static void give_up(struct link *l, struct link_wait *w, const char *what)
{
	char cause[CAUSE_TEXT];
	double time = now();

	if (w->lost && connection_cause(w->lost, cause))
		fail("%s failed: %s", what, cause);
	if (w->lost)
		fail("%s failed: the connection broke: has the peer ended?", what);
	if (time - w->since > LINK_TIMEOUT)
		fail("%s: nothing came within %d s", what, LINK_TIMEOUT);
	if (time - w->checked >= CHECK_INTERVAL) {
		w->lost = lost_connection(l);
		w->checked = time;
	}
}

/* Called after each empty poll. From time to time yields the processor, and checks whether the wait
 * fails. */
static void idle(struct link *l, struct link_wait *w, const char *what)
{
	if (++w->polls % patience())
		return;
	if (w->polls == patience())
		w->since = w->checked = now();
	else
		give_up(l, w, what);
	sched_yield();
}

static void poll_event(struct link *l, DAT_EVD_HANDLE evd, DAT_EVENT *event, const char *what)
{
	struct link_wait w = { 0 };
	DAT_RETURN rc;

	while ((rc = dat_evd_dequeue(evd, event)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
			good(rc, "dat_evd_dequeue");
		idle(l, &w, what);
	}
}

/* Called when a sleep of CHECK_INTERVAL has returned `rc`. Fails if that is an error, else checks whether
 * the wait fails. */
static void slept(struct link *l, DAT_RETURN rc, struct link_wait *w, const char *call, const char *what)
{
	if (DAT_GET_TYPE(rc) != DAT_TIMEOUT_EXPIRED && DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
		good(rc, call);
	else
		give_up(l, w, what);
}

/* The CNO is triggered by both EVDs. An event of the other EVD stays there until a wait for it. */
static void wait_cno(struct link *l, DAT_EVD_HANDLE evd, DAT_EVENT *event, const char *what)
{
	struct link_wait w = { .since = now() };
	DAT_EVD_HANDLE triggered;
	DAT_RETURN rc;

	while ((rc = dat_evd_dequeue(evd, event)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
			good(rc, "dat_evd_dequeue");
		slept(l, dat_cno_wait(l->cno, CHECK_INTERVAL * 1000000, &triggered), &w,
		      "dat_cno_wait", what);
	}
}

static void wait_evd(struct link *l, DAT_EVD_HANDLE evd, DAT_EVENT *event, const char *what)
{
	struct link_wait w = { .since = now() };
	DAT_COUNT more;
	DAT_RETURN rc;

	while ((rc = dat_evd_wait(evd, CHECK_INTERVAL * 1000000, 1, event, &more)) != DAT_SUCCESS)
		slept(l, rc, &w, "dat_evd_wait", what);
}

static void next_event(struct link *l, DAT_EVD_HANDLE evd, enum wake wake, DAT_EVENT *event,
		       const char *what)
{
	switch (wake) {
	case WAKE_POLL: poll_event(l, evd, event, what); break;
	case WAKE_CNO: wait_cno(l, evd, event, what); break;
	case WAKE_WAIT: wait_evd(l, evd, event, what); break;
	}
}

bool link_look(struct link *l, DAT_EVD_HANDLE evd, enum wake wake, struct link_wait *w, DAT_EVENT *event,
	       const char *what)
{
	DAT_RETURN rc = wake == WAKE_WAIT ? DAT_QUEUE_EMPTY : dat_evd_dequeue(evd, event);
	DAT_EVD_HANDLE triggered;
	DAT_COUNT more;

	if (wake == WAKE_WAIT)
		rc = dat_evd_wait(evd, LOOK_US, 1, event, &more);
	if (rc == DAT_SUCCESS)
		return true;
	if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY && DAT_GET_TYPE(rc) != DAT_TIMEOUT_EXPIRED)
		good(rc, wake == WAKE_WAIT ? "dat_evd_wait" : "dat_evd_dequeue");
	if (wake == WAKE_POLL) {
		idle(l, w, what);
		return false;
	}
	if (!(w->since > 0))
		w->since = w->checked = now();
	slept(l, wake == WAKE_CNO ? dat_cno_wait(l->cno, LOOK_US, &triggered) : rc, w, "dat_cno_wait", what);
	return false;
}

/* Takes the completion of a request. Its cookie is the number of the endpoint. */
static void reap_request_by(struct link *l, enum wake wake)
{
	DAT_EVENT event;

	next_event(l, l->request, wake, &event, "request");
	l->endpoints[link_completion(&event, "request")->user_cookie.as_64].unfinished--;
	l->unfinished--;
}

/* Returns the endpoint of the next request, and counts the request. Polls until the endpoint has room. */
static struct endpoint *take_room(struct link *l)
{
	struct endpoint *e = &l->endpoints[l->turn];

	while (e->unfinished >= l->depth)
		reap_request_by(l, WAKE_POLL);
	e->unfinished++;
	l->unfinished++;
	return e;
}

size_t link_target_size(const struct link *l)
{
	return l->target.size < l->peer_size ? l->target.size : l->peer_size;
}

void link_use(struct link *l, unsigned endpoint)
{
	l->turn = endpoint;
}

void link_next(struct link *l)
{
	l->turn = l->turn + 1 == l->count ? 0 : l->turn + 1;
}

void link_finish_by(struct link *l, enum wake wake)
{
	while (l->unfinished)
		reap_request_by(l, wake);
}

void link_finish(struct link *l)
{
	link_finish_by(l, WAKE_POLL);
}

static DAT_DTO_COOKIE cookie_of(const struct link *l)
{
	return (DAT_DTO_COOKIE){ .as_64 = l->turn };
}

void link_send(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);

	good(dat_ep_post_send(take_room(l)->ep, 1, &from, cookie_of(l),
			      DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_send");
}

void link_write(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);
	DAT_RMR_TRIPLET to = remote(l, size);

	good(dat_ep_post_rdma_write(take_room(l)->ep, 1, &from, cookie_of(l), &to,
				    DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_write");
}

void link_read(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET to = { .virtual_address = l->target.address,
			       .segment_length = size,
			       .lmr_context = l->target.lmr_context };
	DAT_RMR_TRIPLET from = remote(l, size);

	good(dat_ep_post_rdma_read(take_room(l)->ep, 1, &to, cookie_of(l), &from,
				   DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_read");
}

void link_fetch_add(struct link *l)
{
	DAT_LMR_TRIPLET to = local(l, l->out, sizeof(uint64_t));
	DAT_RMR_TRIPLET word = remote(l, sizeof(uint64_t));

	good(dat_ib_post_fetch_and_add(take_room(l)->ep, 1, &to, cookie_of(l), &word,
				       DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ib_post_fetch_and_add");
}

void link_write_immediate(struct link *l, size_t size, uint32_t data)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);
	DAT_RMR_TRIPLET to = remote(l, size);

	good(dat_ib_post_rdma_write_immed(take_room(l)->ep, 1, &from, cookie_of(l), &to, data,
					  DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ib_post_rdma_write_immed");
}

void link_post_receive(struct link *l, struct endpoint *e)
{
	DAT_LMR_TRIPLET to = local(l, l->in, l->block);
	const DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	if (l->srq)
		good(dat_srq_post_recv(l->srq, 1, &to, cookie), "dat_srq_post_recv");
	else
		good(dat_ep_post_recv(e->ep, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG),
		     "dat_ep_post_recv");
}

/* Finds the endpoint of a receive, and stores its number in l->from. Begins at the next endpoint, since
 * messages mostly come from the endpoints in turn. */
static struct endpoint *find_origin(struct link *l, DAT_EP_HANDLE ep)
{
	for (unsigned i = 0; i < l->count; i++) {
		l->from = l->from + 1 >= l->count ? 0 : l->from + 1;
		if (l->endpoints[l->from].ep == ep)
			return &l->endpoints[l->from];
	}
	fail("receive: a completion of an unknown endpoint");
}

/* Posts the receive again, and then checks the status. Latency tests have this order. */
static size_t take_receive(struct link *l, const DAT_EVENT *event)
{
	struct endpoint *e = find_origin(l, event->event_data.dto_completion_event_data.ep_handle);

	link_post_receive(l, e);
	return link_completion(event, "receive")->transfered_length;
}

size_t link_receive_by(struct link *l, enum wake wake)
{
	DAT_EVENT event;

	next_event(l, l->recv, wake, &event, "receive");
	return take_receive(l, &event);
}

size_t link_receive(struct link *l)
{
	return link_receive_by(l, WAKE_POLL);
}

bool link_has_message(struct link *l)
{
	l->has_message = l->has_message || dat_evd_dequeue(l->recv, &l->message) == DAT_SUCCESS;
	return l->has_message;
}

/* Waits for a receive, without limit. Returns false if the peer has disconnected. */
static bool wait_receive(struct link *l, DAT_EVENT *event)
{
	bool lost = false;
	DAT_COUNT more;
	DAT_RETURN rc;

	/* without SRQ, receives are flushed when the connection ends, so there is no time limit */
	while ((rc = dat_evd_wait(l->recv, l->srq ? CHECK_INTERVAL * 1000000 : DAT_TIMEOUT_INFINITE,
				  1, event, &more)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(rc) != DAT_TIMEOUT_EXPIRED)
			good(rc, "dat_evd_wait");
		if (lost)
			return false;
		lost = lost_connection(l);
	}
	return true;
}

bool link_wait(struct link *l, size_t *size)
{
	DAT_EVENT event = l->message;

	if (!l->has_message && !wait_receive(l, &event))
		return false;
	l->has_message = false;
	if (event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED)
		return false;
	*size = take_receive(l, &event);
	return true;
}

void link_spin_byte(struct link *l, size_t i, uint8_t value)
{
	struct link_wait w = { 0 };

	while (target_byte(&l->target, i) != value)
		idle(l, &w, "RDMA write of the peer");
}
