/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_initiator.c - the active side of a handshake: which calls and Replies are refused and with what cause, when
 * MPA revision 1 is tried, and what becomes of a connection that waits for shared memory. foreign_handshake.c and
 * test_shm_fallback.c have the rest. */
#include <poll.h>
#include "dapl/core/base/settings.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/attach_socket.h"
#include "test/unit/printed.h"
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/unit.h"

enum { DAPL = WIRE_MPA_S | WIRE_DAPL_REPLY, LONG = WIRE_PDATA_MAX + 1 };

static struct sockaddr_in acceptor;
static int listener;
static uint8_t data[600];	/* private data of the last Request */
static size_t length;
static int connect_err;		/* errno of connect(2); 0: the kernel's */

EXTEND(connect)
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	if (!connect_err)
		return __real_connect(fd, to, size);
	errno = connect_err;
	return -1;
}

UNIT_FIXTURE(set_up)
{
	reset_foreign_peer(false);
	open_device_end();
	listener = listen_for_device(&acceptor);
	peer_socket = -1;
}

UNIT_FIXTURE(tear_down)
{
	close(listener);
	foreign_peer_down();
}

static void start(const struct dapl_conn_params *with)
{
	upcalls_drop(NULL);
	OK(ops->connect(we.dev, with, &we.conn));
}

static struct wire_mpa next_request(void)
{
	struct wire_mpa mpa = { 0 };

	peer_socket = accept(listener, NULL, NULL);
	assert_true(get_mpa(false, &mpa, data, &length));
	return mpa;
}

/* The device connects. Returns its Request. */
static struct wire_mpa request(void)
{
	struct dapl_conn_params with = params(&acceptor);

	with.pdata = "hello";
	with.pdata_len = 5;
	start(&with);
	return next_request();
}

static void use_datagram_queue_pair(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_UD };

	attr.send_cq = attr.recv_cq = we.cq;
	OK(ops->destroy_qp(we.qp));
	OK(ops->create_qp(we.dev, we.pd, &attr, &we.qp));
}

static void request_datagrams(void)
{
	struct dapl_conn_params with;

	use_datagram_queue_pair();
	with = params(&acceptor);
	with.ud = true;
	start(&with);
	assert_int_equal(next_request().flags, WIRE_MPA_S | WIRE_DAPL_REQUEST | WIRE_DAPL_UD);
}

static void expect_failure(enum dapl_conn_failure why, int err, const char *text)
{
	struct dapl_conn_cause cause;

	assert_int_equal(await(FAILED).failure, why);
	ops->explain(we.conn, &cause);
	assert_int_equal(cause.err, err);
	if (text)
		assert_string_equal(cause.text, text);
	else
		assert_null(cause.text);
}

/* Releases the connection that has failed, and has a queue pair for the next. */
static void again(void)
{
	close(peer_socket);
	peer_socket = -1;
	restart_device_end();
	we.conn = NULL;
}

/* The last bytes of the Reply may be missing. */
static void put_trailer_reply(uint8_t version, const uint8_t token[16], unsigned missing)
{
	struct wire_trailer trailer = { .version = version, .max_ulpdu = 4096, .qpn = 77, .qkey = 88,
					.udp_port = 99 };
	uint8_t bytes[WIRE_TRAILER + 3];

	if (token)
		memcpy(trailer.token, token, sizeof trailer.token);
	wire_trailer_put(bytes, &trailer);
	memcpy(bytes + WIRE_TRAILER, "yes", 3);
	put_mpa(true, DAPL, 2, &four_reads, bytes, sizeof bytes - missing);
}

/* The deadline, which the test sets to now. Returns false if there was none. */
static bool expire(void)
{
	bool limited;

	soft_progress_lock(we.dev);
	limited = we.conn->cm->deadline_ns != 0;
	we.conn->cm->deadline_ns = 1;
	cm_sweep_within(we.dev, 0);
	soft_progress_unlock(we.dev);
	return limited;
}

static uint64_t deadline_ns(void)
{
	uint64_t deadline;

	soft_progress_lock(we.dev);
	deadline = we.conn->cm->deadline_ns;
	soft_progress_unlock(we.dev);
	return deadline;
}

static struct dapl_conn copy_of_conn(void)
{
	struct dapl_conn copy;

	soft_progress_lock(we.dev);
	copy = *we.conn;
	soft_progress_unlock(we.dev);
	return copy;
}

/* --- the call -------------------------------------------------------------------------------------- */

UNIT_CASE(private_data_beyond_the_limit_is_refused)
{
	static const uint8_t zeros[LONG];
	struct dapl_conn_params with = params(&acceptor);

	with.pdata = zeros;
	with.pdata_len = LONG;
	assert_int_equal(ops->connect(we.dev, &with, &we.conn), EMSGSIZE);
	with.pdata_len = WIRE_PDATA_MAX;
	start(&with);
	next_request();
	assert_int_equal(length, WIRE_PDATA_MAX);
}

UNIT_CASE(queue_pair_with_a_connection_is_refused)
{
	struct dapl_conn_params with = params(&acceptor);
	struct dapl_conn *second = NULL;

	request();
	assert_int_equal(ops->connect(we.dev, &with, &second), EINVAL);
	assert_null(second);
	put_mpa(true, WIRE_MPA_S, 2, &four_reads, "", 0);
	await(ESTABLISHED);
}

UNIT_CASE(each_error_of_tcp_has_its_kind)
{
	static const struct { int err; enum dapl_conn_failure why; } rows[] = {
		{ ETIMEDOUT, DAPL_CONN_TIMED_OUT }, { ECONNREFUSED, DAPL_CONN_REFUSED },
		{ ENETUNREACH, DAPL_CONN_UNREACHABLE }, { EHOSTUNREACH, DAPL_CONN_UNREACHABLE },
		{ EADDRNOTAVAIL, DAPL_CONN_UNREACHABLE }, { EPERM, DAPL_CONN_UNREACHABLE },
		{ ENOBUFS, DAPL_CONN_REFUSED },
	};
	struct dapl_conn_params with;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		with = params(&acceptor);
		connect_err = rows[i].err;
		start(&with);
		connect_err = 0;
		expect_failure(rows[i].why, rows[i].err, NULL);
		again();
	}
}

UNIT_CASE(device_that_wants_the_crc_says_so)
{
	tear_down(state);
	setenv("DAPL_SOFT_CRC", "1", 1);
	set_up(state);
	unsetenv("DAPL_SOFT_CRC");
	assert_true(request().flags & WIRE_MPA_CRC);
	put_mpa(true, WIRE_MPA_S, 2, &four_reads, "", 0);
	await(ESTABLISHED);
	assert_string_equal(ops->carrier(we.conn), "tcp+crc");
}

/* --- Replies --------------------------------------------------------------------------------------- */

UNIT_CASE(reads_stay_within_what_the_acceptor_takes)
{
	static const uint16_t taken[] = { 2, 9, WIRE_ORD_NONE }, used[] = { 2, 4, 4 };

	for (int i = 0; i < 3; i++) {
		request();
		put_mpa(true, WIRE_MPA_S, 2, &(struct wire_mpa){ .ird = taken[i], .ord = 9 }, "", 0);
		await(ESTABLISHED);
		assert_int_equal(copy_of_conn().stream.reads_out, used[i]);
		again();
	}
}

UNIT_CASE(each_wrong_reply_has_its_cause)
{
	request();
	put_mpa(true, WIRE_MPA_S, 2, NULL, "no", 2);
	expect_failure(DAPL_CONN_REFUSED, 0, "MPA reply with a wrong length");
	again();
	for (int revision = 0; revision <= 3; revision += 3) {
		request();
		put_mpa(true, 0, revision, NULL, "", 0);
		expect_failure(DAPL_CONN_REFUSED, 0, "MPA reply of an unknown revision");
		again();
	}
	request();
	put("HTTP/1.1 400 Bad Req", WIRE_MPA_HEADER);
	expect_failure(DAPL_CONN_REFUSED, 0, "malformed MPA reply: the peer speaks another protocol");
	again();
	request();
	put_mpa(true, WIRE_MPA_S | WIRE_MPA_MARKERS, 2, &four_reads, "", 0);
	expect_failure(DAPL_CONN_REFUSED, 0, "the peer wants MPA markers");
	again();
	request();
	put_trailer_reply(0, NULL, 0);
	expect_failure(DAPL_CONN_REFUSED, 0, "malformed MPA reply: trailer");
	again();
	request();
	put_trailer_reply(WIRE_TRAILER_VERSION, NULL, 4);
	expect_failure(DAPL_CONN_REFUSED, 0, "malformed MPA reply: trailer");
}

UNIT_CASE(reset_is_told_as_such)
{
	struct linger reset = { 1, 0 };

	request();
	setsockopt(peer_socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(peer_socket);
	peer_socket = -1;
	expect_failure(DAPL_CONN_REFUSED, ECONNRESET, NULL);
}

/* The flag of the provider has a meaning between peers of this implementation only. */
UNIT_CASE(provider_and_program_reject_differently)
{
	request();
	put_mpa(true, DAPL | WIRE_MPA_REJECT | WIRE_DAPL_REFUSED, 2, &four_reads, "", 0);
	expect_failure(DAPL_CONN_REFUSED, 0, "refused by the peer's provider");
	again();
	request();
	put_mpa(true, WIRE_MPA_S | WIRE_MPA_REJECT | WIRE_DAPL_REFUSED, 2, &four_reads, "", 0);
	expect_failure(DAPL_CONN_REJECTED, 0, "rejected by the peer's program");
}

/* siw returns the reserved bits of the Request, and swaps the bits of a Terminate. */
UNIT_CASE(peer_that_returns_the_request_flag_swaps)
{
	for (int returned = 0; returned < 2; returned++) {
		request();
		put_mpa(true, WIRE_MPA_S | (returned ? WIRE_DAPL_REQUEST : 0), 2, &four_reads, "", 0);
		await(ESTABLISHED);
		assert_int_equal(copy_of_conn().stream.swaps, returned);
		again();
	}
}

/* Core limits how long a consumer waits for its peer's program. */
UNIT_CASE(only_a_reply_that_has_begun_has_a_deadline)
{
	request();
	assert_true(deadline_ns() == 0);
	put("MPA ID", 6);
	for (int i = 0; i < 10000 && !deadline_ns(); i++)
		usleep(1000);
	assert_true(expire());
	expect_failure(DAPL_CONN_TIMED_OUT, ETIMEDOUT, NULL);
}

/* --- revision 1 ------------------------------------------------------------------------------------ */

UNIT_CASE(acceptor_of_revision_1_is_asked_again)
{
	struct wire_mpa mpa;

	request();
	put_mpa(true, WIRE_MPA_REJECT, 1, NULL, "", 0);
	close(peer_socket);
	mpa = next_request();
	assert_int_equal(mpa.revision, 1);
	assert_int_equal(mpa.flags, 0);
	assert_int_equal(length, 5);
	assert_memory_equal(data, "hello", 5);
	put_mpa(true, 0, 1, NULL, "ok", 2);
	assert_int_equal(await(ESTABLISHED).length, 2);
}

UNIT_CASE(revision_1_is_tried_once)
{
	request();
	close(peer_socket);
	next_request();
	put_mpa(true, WIRE_MPA_REJECT, 1, NULL, "no", 2);
	expect_failure(DAPL_CONN_REJECTED, 0, "rejected by the peer's program");
	again();
	request();
	close(peer_socket);
	next_request();
	close(peer_socket);
	peer_socket = -1;
	expect_failure(DAPL_CONN_REFUSED, 0, "the peer closed without an MPA reply");
	again();
	request();
	close(peer_socket);
	next_request();
	put_mpa(true, WIRE_MPA_S, 2, &four_reads, "", 0);
	expect_failure(DAPL_CONN_REFUSED, 0, "MPA reply of an unknown revision");
}

UNIT_CASE(second_attempt_that_cannot_begin_is_a_failure)
{
	request();
	connect_err = ENETUNREACH;
	close(peer_socket);
	peer_socket = -1;
	expect_failure(DAPL_CONN_REFUSED, ENETUNREACH, "second attempt, as MPA revision 1");
	connect_err = 0;
}

/* --- datagrams -------------------------------------------------------------------------------------- */

UNIT_CASE(datagrams_need_revision_2)
{
	request_datagrams();
	close(peer_socket);
	peer_socket = -1;
	expect_failure(DAPL_CONN_REFUSED, 0, "the peer closed without an MPA reply");
}

UNIT_CASE(datagrams_need_a_peer_of_this_implementation)
{
	request_datagrams();
	put_mpa(true, WIRE_MPA_S, 2, &four_reads, "", 0);
	expect_failure(DAPL_CONN_REFUSED, 0, "the peer knows no datagram endpoints");
}

UNIT_CASE(both_halves_make_an_association)
{
	struct wire_trailer half;
	uint8_t bytes[WIRE_TRAILER];
	struct upcall up;

	request_datagrams();
	put_trailer_reply(WIRE_TRAILER_VERSION, NULL, 0);
	assert_true(get(bytes, sizeof bytes));
	assert_true(wire_trailer_get(bytes, &half));
	assert_int_equal(half.qpn, we.qp->qp_num);
	up = await(ESTABLISHED);
	assert_int_equal(up.peer.qpn, 77);
	assert_int_equal(up.peer.qkey, 88);
	assert_int_equal(up.length, 3);
	OK(ops->destroy_ah(up.peer.ah));
	assert_false(get(bytes, 1));
}

/* --- shared memory ---------------------------------------------------------------------------------- */

static void established_over_tcp(void)
{
	struct upcall up = await(ESTABLISHED);
	uint8_t ulpdu[65536];
	uint16_t size;

	assert_int_equal(up.length, 3);
	assert_memory_equal(up.pdata, "yes", 3);
	assert_string_equal(ops->carrier(we.conn), "tcp");
	/* the first frame, a write of nothing */
	assert_true(get_fpdu(ulpdu, &size));
	assert_int_equal(size, WIRE_TAGGED);
	assert_int_equal(ulpdu[1], 0x40 | WIRE_WRITE);
}

UNIT_CASE(reply_without_an_offer_leaves_tcp)
{
	request();
	put_trailer_reply(WIRE_TRAILER_VERSION, NULL, 0);
	established_over_tcp();
}

/* The Reply offers the memory of a process whose socket for it is the test's. Returns the device's connection to
 * that socket. */
static int offer_and_meet(void)
{
	uint64_t token[2] = { soft_random_64() | 1, 5 };
	int offering = attach_socket_listen(token[0], false), met;

	assert_true(offering >= 0);
	request();
	put_trailer_reply(WIRE_TRAILER_VERSION, (uint8_t *)token, 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = offering, .events = POLLIN }, 1, 10000), 1);
	met = accept(offering, NULL, NULL);
	assert_true(met >= 0);
	close(offering);
	for (int i = 0; i < 10000 && copy_of_conn().state != SOFT_ATTACHING; i++)
		usleep(1000);
	assert_int_equal(copy_of_conn().state, SOFT_ATTACHING);
	return met;
}

UNIT_CASE(offer_of_a_process_that_is_gone_leaves_tcp)
{
	uint64_t token[2] = { soft_random_64() | 1, 5 };

	request();
	put_trailer_reply(WIRE_TRAILER_VERSION, (uint8_t *)token, 0);
	established_over_tcp();
}

static bool stream_ends(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	char bytes[4096];
	ssize_t n;

	do
		n = poll(&in, 1, 10000) == 1 ? recv(fd, bytes, sizeof bytes, 0) : -1;
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

static void wait_too_long(void *met)
{
	assert_true(expire());
	established_over_tcp();
	assert_true(stream_ends(*(int *)met));
}

UNIT_CASE(process_that_does_not_share_in_time_leaves_tcp)
{
	int met = offer_and_meet();

	assert_int_equal(times_in(printed_by(wait_too_long, &met), "the peer process did not answer"), 1);
	close(met);
}

UNIT_CASE(process_that_ends_meanwhile_leaves_tcp)
{
	close(offer_and_meet());
	established_over_tcp();
}

UNIT_CASE(release_ends_the_wait_for_memory)
{
	int met = offer_and_meet();

	again();
	assert_true(stream_ends(met));
	close(met);
	assert_int_equal(upcall_count(ESTABLISHED, NULL), 0);
}

UNIT_FIXTURE(read_settings) { dapl_settings_read(); }

UNIT_MAIN(read_settings, NULL)
