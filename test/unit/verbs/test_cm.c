/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cm.c - the event channel of a device: which file gets an event, which requests are refused, which connections
 * get a notice, and what its end leaves. Listeners are in test_cm_listen.c. */
#include "common/address.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/verbs/acceptor.h"
#include "dapl/verbs/cm.h"
#include "dapl/verbs/conn.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/cm_channel.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int no_conn;			/* errno of hw_acceptor_from_request; 0: there is a connection */

int rdma_notify(struct rdma_cm_id *of, enum ibv_event_type event)
{
	assert_int_equal(event, IBV_EVENT_COMM_EST);
	assert_int_not_equal(conn->lock.state, MUTEX_FREE);	/* or the id may go */
	return try_on(of, "notify");
}

EXTEND(hw_acceptor_from_request)

int __wrap_hw_acceptor_from_request(struct dapl_device *on, struct rdma_cm_id *of, bool ud,
				    const struct hw_pdata *pdata, const struct rdma_cm_event *event,
				    struct dapl_conn **out)
{
	if (!no_conn)
		return __real_hw_acceptor_from_request(on, of, ud, pdata, event, out);
	listener.dead = true;		/* its end begins meanwhile */
	return no_conn;
}

/* How a request is refused. */
static const struct { enum hw_wire wire; const char *refused; } wires[] = {
	{ HW_WIRE_IB, "refuse" }, { HW_WIRE_IWARP, "reject" }, { HW_WIRE_UD, "reject" },
};

#define TEST(name) UNIT_TEST_WITH(name, channel_begin, sides_end)

/* --- events ------------------------------------------------------------------------------------------------- */

TEST(channel_that_cannot_be_watched_is_an_error)
{
	watch_result = ENOMEM;
	assert_int_equal(hw_cm_start(&dev), ENOMEM);
}

TEST(event_goes_to_what_its_id_belongs_to)
{
	static struct dapl_conn connection = { .target.kind = CM_CONN };
	static struct cm_target membership = { .kind = CM_MEMBERSHIP };

	id.context = &connection.target;
	event_comes(RDMA_CM_EVENT_ESTABLISHED, 0);
	read_channel();
	assert_ptr_equal(handler, &connection);
	id.context = &membership;
	event_comes(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	read_channel();
	assert_ptr_equal(handler, &membership);
	assert_int_equal(handled, 2);
	id.context = &listener.target;		/* means nothing to one */
	event_comes(RDMA_CM_EVENT_ADDR_CHANGE, 0);
	read_channel();
	assert_int_equal(handled, 2);
	assert_int_equal(acked, 3);
	left_is("");
}

/* A handler may destroy the id, which waits for the acknowledgement. */
TEST(event_is_acknowledged_before_it_is_handled)
{
	static struct dapl_conn connection = { .target.kind = CM_CONN };
	static const size_t lengths[] = { 0, 1, 255 };

	for (size_t i = 0; i < 2 * COUNT(lengths); i++) {
		size_t length = lengths[i / 2];

		channel_begin_on(state, i % 2 ? HW_WIRE_UD : HW_WIRE_IB);
		id.context = &connection.target;
		memset(arrived, 'd', length);
		event_comes(RDMA_CM_EVENT_ESTABLISHED, length);
		read_channel();
		assert_int_equal(acked, 1);
		assert_int_equal(handled, 1);
		assert_ptr_equal(event_told.id, &id);
		assert_int_equal(event_told.event, RDMA_CM_EVENT_ESTABLISHED);
		assert_int_equal(event_told.status, STATUS);
		assert_int_equal(length_told, length);
		for (size_t at = 0; at < length; at++)
			assert_int_equal(bytes_told[at], 'd');
	}
}

TEST(length_without_data_is_none)
{
	static struct dapl_conn connection = { .target.kind = CM_CONN };

	id.context = &connection.target;
	event_comes(RDMA_CM_EVENT_REJECTED, 9);
	queue[0].param.conn.private_data = NULL;
	length_told = 1;
	read_channel();
	assert_int_equal(handled, 1);
	assert_int_equal(length_told, 0);
}

/* The service thread has other work, too. */
TEST(busy_channel_is_read_in_parts)
{
	static struct dapl_conn connection = { .target.kind = CM_CONN };
	int reads = 0;

	id.context = &connection.target;
	for (int i = 0; i < MANY_EVENTS; i++) {
		event_comes(RDMA_CM_EVENT_ESTABLISHED, 0);
		queue[i].status = i;
	}
	for (int before = 0; handled < MANY_EVENTS; before = handled, reads++) {
		read_channel();
		assert_true(handled > before);
		assert_int_equal(event_told.status, handled - 1);
	}
	assert_true(reads > 1);
	read_channel();
	assert_int_equal(acked, MANY_EVENTS);
}

static void print_unknown(void *arg)
{
	event_comes((enum rdma_cm_event_type)(RDMA_CM_EVENT_TIMEWAIT_EXIT + 1), 0);
	queue[queued - 1].param.conn.private_data = (void *)1;	/* other members of the union have these bytes */
	queue[queued - 1].param.conn.private_data_len = 200;
	event_comes(RDMA_CM_EVENT_ESTABLISHED, 0);
	read_channel();
}

TEST(event_that_is_not_known_is_reported_and_left_alone)
{
	static struct dapl_conn connection = { .target.kind = CM_CONN };
	char wanted[100];

	log_init("t", NULL, NULL, NULL, 3);
	id.context = &connection.target;
	snprintf(dev.attr.device, sizeof dev.attr.device, "fake0");
	snprintf(wanted, sizeof wanted, "t: fake0: connection event %d is not known to this provider, and is ignored\n",
		 RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);
	assert_string_equal(printed_by(print_unknown, NULL), wanted);
	assert_int_equal(acked, 2);
	assert_int_equal(handled, 1);
	assert_int_equal(event_told.event, RDMA_CM_EVENT_ESTABLISHED);
}

static void print_removals(void *arg)
{
	event_comes(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	event_comes(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	read_channel();
}

TEST(removal_of_the_device_is_told_once)
{
	static struct dapl_conn connection = { .target.kind = CM_CONN };
	struct cm_target *const targets[] = { &connection.target, &listener.target };
	const char *text;

	log_init("t", NULL, NULL, NULL, 3);
	for (size_t i = 0; i < COUNT(targets); i++) {
		channel_begin_on(state, HW_WIRE_IB);
		id.context = targets[i];
		text = printed_by(print_removals, NULL);
		assert_int_equal(times_in(text, "\n"), 1);
		assert_int_equal(times_in(text, "dev0 port 2: the device was removed"), 1);
		left_is("up:async");
		assert_int_equal(handled, i == 0 ? 2 : 0);	/* its connections learn it besides */
	}
}

/* --- requests ------------------------------------------------------------------------------------------------ */

TEST(request_is_handed_up_with_its_connection)
{
	for (size_t i = 0; i < COUNT(wires); i++) {
		channel_begin_on(state, wires[i].wire);
		request_comes();
		read_channel();
		left_is("id up:request");
		assert_ptr_equal(conn->id, &id);
		assert_int_equal(conn->wire, wires[i].wire);
		assert_int_equal(conn->peer_self.qpn, listener.ud ? PEER_QP_NUMBER : 0);
		assert_int_equal(request_told.ud, listener.ud);
		assert_int_equal(length_told, 5);
		assert_memory_equal(bytes_told, "hello", 5);
		assert_int_equal(address_port((struct sockaddr *)&request_told.local), 1);
		assert_int_equal(address_port((struct sockaddr *)&request_told.remote), 2);
		assert_int_equal(handled, 0);
		event_comes(RDMA_CM_EVENT_ESTABLISHED, 0);	/* what comes next is the connection's */
		read_channel();
		assert_ptr_equal(handler, conn);
	}
}

/* Another thread that destroys the id waits for the acknowledgement only, and for the handler before it frees the
 * listener. */
static void listener_ends(void)
{
	listener.dead = true;
	memset(&listen_id, 0xee, sizeof listen_id);
}

TEST(request_without_memory_or_to_a_listener_that_ends_is_refused)
{
	enum { NO_MEMORY, ENDED, ENDS, REASONS };

	for (size_t i = 0; i < COUNT(wires) * REASONS; i++) {
		channel_begin_on(state, wires[i / REASONS].wire);
		request_comes();
		no_memory = i % REASONS == NO_MEMORY;
		listener.dead = i % REASONS == ENDED;
		if (i % REASONS == ENDS)
			during_ack = listener_ends;
		read_channel();
		no_memory = false;
		left_is(wires[i / REASONS].refused);
		assert_null(dev.conns);
	}
}

/* One that cannot listen is freed without waiting for the handler. */
static void listener_fails(void)
{
	memset(&id, 0xee, sizeof id);
	listener.target.kind = CM_CONN;
}

TEST(listener_may_fail_once_its_event_is_acknowledged)
{
	id.context = &listener.target;
	event_comes(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	during_ack = listener_fails;
	read_channel();
	left_is("up:async");
	assert_int_equal(handled, 0);
}

/* It could not be answered. */
TEST(datagram_peer_that_does_not_say_where_it_is_is_refused)
{
	channel_begin_on(state, HW_WIRE_UD);
	ids = 1;
	memcpy(arrived, "hello", 5);
	event_comes(RDMA_CM_EVENT_CONNECT_REQUEST, 5);
	read_channel();
	left_is("reject");
	assert_null(dev.conns);
}

/* It stays ready, so it must leave the set of the service thread. */
TEST(channel_that_cannot_be_read_is_not_watched)
{
	static const struct { int err; const char *steps; } rows[] = { { EAGAIN, "" }, { EINTR, "" }, { ENOMEM, "" },
		{ EIO, "unwatch" }, { ENODEV, "unwatch" } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		channel_begin_on(state, HW_WIRE_UD);
		channel_error = rows[i].err;
		read_channel();
		channel_error = 0;
		left_is(rows[i].steps);
	}
}

static void refuse_and_print(void *arg)
{
	trace_set_level(TRC_LVL_ERROR);
	read_channel();
	trace_set_level(TRC_LVL_OFF);
}

TEST(trace_says_why_a_request_is_refused)
{
	static const struct { bool ended, silent; int no_conn; const char *why; } cases[] = {
		{ true, false, 0, "no listener any more" },
		{ false, true, 0, "it does not say where its endpoint is" },
		{ false, false, ENOMEM, NULL },
		{ false, false, EMFILE, NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char expected[128];

		channel_begin_on(state, HW_WIRE_UD);
		request_comes();
		if (cases[i].silent)
			memset(arrived, 0, sizeof arrived);
		listener.dead = cases[i].ended;
		no_conn = cases[i].no_conn;
		snprintf(expected, sizeof expected, "request from 10.0.0.2 port 2 refused: %s\n",
			 cases[i].why ? cases[i].why : strerror(cases[i].no_conn));
		assert_int_equal(times_in(printed_by(refuse_and_print, NULL), expected), 1);
		no_conn = 0;
	}
	trace_fini();
}

/* --- connections ---------------------------------------------------------------------------------------------- */

static void new_connection(bool has_id)
{
	conn = hw_conn_new(&dev, false, CONN_REQUESTED);
	assert_non_null(conn);
	if (has_id) {
		conn->id = &id;
		ids = 1;
	}
}

/* The peer's last message of the handshake may be lost. */
TEST(first_data_establish_an_accepted_connection)
{
	static struct ibv_qp other;

	new_connection(false);
	new_connection(true);
	conn->qp = &qp;
	for (int s = 0; s < CONN_STATES; s++) {
		conn->state = (enum conn_state)s;
		hw_cm_notify(&dev, &qp);
		left_is(s == CONN_ACCEPTING ? "id notify" : "id");
	}
	conn->state = CONN_ACCEPTING;
	hw_cm_notify(&dev, &other);
	conn->qp = NULL;		/* released */
	hw_cm_notify(&dev, &qp);
	left_is("id");
	assert_int_equal(conn->lock.state, MUTEX_FREE);
	assert_int_equal(dev.lock.state, MUTEX_FREE);
}

TEST(every_connection_is_asked_for_its_queue_pair)
{
	struct dapl_conn *first;

	new_connection(true);
	first = conn;
	first->qp = &qp;
	first->state = CONN_ACCEPTING;
	new_connection(false);		/* before it in the list */
	conn = first;
	hw_cm_notify(&dev, &qp);
	left_is("id notify");
}

TEST(close_destroys_the_connections_on_the_service_thread)
{
	new_connection(true);
	new_connection(false);
	new_connection(false);
	hw_cm_stop(&dev);
	left_is("flush flush unwatch");
	assert_null(dev.conns);
}

TEST(close_waits_for_no_peer)
{
	new_connection(true);
	conn->state = CONN_DISCONNECTING;
	conn->owner = &owner;
	hw_conn_release(conn);
	hw_cm_stop(&dev);
	left_is("flush flush unwatch up:released");
	assert_null(dev.conns);
}

UNIT_MAIN(NULL, NULL)
