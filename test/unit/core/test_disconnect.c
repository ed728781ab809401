/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_disconnect.c - when a graceful disconnect ends: at once, with the last request, or not before the
 * consumer dequeues, which it must not wait for. */
#include "dapl/core/conn/conn.h"
#include "dapl/core/conn/disconnect.h"
#include "dapl/core/event/calls.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd, *conn_evd;
static struct dapl_ep *ep;
static bool completes;		/* the device completes a marker when it is posted */
static uint64_t marker;		/* its wr_id; 0: none was posted */
static unsigned errors;

static int note_marker(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	if (wr->opcode != IBV_WR_RDMA_WRITE)
		return 0;	/* of a flush */
	marker = wr->wr_id;
	if (completes)
		core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_SUCCESS, .wr_id = marker });
	return 0;
}

static void note_error(struct ibv_qp *qp) { errors++; }

UNIT_FIXTURE(set_up)
{
	completes = false;
	marker = 0;
	errors = 0;
	core_device = (struct core_device){ .post_send = note_marker, .error_qp = note_error };
	assert_int_equal(dapl_service_get(), 0);
	ia = core_ia_new();
	evd = core_evd_new(ia, 64, DAT_EVD_DTO_FLAG);
	conn_evd = core_evd_new(ia, 8, DAT_EVD_CONNECTION_FLAG);
	ep = core_ep_new(ia, evd, 16);
	ep->connect_evd = conn_evd;
	ep->qp = core_qp();
}

UNIT_FIXTURE(tear_down)
{
	dapl_timer_drain(&ep->timer);
	core_ep_free(ep);
	core_evd_free(conn_evd);
	core_evd_free(evd);
	core_ia_free(ia);
	dapl_service_put();
}

static void disconnect(DAT_CLOSE_FLAGS flags)
{
	assert_int_equal(dapl_ep_disconnect((DAT_EP_HANDLE)ep, flags), DAT_SUCCESS);
}

static int next_event(void)
{
	DAT_EVENT event;

	return dapl_evd_dequeue((DAT_EVD_HANDLE)conn_evd, &event) == DAT_SUCCESS ? (int)event.event_number : 0;
}

static void post_send(bool complete)
{
	const struct dapl_dto *dto = core_post(ep, DAT_DTO_SEND, 0, 1);

	if (complete)
		core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_SUCCESS, .wr_id = (uintptr_t)dto });
}

static void expect_end(void)
{
	assert_int_equal(ep->state, DAT_EP_STATE_DISCONNECTED);
	assert_int_equal(next_event(), DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(next_event(), 0);
	assert_int_equal(errors, 1);
}

UNIT_CASE(abrupt_disconnect_waits_for_nothing)
{
	post_send(false);
	disconnect(DAT_CLOSE_ABRUPT_FLAG);
	assert_int_equal(marker, 0);
	expect_end();
}

/* The sends are complete, though the consumer has not dequeued them, and perhaps never will. */
UNIT_CASE(completed_requests_are_not_waited_for)
{
	completes = true;
	post_send(true);
	disconnect(DAT_CLOSE_GRACEFUL_FLAG);
	assert_true(marker);
	expect_end();
}

UNIT_CASE(open_requests_are_waited_for)
{
	post_send(false);
	disconnect(DAT_CLOSE_GRACEFUL_FLAG);
	assert_int_equal(ep->state, DAT_EP_STATE_DISCONNECT_PENDING);
	assert_int_equal(next_event(), 0);
	assert_int_equal(errors, 0);
	disconnect(DAT_CLOSE_GRACEFUL_FLAG);	/* a second one changes nothing */
	assert_int_equal(ep->state, DAT_EP_STATE_DISCONNECT_PENDING);
	dapl_spin_lock(&evd->lock);
	core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_SUCCESS, .wr_id = marker });
	dapl_spin_unlock(&evd->lock);
	while (__atomic_load_n(&ep->state, __ATOMIC_RELAXED) != DAT_EP_STATE_DISCONNECTED)
		usleep(1000);	/* the alarm ends it */
	dapl_service_flush();
	expect_end();
}

UNIT_CASE(abrupt_disconnect_ends_a_graceful_one)
{
	post_send(false);
	disconnect(DAT_CLOSE_GRACEFUL_FLAG);
	assert_int_equal(next_event(), 0);
	disconnect(DAT_CLOSE_ABRUPT_FLAG);
	expect_end();
}

UNIT_MAIN(NULL, NULL)
