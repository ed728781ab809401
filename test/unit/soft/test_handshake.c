/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_handshake.c - how the stream of a connection begins on each side, over TCP and through rings, and how a
 * datagram association ends its handshake. The socket is one of a pair: what is sent can be read from the other. */
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include "common/clock.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/handshake.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

static struct dapl_device dev;
static struct soft_qp qp;
static struct soft_cm_conn cm;
static struct dapl_conn conn;
static struct soft_pd pd;
static struct shm_process own, peer_process;
static int other_end;			/* of the socket */

static struct {
	unsigned sends;		/* calls of soft_conn_send() */
	int mss;		/* that the socket reports; 0: none */
	bool no_memory;
} did;

REPLACE(soft_conn_send, getsockopt)

void __wrap_soft_conn_send(struct dapl_conn *c) { did.sends += c == &conn; }

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

UNIT_FAIL_CALLOC(did.no_memory)

static void no_upcall(struct dapl_task *task) { (void)task; }
static const struct soft_conn_events events = { .work = no_upcall };
static void no_sweep(struct dapl_timer *timer) { (void)timer; }

UNIT_FIXTURE(set_up)
{
	int pair[2];

	memset(&did, 0, sizeof did);
	memset(&qp, 0, sizeof qp);
	memset(&cm, 0, sizeof cm);
	conn = (struct dapl_conn){ .cm = &cm };
	dapl_mutex_init(&qp.lock, RANK_SOFT_QP);
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	dapl_spin_init(&dev.accesses.lock, RANK_SOFT_ACCESS);
	own.refs = peer_process.refs = 100;	/* the test has them */
	qp.qp.pd = &pd.pd;
	qp.qp.qp_num = 0x123456;
	qp.qkey = 0x777;
	dev.datagrams.port = 4444;
	dev.cm.sweep_timer.fire = no_sweep;
	dev.cm.sweep_ns = 0;
	dev.cm.epoll = epoll_create1(EPOLL_CLOEXEC);
	soft_qp_set_state(&qp, IBV_QPS_INIT);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	conn.dev = &dev;
	conn.events = &events;
	conn.qp = &qp;
	conn.fd = pair[0];
	other_end = pair[1];
	conn.cm->attach_fd = -1;
	conn.state = SOFT_WAIT_REPLY;
	conn.cm->deadline_ns = 1;
	conn.remote.ss_family = AF_INET;
	conn.stream.peer_is_dapl = true;
	conn.stream.reads_in = 4;
}

UNIT_FIXTURE(tear_down)
{
	did.no_memory = false;
	dapl_service_flush();		/* upcalls */
	dapl_timer_drain(&dev.cm.sweep_timer);
	if (conn.cm->peer.ah)
		soft_ud_ah_destroy(conn.cm->peer.ah);
	shm_conn_free(conn.shm);
	shm_segment_drop_spares();
	if (conn.fd >= 0)
		close(conn.fd);
	close(other_end);
	close(dev.cm.epoll);
}

static int start_service(void **state) { return dapl_service_get(); }
UNIT_FIXTURE(end_service) { dapl_service_put(); }
static struct shm_segment *some_memory(void) { return shm_segment_new(-1, &own, &peer_process); }

static void expect_failure(int err)
{
	assert_int_equal(conn.up, SOFT_UP_FAILED);
	assert_int_equal(conn.cm->failure, DAPL_CONN_REFUSED);
	assert_int_equal(conn.cause.err, err);
	assert_int_equal(conn.state, SOFT_CLOSED);
	assert_int_equal(conn.fd, -1);
}

/* What the peer has got of this side. */
static ssize_t sent(uint8_t frame[64])
{
	ssize_t n = recv(other_end, frame, 64, MSG_DONTWAIT);

	return n < 0 ? 0 : n;
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

static bool use_rings(struct shm_segment *segment)
{
	bool used;

	dapl_mutex_lock(&dev.progress_lock);
	used = handshake_use_rings(&conn, segment);
	dapl_mutex_unlock(&dev.progress_lock);
	return used;
}

static void agree_on_rings(struct shm_segment *segment)
{
	dapl_mutex_lock(&dev.progress_lock);
	handshake_rings_agreed(&conn, segment);
	dapl_mutex_unlock(&dev.progress_lock);
}

/* --- datagrams ----------------------------------------------------------------------------------------------- */

UNIT_CASE(trailer_names_the_queue_pair_of_datagrams_only)
{
	struct wire_trailer trailer;

	trailer = handshake_trailer(&conn);
	assert_int_equal(trailer.version, WIRE_TRAILER_VERSION);
	assert_int_equal(trailer.max_ulpdu, MULPDU_LARGE);
	assert_int_equal(trailer.qpn | trailer.qkey | trailer.udp_port, 0);
	conn.cm->ud = true;
	trailer = handshake_trailer(&conn);
	assert_int_equal(trailer.qpn, 0x123456);
	assert_int_equal(trailer.qkey, 0x777);
	assert_int_equal(trailer.udp_port, 4444);
	conn.qp = NULL;
	assert_int_equal(handshake_trailer(&conn).qpn, 0);
}

UNIT_CASE(datagrams_have_the_traffic_class_of_the_association)
{
	static const struct wire_trailer peer = { .qpn = 1 };

	conn.cm->tuning.traffic_class = 0x48 + 1;
	associate(&peer);
	assert_int_equal(((struct soft_ah *)conn.cm->peer.ah)->traffic_class, 0x48);
}

UNIT_CASE(association_without_an_address_handle_fails)
{
	static const struct wire_trailer peer = { .qpn = 1 };

	for (int i = 0; i < 2; i++) {
		if (i)
			set_up(state);
		did.no_memory = i == 0;
		if (i == 1)
			conn.qp = NULL;		/* the endpoint was freed meanwhile */
		associate(&peer);
		expect_failure(i == 0 ? ENOMEM : ECANCELED);
		if (i == 0)
			tear_down(state);
	}
}

/* --- streams -------------------------------------------------------------------------------------------------- */

/* The side that sends first, what it sends first, and the deadline of a side that waits. */
UNIT_CASE(each_side_knows_which_sends_first)
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
		uint64_t begin = clock_now_ns();

		if (i)
			set_up(state);
		conn.passive = cases[i].passive;
		conn.stream.peer_is_dapl = !cases[i].foreign;
		assert_true(!cases[i].shm || use_rings(some_memory()));
		conn.cm->mpa.p2p = cases[i].p2p;
		establish();
		assert_int_equal(conn.stream.tx.open, cases[i].open);
		assert_int_equal(conn.stream.tx.first, cases[i].first);
		if (cases[i].deadline_ms)
			assert_true(conn.cm->deadline_ns >= begin + cases[i].deadline_ms * 1000000ull);
		else
			assert_int_equal(conn.cm->deadline_ns, 0);
		if (i + 1 < sizeof cases / sizeof *cases)
			tear_down(state);
	}
}

UNIT_CASE(queue_pair_that_failed_stays_so)
{
	soft_qp_set_state(&qp, IBV_QPS_ERR);
	establish();
	assert_int_equal(qp.state, IBV_QPS_ERR);
}

UNIT_CASE(stream_may_begin_without_a_queue_pair)
{
	conn.qp = NULL;
	establish();
	assert_int_equal(conn.state, SOFT_OPEN);
	assert_int_equal(did.sends, 0);
	assert_int_equal(conn.up, SOFT_UP_ESTABLISHED);
}

UNIT_CASE(segments_fit_what_carries_them)
{
	static const struct { bool foreign, swaps, shm; int mss; uint32_t mulpdu; } cases[] = {
		{ false, false, false, 1460, MULPDU_LARGE },
		{ true, true, false, 1460, MULPDU_LARGE },
		{ false, false, true, 1460, RING_CHUNK + WIRE_UNTAGGED },
		{ true, false, false, 1460, 1454 }, { true, false, false, 1463, 1454 },
		{ true, false, false, 0, 530 },			/* TCP's default */
		{ true, false, false, MULPDU_LEAST + 2, MULPDU_LEAST },
		{ true, false, false, 100000, WIRE_ULPDU_MAX },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (i)
			set_up(state);
		conn.stream.peer_is_dapl = !cases[i].foreign;
		conn.stream.swaps = cases[i].swaps;
		assert_true(!cases[i].shm || use_rings(some_memory()));
		did.mss = cases[i].mss;
		establish();
		assert_int_equal(conn.stream.mulpdu, cases[i].mulpdu);
		if (i + 1 < sizeof cases / sizeof *cases)
			tear_down(state);
	}
}

/* --- rings ----------------------------------------------------------------------------------------------------- */

UNIT_CASE(initiator_confirms_the_shared_memory)
{
	static const uint8_t frame[SWITCH_LENGTH] = { 0, WIRE_TAGGED, 0xc1, 0x40 | WIRE_WRITE, 0, 0, 0, SWITCH_STAG };
	struct epoll_event event;
	uint8_t got[64];

	assert_true(use_rings(some_memory()));
	establish();
	assert_int_equal(sent(got), SWITCH_LENGTH);
	assert_memory_equal(got, frame, SWITCH_LENGTH);
	assert_int_equal(epoll_wait(dev.cm.epoll, &event, 1, 0), 0);
	shutdown(other_end, SHUT_RDWR);
	assert_int_equal(epoll_wait(dev.cm.epoll, &event, 1, 0), 1);	/* the end of the peer */
	assert_true(event.events & EPOLLIN);
}

UNIT_CASE(initiator_that_cannot_confirm_fails)
{
	assert_true(use_rings(some_memory()));
	shutdown(conn.fd, SHUT_WR);
	establish();
	expect_failure(EPIPE);
}

/* The peer uses the rings already, so that TCP is no way out. */
UNIT_CASE(agreed_rings_without_memory_fail_the_connection)
{
	struct shm_segment *segment = some_memory();

	did.no_memory = true;
	agree_on_rings(segment);
	assert_null(conn.shm);
	expect_failure(ENOMEM);
}

UNIT_MAIN(start_service, end_service)
