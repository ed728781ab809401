/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_handshake.c - how the stream of a connection begins on each side, over TCP and through rings, and how a
 * datagram association ends its handshake. What the functions call is replaced here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/cm/handshake.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"

static struct dapl_device dev;
static struct soft_qp qp;
static struct dapl_conn conn;
static struct shm_conn rings;
static struct ibv_pd pd;
static struct ibv_ah handle;

static struct {
	bool learned, left_handshake, unwatched, closed, lively, granted;
	unsigned sends;		/* calls of soft_conn_send() */
	uint32_t watched;	/* events of the socket */
	uint32_t up;		/* upcalls queued */
	unsigned deadline_ms;
	uint16_t ah_port;
	int failed;		/* errno */
	uint8_t frame[64];	/* what send(2) was given */
	size_t frame_length;
	int mss;		/* that the socket reports; 0: none */
	bool no_ah, no_send, no_rings;
} did;

void __wrap_cm_learn_address(struct dapl_conn *c);
void __wrap_cm_leave_handshake(struct dapl_conn *c);
void __wrap_cm_unwatch(struct dapl_conn *c);
void __wrap_cm_watch(struct dapl_conn *c, uint32_t events);
void __wrap_cm_close_socket(struct dapl_conn *c);
void __wrap_cm_watch_liveness(struct dapl_conn *c);
void __wrap_cm_set_deadline_ms(struct dapl_conn *c, unsigned ms);
void __wrap_cm_fail(struct dapl_conn *c, enum dapl_conn_failure why, int err, const char *text);
void __wrap_cm_set_state(struct dapl_conn *c, enum soft_conn_state state, const char *why);
void __wrap_soft_conn_queue_upcall(struct dapl_conn *c, uint32_t what);
void __wrap_soft_conn_send(struct dapl_conn *c);
void __wrap_shm_grant_open(struct soft_qp *q, struct dapl_conn *c);
struct shm_conn *__wrap_shm_conn_new(struct dapl_conn *c, struct shm_segment *segment);
int __wrap_soft_ah_create(struct ibv_pd *p, const struct sockaddr *address, uint16_t port, struct ibv_ah **ah);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);

void __wrap_cm_learn_address(struct dapl_conn *c) { did.learned = c == &conn; }
void __wrap_cm_leave_handshake(struct dapl_conn *c) { did.left_handshake = c == &conn; }
void __wrap_cm_unwatch(struct dapl_conn *c) { did.unwatched = c == &conn; }
void __wrap_cm_watch(struct dapl_conn *c, uint32_t events) { did.watched = c == &conn ? events : 0; }
void __wrap_cm_close_socket(struct dapl_conn *c) { did.closed = c == &conn; }
void __wrap_cm_watch_liveness(struct dapl_conn *c) { did.lively = c->state == SOFT_OPEN; }
void __wrap_soft_conn_queue_upcall(struct dapl_conn *c, uint32_t what) { did.up |= c == &conn ? what : 0; }
void __wrap_soft_conn_send(struct dapl_conn *c) { did.sends += c == &conn; }
void __wrap_shm_grant_open(struct soft_qp *q, struct dapl_conn *c) { did.granted = q == &qp && c == &conn; }

void __wrap_cm_set_deadline_ms(struct dapl_conn *c, unsigned ms)
{
	(void)c;
	did.deadline_ms = ms;
}

void __wrap_cm_set_state(struct dapl_conn *c, enum soft_conn_state state, const char *why)
{
	(void)why;
	c->state = state;
}

void __wrap_cm_fail(struct dapl_conn *c, enum dapl_conn_failure why, int err, const char *text)
{
	(void)c, (void)text;
	assert_int_equal(why, DAPL_CONN_REFUSED);
	did.failed = err;
}

struct shm_conn *__wrap_shm_conn_new(struct dapl_conn *c, struct shm_segment *segment)
{
	(void)c, (void)segment;
	return did.no_rings ? NULL : &rings;
}

int __wrap_soft_ah_create(struct ibv_pd *p, const struct sockaddr *address, uint16_t port, struct ibv_ah **ah)
{
	assert_ptr_equal(p, &pd);
	assert_ptr_equal(address, &conn.remote);
	did.ah_port = port;
	if (did.no_ah)
		return ENOMEM;
	*ah = &handle;
	return 0;
}

ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
	assert_int_equal(fd, conn.fd);
	assert_int_equal(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	errno = EPIPE;
	if (did.no_send)
		return -1;
	memcpy(did.frame, p, n);
	did.frame_length = n;
	return (ssize_t)n;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	assert_int_equal(fd, conn.fd);
	assert_int_equal(level, IPPROTO_TCP);
	assert_int_equal(name, TCP_MAXSEG);
	assert_int_equal(*length, sizeof did.mss);
	if (!did.mss)
		return -1;
	memcpy(value, &did.mss, sizeof did.mss);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	memset(&did, 0, sizeof did);
	memset(&qp, 0, sizeof qp);
	memset(&conn, 0, sizeof conn);
	dapl_mutex_init(&qp.lock, RANK_SOFT_QP);
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	qp.qp.pd = &pd;
	qp.qp.qp_num = 0x123456;
	qp.qkey = 0x777;
	dev.udp_port = 4444;
	soft_qp_set_state(&qp, IBV_QPS_INIT);
	conn.dev = &dev;
	conn.qp = &qp;
	conn.fd = 55;
	conn.state = SOFT_WAIT_REPLY;
	conn.peer_is_dapl = true;
	conn.reads_in = 4;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(conn.answers);
	return 0;
}

/* --- calls with the progress lock held ----------------------------------------------------------------------- */

static void associate(const struct wire_trailer *peer)
{
	dapl_mutex_lock(&dev.progress_lock);
	handshake_associated(&conn, peer);
	dapl_mutex_unlock(&dev.progress_lock);
}

static void establish(void)
{
	dapl_mutex_lock(&dev.progress_lock);
	handshake_established(&conn);
	dapl_mutex_unlock(&dev.progress_lock);
}

static bool use_rings(void)
{
	bool used;

	dapl_mutex_lock(&dev.progress_lock);
	used = handshake_use_rings(&conn, NULL);
	dapl_mutex_unlock(&dev.progress_lock);
	return used;
}

static void agree_on_rings(void)
{
	dapl_mutex_lock(&dev.progress_lock);
	handshake_rings_agreed(&conn, NULL);
	dapl_mutex_unlock(&dev.progress_lock);
}

/* --- datagrams ----------------------------------------------------------------------------------------------- */

static void trailer_names_the_queue_pair_of_datagrams_only(void **state)
{
	struct wire_trailer trailer;

	(void)state;
	trailer = handshake_trailer(&conn);
	assert_int_equal(trailer.version, WIRE_TRAILER_VERSION);
	assert_int_equal(trailer.max_ulpdu, MULPDU_LARGE);
	assert_int_equal(trailer.qpn | trailer.qkey | trailer.udp_port, 0);
	conn.ud = true;
	trailer = handshake_trailer(&conn);
	assert_int_equal(trailer.qpn, 0x123456);
	assert_int_equal(trailer.qkey, 0x777);
	assert_int_equal(trailer.udp_port, 4444);
	conn.qp = NULL;
	assert_int_equal(handshake_trailer(&conn).qpn, 0);
}

static void association_needs_no_socket_any_more(void **state)
{
	static const struct wire_trailer peer = { .qpn = 0x654321, .qkey = 0x888, .udp_port = 5555 };

	(void)state;
	associate(&peer);
	assert_true(did.learned);
	assert_int_equal(conn.peer.qpn, 0x654321);
	assert_int_equal(conn.peer.qkey, 0x888);
	assert_ptr_equal(conn.peer.ah, &handle);
	assert_int_equal(did.ah_port, 5555);
	assert_true(did.closed);
	assert_int_equal(did.up, SOFT_UP_ESTABLISHED);
	assert_int_equal(did.failed, 0);
}

static void association_without_an_address_handle_fails(void **state)
{
	static const struct wire_trailer peer = { .qpn = 1 };

	(void)state;
	did.no_ah = true;
	associate(&peer);
	assert_int_equal(did.failed, ENOMEM);
	conn.qp = NULL;			/* the endpoint was freed meanwhile */
	associate(&peer);
	assert_int_equal(did.failed, ECANCELED);
	assert_int_equal(did.up, 0);
	assert_false(did.closed);
}

/* --- streams -------------------------------------------------------------------------------------------------- */

static void stream_begins_with_first_numbers(void **state)
{
	(void)state;
	qp.sq_head = qp.sq_tail = 17;
	establish();
	assert_int_equal(conn.state, SOFT_OPEN);
	assert_int_equal(qp.state, IBV_QPS_RTS);
	assert_int_equal(conn.tx.cursor.wqe, 17);
	assert_int_equal(qp.read_next, 17);
	assert_int_equal(conn.tx.cursor.msn_send, 1);
	assert_int_equal(conn.tx.cursor.msn_read, 1);
	assert_int_equal(conn.tx.cursor.msn_atomic, 1);
	assert_int_equal(conn.tx.cursor.msn_dapl, 1);
	assert_int_equal(conn.rx.msn_send, 1);
	assert_int_equal(conn.rx.msn_read, 1);
	assert_int_equal(conn.rx.msn_atomic, 1);
	assert_int_equal(conn.rx.msn_dapl, 1);
	assert_int_equal(conn.rx.part_need, 4);
	assert_non_null(conn.answers);
	assert_true(did.learned && did.left_handshake && did.unwatched && did.lively && did.granted);
	assert_int_equal(did.sends, 1);
	assert_int_equal(did.up, SOFT_UP_ESTABLISHED);
}

/* The side that sends first, what it sends first, and the deadline of a side that waits. */
static void each_side_knows_which_sends_first(void **state)
{
	static const struct {
		bool passive, foreign, shm, p2p, open, first;
		unsigned deadline_ms;
	} cases[] = {
		{ false, false, false, false, true, true, 0 },
		{ false, false, true, false, true, false, 0 },
		{ false, true, false, false, true, false, 0 },
		{ true, false, false, false, true, false, 0 },
		{ true, true, false, false, false, false, SOFT_FIRST_MS },
		{ true, true, false, true, false, false, 0 },	/* the peer sends first for certain */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_up(state);
		conn.passive = cases[i].passive;
		conn.peer_is_dapl = !cases[i].foreign;
		conn.shm = cases[i].shm ? &rings : NULL;
		conn.mpa.p2p = cases[i].p2p;
		establish();
		assert_int_equal(conn.tx.open, cases[i].open);
		assert_int_equal(conn.tx.first, cases[i].first);
		assert_int_equal(did.deadline_ms, cases[i].deadline_ms);
		tear_down(state);
	}
	conn.answers = NULL;
}

static void queue_pair_that_failed_stays_so(void **state)
{
	(void)state;
	soft_qp_set_state(&qp, IBV_QPS_ERR);
	establish();
	assert_int_equal(qp.state, IBV_QPS_ERR);
}

static void stream_may_begin_without_a_queue_pair(void **state)
{
	(void)state;
	conn.qp = NULL;
	conn.reads_in = 0;
	establish();
	assert_int_equal(conn.state, SOFT_OPEN);
	assert_null(conn.answers);
	assert_int_equal(did.sends, 0);
	assert_int_equal(did.up, SOFT_UP_ESTABLISHED);
}

static void segments_fit_what_carries_them(void **state)
{
	static const struct {
		bool foreign, swaps, shm;
		int mss;
		uint32_t mulpdu;
	} cases[] = {
		{ false, false, false, 1460, MULPDU_LARGE },
		{ true, true, false, 1460, MULPDU_LARGE },
		{ false, false, true, 1460, RING_CHUNK + WIRE_UNTAGGED },
		{ true, false, false, 1460, 1454 }, { true, false, false, 1463, 1454 },
		{ true, false, false, 0, 530 },			/* TCP's default */
		{ true, false, false, MULPDU_LEAST + 2, MULPDU_LEAST },
		{ true, false, false, 100000, WIRE_ULPDU_MAX },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_up(state);
		conn.peer_is_dapl = !cases[i].foreign;
		conn.swaps = cases[i].swaps;
		conn.shm = cases[i].shm ? &rings : NULL;
		did.mss = cases[i].mss;
		establish();
		assert_int_equal(conn.mulpdu, cases[i].mulpdu);
		tear_down(state);
	}
	conn.answers = NULL;
}

/* --- rings ----------------------------------------------------------------------------------------------------- */

static void initiator_confirms_the_shared_memory(void **state)
{
	static const uint8_t frame[SWITCH_LENGTH] = { 0, WIRE_TAGGED, 0xc1, 0x40 | WIRE_WRITE, 0, 0, 0, SWITCH_STAG };

	(void)state;
	conn.shm = &rings;
	establish();
	assert_int_equal(did.frame_length, SWITCH_LENGTH);
	assert_memory_equal(did.frame, frame, SWITCH_LENGTH);
	assert_int_equal(did.watched, 1);	/* EPOLLIN: the end of the peer */
	assert_false(did.unwatched);
}

static void only_an_initiator_in_another_process_confirms(void **state)
{
	struct dapl_conn acceptor = { .fd = 1 };

	for (int i = 0; i < 3; i++) {
		set_up(state);
		conn.in_cm = true;
		conn.acceptor = i == 0 ? &acceptor : NULL;	/* of the same device */
		conn.passive = i == 1;
		conn.shm = i == 2 ? NULL : &rings;
		establish();
		assert_int_equal(conn.state, SOFT_OPEN);
		assert_int_equal(did.frame_length, 0);
		assert_int_equal(did.watched, 0);	/* it is watched already */
		tear_down(state);
	}
	conn.answers = NULL;
}

static void initiator_that_cannot_confirm_fails(void **state)
{
	(void)state;
	conn.shm = &rings;
	did.no_send = true;
	establish();
	assert_int_equal(did.failed, EPIPE);
	assert_int_equal(did.up, 0);
	assert_int_equal(conn.state, SOFT_WAIT_REPLY);
}

static void agreed_rings_are_used(void **state)
{
	(void)state;
	conn.passive = true;
	agree_on_rings();
	assert_ptr_equal(conn.shm, &rings);
	assert_int_equal(conn.state, SOFT_OPEN);
	assert_int_equal(did.failed, 0);
}

/* The peer uses the rings already, so that TCP is no way out. */
static void agreed_rings_without_memory_fail_the_connection(void **state)
{
	(void)state;
	did.no_rings = true;
	agree_on_rings();
	assert_int_equal(did.failed, ENOMEM);
	assert_int_equal(did.up, 0);
	assert_false(use_rings());
	did.no_rings = false;
	assert_true(use_rings());
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(trailer_names_the_queue_pair_of_datagrams_only),
		CASE(association_needs_no_socket_any_more),
		CASE(association_without_an_address_handle_fails),
		CASE(stream_begins_with_first_numbers),
		CASE(each_side_knows_which_sends_first),
		CASE(queue_pair_that_failed_stays_so),
		CASE(stream_may_begin_without_a_queue_pair),
		CASE(segments_fit_what_carries_them),
		CASE(initiator_confirms_the_shared_memory),
		CASE(only_an_initiator_in_another_process_confirms),
		CASE(initiator_that_cannot_confirm_fails),
		CASE(agreed_rings_are_used),
		CASE(agreed_rings_without_memory_fail_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
