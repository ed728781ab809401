/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ud.c - the peers of a datagram endpoint (doc/spec/extensions.md 4.1): from connect or accept until the
 * consumer has freed the connection and the address handle of each, or the endpoint. */
#include "dapl/core/conn/connect.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/ud.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/core/core_ud.h"
#include "test/unit/unit.h"

enum { PEERS = 2, PEER_PORT = 99, PEER_QPN = 33, PEER_QKEY = 44 };

static struct dapl_ep *ep;
static char connections[PEERS];		/* that the device has made, or was asked to accept */
static unsigned conns, releases, ahs;	/* ahs: address handles that exist */
static int connect_error, accept_error;
static struct ibv_ah handles[PEERS];
static struct ibv_send_wr sent;
static unsigned sends;
static char asked[16];			/* private data of the connect or accept */

#define CONNECTION(i) ((struct dapl_conn *)&connections[i])

static int note_connect(const struct dapl_conn_params *params, struct dapl_conn **conn)
{
	assert_true(params->ud);
	assert_ptr_equal(params->owner, ep);
	if (connect_error)
		return connect_error;
	memcpy(asked, params->pdata, params->pdata_len);
	*conn = CONNECTION(conns++);
	return 0;
}

static int note_accept(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	assert_ptr_equal(conn, CONNECTION(0));
	assert_true(params->ud);
	if (accept_error)
		return accept_error;
	memcpy(asked, params->pdata, params->pdata_len);
	conns++;
	return 0;
}

static void note_release(struct dapl_conn *conn)
{
	assert_in_range((char *)conn - connections, 0, conns - 1);
	releases++;
	dapl_up_released(ep);
}

static void note_destroy_ah(struct ibv_ah *ah)
{
	assert_in_range(ah - handles, 0, PEERS - 1);
	ahs--;
}

static int note_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	sent = *wr;
	sends++;
	return 0;
}

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_objects_open(state), 0);
	core_device.connect = note_connect;
	core_device.accept = note_accept;
	core_device.release = note_release;
	core_device.destroy_ah = note_destroy_ah;
	core_device.post_send = note_send;
	conns = releases = ahs = sends = 0;
	connect_error = accept_error = 0;
	ep = core_ud_ep();
}

/* What is left of the peers goes with the endpoint. */
static int tear_down(void **state)
{
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	dapl_service_flush();
	assert_int_equal(releases, conns);
	assert_int_equal(ahs, 0);
	return core_objects_close(state);
}

/* --- what the device and the consumer do ----------------------------------------------------------- */

static void set_address(struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	in->sin_family = AF_INET;
	in->sin_port = htons(PEER_PORT);
}

static DAT_RETURN connect_within(DAT_TIMEOUT timeout)
{
	struct sockaddr_storage to = { 0 };
	DAT_RETURN ret;

	set_address(&to);
	dapl_mutex_lock(&ep->lock);
	ret = dapl_ud_connect(ep, (struct sockaddr *)&to, timeout, sizeof "hello", "hello");
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

static void connect_peer(void) { assert_int_equal(connect_within(DAT_TIMEOUT_INFINITE), DAT_SUCCESS); }

/* The i-th peer has answered, with an address handle. */
static void establish(unsigned i)
{
	const struct dapl_ud_peer to = { &handles[i], PEER_QPN, PEER_QKEY };
	struct dapl_established info = { .pdata = "welcome", .pdata_len = sizeof "welcome", .ud = &to };

	ahs++;
	set_address(&info.remote);
	dapl_up_established(ep, CONNECTION(i), &info);
}

static struct core_ud_event next_event(void) { return core_ud_next_event(ep); }

static struct core_ud_event established_peer(unsigned i)
{
	connect_peer();
	establish(i);
	return next_event();
}

static DAT_RETURN send_to(DAT_COUNT n, uint64_t length, const DAT_IB_ADDR_HANDLE *to)
{
	return core_ud_send(ep, n, length, to);
}

/* --- connecting ------------------------------------------------------------------------------------- */

UNIT_CASE(established_peer_is_told_with_its_address)
{
	struct core_ud_event told;

	connect_peer();
	assert_string_equal(asked, "hello");
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	establish(0);
	assert_int_equal(ep->state, DAT_EP_STATE_CONNECTED);
	told = next_event();
	assert_int_equal(told.number, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(told.type, DAT_IB_UD_REMOTE_AH);
	assert_int_equal(told.status, DAT_OP_SUCCESS);
	assert_ptr_equal(told.to.ah, &handles[0]);
	assert_int_equal(told.to.qpn, PEER_QPN);
	assert_int_equal(((struct sockaddr_in *)&told.to.ia_addr)->sin_port, htons(PEER_PORT));
	assert_string_equal(told.pdata, "welcome");
	assert_int_equal(next_event().number, 0);
}

/* A device may take less private data for datagrams than for connections. */
UNIT_CASE(private_data_that_does_not_fit_is_a_bad_parameter)
{
	DAT_EP_HANDLE handle = (DAT_EP_HANDLE)ep;
	struct sockaddr_storage to = { 0 };
	DAT_IA_ADDRESS_PTR address = (DAT_IA_ADDRESS_PTR)&to;

	established_peer(0);
	core_ia->provider_attr.max_private_data_size = 5;
	set_address(&to);
	connect_error = EMSGSIZE;
	assert_int_equal(dapl_ep_connect(handle, address, PEER_PORT, DAT_TIMEOUT_INFINITE, 5, "hello",
					 DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), BAD_PARAM(5));
	assert_int_equal(dapl_ep_common_connect(handle, address, DAT_TIMEOUT_INFINITE, 5, "hello"), BAD_PARAM(4));
	assert_int_equal(dapl_ep_dup_connect(handle, handle, DAT_TIMEOUT_INFINITE, 5, "hello",
					     DAT_QOS_BEST_EFFORT), BAD_PARAM(4));
}

/* An endpoint collects peers, and stays usable. */
UNIT_CASE(endpoint_has_several_peers)
{
	struct core_ud_event first = established_peer(0), second = established_peer(1);

	assert_int_equal(second.number, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	assert_ptr_not_equal(first.to.ah, second.to.ah);
	assert_ptr_not_equal(first.context.as_ptr, second.context.as_ptr);
	assert_int_equal(send_to(1, 10, &first.to), DAT_SUCCESS);
	assert_ptr_equal(sent.wr.ud.ah, &handles[0]);
	assert_int_equal(send_to(1, 10, &second.to), DAT_SUCCESS);
	assert_ptr_equal(sent.wr.ud.ah, &handles[1]);
}

UNIT_CASE(connect_that_the_device_refuses_leaves_nothing)
{
	int refs = ep->obj.refs;

	connect_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(connect_within(1000)), DAT_INSUFFICIENT_RESOURCES);
	assert_null(ep->known_peers);
	assert_int_equal(ep->obj.refs, refs);
}

UNIT_CASE(unreachable_peer_is_told_as_an_error)
{
	struct core_ud_event told;

	connect_peer();
	dapl_up_failed(ep, CONNECTION(0), DAPL_CONN_UNREACHABLE, NULL, 0);
	told = next_event();
	assert_int_equal(told.number, DAT_IB_UD_CONNECTION_ERROR_EVENT);
	assert_int_equal(told.type, DAT_IB_UD_CONNECT_ERROR);
	assert_int_equal(told.status, DAT_IB_OP_ERR);
	assert_int_equal(releases, 1);
}

UNIT_CASE(peer_that_does_not_answer_in_time_is_an_error)
{
	int refs = ep->obj.refs;
	struct core_ud_event told;

	assert_int_equal(connect_within(1000), DAT_SUCCESS);
	while (!(told = next_event()).number)
		usleep(1000);	/* the alarm ends it */
	dapl_service_flush();
	assert_int_equal(told.number, DAT_IB_UD_CONNECTION_ERROR_EVENT);
	assert_int_equal(ep->failure.diag.cause.err, ETIMEDOUT);
	assert_int_equal(releases, 1);
	assert_int_equal(ep->obj.refs, refs);
}

UNIT_CASE(answer_ends_the_time_limit)
{
	assert_int_equal(connect_within(1000 * 1000000), DAT_SUCCESS);	/* us; longer than the test */
	assert_int_equal(ep->obj.refs, 3);	/* its own, the connection's, the timer's */
	establish(0);
	assert_int_equal(ep->obj.refs, 2);
	assert_int_equal(next_event().number, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
}

/* An upcall that was on its way when the peer was forgotten. */
UNIT_CASE(late_answer_leaves_no_address_handle)
{
	connect_peer();
	dapl_mutex_lock(&ep->lock);
	dapl_ud_disconnect(ep);
	dapl_mutex_unlock(&ep->lock);
	establish(0);
	assert_int_equal(ahs, 0);
	assert_int_equal(next_event().number, 0);
	dapl_up_failed(ep, CONNECTION(0), DAPL_CONN_REFUSED, NULL, 0);
	assert_int_equal(next_event().number, 0);
}

static DAT_RETURN accept_request(struct dapl_cr *cr)
{
	DAT_RETURN ret;

	dapl_mutex_lock(&ep->lock);
	ret = dapl_ud_accept(ep, cr, sizeof "yes", "yes");
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

UNIT_CASE(refused_accept_leaves_nothing)
{
	struct dapl_cr cr = { .conn = CONNECTION(0), .ud = true }, other = { .ud = true };
	int refs = ep->obj.refs;

	ep->cr = &other;
	assert_int_equal(DAT_GET_TYPE(accept_request(&cr)), DAT_INVALID_STATE);
	ep->cr = &cr;
	ep->state = DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
	accept_error = EMSGSIZE;
	assert_int_equal(accept_request(&cr), BAD_PARAM(3));
	accept_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(accept_request(&cr)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(ep->state, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	assert_ptr_equal(ep->cr, &cr);
	assert_null(ep->known_peers);
	assert_int_equal(ep->obj.refs, refs);
	ep->cr = NULL;
	ep->state = DAT_EP_STATE_UNCONNECTED;
}

/* --- freeing -------------------------------------------------------------------------------------------- */

static DAT_RETURN free_cm(struct core_ud_event *told) { return dapl_ud_cm_free(ep, told->context); }

/* In either order, and the peer is forgotten with the second. */
UNIT_CASE(connection_and_address_handle_are_freed)
{
	struct core_ud_event first = established_peer(0), second = established_peer(1);
	DAT_IB_ADDR_HANDLE ah = first.to;

	assert_int_equal(free_cm(&first), DAT_SUCCESS);
	assert_int_equal(releases, 1);
	assert_int_equal(send_to(1, 10, &ah), DAT_SUCCESS);	/* it needs no connection */
	assert_int_equal(dapl_ud_ah_free(ep, &first.to), DAT_SUCCESS);
	assert_null(first.to.ah);
	assert_int_equal(ahs, 1);
	assert_int_equal(send_to(1, 10, &ah), BAD_PARAM(4));
	assert_int_equal(dapl_ud_ah_free(ep, &ah), BAD_PARAM(2));
	assert_int_equal(free_cm(&first), BAD_PARAM(2));

	assert_int_equal(dapl_ud_ah_free(ep, &second.to), DAT_SUCCESS);
	assert_int_equal(releases, 1);
	assert_int_equal(free_cm(&second), DAT_SUCCESS);
	assert_int_equal(releases, 2);
	assert_null(ep->known_peers);
}

UNIT_CASE(connected_endpoint_has_nothing_to_free)
{
	struct core_ud_event told = established_peer(0);

	ep->is_ud = false;
	assert_int_equal(free_cm(&told), BAD_PARAM(1));
	assert_int_equal(dapl_ud_ah_free(ep, &told.to), BAD_PARAM(1));
	assert_int_equal(send_to(1, 10, &told.to), BAD_PARAM(1));
	ep->is_ud = true;
	assert_int_equal(dapl_ud_ah_free(ep, NULL), BAD_PARAM(2));
	assert_int_equal(ahs, 1);
}

UNIT_CASE(arguments_of_a_send_are_checked)
{
	struct core_ud_event told = established_peer(0);

	assert_int_equal(send_to(-1, 10, &told.to), BAD_PARAM(2));
	assert_int_equal(send_to(3, 10, &told.to), BAD_PARAM(2));
	assert_int_equal(dapl_ud_send(ep, 1, NULL, &told.to, (DAT_DTO_COOKIE){ .as_64 = 5 },
				      DAT_COMPLETION_DEFAULT_FLAG), BAD_PARAM(3));
	assert_int_equal(send_to(1, 10, NULL), BAD_PARAM(4));
	assert_int_equal(send_to(1, 10, &(DAT_IB_ADDR_HANDLE){ .ah = NULL }), BAD_PARAM(4));
	assert_int_equal(send_to(1, 10, &(DAT_IB_ADDR_HANDLE){ .ah = &handles[1] }), BAD_PARAM(4));
	assert_int_equal(DAT_GET_TYPE(send_to(1, 1501, &told.to)), DAT_LENGTH_ERROR);
	assert_int_equal(sends, 0);
	assert_int_equal(send_to(1, 1500, &told.to), DAT_SUCCESS);
}

UNIT_MAIN(NULL, NULL)
