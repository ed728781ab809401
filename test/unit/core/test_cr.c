/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cr.c - connection requests: each is answered once, by accept, reject or handoff, and a refused answer
 * leaves the request and the endpoint as they were. */
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { QUAL = 7, OTHER_QUAL = 8, PEER_PORT = 99 };

static struct dapl_evd *cr_evd;
static struct dapl_ep *ep;
static char connection;		/* of the request */
static unsigned accepts, rejects, releases;
static int accept_error, reject_error;
static bool by_consumer;
static struct dapl_ep *accepted;
static bool no_memory;
static size_t pdata_len;	/* of the answer, as pdata */
static char pdata[64];
static DAT_CR_HANDLE in_accept;	/* a request that gets other answers while it is being accepted */

#define CONNECTION ((struct dapl_conn *)&connection)
#define EP ((DAT_EP_HANDLE)ep)

UNIT_FAIL_CALLOC(no_memory)

static void keep_pdata(const void *data, size_t len)
{
	pdata_len = len;
	if (len)
		memcpy(pdata, data, len);
}

static int note_accept(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	assert_ptr_equal(conn, CONNECTION);
	keep_pdata(params->pdata, params->pdata_len);
	if (in_accept) {
		assert_int_equal(dapl_cr_reject(in_accept, 0, NULL), BAD_HANDLE(CR));
		dapl_cr_refuse(in_accept);
	}
	if (accept_error)
		return accept_error;
	accepted = params->owner;
	accepts++;
	return 0;
}

static int note_reject(struct dapl_conn *conn, bool consumer, const void *data, size_t len)
{
	assert_ptr_equal(conn, CONNECTION);
	if (reject_error)
		return reject_error;
	keep_pdata(data, len);
	by_consumer = consumer;
	rejects++;
	return 0;
}

static void note_release(struct dapl_conn *conn)
{
	assert_ptr_equal(conn, CONNECTION);
	releases++;
}

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_objects_open(state), 0);
	accepts = rejects = releases = 0;
	accept_error = reject_error = 0;
	accepted = NULL;
	pdata_len = 0;
	in_accept = DAT_HANDLE_NULL;
	core_device.accept = note_accept;
	core_device.reject = note_reject;
	core_device.release = note_release;
	cr_evd = core_evd_new(core_ia, 8, DAT_EVD_CR_FLAG);
	ep = core_objects_ep(NULL, NULL);
}

/* Each request was answered once: accepted, rejected or given up. */
static int tear_down(void **state)
{
	if (ep)
		assert_int_equal(dapl_ep_free(EP), DAT_SUCCESS);
	if (accepted) {
		assert_int_equal(releases, 1);
		dapl_up_released(accepted);
	}
	assert_int_equal(accepts ? accepts + rejects : rejects + releases, 1);
	assert_int_equal(dapl_object_count(core_ia, DAPL_CR), 0);
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), 0);
	core_evd_free(cr_evd);
	return core_objects_close(state);
}

/* --- a request ----------------------------------------------------------------------------------- */

static DAT_PSP_HANDLE listen_at(DAT_CONN_QUAL qual, struct dapl_evd *evd, DAT_PSP_FLAGS flags)
{
	DAT_PSP_HANDLE psp;

	assert_int_equal(dapl_psp_create((DAT_IA_HANDLE)core_ia, qual, (DAT_EVD_HANDLE)evd, flags, &psp), DAT_SUCCESS);
	return psp;
}

static void set_address(struct sockaddr_storage *address, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
}

static void request(void *sp, bool ud)
{
	char hello[] = "hello";
	struct dapl_request request = { .pdata = hello, .pdata_len = sizeof hello, .ud = ud };

	set_address(&request.local, QUAL);
	set_address(&request.remote, PEER_PORT);
	dapl_up_request(sp, CONNECTION, &request);
	memset(hello, 0, sizeof hello);		/* it was the device's */
	dapl_service_flush();
}

static DAT_CR_HANDLE take_event(struct dapl_evd *evd, DAT_CONN_QUAL qual)
{
	DAT_EVENT event;

	assert_int_equal(core_next_event(evd, &event), DAT_CONNECTION_REQUEST_EVENT);
	assert_int_equal(event.event_data.cr_arrival_event_data.conn_qual, qual);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

/* The request of a service point that is freed: its request stays. SP-8. */
static DAT_CR_HANDLE requested(DAT_PSP_FLAGS flags)
{
	DAT_PSP_HANDLE psp = listen_at(QUAL, cr_evd, flags);

	request((void *)psp, false);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
	return take_event(cr_evd, QUAL);
}

/* The request of an RSP, for `ep`. */
static DAT_CR_HANDLE requested_reserved(void)
{
	DAT_RSP_HANDLE rsp;

	assert_int_equal(dapl_rsp_create((DAT_IA_HANDLE)core_ia, QUAL, EP, (DAT_EVD_HANDLE)cr_evd, &rsp), DAT_SUCCESS);
	request((void *)rsp, false);
	assert_int_equal(dapl_rsp_free(rsp), DAT_SUCCESS);
	assert_int_equal(ep->state, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	return take_event(cr_evd, QUAL);
}

UNIT_CASE(request_whose_data_cannot_be_kept_is_rejected)
{
	DAT_PSP_HANDLE psp = listen_at(QUAL, cr_evd, DAT_PSP_CONSUMER_FLAG);

	no_memory = true;
	request((void *)psp, false);
	no_memory = false;
	assert_int_equal(rejects, 1);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
}

static DAT_RETURN accept_plain(DAT_CR_HANDLE cr, DAT_EP_HANDLE with) { return dapl_cr_accept(cr, with, 0, NULL); }

static void expect_answered(DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;

	assert_int_equal(dapl_cr_query(cr, DAT_CR_FIELD_ALL, &param), BAD_HANDLE(CR));
	assert_int_equal(accept_plain(cr, EP), BAD_HANDLE(CR));
	assert_int_equal(dapl_cr_reject(cr, 0, NULL), BAD_HANDLE(CR));
	assert_int_equal(dapl_cr_handoff(cr, OTHER_QUAL), BAD_HANDLE(CR));
}

static void expect_usable(DAT_CR_HANDLE cr)
{
	assert_int_equal(accepts + rejects + releases, 0);
	assert_int_equal(accept_plain(cr, EP), DAT_SUCCESS);
	assert_int_equal(accepts, 1);
}

/* --- accepting ------------------------------------------------------------------------------------ */

/* SP-22, 25 */
UNIT_CASE(endpoint_must_be_able_to_accept)
{
	DAT_CR_HANDLE cr = requested(DAT_PSP_CONSUMER_FLAG);
	struct dapl_pz *pz = ep->pz;

	ep->state = DAT_EP_STATE_CONNECTED;
	assert_int_equal(accept_plain(cr, EP), BAD_STATE(EP_CONNECTED));
	assert_int_equal(ep->state, DAT_EP_STATE_CONNECTED);
	ep->state = DAT_EP_STATE_UNCONNECTED;
	ep->pz = NULL;
	assert_int_equal(accept_plain(cr, EP), BAD_STATE(EP_NOTREADY));
	ep->pz = pz;
	ep->is_ud = true;		/* the request is for a connection */
	assert_int_equal(accept_plain(cr, EP), BAD_HANDLE(EP));
	ep->is_ud = false;
	ep->is_raw = true;
	assert_int_equal(accept_plain(cr, EP), NOT_SUPPORTED);
	ep->is_raw = false;
	expect_usable(cr);
}

UNIT_CASE(endpoint_of_another_open_is_refused)
{
	DAT_CR_HANDLE cr = requested(DAT_PSP_CONSUMER_FLAG);
	struct dapl_ia *again = core_ia_new();
	struct dapl_ep *of_again = core_ep_new(again, NULL, 4);

	assert_int_equal(accept_plain(cr, (DAT_EP_HANDLE)of_again), BAD_HANDLE(EP));
	core_ep_free(of_again);
	core_ia_free(again);
	expect_usable(cr);
}

UNIT_CASE(accept_that_the_device_refuses_changes_nothing)
{
	DAT_CR_HANDLE cr = requested(DAT_PSP_CONSUMER_FLAG);
	int refs = ep->obj.refs;

	accept_error = EMSGSIZE;
	assert_int_equal(accept_plain(cr, EP), BAD_PARAM(3));
	accept_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(accept_plain(cr, EP)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	assert_null(ep->conn);
	assert_int_equal(ep->obj.refs, refs);
	accept_error = 0;
	expect_usable(cr);
}

/* SP-29 */
UNIT_CASE(peer_that_is_gone_fails_the_connection)
{
	DAT_CR_HANDLE cr = requested(DAT_PSP_CONSUMER_FLAG);
	int refs = ep->obj.refs;
	DAT_EVENT event;

	accept_error = ECONNRESET;
	assert_int_equal(accept_plain(cr, EP), DAT_SUCCESS);
	assert_int_equal(ep->state, DAT_EP_STATE_DISCONNECTED);
	assert_int_equal(core_next_event(core_conn_evd, &event), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	assert_int_equal(ep->obj.refs, refs);
	assert_int_equal(releases, 1);
	expect_answered(cr);
}

/* SP-28: while an accept is on its way, another answer finds no request. */
UNIT_CASE(one_of_two_answers_wins)
{
	DAT_CR_HANDLE cr = requested(DAT_PSP_CONSUMER_FLAG);

	in_accept = cr;
	assert_int_equal(accept_plain(cr, EP), DAT_SUCCESS);
	assert_int_equal(rejects, 0);
}

/* --- requests with an endpoint -------------------------------------------------------------------- */

/* A request does not take the endpoint that another one has. */
UNIT_CASE(endpoint_of_another_request_is_refused)
{
	DAT_CR_HANDLE first = requested_reserved(), second = requested(DAT_PSP_CONSUMER_FLAG);

	assert_int_equal(DAT_GET_TYPE(accept_plain(second, EP)), DAT_INVALID_STATE);
	assert_int_equal(accept_plain(first, DAT_HANDLE_NULL), DAT_SUCCESS);
	assert_int_equal(dapl_cr_reject(second, 0, NULL), DAT_SUCCESS);
	assert_int_equal(accepts + rejects, 2);
	rejects = 0;	/* for tear_down, which expects one request */
}

UNIT_CASE(endpoint_of_the_provider_goes_with_its_request)
{
	DAT_CR_HANDLE cr = requested(DAT_PSP_PROVIDER_FLAG);
	DAT_CR_PARAM param;

	assert_int_equal(dapl_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(((struct dapl_ep *)param.local_ep_handle)->state, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), 2);
	assert_int_equal(dapl_cr_reject(cr, 0, NULL), DAT_SUCCESS);
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), 1);
}

/* SP-42, 43 */
UNIT_CASE(refused_request_frees_its_endpoint)
{
	DAT_CR_HANDLE cr = requested_reserved();

	dapl_cr_refuse(cr);
	assert_int_equal(rejects, 1);
	assert_false(by_consumer);
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	dapl_cr_refuse(cr);
	assert_int_equal(rejects, 1);
	expect_answered(cr);
}

UNIT_CASE(arguments_of_reject_are_checked)
{
	char data[65] = "";
	DAT_CR_HANDLE cr = requested(DAT_PSP_CONSUMER_FLAG);

	assert_int_equal(dapl_cr_reject(cr, -1, NULL), BAD_PARAM(2));
	assert_int_equal(dapl_cr_reject(cr, 65, data), BAD_PARAM(2));
	assert_int_equal(dapl_cr_reject(cr, 1, NULL), BAD_PARAM(3));
	reject_error = EMSGSIZE;	/* more than the device takes in this reply */
	assert_int_equal(dapl_cr_reject(cr, 64, data), BAD_PARAM(2));
	expect_usable(cr);
}

/* --- handing off ---------------------------------------------------------------------------------- */

UNIT_CASE(reserved_endpoint_does_not_follow_its_request)
{
	DAT_PSP_HANDLE psp = listen_at(OTHER_QUAL, cr_evd, DAT_PSP_CONSUMER_FLAG);
	DAT_CR_HANDLE cr = requested_reserved();

	assert_int_equal(dapl_cr_handoff(cr, OTHER_QUAL), DAT_SUCCESS);
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
	expect_usable(take_event(cr_evd, OTHER_QUAL));
}

UNIT_CASE(handoff_without_a_receiver_leaves_the_request)
{
	struct dapl_evd *full = core_evd_new(core_ia, 1, DAT_EVD_CR_FLAG);
	DAT_PSP_HANDLE psp = listen_at(OTHER_QUAL, full, DAT_PSP_CONSUMER_FLAG);
	DAT_CR_HANDLE cr = requested(DAT_PSP_CONSUMER_FLAG);
	const DAT_EVENT event = { .event_number = DAT_CONNECTION_REQUEST_EVENT };

	assert_int_equal(dapl_cr_handoff(cr, OTHER_QUAL + 1), BAD_PARAM(2));
	while (dapl_evd_offer(full, &event))
		;
	assert_int_equal(DAT_GET_TYPE(dapl_cr_handoff(cr, OTHER_QUAL)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(dapl_object_count(core_ia, DAPL_CR), 1);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
	core_evd_free(full);
	expect_usable(cr);
}

/* An RSP that has had its request, here this one, is no service point for another. SP-16, 34. */
UNIT_CASE(handoff_to_a_used_service_point_is_refused)
{
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;

	assert_int_equal(dapl_rsp_create((DAT_IA_HANDLE)core_ia, QUAL, EP, (DAT_EVD_HANDLE)cr_evd, &rsp), DAT_SUCCESS);
	request((void *)rsp, false);
	cr = take_event(cr_evd, QUAL);
	assert_int_equal(dapl_cr_handoff(cr, QUAL), BAD_PARAM(2));
	assert_int_equal(dapl_rsp_free(rsp), DAT_SUCCESS);
	assert_int_equal(dapl_cr_reject(cr, 0, NULL), DAT_SUCCESS);
}

UNIT_MAIN(NULL, NULL)
