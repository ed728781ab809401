/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn.c - what the device reports of an endpoint's connection: which event the consumer gets, with which data
 * and cause, and which reports are ignored. Reports of the dequeuing side: test_conn_hooks.c. */
#include "dapl/core/conn/conn_step.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/ud.h"
#include "test/unit/core/core_conn.h"
#include "test/unit/core/core_ud.h"
#include "test/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { LOCAL_PORT = 3, REMOTE_PORT = 4,	/* that the device reports */
	NEVER = 1000 * 1000000 };	/* us; longer than any test */

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	*(struct sockaddr_in *)address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
}

static int port_of(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static void never(struct dapl_timer *timer) { fail_msg("fired"); }

static void arm(void)
{
	dapl_mutex_lock(&ep->lock);
	dapl_ep_arm(ep, NEVER, never);
	dapl_mutex_unlock(&ep->lock);
}

/* --- established -------------------------------------------------------------------------------------------- */

static void established_info(struct dapl_established *info, const char *data)
{
	*info = (struct dapl_established){ .pdata = data, .pdata_len = strlen(data) };
	set_port(&info->local, LOCAL_PORT);
	set_port(&info->remote, REMOTE_PORT);
}

#define TEST(name) UNIT_TEST_WITH(name, core_conn_open, core_conn_close)
#define DATAGRAMS(name) UNIT_TEST_WITH(name, core_conn_open_datagrams, core_conn_close)

/* CONN-1, 3 */
TEST(initiator_gets_the_data_and_addresses_of_the_connection)
{
	struct dapl_established info;
	char data[] = "welcome";

	core_conn_begin(EP_DO_CONNECT);
	established_info(&info, data);
	dapl_up_established(ep, core_connection, &info);
	memset(data, 'x', sizeof data);		/* valid during the upcall */
	assert_int_equal(ep->state, DAT_EP_STATE_CONNECTED);
	core_conn_event_is(DAT_CONNECTION_EVENT_ESTABLISHED, "welcome", 7);
	assert_int_equal(port_of(&ep->local), LOCAL_PORT);
	assert_int_equal(port_of(&ep->remote), REMOTE_PORT);
	assert_int_equal(core_conn.flushes + core_conn.disconnects + core_conn.releases, 0);
	core_conn_counted(DCNT_IA_CM_ACTIVE_EST);
}

TEST(address_that_the_device_does_not_know_stays)
{
	core_conn_begin_connected();
	assert_int_equal(port_of(&ep->local), CORE_LOCAL_PORT);
	assert_int_equal(port_of(&ep->remote), CORE_REMOTE_PORT);
}

TEST(establishment_stops_the_time_limit)
{
	core_conn_begin(EP_DO_CONNECT);
	arm();
	core_conn_establish();
	assert_int_equal(ep->timer.due_ns, 0);
	core_conn_event_is(DAT_CONNECTION_EVENT_ESTABLISHED, NULL, 0);
}

/* --- failed --------------------------------------------------------------------------------------------------- */

static const struct {
	enum dapl_conn_failure why;
	int event;			/* at the initiator */
	unsigned counter;
} failures[] = {
	{ DAPL_CONN_REJECTED, DAT_CONNECTION_EVENT_PEER_REJECTED, DCNT_IA_CM_USER_REJ_RX },
	{ DAPL_CONN_REFUSED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DCNT_IA_CM_ERR_REFUSED },
	{ DAPL_CONN_UNREACHABLE, DAT_CONNECTION_EVENT_UNREACHABLE, DCNT_IA_CM_ERR_TIMEOUT },
	{ DAPL_CONN_TIMED_OUT, DAT_CONNECTION_EVENT_TIMED_OUT, DCNT_IA_CM_ERR_TIMEOUT },
};

/* CONN-11, 12 */
TEST(initiator_learns_why_it_failed)
{
	for (size_t i = 0; i < COUNT(failures); i++) {
		bool rejected = failures[i].why == DAPL_CONN_REJECTED;

		if (i)
			core_conn_again(state);
		core_conn_begin(EP_DO_CONNECT);
		memcpy(ep->pdata, "before", ep->pdata_len = 6);
		core_conn.known_error = EHOSTDOWN;
		dapl_up_failed(ep, core_connection, failures[i].why, "sorry", 5);
		core_conn_is_dropped();
		core_conn_event_is(failures[i].event, "sorry", rejected ? 5 : 0);
		assert_int_equal(ep->pdata_len, rejected ? 5 : 0);
		assert_int_equal(ep->failure.event, failures[i].event);
		assert_int_equal(ep->failure.diag.cause.err, EHOSTDOWN);
		assert_int_equal(ep->failure.diag.cause.step, DAPL_STEP_REPLY);
		core_conn_counted(failures[i].counter);
	}
}

TEST(failure_stops_the_time_limit)
{
	core_conn_begin(EP_DO_CONNECT);
	arm();
	dapl_up_failed(ep, core_connection, DAPL_CONN_REFUSED, NULL, 0);
	assert_int_equal(ep->timer.due_ns, 0);
	core_conn_event_is(DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
}

/* dat_ep_free drops the connection. */
TEST(failure_of_a_freed_endpoint_only_stops_its_time_limit)
{
	uint32_t magic = ep->obj.magic;

	core_conn_begin(EP_DO_CONNECT);
	arm();
	ep->obj.magic = 0;
	dapl_up_failed(ep, core_connection, DAPL_CONN_REFUSED, NULL, 0);
	ep->obj.magic = magic;
	core_conn_is_unchanged(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	assert_int_equal(ep->timer.due_ns, 0);
	assert_ptr_equal(ep->conn, core_connection);
}

TEST(private_data_are_cut_to_their_room)
{
	static char data[DAPL_CONN_PDATA_MAX + 1];
	struct dapl_established info;

	memset(data, 'd', sizeof data);
	for (int rejected = 0; rejected < 2; rejected++)
		for (int more = -1; more <= 1; more++) {
			int length = DAPL_CONN_PDATA_MAX + more;

			core_conn_again(state);
			core_conn_begin(EP_DO_CONNECT);
			if (rejected) {
				dapl_up_failed(ep, core_connection, DAPL_CONN_REJECTED, data, (size_t)length);
			} else {
				info = (struct dapl_established){ .pdata = data, .pdata_len = (size_t)length };
				dapl_up_established(ep, core_connection, &info);
			}
			core_conn_event_is(rejected ? DAT_CONNECTION_EVENT_PEER_REJECTED :
					   DAT_CONNECTION_EVENT_ESTABLISHED, data,
				  more > 0 ? DAPL_CONN_PDATA_MAX : length);
			assert_int_equal(*(ep->pdata + sizeof ep->pdata - 1), more < 0 ? 0 : 'd');
		}
}

/* --- disconnected ------------------------------------------------------------------------------------------------ */

/* CONN-36 */
TEST(peer_that_is_lost_breaks_the_connection)
{
	core_conn_begin_connected();
	core_conn.known_error = ETIMEDOUT;
	dapl_up_disconnected(ep, core_connection, false);
	core_conn_is_dropped();
	core_conn_event_is(DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	assert_int_equal(ep->failure.event, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(ep->failure.diag.cause.err, ETIMEDOUT);
	core_conn_counted(DCNT_IA_CM_ERR_RESET);
}

TEST(requests_are_there_until_their_completions_are_taken)
{
	static char was;

	core_conn_begin_connected();
	assert_false(dapl_up_has_requests(ep, core_connection));
	ep->sq.head++;
	assert_true(dapl_up_has_requests(ep, core_connection));
	assert_false(dapl_up_has_requests(ep, (struct dapl_conn *)&was));
	ep->sq.tail++;
	assert_false(dapl_up_has_requests(ep, core_connection));
	ep->sq.failed = true;
	assert_true(dapl_up_has_requests(ep, core_connection));
}

/* The line about a pending connection says that it was pending, unless the device has a cause. There is no
 * line for a lost peer. */
TEST(pending_connection_fails_because_the_peer_disconnected)
{
	static const struct { bool orderly; int known; const char *text; } cases[] = {
		{ true, 0, "the peer disconnected" }, { true, ECONNRESET, NULL }, { false, 0, NULL },
		{ false, ECONNRESET, NULL },
	};

	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		const struct dapl_conn_cause *cause;

		if (i)
			core_conn_again(state);
		core_conn_begin(i % 2 ? EP_DO_CONNECT : EP_DO_ACCEPT);
		core_conn.known_error = cases[i / 2].known;
		dapl_up_disconnected(ep, core_connection, cases[i / 2].orderly);
		core_conn_is_dropped();
		core_conn_event_is(i % 2 ? DAT_CONNECTION_EVENT_NON_PEER_REJECTED :
				   DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR,
			  NULL, 0);
		cause = &ep->failure.diag.cause;
		assert_int_equal(cause->err, core_conn.known_error);
		assert_int_equal(cause->code_kind, DAPL_CODE_NONE);
		assert_int_equal(cause->code, 0);
		if (cases[i / 2].text)
			assert_string_equal(cause->text, cases[i / 2].text);
		else
			assert_null(cause->text);
	}
}

/* --- connections that are not the endpoint's -------------------------------------------------------------------- */

/* Upcalls were under way when the endpoint dropped it. Now there is no connection, or another one. CONN-27. */
TEST(reports_of_a_dropped_connection_are_ignored)
{
	static char was;
	struct dapl_conn *const dropped = (struct dapl_conn *)&was;
	struct dapl_established info;
	DAT_EP_STATE before;

	established_info(&info, "welcome");
	for (int has_one = 0; has_one < 2; has_one++) {
		if (has_one)
			core_conn_begin(EP_DO_CONNECT);
		arm();
		before = ep->state;
		memcpy(ep->pdata, "before", ep->pdata_len = 6);
		dapl_up_established(ep, dropped, &info);
		for (size_t i = 0; i < COUNT(failures); i++)
			dapl_up_failed(ep, dropped, failures[i].why, "sorry", 5);
		dapl_up_disconnected(ep, dropped, true);
		dapl_up_disconnected(ep, dropped, false);
		core_conn_is_unchanged(before);
		assert_memory_equal(ep->pdata, "before", 6);
		assert_int_equal(ep->pdata_len, 6);
		assert_int_not_equal(port_of(&ep->local), LOCAL_PORT);
		assert_int_not_equal(port_of(&ep->remote), REMOTE_PORT);
		assert_ptr_equal(ep->conn, has_one ? core_connection : NULL);
		assert_int_not_equal(ep->timer.due_ns, 0);
		core_conn_counted(CORE_NO_COUNTER);
		dapl_mutex_lock(&ep->lock);
		dapl_ep_disarm(ep);
		dapl_mutex_unlock(&ep->lock);
	}
}

TEST(connection_holds_its_endpoint_until_it_is_released)
{
	struct dapl_ep *freed = ep;

	core_conn_begin_connected();
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)freed), DAT_SUCCESS);
	assert_int_equal(core_conn.releases, 1);
	assert_int_equal(freed->obj.refs, 1);
	dapl_up_established(freed, core_connection, &(struct dapl_established){ .pdata = NULL });
	dapl_up_disconnected(freed, core_connection, false);
	dapl_up_released(freed);
	assert_int_equal(freed->obj.refs, 0);
	ep = core_objects_ep(NULL, NULL);	/* for core_conn_close */
	core_conn.made = 0;
	core_conn.releases = 0;
}

/* --- datagrams ---------------------------------------------------------------------------------------------------- */

static int note_connect(const struct dapl_conn_params *params, struct dapl_conn **conn)
{
	assert_ptr_equal(params->owner, ep);
	*conn = core_connection;
	core_conn.made++;
	return 0;
}

static void connect_peer(void)
{
	struct sockaddr_storage to = { 0 };

	set_port(&to, CORE_REMOTE_PORT);
	core_device.connect = note_connect;
	dapl_mutex_lock(&ep->lock);
	assert_int_equal(dapl_ud_connect(ep, (struct sockaddr *)&to, DAT_TIMEOUT_INFINITE, 0, NULL), DAT_SUCCESS);
	dapl_mutex_unlock(&ep->lock);
	memset(core_ia->counters, 0, sizeof core_ia->counters);
}

static void establish_peer(void)
{
	static struct ibv_ah handle;
	const struct dapl_ud_peer to = { .ah = &handle };
	struct dapl_established info;
	struct core_ud_event event;

	connect_peer();
	established_info(&info, "welcome");
	info.ud = &to;
	dapl_up_established(ep, core_connection, &info);
	event = core_ud_next_event(ep);
	assert_int_equal(event.number, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(event.type, DAT_IB_UD_REMOTE_AH);
	assert_ptr_equal(event.to.ah, &handle);
	assert_string_equal(event.pdata, "welcome");
}

/* One of many peers is no connection that could end. */
DATAGRAMS(peer_of_a_datagram_endpoint_does_not_disconnect)
{
	establish_peer();
	dapl_up_disconnected(ep, core_connection, true);
	dapl_up_disconnected(ep, core_connection, false);
	core_conn_is_unchanged(DAT_EP_STATE_CONNECTED);
	dapl_up_disconnected(ep, NULL, false);		/* ep->conn is that of endpoints with one peer */
	core_conn_is_unchanged(DAT_EP_STATE_CONNECTED);
	core_conn_counted(DCNT_IA_CM_AH_RESOLVED);
}

UNIT_MAIN(NULL, NULL)
