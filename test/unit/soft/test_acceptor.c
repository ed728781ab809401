/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_acceptor.c - the passive side of a handshake: what its Reply says, which answers of core it refuses, and
 * how an initiator of this implementation gets from the Reply to the stream. foreign_handshake.c tests Requests
 * that are malformed. */
#include <poll.h>
#include <sys/ioctl.h>
#include "common/log.h"
#include "dapl/core/base/settings.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/handshake.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "test/unit/printed.h"
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/unit.h"

enum { DAPL = WIRE_MPA_S | WIRE_DAPL_REQUEST, LONG = WIRE_PDATA_MAX + 1 };

static const uint8_t zeros[LONG];

/* How often the device finds bytes that the TCP of its peer has not acknowledged. Atomic. */
static int unacknowledged;

int __real_ioctl(int fd, unsigned long request, int *value);
#pragma GCC visibility push(default)	/* the sanitizers' libraries call it, too */
int __wrap_ioctl(int fd, unsigned long request, int *value);
#pragma GCC visibility pop
int __wrap_ioctl(int fd, unsigned long request, int *value)
{
	int result = __real_ioctl(fd, request, value);

	if (__atomic_load_n(&unacknowledged, __ATOMIC_RELAXED)) {
		__atomic_sub_fetch(&unacknowledged, 1, __ATOMIC_RELAXED);
		*value = 1;
	}
	return result;
}

/* The peer sends a Request. Returns the connection of the upcall. */
static struct dapl_conn *request(uint8_t flags, uint8_t revision, const struct wire_mpa *enhanced)
{
	struct upcall up;

	upcalls_drop(NULL);
	dial();
	put_mpa(false, flags, revision, enhanced, "hi", 2);
	up = await(REQUEST);
	assert_int_equal(up.length, 2);
	return up.conn;
}

static void accept_with(struct dapl_conn *conn, const struct dapl_conn_params *with)
{
	OK(ops->accept(conn, with));
	we.conn = conn;
}

/* Returns the Reply, with *length bytes of private data behind its enhanced data. */
static struct wire_mpa reply(uint8_t *data, size_t *length)
{
	struct wire_mpa mpa = { 0 };

	assert_true(get_mpa(true, &mpa, data, length));
	return mpa;
}

static struct wire_mpa reply_to(uint8_t flags, uint8_t revision, const struct wire_mpa *enhanced)
{
	struct dapl_conn_params with = params(NULL);
	uint8_t data[600];
	size_t length;

	accept_with(request(flags, revision, enhanced), &with);
	return reply(data, &length);
}

static void expect_end_of_stream(void)
{
	char byte;

	assert_false(get(&byte, 1));
	close(peer_socket);
	peer_socket = -1;
}

static const char *cause(int err)
{
	struct dapl_conn_cause why;

	ops->explain(we.conn, &why);
	assert_int_equal(why.step, DAPL_STEP_READY);
	assert_int_equal(why.err, err);
	return why.text;
}

#define T(name) UNIT_TEST_WITH(name, set_up_device_alone, tear_down_foreign_peer)
#define DATAGRAMS(name) UNIT_TEST_WITH(name, set_up_datagrams, tear_down_datagrams)

/* --- the Reply ------------------------------------------------------------------------------------- */

T(reply_is_enhanced_if_the_request_is)
{
	struct wire_mpa mpa = reply_to(0, 2, NULL);

	assert_int_equal(mpa.revision, 2);
	assert_false(mpa.flags & WIRE_MPA_S);
	assert_int_equal(mpa.length, 0);
}

T(reads_stay_within_what_the_initiator_takes)
{
	static const struct { uint16_t taken, sent; } rows[] = { { 2, 2 }, { 9, 4 }, { WIRE_ORD_NONE, 4 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wire_mpa initiator = { .ird = rows[i].taken, .ord = 9 }, mpa;

		mpa = reply_to(WIRE_MPA_S, 2, &initiator);
		assert_int_equal(mpa.ord, rows[i].sent);
		assert_int_equal(mpa.ird, 4);
		foreign_peer_down();
		set_up_device_alone(state);
	}
}

T(first_frame_is_a_write_unless_a_read_is_asked_for)
{
	struct wire_mpa read = { .p2p = true, .p2p_read = true }, mpa = reply_to(WIRE_MPA_S, 2, &read);

	assert_true(mpa.p2p && mpa.p2p_read);
	assert_false(mpa.p2p_write || mpa.p2p_send);
}

T(device_that_wants_the_crc_gets_it)
{
	foreign_peer_down();
	setenv("DAPL_SOFT_CRC", "1", 1);
	set_up_device_alone(state);
	unsetenv("DAPL_SOFT_CRC");
	assert_true(reply_to(WIRE_MPA_S, 2, &four_reads).flags & WIRE_MPA_CRC);
}

T(request_in_pieces_is_reported_once)
{
	cut = 1;
	request(WIRE_MPA_S, 2, &four_reads);
	assert_int_equal(upcall_count(REQUEST, &we), 1);
}

/* --- answers of core that are refused ------------------------------------------------------------- */

T(private_data_beyond_the_limit_is_refused)
{
	struct dapl_conn *conn = request(WIRE_MPA_S, 2, &four_reads);
	struct dapl_conn_params with = params(NULL);
	uint8_t data[600];
	size_t length;

	with.pdata = zeros;
	with.pdata_len = LONG;
	assert_int_equal(ops->accept(conn, &with), EMSGSIZE);
	assert_int_equal(ops->reject(conn, true, zeros, LONG), EMSGSIZE);
	with.pdata_len = WIRE_PDATA_MAX;
	accept_with(conn, &with);
	reply(data, &length);
	assert_int_equal(length, WIRE_PDATA_MAX);
}

T(queue_pair_must_be_of_the_kind_of_the_request)
{
	struct dapl_conn *conn = request(WIRE_MPA_S, 2, &four_reads);
	struct dapl_conn_params with = params(NULL);

	with.ud = true;
	assert_int_equal(ops->accept(conn, &with), EINVAL);
	with.ud = false;
	accept_with(conn, &with);
}

/* The request waits for another answer. */
T(queue_pair_in_error_is_refused)
{
	struct dapl_conn *conn = request(WIRE_MPA_S, 2, &four_reads);
	struct dapl_conn_params with = params(NULL);
	struct pollfd in = { .fd = peer_socket, .events = POLLIN };

	OK(ops->error_qp(we.qp));
	assert_int_equal(ops->accept(conn, &with), EINVAL);
	assert_int_equal(poll(&in, 1, 0), 0);
	OK(ops->reset_qp(we.dev, we.qp));
	accept_with(conn, &with);
	await(ESTABLISHED);
}

T(request_is_accepted_once)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct dapl_conn_params with = params(NULL);

	reply_to(WIRE_MPA_S, 2, &four_reads);
	await(ESTABLISHED);
	attr.send_cq = attr.recv_cq = we.cq;
	OK(ops->create_qp(we.dev, we.pd, &attr, &with.qp));
	assert_int_equal(ops->accept(we.conn, &with), EINVAL);
	OK(ops->destroy_qp(with.qp));
	talk();
}

/* --- rejections ------------------------------------------------------------------------------------ */

T(consumer_rejects_with_its_data)
{
	struct dapl_conn *conn = request(WIRE_MPA_S, 2, &four_reads);
	struct wire_mpa mpa;
	uint8_t data[600];
	size_t length;

	OK(ops->reject(conn, true, "no", 2));
	mpa = reply(data, &length);
	assert_int_equal(mpa.flags, WIRE_MPA_S | WIRE_MPA_REJECT);
	assert_int_equal(length, 2);
	assert_memory_equal(data, "no", 2);
	expect_end_of_stream();
}

T(provider_rejects_peers_of_this_implementation_with_a_flag)
{
	struct dapl_conn *conn = request(DAPL, 2, &four_reads);
	uint8_t data[600];
	size_t length;

	OK(ops->reject(conn, false, "no", 2));
	assert_int_equal(reply(data, &length).flags,
			 WIRE_MPA_S | WIRE_MPA_REJECT | WIRE_DAPL_REPLY | WIRE_DAPL_REFUSED);
	assert_int_equal(length, 0);
	expect_end_of_stream();
}

T(provider_rejects_other_peers_by_the_end_of_the_stream)
{
	OK(ops->reject(request(WIRE_MPA_S, 2, &four_reads), false, NULL, 0));
	expect_end_of_stream();
}

T(request_without_a_listener_of_its_kind_is_refused)
{
	uint8_t data[600];
	size_t length;

	dial();
	put_mpa(false, DAPL | WIRE_DAPL_UD, 2, &four_reads, "", 0);
	assert_int_equal(reply(data, &length).flags,
			 WIRE_MPA_S | WIRE_MPA_REJECT | WIRE_DAPL_REPLY | WIRE_DAPL_REFUSED);
	expect_end_of_stream();
	assert_int_equal(upcall_count(REQUEST, NULL), 0);
}

/* --- what is printed ------------------------------------------------------------------------------- */

static void send_another_protocol(void *bytes)
{
	dial();
	put(bytes, strlen(bytes));
	shutdown(peer_socket, SHUT_WR);
	expect_end_of_stream();
}

/* A port scan or a health check is no failure, nor is a peer that ends within the header. */
T(only_a_whole_header_of_another_protocol_is_told)
{
	unsigned mask = log_mask;

	log_mask = 3;
	assert_string_equal(printed_by(send_another_protocol, ""), "");
	assert_string_equal(printed_by(send_another_protocol, "GET / HTTP/1.1"), "");
	assert_int_equal(times_in(printed_by(send_another_protocol, "GET / HTTP/1.1\r\n\r\n\r\n"),
				  "the peer speaks another protocol"), 1);
	log_mask = mask;
}

/* --- an initiator of this implementation -------------------------------------------------------- */

/* Up to its first frame. */
static void reply_to_dapl(void)
{
	struct dapl_conn_params with = params(NULL);
	struct wire_trailer trailer;
	struct wire_mpa mpa;
	uint8_t data[600];
	size_t length;

	with.pdata = "yes";
	with.pdata_len = 3;
	accept_with(request(DAPL, 2, &four_reads), &with);
	mpa = reply(data, &length);
	assert_int_equal(mpa.flags, WIRE_MPA_S | WIRE_DAPL_REPLY);
	assert_int_equal(length, WIRE_TRAILER + 3);
	assert_true(wire_trailer_get(data, &trailer));
	assert_memory_equal(data + WIRE_TRAILER, "yes", 3);
}

static enum soft_conn_state state_of_conn(void)
{
	enum soft_conn_state is;

	soft_progress_lock(we.dev);
	is = we.conn->state;
	soft_progress_unlock(we.dev);
	return is;
}

static bool waits_for_the_rest(void)
{
	bool waits;

	soft_progress_lock(we.dev);
	waits = we.conn->cm->wakes_late;
	soft_progress_unlock(we.dev);
	return waits;
}

T(first_frame_establishes_and_is_received)
{
	reply_to_dapl();
	post_recv(1, 0, 8);
	assert_int_equal(state_of_conn(), SOFT_WAIT_FIRST);
	assert_int_equal(upcall_count(ESTABLISHED, NULL), 0);
	put_segment(send_seg(1, 0, true), "x", 1);
	await(ESTABLISHED);
	completion(1, IBV_WC_SUCCESS);
	assert_string_equal(ops->carrier(we.conn), "tcp");
}

T(end_before_the_first_frame_is_a_failure)
{
	reply_to_dapl();
	shutdown(peer_socket, SHUT_WR);
	assert_int_equal(await(FAILED).failure, DAPL_CONN_REFUSED);
	assert_string_equal(cause(0), "the peer closed before its first frame");
}

T(reset_before_the_first_frame_is_told_as_such)
{
	struct linger reset = { 1, 0 };

	reply_to_dapl();
	setsockopt(peer_socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(peer_socket);
	peer_socket = -1;
	assert_int_equal(await(FAILED).failure, DAPL_CONN_REFUSED);
	assert_null(cause(ECONNRESET));
}

/* The wait is over at the deadline; the test sets it to now. */
T(initiator_that_stays_silent_times_out)
{
	bool limited;

	reply_to_dapl();
	soft_progress_lock(we.dev);
	limited = we.conn->cm->deadline_ns != 0;
	we.conn->cm->deadline_ns = 1;
	cm_sweep_within(we.dev, 0);
	soft_progress_unlock(we.dev);
	assert_true(limited);
	assert_int_equal(await(FAILED).failure, DAPL_CONN_TIMED_OUT);
	assert_null(cause(ETIMEDOUT));
}

/* The peer has not fetched the memory, so the frame belongs to the stream over TCP. */
T(frame_that_switches_to_rings_is_waited_for)
{
	uint8_t frame[SWITCH_LENGTH] = { 0 };

	handshake_switch_frame(frame);
	reply_to_dapl();
	put(frame, SWITCH_LENGTH - 1);
	for (int i = 0; i < 10000 && !waits_for_the_rest(); i++)
		usleep(1000);
	assert_true(waits_for_the_rest());
	assert_int_equal(state_of_conn(), SOFT_WAIT_FIRST);
	put(frame + SWITCH_LENGTH - 1, 1);
	await(ESTABLISHED);
	assert_false(waits_for_the_rest());
	assert_string_equal(ops->carrier(we.conn), "tcp");
}

T(frame_that_stays_a_part_breaks_the_connection)
{
	uint8_t frame[SWITCH_LENGTH] = { 0 };

	handshake_switch_frame(frame);
	reply_to_dapl();
	put(frame, SWITCH_LENGTH - 1);
	shutdown(peer_socket, SHUT_WR);
	await(ESTABLISHED);
	await(BROKEN);
}

/* --- datagrams -------------------------------------------------------------------------------------- */

static struct dapl_listener *ud_listener;
static struct ibv_qp *rc_qp;

UNIT_FIXTURE(set_up_datagrams)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_UD };

	assert_int_equal(set_up_device_alone(state), 0);
	attr.send_cq = attr.recv_cq = we.cq;
	rc_qp = we.qp;
	OK(ops->create_qp(we.dev, we.pd, &attr, &we.qp));
	OK(ops->listen(we.dev, NULL, &we.port, true, 8, &ud_listener, &ud_listener));
}

static int tear_down_datagrams(void **state)
{
	ops->unlisten(ud_listener);
	OK(ops->destroy_qp(rc_qp));
	return tear_down_foreign_peer(state);
}

static void accept_datagrams(struct wire_trailer *trailer)
{
	struct dapl_conn_params with = params(NULL);
	uint8_t data[600];
	size_t length;

	with.ud = true;
	accept_with(request(DAPL | WIRE_DAPL_UD, 2, &four_reads), &with);
	reply(data, &length);
	assert_int_equal(length, WIRE_TRAILER);
	assert_true(wire_trailer_get(data, trailer));
}

static void put_half(uint8_t version, size_t length)
{
	struct wire_trailer half = { .version = version, .qpn = 77, .qkey = 88, .udp_port = 99 };
	uint8_t bytes[WIRE_TRAILER];

	wire_trailer_put(bytes, &half);
	put(bytes, length);
}

DATAGRAMS(both_halves_make_an_association)
{
	struct wire_trailer trailer;
	struct upcall up;

	accept_datagrams(&trailer);
	assert_int_equal(trailer.qpn, we.qp->qp_num);
	cut = 10;
	put_half(WIRE_TRAILER_VERSION, WIRE_TRAILER);
	up = await(ESTABLISHED);
	assert_true(up.ud);
	assert_int_equal(up.peer.qpn, 77);
	assert_int_equal(up.peer.qkey, 88);
	OK(ops->destroy_ah(up.peer.ah));
	expect_end_of_stream();
}

DATAGRAMS(malformed_half_is_a_failure)
{
	struct wire_trailer trailer;

	accept_datagrams(&trailer);
	put_half(0, WIRE_TRAILER);
	assert_int_equal(await(FAILED).failure, DAPL_CONN_REFUSED);
	assert_string_equal(cause(0), "malformed datagram association");
}

DATAGRAMS(end_within_a_half_is_a_failure)
{
	struct wire_trailer trailer;

	accept_datagrams(&trailer);
	put_half(WIRE_TRAILER_VERSION, WIRE_TRAILER - 1);
	shutdown(peer_socket, SHUT_WR);
	assert_int_equal(await(FAILED).failure, DAPL_CONN_REFUSED);
	assert_string_equal(cause(0), "the peer closed before its half of the association");
}

/* --- an initiator of another implementation that stays silent ---------------------------------- */

/* What this side sends must not come together with the Reply. */
T(nothing_is_sent_before_the_reply_is_acknowledged)
{
	uint8_t ulpdu[65536];
	uint16_t length;

	__atomic_store_n(&unacknowledged, 2, __ATOMIC_RELAXED);
	reply_to(WIRE_MPA_S, 2, &four_reads);
	post(1, IBV_WR_SEND, 0, 10, 0, 0);
	assert_true(get_fpdu(ulpdu, &length));
	assert_int_equal(__atomic_load_n(&unacknowledged, __ATOMIC_RELAXED), 0);
	completion(1, IBV_WC_SUCCESS);
}

UNIT_FIXTURE(read_settings) { dapl_settings_read(); }

UNIT_MAIN(read_settings, NULL)
