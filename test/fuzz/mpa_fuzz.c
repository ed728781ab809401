/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa_fuzz.c - any bytes as what a peer says to set up a connection, over TCP to the real
 * device: to its listener (Request, first FPDUs, its half of a datagram association), or as
 * the Reply to its own Request (and the trailer in it). Nothing crashes, every such
 * connection comes to its end, and what the decoders read they also write.
 *
 * The first byte of an input says which, the second how the bytes are cut. */
#include "dapl/core/base/settings.h"
#include "common/address.h"
#include "dapl/core/device.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/progress/progress.h"
#include "test/own_network.h"
#include "test/unit/device_harness.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AS_REPLY = 1, UD = 2, REJECT = 4, KEY = 8, WANT_CRC = 16 };

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "mpa_fuzz: %s (errno %d)\n", what, errno);
	abort();
}

#define OK(call) demand(!(call), #call)

/* --- upcalls ----------------------------------------------------------------------- */

static const struct dapl_device_ops *const ops = &dapl_device_ops;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {				/* guarded by lock */
	struct dapl_conn *request;
	bool established, over, released;
	struct ibv_ah *ah;
} came;
static int wake;			/* eventfd: something came */

static void wake_up(void)
{
	uint64_t one = 1;

	demand(write(wake, &one, sizeof one) == sizeof one, "eventfd");
}

static void take_established(const struct upcall *up)
{
	demand(!came.established && !came.over, "established too late or twice");
	came.established = true;
	came.ah = up->ud ? up->peer.ah : NULL;
	came.over = up->ud;		/* TCP has done its work */
}

static void take_upcall(const struct upcall *up)
{
	pthread_mutex_lock(&lock);
	switch (up->kind) {
	case REQUEST:
		demand(!came.request, "a second request");
		came.request = up->conn;
		break;
	case ESTABLISHED:
		take_established(up);
		break;
	case FAILED:
		demand(!came.established && !came.over, "failed too late or twice");
		came.over = true;
		break;
	case CLOSED:
	case BROKEN:
		demand(came.established && !came.over, "disconnected without being connected");
		came.over = true;
		break;
	case RELEASED:
		came.released = true;
		break;
	case ASYNC:
		break;
	case JOINED:	/* nothing joins a group here */
		break;
	}
	pthread_mutex_unlock(&lock);
	wake_up();
}

/* --- our end ----------------------------------------------------------------------- */

static struct {
	struct dapl_device *dev;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct dapl_listener *rc, *ud;
	uint16_t port;
	int listener;			/* the peer's */
	struct sockaddr_in at, peer_at;
} us;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	socklen_t length = sizeof us.peer_at;

	(void)argc, (void)argv;
	own_network();
	dapl_settings_read();
	upcall_observer = take_upcall;
	wake = eventfd(0, EFD_NONBLOCK);
	OK(ops->open("127.0.0.1 0", &us, &us.dev));
	OK(ops->alloc_pd(us.dev, &us.pd));
	OK(ops->create_cq(us.dev, 1000, NULL, NULL, &us.cq));
	OK(ops->listen(us.dev, NULL, &us.port, false, 100, &us, &us.rc));
	OK(ops->listen(us.dev, NULL, &us.port, true, 100, &us, &us.ud));
	us.at = us.peer_at = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(us.port) };
	us.peer_at.sin_port = 0;
	us.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	OK(bind(us.listener, (struct sockaddr *)&us.peer_at, sizeof us.peer_at));
	OK(listen(us.listener, 10));
	OK(getsockname(us.listener, (struct sockaddr *)&us.peer_at, &length));
	return 0;
}

static struct ibv_qp *make_qp(bool ud)
{
	struct ibv_qp_init_attr attr = { .send_cq = us.cq, .recv_cq = us.cq,
		.cap = { 4, 4, 1, 1, 0 }, .qp_type = ud ? IBV_QPT_UD : IBV_QPT_RC };
	struct ibv_qp *qp;

	OK(ops->create_qp(us.dev, us.pd, &attr, &qp));
	return qp;
}

/* --- the peer ---------------------------------------------------------------------- */

struct peer {
	uint8_t flags, cut;
	const uint8_t *bytes;
	size_t size;
	int fd;				/* -1: not connected, or at its end */
};

/* All that it has to say, then its FIN. The device may be gone already. */
static void speak(const struct peer *p)
{
	size_t first = p->cut < p->size ? p->cut : p->size;

	if (first)
		send(p->fd, p->bytes, first, MSG_NOSIGNAL);
	if (p->size - first)
		send(p->fd, p->bytes + first, p->size - first, MSG_NOSIGNAL);
	shutdown(p->fd, SHUT_WR);
}

static void listen_to(struct peer *p)
{
	uint8_t skip[4096];

	if (recv(p->fd, skip, sizeof skip, MSG_DONTWAIT) > 0 || errno == EAGAIN)
		return;
	close(p->fd);
	p->fd = -1;
}

/* Until something happens to the peer's sockets or an upcall came. */
static void wait_a_little(struct peer *p)
{
	struct pollfd poll_on[3] = {
		{ .fd = wake, .events = POLLIN }, { .fd = us.listener, .events = POLLIN },
		{ .fd = p->fd, .events = POLLIN },
	};
	uint64_t count;

	errno = 0;
	/* libFuzzer's alarm clock may ring meanwhile */
	demand(TEMP_FAILURE_RETRY(poll(poll_on, 3, 60000)) > 0, "a connection that does not end");
	if (poll_on[0].revents)
		demand(read(wake, &count, sizeof count) == sizeof count, "eventfd");
	if (poll_on[2].revents)
		listen_to(p);
	if (poll_on[1].revents) {	/* the device, perhaps once more */
		if (p->fd >= 0)
			close(p->fd);
		p->fd = accept(us.listener, NULL, NULL);
		demand(p->fd >= 0, "accept");
		speak(p);
	}
}

static bool is(const bool *flag)
{
	bool set;

	pthread_mutex_lock(&lock);
	set = *flag;
	pthread_mutex_unlock(&lock);
	return set;
}

static struct dapl_conn *the_request(void)
{
	struct dapl_conn *conn;

	pthread_mutex_lock(&lock);
	conn = came.request;
	pthread_mutex_unlock(&lock);
	return conn;
}

/* The connection has an owner: it comes to its end, and is given back. */
static void see_it_through(struct peer *p, struct dapl_conn *conn, struct ibv_qp *qp)
{
	while (!is(&came.over))
		wait_a_little(p);
	ops->release(conn);
	while (!is(&came.released))
		wait_a_little(p);
	if (came.ah)
		OK(ops->destroy_ah(came.ah));
	OK(ops->destroy_qp(qp));
}

/* libFuzzer's alarm may interrupt connect(), which then goes on by itself: see connect(2), EINTR. */
static void connect_to_us(int fd)
{
	struct pollfd connected = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int err;

	if (!connect(fd, (struct sockaddr *)&us.at, sizeof us.at))
		return;
	demand(errno == EINTR, "connect");
	while (poll(&connected, 1, -1) < 0)
		demand(errno == EINTR, "poll");
	OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size));
	errno = err;
	OK(err);
}

static void as_request(struct peer *p)
{
	struct dapl_conn_params params = { .owner = &us, .reads_in = 4, .reads_out = 4,
		.pdata = "ok", .pdata_len = 2 };
	struct dapl_conn *conn;

	p->fd = socket(AF_INET, SOCK_STREAM, 0);
	connect_to_us(p->fd);
	speak(p);
	while (!(conn = the_request()) && p->fd >= 0)
		wait_a_little(p);
	if (!conn && !(conn = the_request()))
		return;
	if (p->flags & REJECT) {
		OK(ops->reject(conn, true, "no", 2));
		return;
	}
	params.ud = conn->cm->ud;
	params.qp = make_qp(params.ud);
	OK(ops->accept(conn, &params));
	see_it_through(p, conn, params.qp);
}

static void as_reply(struct peer *p)
{
	struct dapl_conn_params params = { .owner = &us, .reads_in = 4, .reads_out = 4,
		.ud = p->flags & UD, .remote = (struct sockaddr *)&us.peer_at };
	struct dapl_conn *conn;

	params.qp = make_qp(params.ud);
	OK(ops->connect(us.dev, &params, &conn));
	see_it_through(p, conn, params.qp);
}

/* --- decoders ---------------------------------------------------------------------- */

static void check_decoders(const uint8_t *p, size_t size)
{
	struct wire_trailer trailer;
	struct wire_mpa mpa, again;
	uint8_t out[64];

	for (int reply = 0; size >= WIRE_MPA_HEADER + WIRE_MPA_ENHANCED && reply < 2; reply++) {
		if (!wire_mpa_get(p, reply, &mpa))
			continue;
		wire_mpa_put(out, &mpa);
		demand(!memcmp(out, p, WIRE_MPA_HEADER), "an MPA frame is written otherwise");
		wire_enhanced_get(p + WIRE_MPA_HEADER, &mpa);
		wire_enhanced_put(out, &mpa);
		demand(!memcmp(out, p + WIRE_MPA_HEADER, WIRE_MPA_ENHANCED),
		       "enhanced data are written otherwise");
		wire_enhanced_get(out, &again);
		demand(again.ird <= 0x3fff && again.ord <= 0x3fff, "IRD or ORD beyond its field");
	}
	if (size >= WIRE_TRAILER && wire_trailer_get(p, &trailer)) {
		wire_trailer_put(out, &trailer);
		demand(!memcmp(out, p, 18), "a trailer is written otherwise");
	}
}

/* A connection that ended with a Terminate is kept until the peer's FIN was seen. */
static bool all_gone(void)
{
	bool gone;

	soft_progress_lock(us.dev);
	gone = LIST_EMPTY(&us.dev->cm.conns);
	soft_progress_unlock(us.dev);
	return gone;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer p = { .fd = -1 };
	uint8_t bytes[2048];

	if (size < 2 || size - 2 > sizeof bytes)
		return 0;
	p.flags = data[0];
	p.cut = data[1];
	p.size = size - 2;
	p.bytes = memcpy(bytes, data + 2, p.size);
	if (p.flags & KEY && p.size >= 16)
		memcpy(bytes, p.flags & AS_REPLY ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
	check_decoders(bytes, p.size);
	memset(&came, 0, sizeof came);
	us.dev->want_crc = p.flags & WANT_CRC;
	if (p.flags & AS_REPLY)
		as_reply(&p);
	else
		as_request(&p);
	if (p.fd >= 0)
		close(p.fd);
	for (int i = 0; !all_gone(); i++) {
		demand(i < 60000, "a connection is left");
		usleep(i < 10 ? 50 : 1000);
	}
	demand(!us.dev->half_open.count, "a handshake is counted that is over");
	return 0;
}
