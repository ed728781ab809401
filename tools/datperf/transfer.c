/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transfer.c - posts requests and receives of a link, and takes their completions (link.h). */
#include "link.h"
#include "../cli.h"
#include "../names.h"
#include <dat/dat_ib_extensions.h>
#include <sched.h>
#include <time.h>

static DAT_LMR_TRIPLET local(struct link *l, const char *from, size_t size)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)from - l->base,
				  .segment_length = size,
				  .lmr_context = l->lmr_context };
}

static DAT_RMR_TRIPLET remote(struct link *l, size_t size)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = l->peer_target,
				  .segment_length = size,
				  .rmr_context = l->peer_context };
}

static const DAT_DTO_COMPLETION_EVENT_DATA *completed(const DAT_EVENT *e, const char *what)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &e->event_data.dto_completion_event_data;

	if (e->event_number != DAT_DTO_COMPLETION_EVENT && (int)e->event_number != DAT_IB_DTO_EVENT)
		fail("%s: %s instead of a completion", what, event_name(e->event_number));
	if (dto->status != DAT_DTO_SUCCESS)
		fail("%s failed: %s%s", what, dto_status_name(dto->status),
		     dto->status == DAT_DTO_ERR_FLUSHED
			     ? " (the connection broke: has the peer ended?)"
			     : "");
	return dto;
}

/* Empty polls until another process may run: few where the peer has no processor of its own. */
static unsigned long patience(void)
{
	static unsigned long polls;
	cpu_set_t ours;

	if (!polls)
		polls = !sched_getaffinity(0, sizeof ours, &ours) && CPU_COUNT(&ours) == 1 ? 16
											   : 4096;
	return polls;
}

/* Lets another process run, and gives up in the end, when polling finds nothing. */
static void idle(unsigned long *polls, double *since, const char *what)
{
	if (++*polls % patience())
		return;
	if (*polls == patience())
		*since = now();
	else if (now() - *since > LINK_TIMEOUT)
		fail("%s: nothing came within %d s", what, LINK_TIMEOUT);
	sched_yield();
}

static void poll_event(DAT_EVD_HANDLE evd, DAT_EVENT *event, const char *what)
{
	unsigned long polls = 0;
	double since = 0;
	DAT_RETURN rc;

	while ((rc = dat_evd_dequeue(evd, event)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
			good(rc, "dat_evd_dequeue");
		idle(&polls, &since, what);
	}
}

void timed_out(DAT_RETURN rc, const char *call, const char *what)
{
	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED || DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY)
		fail("%s: nothing came within %d s", what, LINK_TIMEOUT);
	good(rc, call);
}

/* The CNO serves both EVDs: what the other one has is taken by its own turn. */
static void wait_cno(struct link *l, DAT_EVD_HANDLE evd, DAT_EVENT *event, const char *what)
{
	DAT_EVD_HANDLE triggered;
	DAT_RETURN rc;

	while ((rc = dat_evd_dequeue(evd, event)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
			good(rc, "dat_evd_dequeue");
		timed_out(dat_cno_wait(l->cno, LINK_TIMEOUT * 1000000, &triggered), "dat_cno_wait",
			  what);
	}
}

static void next_event(struct link *l, DAT_EVD_HANDLE evd, enum wake wake, DAT_EVENT *event,
		       const char *what)
{
	DAT_COUNT more;

	switch (wake) {
	case WAKE_POLL: poll_event(evd, event, what); break;
	case WAKE_CNO: wait_cno(l, evd, event, what); break;
	case WAKE_WAIT:
		timed_out(dat_evd_wait(evd, LINK_TIMEOUT * 1000000, 1, event, &more),
			  "dat_evd_wait", what);
		break;
	}
}

static void reap_request_by(struct link *l, enum wake wake)
{
	DAT_EVENT event;

	next_event(l, l->request, wake, &event, "request");
	completed(&event, "request");
	l->unfinished--;
}

static void reap_request(struct link *l)
{
	reap_request_by(l, WAKE_POLL);
}

static void make_room(struct link *l)
{
	while (l->unfinished >= LINK_DEPTH)
		reap_request(l);
	l->unfinished++;
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

static const DAT_DTO_COOKIE no_cookie;

void link_send(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);

	make_room(l);
	good(dat_ep_post_send(l->ep, 1, &from, no_cookie, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_send");
}

void link_write(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);
	DAT_RMR_TRIPLET to = remote(l, size);

	make_room(l);
	good(dat_ep_post_rdma_write(l->ep, 1, &from, no_cookie, &to, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_write");
}

void link_read(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET to = local(l, l->target, size);
	DAT_RMR_TRIPLET from = remote(l, size);

	make_room(l);
	good(dat_ep_post_rdma_read(l->ep, 1, &to, no_cookie, &from, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_read");
}

void link_fetch_add(struct link *l)
{
	DAT_LMR_TRIPLET to = local(l, l->out, sizeof(uint64_t));
	DAT_RMR_TRIPLET word = remote(l, sizeof(uint64_t));

	make_room(l);
	good(dat_ib_post_fetch_and_add(l->ep, 1, &to, no_cookie, &word,
				       DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ib_post_fetch_and_add");
}

void link_write_immediate(struct link *l, size_t size, uint32_t data)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);
	DAT_RMR_TRIPLET to = remote(l, size);

	make_room(l);
	good(dat_ib_post_rdma_write_immed(l->ep, 1, &from, no_cookie, &to, data,
					  DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ib_post_rdma_write_immed");
}

void link_post_receive(struct link *l)
{
	DAT_LMR_TRIPLET to = local(l, l->in, LINK_BLOCK);

	good(dat_ep_post_recv(l->ep, 1, &to, no_cookie, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_recv");
}

size_t link_receive_by(struct link *l, enum wake wake)
{
	DAT_EVENT event;

	next_event(l, l->recv, wake, &event, "receive");
	link_post_receive(l);
	return completed(&event, "receive")->transfered_length;
}

size_t link_receive(struct link *l)
{
	return link_receive_by(l, WAKE_POLL);
}

bool link_wait(struct link *l, size_t *size)
{
	DAT_EVENT event;
	DAT_COUNT more;

	good(dat_evd_wait(l->recv, DAT_TIMEOUT_INFINITE, 1, &event, &more), "dat_evd_wait");
	if (event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED)
		return false;
	*size = completed(&event, "receive")->transfered_length;
	link_post_receive(l);
	return true;
}

void link_spin_byte(const volatile uint8_t *byte, uint8_t value)
{
	unsigned long polls = 0;
	double since = 0;

	while (__atomic_load_n(byte, __ATOMIC_ACQUIRE) != value)
		idle(&polls, &since, "RDMA write of the peer");
}
