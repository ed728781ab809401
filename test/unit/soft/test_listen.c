/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_listen.c - listeners of the software device: the address and the port of each, what ends with one, and what
 * becomes of a connection that cannot be accepted at once. */
#include <poll.h>
#include "common/log.h"
#include "dapl/core/base/settings.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/obj/rnic.h"
#include "test/unit/printed.h"
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/unit.h"

/* The next calls of accept4(2) that fail, and their errno. Atomic. */
static int failing, accept_err;

EXTEND(accept4)
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
	if (!__atomic_load_n(&failing, __ATOMIC_RELAXED))
		return __real_accept4(fd, from, size, flags);
	__atomic_sub_fetch(&failing, 1, __ATOMIC_RELAXED);
	errno = accept_err;
	return -1;
}

static unsigned resumptions;	/* of paused ports; atomic */

EXTEND(listen_watch)
int __wrap_listen_watch(struct soft_port *port)
{
	__atomic_add_fetch(&resumptions, 1, __ATOMIC_RELAXED);
	return __real_listen_watch(port);
}

static struct dapl_listener *more;	/* beside that of foreign_peer.c */

static int listen_at(const char *address, uint16_t *port, bool ud)
{
	struct sockaddr_in at = loopback(0);

	if (address)
		inet_pton(AF_INET, address, &at.sin_addr);
	return ops->listen(we.dev, address ? (struct sockaddr *)&at : NULL, port, ud, 8, &more, &more);
}

/* Returns 0, or the errno of the peer's connect(2). */
static int dial_at(const char *address, uint16_t port)
{
	struct sockaddr_in to = loopback(port);

	inet_pton(AF_INET, address, &to.sin_addr);
	peer_socket = socket(AF_INET, SOCK_STREAM, 0);
	return connect(peer_socket, (struct sockaddr *)&to, sizeof to) ? errno : 0;
}

static void put_request(void) { put_mpa(false, WIRE_MPA_S, 2, &four_reads, "", 0); }

/* The Request comes to the listener `more`. */
static struct upcall next_request(void)
{
	struct upcall up;

	put_request();
	up = await(REQUEST);
	assert_ptr_equal(up.owner, &more);
	upcalls_drop(NULL);
	return up;
}

static bool at_end(int fd, int timeout_ms)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&in, 1, timeout_ms) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

/* Waits until the device has accepted so many connections without a Request. */
static void wait_half_open(unsigned count)
{
	unsigned is = count + 1;

	for (int i = 0; i < 10000 && is != count; i++) {
		usleep(1000);
		soft_progress_lock(we.dev);
		is = we.dev->half_open.count;
		soft_progress_unlock(we.dev);
	}
	assert_int_equal(is, count);
}

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

#define T(name) UNIT_TEST_WITH(name, set_up_device_alone, tear_down_foreign_peer)

/* --- address and port ------------------------------------------------------------------------------ */

T(listener_of_an_address_is_reached_there_only)
{
	uint16_t port = 0;
	struct upcall up;

	OK(listen_at("127.0.0.3", &port, false));
	assert_true(port != 0);
	assert_int_equal(dial_at("127.0.0.1", port), ECONNREFUSED);
	close(peer_socket);
	OK(dial_at("127.0.0.3", port));
	up = next_request();
	OK(ops->reject(up.conn, true, NULL, 0));
	ops->unlisten(more);
}

T(listener_of_any_address_reports_the_one_that_was_called)
{
	struct sockaddr_in *local;
	uint16_t port = 0;
	struct upcall up;

	OK(listen_at("0.0.0.0", &port, false));
	OK(dial_at("127.0.0.2", port));
	up = next_request();
	local = (struct sockaddr_in *)&up.local;
	assert_int_equal(local->sin_addr.s_addr, inet_addr("127.0.0.2"));
	assert_int_equal(ntohs(local->sin_port), port);
	OK(ops->reject(up.conn, true, NULL, 0));
	ops->unlisten(more);
}

T(failed_listen_leaves_nothing)
{
	uint16_t port = 0, taken = we.port;
	int before = descriptors();

	more = NULL;
	assert_int_equal(listen_at("192.0.2.1", &port, false), EADDRNOTAVAIL);
	assert_int_equal(listen_at(NULL, &taken, false), EADDRINUSE);
	assert_null(more);
	assert_int_equal(port, 0);
	assert_int_equal(descriptors(), before);
}

/* The other kind shares the port of the device's address, and no other. */
T(listener_of_an_address_shares_no_port)
{
	uint16_t port = we.port;

	assert_int_equal(listen_at("127.0.0.1", &port, true), EADDRINUSE);
}

/* --- the end of a listener ------------------------------------------------------------------------- */

T(shared_port_is_open_until_its_last_listener_ends)
{
	struct dapl_listener *datagrams;
	uint16_t port = 0;

	OK(listen_at(NULL, &port, true));
	datagrams = more;
	OK(listen_at(NULL, &port, false));
	ops->unlisten(datagrams);
	OK(dial_at("127.0.0.1", port));
	OK(ops->reject(next_request().conn, true, NULL, 0));
	close(peer_socket);
	ops->unlisten(more);
	assert_int_equal(dial_at("127.0.0.1", port), ECONNREFUSED);
}

T(half_open_connections_end_with_their_listener)
{
	uint16_t port = 0;
	int other;

	OK(listen_at(NULL, &port, false));
	dial();
	other = peer_socket;
	OK(dial_at("127.0.0.1", port));
	wait_half_open(2);
	ops->unlisten(more);
	assert_true(at_end(peer_socket, 10000));
	assert_false(at_end(other, 0));
	close(peer_socket);
	peer_socket = other;
	put_request();
	OK(ops->reject(await(REQUEST).conn, true, NULL, 0));
}

/* The port can be opened again, though it has a connection. */
T(request_outlives_its_listener)
{
	struct dapl_conn_params with = params(NULL);
	uint16_t port = 0;

	OK(listen_at(NULL, &port, false));
	OK(dial_at("127.0.0.1", port));
	we.conn = next_request().conn;
	ops->unlisten(more);
	OK(ops->accept(we.conn, &with));
	await(ESTABLISHED);
	OK(listen_at(NULL, &port, false));
	ops->unlisten(more);
}

/* --- accept4(2) fails ------------------------------------------------------------------------------ */

/* The next `times` calls fail with `err`; a connection and its Request come. Its peer is `peer_socket`. */
static void dial_while_failing(int times, int err)
{
	__atomic_store_n(&accept_err, err, __ATOMIC_RELAXED);
	__atomic_store_n(&failing, times, __ATOMIC_RELAXED);
	dial();
	put_request();
	OK(ops->reject(await(REQUEST).conn, true, NULL, 0));
	upcalls_drop(NULL);
	assert_int_equal(__atomic_load_n(&failing, __ATOMIC_RELAXED), 0);
}

static void dial_while_descriptors_are_short(void *arg) { dial_while_failing(2, EMFILE); }
static void dial_while_connections_vanish(void *arg) { dial_while_failing(2, ECONNABORTED); }
static void dial_while_kernel_memory_is_short(void *arg) { dial_while_failing(2, ENOBUFS); }

T(shortage_delays_a_connection_and_is_one_line)
{
	__atomic_store_n(&resumptions, 0, __ATOMIC_RELAXED);
	assert_int_equal(times_in(printed_by(dial_while_descriptors_are_short, NULL), "accepting connections waits"),
			 1);
	assert_int_equal(__atomic_load_n(&resumptions, __ATOMIC_RELAXED), 2);
	close(peer_socket);
	assert_int_equal(times_in(printed_by(dial_while_kernel_memory_is_short, NULL), "accepting connections waits"),
			 1);
}

T(connection_that_has_vanished_pauses_nothing)
{
	__atomic_store_n(&resumptions, 0, __ATOMIC_RELAXED);
	assert_string_equal(printed_by(dial_while_connections_vanish, NULL), "");
	assert_int_equal(__atomic_load_n(&resumptions, __ATOMIC_RELAXED), 0);
}

static void dial_without_a_descriptor(void *arg) { dial_while_failing(1, EMFILE); }

T(half_open_connection_makes_room_for_a_new_one)
{
	int silent;

	dial();
	silent = peer_socket;
	wait_half_open(1);
	assert_int_equal(times_in(printed_by(dial_without_a_descriptor, NULL), "closed the oldest"), 1);
	assert_true(at_end(silent, 0));
	close(silent);
}

UNIT_FIXTURE(init)
{
	dapl_settings_read();
	log_mask = 3;
}

UNIT_MAIN(init, NULL)
