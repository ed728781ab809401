/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_sp_request.c - what a request at a service point brings: its event, an endpoint where the service point has or
 * makes one, and what is left of a request that finds no room. */
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { QUAL = 7 };

static struct dapl_evd *cr_evd;
static struct dapl_ep *ep;		/* of a reserved service point */
static unsigned rejects;

static int note_reject(struct dapl_conn *conn, bool by_consumer, const void *data, size_t len)
{
	rejects += !by_consumer;
	return 0;
}

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_objects_open(state), 0);
	core_device.reject = note_reject;
	rejects = 0;
	cr_evd = core_evd_new(core_ia, 8, DAT_EVD_CR_FLAG);
	ep = core_objects_ep(NULL, NULL);
}

static int tear_down(void **state)
{
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_int_equal(dapl_object_count(core_ia, DAPL_CR), 0);
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), 0);
	core_evd_free(cr_evd);
	return core_objects_close(state);
}

static DAT_PSP_HANDLE listen_with(DAT_PSP_FLAGS flags)
{
	DAT_PSP_HANDLE psp;

	assert_int_equal(dapl_psp_create((DAT_IA_HANDLE)core_ia, QUAL, (DAT_EVD_HANDLE)cr_evd, flags, &psp),
			 DAT_SUCCESS);
	return psp;
}

/* A service point for one request, which `ep` is reserved for. */
static DAT_RSP_HANDLE reserve_at(DAT_CONN_QUAL qual)
{
	DAT_RSP_HANDLE rsp;

	assert_int_equal(dapl_rsp_create((DAT_IA_HANDLE)core_ia, qual, (DAT_EP_HANDLE)ep, (DAT_EVD_HANDLE)cr_evd, &rsp),
			 DAT_SUCCESS);
	return rsp;
}

/* True: it was not refused. */
static bool request(void *sp, bool ud)
{
	struct dapl_request request = { .ud = ud };
	struct sockaddr_in *local = (struct sockaddr_in *)&request.local;
	unsigned before = rejects;

	local->sin_family = AF_INET;
	local->sin_port = htons(QUAL);
	dapl_up_request(sp, NULL, &request);
	dapl_service_flush();
	return rejects == before;
}

/* Takes the event of a request. Its handle is the request itself. */
static struct dapl_cr *take(DAT_EVENT_NUMBER number, const void *sp)
{
	DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_EVENT event;

	assert_int_equal(core_next_event(cr_evd, &event), number);
	data = &event.event_data.cr_arrival_event_data;
	assert_ptr_equal(data->sp_handle.psp_handle, sp);
	assert_int_equal(data->conn_qual, QUAL);
	assert_int_equal(data->truncate_flag, DAT_FALSE);
	if (number == (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT)
		assert_int_equal(((DAT_IB_EXTENSION_EVENT_DATA *)(void *)event.event_extension_data)->type,
				 DAT_IB_UD_CONNECT_REQUEST);
	return (struct dapl_cr *)data->cr_handle;
}

static struct dapl_cr *take_one(const void *sp) { return take(DAT_CONNECTION_REQUEST_EVENT, sp); }
static void reject(struct dapl_cr *cr) { assert_int_equal(dapl_cr_reject((DAT_CR_HANDLE)cr, 0, NULL), DAT_SUCCESS); }

/* Requests come until the EVD is full. Returns their number. */
static unsigned fill(void *psp)
{
	unsigned n = 0;

	while (request(psp, false))
		n++;
	rejects = 0;
	return n;
}

static void empty(void *psp, unsigned n)
{
	while (n--)
		reject(take_one(psp));
}

UNIT_CASE(provider_makes_an_endpoint)
{
	DAT_PSP_HANDLE psp = listen_with(DAT_PSP_PROVIDER_FLAG);
	struct dapl_cr *cr;

	assert_true(request((void *)psp, false));
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), 2);
	cr = take_one((void *)psp);
	assert_non_null(cr->ep);
	assert_ptr_equal(cr->ep->cr, cr);
	assert_int_equal(cr->ep->state, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	reject(cr);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
}

UNIT_CASE(full_evd_makes_no_endpoint)
{
	DAT_PSP_HANDLE psp = listen_with(DAT_PSP_PROVIDER_FLAG);
	uint64_t made = core_ia->counters[DCNT_IA_EP_CREATE];
	unsigned n = fill((void *)psp);

	assert_int_equal(core_ia->counters[DCNT_IA_EP_CREATE], made + n);
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), n + 1);
	assert_int_equal(dapl_object_count(core_ia, DAPL_CR), n);
	empty((void *)psp, n);
	assert_true(request((void *)psp, false));
	empty((void *)psp, 1);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
}

UNIT_CASE(reserved_endpoint_serves_one_request)
{
	DAT_RSP_HANDLE rsp = reserve_at(QUAL);
	struct dapl_cr *cr;

	assert_int_equal(ep->state, DAT_EP_STATE_RESERVED);
	assert_true(request((void *)rsp, false));
	assert_int_equal(ep->state, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	assert_false(request((void *)rsp, false));
	cr = take_one((void *)rsp);
	assert_ptr_equal(cr->ep, ep);
	assert_true(cr->from_rsp);
	assert_ptr_equal(ep->cr, cr);
	assert_null(ep->rsp);
	reject(cr);
	assert_int_equal(dapl_rsp_free(rsp), DAT_SUCCESS);
}

UNIT_CASE(endpoint_stays_reserved_if_there_is_no_room)
{
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	unsigned n;

	psp = listen_with(DAT_PSP_CONSUMER_FLAG);
	n = fill((void *)psp);
	rsp = reserve_at(QUAL + 1);
	assert_false(request((void *)rsp, false));
	assert_int_equal(ep->state, DAT_EP_STATE_RESERVED);
	assert_null(ep->cr);
	assert_ptr_equal(ep->rsp, (void *)rsp);
	empty((void *)psp, n);
	assert_true(request((void *)rsp, false));	/* the next one gets it */
	assert_int_equal(ep->state, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	assert_int_equal(dapl_rsp_free(rsp), DAT_SUCCESS);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
	assert_int_equal(core_next_event(cr_evd, &(DAT_EVENT){ 0 }), DAT_CONNECTION_REQUEST_EVENT);
	assert_int_equal(dapl_cr_reject((DAT_CR_HANDLE)ep->cr, 0, NULL), DAT_SUCCESS);
}

UNIT_MAIN(NULL, NULL)
