/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_terminate.c - the end of a connection: what the device is told, and when the terminal event and the
 * event of the last SRQ buffer are delivered. */
#include "dapl/core/conn/terminate.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/calls.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

enum { STREAMS = DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG };

static struct dapl_ia *ia;
static struct dapl_evd *evd, *conn_evd, *async_evd;
static struct dapl_ep *ep;
static unsigned errors, disconnects, releases, markers;
static char connection;

#define CONNECTION ((struct dapl_conn *)&connection)

static void note_error(struct ibv_qp *qp)
{
	assert_ptr_equal(qp, core_qp());
	assert_true(ep->sq.in_error && ep->rq.in_error);	/* no post comes between */
	errors++;
}

static void note_disconnect(struct dapl_conn *conn)
{
	assert_ptr_equal(conn, CONNECTION);
	assert_int_equal(releases, 0);
	disconnects++;
}

static void note_release(struct dapl_conn *conn)
{
	assert_ptr_equal(conn, CONNECTION);
	releases++;
}

static int note_marker(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	assert_ptr_equal(qp, core_qp());
	assert_int_equal(wr->opcode, IBV_WR_SEND);
	assert_int_equal(wr->send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(wr->num_sge, 0);
	if (dapl_post_try(&ep->sq.lock)) {	/* the order of the device's queue is that of ours */
		dapl_post_unlock(&ep->sq.lock);
		fail_msg("posted without the lock of the queue");
	}
	markers++;
	return 0;
}

static void deliver(struct dapl_ep *of)
{
	dapl_mutex_lock(&of->lock);
	dapl_ep_deliver_event(of);
	dapl_mutex_unlock(&of->lock);
}

UNIT_FIXTURE(set_up)
{
	errors = disconnects = releases = markers = 0;
	core_device = (struct core_device){ .error_qp = note_error, .disconnect = note_disconnect,
		.release = note_release, .post_send = note_marker };
	dapl_conn_hooks = (struct dapl_conn_hooks){ .completed = deliver };
	ia = core_ia_new();
	evd = core_evd_new(ia, 64, (DAT_EVD_FLAGS)STREAMS);
	conn_evd = core_evd_new(ia, 8, DAT_EVD_CONNECTION_FLAG);
	async_evd = core_async_evd_new(ia);
	ep = core_ep_new(ia, evd, 16);
	ep->qp = core_qp();
	ep->state = DAT_EP_STATE_DISCONNECTED;
	ep->up = false;
}

UNIT_FIXTURE(tear_down)
{
	core_ep_free(ep);
	ia->async_evd = NULL;
	core_evd_free(async_evd);
	core_evd_free(conn_evd);
	core_evd_free(evd);
	core_ia_free(ia);
}

static void terminate(DAT_EVENT_NUMBER number)
{
	dapl_mutex_lock(&ep->lock);
	dapl_ep_terminate(ep, number);
	dapl_mutex_unlock(&ep->lock);
}

static void complete(const struct dapl_dto *dto)
{
	core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR, .wr_id = (uintptr_t)dto,
		.qp_num = ep->qpn });
}

/* 0: the queue is empty. */
static int next_event(struct dapl_evd *of)
{
	DAT_EVENT event;

	return dapl_evd_dequeue((DAT_EVD_HANDLE)of, &event) == DAT_SUCCESS ? (int)event.event_number : 0;
}

UNIT_CASE(terminal_event_of_an_evd_of_its_own_does_not_wait)
{
	ep->connect_evd = conn_evd;
	core_post(ep, DAT_DTO_SEND, 0, 1);
	core_post(ep, DAT_DTO_RECEIVE, 0, 2);
	terminate(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(next_event(conn_evd), DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(next_event(conn_evd), 0);
	assert_false(ep->deferred);
}

UNIT_CASE(endpoint_without_connect_evd_gets_no_event)
{
	ep->connect_evd = NULL;
	core_post(ep, DAT_DTO_SEND, 0, 1);
	terminate(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(ep->terminal, 0);
	assert_false(ep->deferred);
	assert_int_equal(next_event(evd), 0);
}

UNIT_CASE(end_without_an_event_defers_nothing)
{
	terminate(0);
	assert_int_equal(next_event(evd), 0);
	assert_false(ep->deferred);
}

UNIT_CASE(endpoint_that_is_not_disconnected_stays_deferred)
{
	ep->state = DAT_EP_STATE_DISCONNECT_PENDING;
	terminate(0);
	assert_true(ep->deferred);
	ep->state = DAT_EP_STATE_DISCONNECTED;
	deliver(ep);
	assert_false(ep->deferred);
}

UNIT_CASE(posting_ends_before_the_device_flushes)
{
	terminate(0);
	assert_int_equal(errors, 1);
	assert_int_equal(ep->sq.room, 0);
	assert_int_equal(ep->rq.room, 0);
}

UNIT_CASE(endpoint_without_a_queue_pair_flushes_nothing)
{
	ep->qp = NULL;
	ep->sq.unsignaled = 1;
	terminate(DAT_CONNECTION_EVENT_UNREACHABLE);
	assert_int_equal(errors + markers, 0);
	assert_true(ep->sq.in_error);
	assert_int_equal(next_event(evd), DAT_CONNECTION_EVENT_UNREACHABLE);
}

UNIT_CASE(marker_flushes_behind_unsignaled_requests)
{
	struct dapl_dto *dto = core_post(ep, DAT_DTO_SEND, REQ_UNSIGNALED | REQ_SUPPRESS, 1);

	ep->sq.unsignaled = 1;
	terminate(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(markers, 1);
	assert_int_equal(ep->sq.markers, 1);
	assert_int_equal(next_event(evd), 0);
	complete(dto + 1);
	assert_int_equal(next_event(evd), DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
}

UNIT_CASE(no_marker_without_unsignaled_requests)
{
	core_post(ep, DAT_DTO_SEND, 0, 1);
	terminate(0);
	assert_int_equal(markers, 0);
}

/* A device that leaves late posts flushes no marker either: core completes the posts itself. */
UNIT_CASE(core_flushes_for_a_device_that_leaves_posts)
{
	ia->attr.no_late_flush = true;
	core_post(ep, DAT_DTO_SEND, 0, 1);
	core_post(ep, DAT_DTO_RECEIVE, 0, 2);
	ep->sq.unsignaled = 1;
	terminate(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(markers, 0);
	assert_int_equal(next_event(evd), DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(next_event(evd), DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(next_event(evd), DAT_CONNECTION_EVENT_DISCONNECTED);
}

UNIT_CASE(receives_of_an_srq_are_not_flushed_by_core)
{
	struct dapl_srq srq = { .max = 1 };

	ia->attr.no_late_flush = true;
	ep->srq = &srq;
	core_post(ep, DAT_DTO_RECEIVE, 0, 2);	/* no queue of an SRQ endpoint has any */
	terminate(0);
	assert_int_equal(evd->wc_tail - evd->wc_head, 0);
	ep->srq = NULL;
}

UNIT_CASE(connection_is_dropped_once)
{
	ep->conn = CONNECTION;
	terminate(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_null(ep->conn);
	dapl_mutex_lock(&ep->lock);
	dapl_ep_drop_conn(ep);
	dapl_mutex_unlock(&ep->lock);
	assert_int_equal(disconnects, 1);
	assert_int_equal(releases, 1);
}

static unsigned last_buffers(void)
{
	DAT_ASYNCH_ERROR_EVENT_DATA error;
	DAT_EVENT_NUMBER number;
	unsigned n = 0;

	while (core_async_error(async_evd, &error, &number)) {
		assert_int_equal(number, DAT_ASYNC_ERROR_EP_BROKEN);
		assert_ptr_equal(error.dat_handle, ep);
		assert_int_equal(error.reason, DAT_EP_TRANSFER_TO_ERROR);
		n++;
	}
	return n;
}

UNIT_CASE(last_buffer_of_an_srq_is_reported_after_its_completions)
{
	struct dapl_srq srq = { .max = 1 };
	struct dapl_dto own = { .srq = &srq, .flags = REQ_SRQ, .op = DAT_DTO_RECEIVE };

	ep->srq = &srq;
	complete(&own);
	terminate(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(next_event(conn_evd), 0);
	assert_int_equal(last_buffers(), 0);
	assert_true(ep->deferred);
	evd->wc_head = evd->wc_tail;	/* the consumer dequeues it */
	deliver(ep);
	assert_int_equal(last_buffers(), 1);
	assert_false(ep->deferred);
	deliver(ep);
	assert_int_equal(last_buffers(), 0);
	ep->srq = NULL;
}

UNIT_CASE(buffers_of_another_endpoint_do_not_delay_the_report)
{
	struct dapl_srq srq = { .max = 1 };
	struct dapl_dto other = { .srq = &srq, .flags = REQ_SRQ, .op = DAT_DTO_RECEIVE };

	ep->srq = &srq;
	core_complete(evd, &(struct ibv_wc){ .wr_id = (uintptr_t)&other, .qp_num = ep->qpn + 1 });
	terminate(0);
	assert_int_equal(last_buffers(), 1);
	evd->wc_head = evd->wc_tail;
	ep->srq = NULL;
}

UNIT_CASE(srq_endpoint_without_a_queue_pair_owes_no_report)
{
	struct dapl_srq srq = { .max = 1 };

	ep->srq = &srq;
	ep->qp = NULL;
	terminate(0);
	assert_int_equal(last_buffers(), 0);
	ep->srq = NULL;
}

static void deliver_deferred(void)
{
	dapl_mutex_lock(&ep->lock);
	dapl_ep_deliver_deferred(ep);
	dapl_mutex_unlock(&ep->lock);
}

/* dat_ep_free and dat_ep_reset: the completions before the event are about to vanish. */
UNIT_CASE(deferred_event_can_be_delivered_at_once)
{
	struct dapl_srq srq = { .max = 1 };

	ep->srq = &srq;
	core_post(ep, DAT_DTO_SEND, 0, 1);
	ep->owes_last_buffer = ep->deferred = true;
	ep->terminal = DAT_CONNECTION_EVENT_DISCONNECTED;
	deliver_deferred();
	assert_int_equal(next_event(evd), DAT_CONNECTION_EVENT_DISCONNECTED);
	deliver_deferred();
	assert_int_equal(next_event(evd), 0);
	assert_int_equal(last_buffers(), 0);
	assert_false(ep->deferred || ep->owes_last_buffer);
	ep->srq = NULL;
}

static void post_event(DAT_EVENT_NUMBER number)
{
	dapl_mutex_lock(&ep->lock);
	dapl_ep_post_event(ep, number);
	dapl_mutex_unlock(&ep->lock);
}

UNIT_CASE(private_data_is_in_the_answers_of_a_peer_only)
{
	static const struct { DAT_EVENT_NUMBER number; bool has_data; } cases[] = {
		{ DAT_CONNECTION_EVENT_ESTABLISHED, true }, { DAT_CONNECTION_EVENT_PEER_REJECTED, true },
		{ DAT_CONNECTION_EVENT_NON_PEER_REJECTED, false }, { DAT_CONNECTION_EVENT_DISCONNECTED, false },
		{ DAT_CONNECTION_EVENT_BROKEN, false }, { DAT_CONNECTION_EVENT_TIMED_OUT, false },
	};
	DAT_EVENT event;

	memcpy(ep->pdata, "abc", 3);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int length = 0; length <= 3; length += 3) {
			const DAT_CONNECTION_EVENT_DATA *data = &event.event_data.connect_event_data;

			ep->pdata_len = length;
			post_event(cases[i].number);
			assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
			assert_int_equal(event.event_number, cases[i].number);
			assert_ptr_equal(data->ep_handle, ep);
			assert_int_equal(data->private_data_size, cases[i].has_data ? length : 0);
			assert_ptr_equal(data->private_data, cases[i].has_data && length ? ep->pdata : NULL);
		}
	assert_int_equal(evd->counters[DCNT_EVD_CONN_CALLBACK], 12);
	post_event(0);
	assert_int_equal(next_event(evd), 0);
}

UNIT_MAIN(NULL, NULL)
