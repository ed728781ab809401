/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm.c - connections from their first step to their last: listening, the MPA exchange,
 * accepting and rejecting, disconnecting, and the release of what core is done with.
 * What flows once both sides may send is tcp.c's and execute.c's job.
 *
 * Sockets in the exchange are in the device's cm epoll set, served by the service thread
 * under the engine lock; when both directions carry FPDUs they move to the data set. Where data
 * goes through rings they stay: all that a socket says then is that the peer is gone.
 * Upcalls are noted in conn->up and made by conn_work, a task, with no lock held. A
 * connection is freed by that task only, after it was taken from every list and set: so
 * events that were fetched before still find it. */
#include "dapl/soft/cm/conn.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/container_of.h"
#include "common/trace.h"
#include "dapl/core/base/lock.h"
#include "dapl/core/base/service.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/conn/diag.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/shortage.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/wire.h"
#include "dapl/soft/tcp/fpdu_tx.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/cm/shm_fallback.h"
#include "dapl/soft/cm/ud.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void conn_work(struct dapl_task *task);

void soft_cm_tell(struct dapl_conn *conn, uint32_t what)
{
	__atomic_or_fetch(&conn->up, what, __ATOMIC_RELEASE);
	dapl_task_queue(&conn->task, conn_work);
}

static void sweep(struct dapl_timer *timer);

/* Engine lock held: the next sweep is due in this time at the latest. */
static void sweep_within(struct dapl_device *dev, uint64_t us)
{
	uint64_t due = clock_now_ns() + us * 1000;

	if (dev->sweep_ns && dev->sweep_ns <= due)
		return;
	dev->sweep_ns = due;
	dapl_timer_start(&dev->sweep_timer, us, sweep);
}

static void set_deadline_ms(struct dapl_conn *conn, unsigned ms)
{
	conn->deadline_ns = clock_now_ns() + ms * 1000000ull;
	sweep_within(conn->dev, ms * 1000ull);
}

static void set_deadline(struct dapl_conn *conn, unsigned seconds)
{
	set_deadline_ms(conn, seconds * 1000);
}

/* --- states and causes ------------------------------------------------------------------ */

static const char *const state_name[] = {
	[SOFT_NEW] = "new", [SOFT_CONNECTING] = "connecting", [SOFT_WAIT_REPLY] = "waiting for the reply",
	[SOFT_ATTACHING] = "attaching shared memory",
	[SOFT_WAIT_REQUEST] = "waiting for the request", [SOFT_REQUESTED] = "requested",
	[SOFT_WAIT_FIRST] = "waiting for the first frame", [SOFT_OPEN] = "open",
	[SOFT_CLOSING] = "closing", [SOFT_CLOSED] = "closed",
};

/* The only writer of conn->state. Engine lock held. */
static void set_state(struct dapl_conn *conn, enum soft_conn_state state, const char *why)
{
	char local[DIAG_ADDRESS], remote[DIAG_ADDRESS];
	const struct sockaddr_storage *from =
		conn->local.ss_family ? &conn->local : &conn->dev->address;

	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "conn", conn, state_name[state],
	      "was %s (%s)%s, local %s, remote %s", state_name[conn->state], why,
	      conn->ud ? ", datagrams" : "", dapl_diag_address(from, local),
	      dapl_diag_address(&conn->remote, remote));
	__atomic_store_n(&conn->state, state, __ATOMIC_RELAXED);
}

/* Engine lock or qp->lock held. */
static enum dapl_conn_step step_of(const struct dapl_conn *conn)
{
	switch (__atomic_load_n(&conn->state, __ATOMIC_RELAXED)) {
	case SOFT_NEW:
	case SOFT_CONNECTING:	return DAPL_STEP_CONNECT;
	case SOFT_WAIT_REPLY:
	case SOFT_ATTACHING:	return DAPL_STEP_REPLY;
	case SOFT_WAIT_REQUEST:	return DAPL_STEP_REQUEST;
	case SOFT_REQUESTED:	return conn->owner ? DAPL_STEP_ACCEPT : DAPL_STEP_REQUEST;
	case SOFT_WAIT_FIRST:	return DAPL_STEP_READY;
	default:		return DAPL_STEP_TRANSFER;
	}
}

void soft_cm_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code,
		    const char *text)
{
	if (conn->caused)
		return;
	conn->caused = true;
	conn->cause.step = step_of(conn);
	conn->cause.err = err;
	conn->cause.code_kind = kind;
	conn->cause.code = code;
	conn->cause.text = text;
}

void soft_cm_socket_error(struct dapl_conn *conn)
{
	int err = 0;
	socklen_t length = sizeof err;

	getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &length);
	soft_cm_caused(conn, err, DAPL_CODE_NONE, 0, err ? NULL : "the peer's stream ended");
}

void soft_cm_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause)
{
	struct dapl_device *dev = conn->dev;
	struct soft_qp *qp;

	soft_progress_lock(dev);
	qp = conn->qp;
	if (qp)
		dapl_spin_lock(&qp->lock);
	if (conn->caused)
		*cause = conn->cause;
	else
		*cause = (struct dapl_conn_cause){ .step = step_of(conn) };
	cause->local = conn->local.ss_family ? conn->local : dev->address;
	cause->remote = conn->remote;
	if (qp)
		dapl_spin_unlock(&qp->lock);
	soft_progress_unlock(dev);
}

/* A request that core never hears of. Engine lock held. */
static void request_failed(struct dapl_conn *conn, const char *text)
{
	struct dapl_diag diag = { .ia = "soft", .what = DIAG_ACCEPT };

	soft_cm_caused(conn, 0, DAPL_CODE_NONE, 0, text);
	diag.cause = conn->cause;
	diag.cause.local = conn->local;
	diag.cause.remote = conn->remote;
	dapl_diag_say(&diag);
}

/* --- peers that do not answer any more ------------------------------------------------- */

/* How long a peer's TCP may be silent though it should answer. 0: for ever. The variables
 * mean what they do on InfiniBand. */
static unsigned patience_ms(void)
{
	unsigned timer = dapl_settings.ack_timer;
	uint64_t ms = (4096ull << timer % 32) * (dapl_settings.ack_retry + 1) / 1000000;

	if (dapl_settings.ack_timer < 0)
		return SOFT_PATIENCE_MS;
	return timer && ms < 1000 ? 1000 : timer && ms < INT_MAX ? ms : 0;
}

/* Engine lock held: streams are looked after from now on. */
static void look_after(struct dapl_device *dev)
{
	if (patience_ms())
		sweep_within(dev, patience_ms() / 4 * 1000ull);
}

/* Data, or a probe of the peer's window, is sent again and again, and its TCP says nothing.
 * A peer that is alive and does not read (stopped, say) answers probes. TCP by itself gives
 * up after a quarter of an hour; its own time limit would hit the peer that is stopped. */
static bool peer_is_lost(struct dapl_conn *conn, uint64_t now)
{
	struct tcp_info info;
	socklen_t length = sizeof info;

	if (getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &length) ||
	    !(info.tcpi_retransmits || info.tcpi_probes)) {
		conn->silent_ns = 0;
		return false;
	}
	if (!conn->silent_ns || info.tcpi_last_ack_recv < (now - conn->silent_ns) / 1000000)
		conn->silent_ns = now;
	return now - conn->silent_ns >= patience_ms() * 1000000ull;
}

/* Engine lock held. */
static void end_stream(struct dapl_conn *conn, int err, const char *why)
{
	struct soft_qp *qp = conn->qp;

	soft_trace(TRC_LVL_ERROR, "conn", conn, "%s", why);
	if (qp)
		dapl_spin_lock(&qp->lock);
	soft_cm_caused(conn, err, DAPL_CODE_NONE, 0, why);
	conn->tx.shut = true;
	soft_stream_over(qp, conn, false);
	if (qp)
		dapl_spin_unlock(&qp->lock);
}

/* Engine lock held. True: the stream goes on. */
static bool stream_lives(struct dapl_conn *conn, uint64_t now)
{
	if (!peer_is_lost(conn, now))
		return true;
	end_stream(conn, ETIMEDOUT, "the peer does not answer any more");
	return false;
}

/* --- sockets -------------------------------------------------------------------------- */

static void set_no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* The handshake's last acknowledgement goes along with our Request, which follows at once. */
static void set_quiet_handshake(int fd)
{
	int off = 0;

	setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off);
}

static void set_keepalive(int fd)
{
	int idle = patience_ms() / 2000, interval = patience_ms() / 6000, count = 3;
	int on = 1, off = 0;

	idle = idle ? idle : 1;
	interval = interval ? interval : 1;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, patience_ms() ? &on : &off, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* To close it is one packet, and leaves nothing behind: neither side will look for data there. */
static void set_abrupt(int fd)
{
	struct linger none = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

/* But for the port. Different scopes, or what lies in padding, make a difference, too. */
static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_storage other = *b;

	address_set_port((struct sockaddr *)&other, address_port((const struct sockaddr *)a));
	return a->ss_family == b->ss_family &&
	       !memcmp(a, &other, address_length((const struct sockaddr *)a));
}

static void set_class(const struct dapl_conn *conn)
{
	static const int tos[] = {
		[DAPL_QOS_THROUGHPUT] = 0x08, [DAPL_QOS_LATENCY] = 0x10,
		[DAPL_QOS_ECONOMY] = 0x02, [DAPL_QOS_PREMIUM] = 0x10,
	};
	int class = dapl_settings.tos;

	if (class < 0 && conn->qos != DAPL_QOS_DEFAULT)
		class = tos[conn->qos];
	if (class < 0)
		return;
	if (conn->remote.ss_family == AF_INET6)
		setsockopt(conn->fd, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof class);
	else
		setsockopt(conn->fd, IPPROTO_IP, IP_TOS, &class, sizeof class);
}

/* The sweep ends it: nobody would notice what happens to it. errno is why. */
static void give_up_watching(struct dapl_conn *conn)
{
	conn->io_error = errno;
	conn->unwatched = true;
	set_deadline(conn, 0);
}

static void cm_watch(struct dapl_conn *conn, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = conn };
	int op = conn->in_cm ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (epoll_ctl(conn->dev->cm_epoll, op, conn->fd, &event))
		give_up_watching(conn);
	conn->in_cm = true;
}

static void cm_unwatch(struct dapl_conn *conn)
{
	if (conn->in_cm)
		epoll_ctl(conn->dev->cm_epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	conn->in_cm = false;
}

static void leave_handshake(struct dapl_conn *conn)
{
	if (conn->state == SOFT_WAIT_REQUEST)
		soft_half_open_remove(conn);
	conn->deadline_ns = 0;
}

static void end_attach(struct dapl_conn *conn)
{
	if (conn->attach_fd < 0)
		return;
	epoll_ctl(conn->dev->cm_epoll, EPOLL_CTL_DEL, conn->attach_fd, NULL);
	close(conn->attach_fd);
	conn->attach_fd = -1;
}

/* Engine lock held, and the QP's if there is one. */
static void close_socket(struct dapl_conn *conn)
{
	leave_handshake(conn);
	cm_unwatch(conn);
	soft_progress_del(conn);
	end_attach(conn);
	shm_segment_put(attach_offer_end(conn->offer));
	conn->offer = NULL;
	if (conn->fd >= 0) {
		if (conn->shm && conn->rx.close_notice)
			set_abrupt(conn->fd);
		close(conn->fd);
	}
	conn->fd = -1;
	conn->tx.shut = true;
	if (conn->state != SOFT_CLOSED)
		set_state(conn, SOFT_CLOSED, conn->caused ? "failed" : "over");
}

static struct dapl_conn *conn_new(struct dapl_device *dev)
{
	struct dapl_conn *conn = calloc(1, sizeof *conn);

	if (conn)
		conn->frame = malloc(WIRE_MPA_MAX);
	if (!conn || !conn->frame) {
		free(conn);
		return NULL;
	}
	conn->dev = dev;
	conn->fd = -1;
	conn->attach_fd = -1;
	conn->frame_need = WIRE_MPA_HEADER;
	TAILQ_INIT(&conn->unexpected);
	return conn;
}

static void conn_free(struct dapl_conn *conn)
{
	soft_stream_free(conn);
	free(conn->frame);
	free(conn->pdata);
	free(conn);
}

/* Engine lock held: nothing refers to it any more but its task. */
static void conn_bury(struct dapl_conn *conn)
{
	close_socket(conn);
	LIST_REMOVE(conn, link);
	soft_cm_tell(conn, SOFT_UP_DEAD);
}

/* --- the service thread tells core ------------------------------------------------------ */

static void go_live(struct dapl_conn *conn);

static void tell_established(struct dapl_conn *conn)
{
	struct dapl_established info = {
		.pdata = conn->up_pdata, .pdata_len = conn->up_pdata_length,
		.local = conn->local, .remote = conn->remote,
		.ud = conn->ud ? &conn->peer : NULL,
	};

	dapl_up_established(conn->owner, conn, &info);
}

static void drop_frame(struct dapl_conn *conn)
{
	free(conn->frame);
	free(conn->pdata);
	conn->frame = conn->pdata = NULL;
	conn->up_pdata = NULL;
	conn->up_pdata_length = 0;
}

/* Engine lock held: the peer's ring brought its goodbye, and nothing follows. */
static void end_shm(struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;

	if (conn->state != SOFT_OPEN && conn->state != SOFT_CLOSING)
		return;
	if (qp)
		dapl_spin_lock(&qp->lock);
	soft_stream_over(qp, conn, true);
	if (qp)
		dapl_spin_unlock(&qp->lock);
}

static void conn_work(struct dapl_task *task)
{
	struct dapl_conn *conn = container_of(task, struct dapl_conn, task);
	struct dapl_device *dev = conn->dev;
	uint32_t up = __atomic_exchange_n(&conn->up, 0, __ATOMIC_ACQUIRE);
	bool tell;

	if (conn->free_in_task) {
		conn_free(conn);
		return;
	}
	soft_progress_lock(dev);
	tell = !conn->released;
	if (up & SOFT_UP_CLOSE_SENT)
		end_shm(conn);
	soft_progress_unlock(dev);
	if ((up & SOFT_UP_ESTABLISHED) && tell)
		tell_established(conn);
	else if ((up & SOFT_UP_ESTABLISHED) && conn->peer.ah)
		soft_ah_destroy(conn->peer.ah);
	if (up & SOFT_UP_ESTABLISHED) {
		drop_frame(conn);
		go_live(conn);
	}
	if ((up & SOFT_UP_FAILED) && tell)
		dapl_up_failed(conn->owner, conn, conn->failure, conn->up_pdata,
			       conn->up_pdata_length);
	if ((up & (SOFT_UP_CLOSED | SOFT_UP_BROKEN)) && tell)
		dapl_up_disconnected(conn->owner, conn, up & SOFT_UP_CLOSED);
	if (up & SOFT_UP_RELEASED)
		dapl_up_released(conn->owner);
	if (up & SOFT_UP_DEAD) {	/* the task may be queued again already */
		conn->free_in_task = true;
		dapl_task_queue(&conn->task, conn_work);
	}
}

enum { SWITCH_STAG = 2, SWITCH_LENGTH = WIRE_FPDU_LENGTH + WIRE_TAGGED + WIRE_CRC };

static void switch_frame(uint8_t frame[SWITCH_LENGTH])
{
	wire_put16(frame, WIRE_TAGGED);
	wire_segment_put(frame + WIRE_FPDU_LENGTH,
			 &(struct wire_segment){ .tagged = true, .last = true, .op = WIRE_WRITE,
						 .stag = SWITCH_STAG });
}

/* --- the stream begins ---------------------------------------------------------------------- */

static uint8_t lesser(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static uint32_t choose_mulpdu(const struct dapl_conn *conn)
{
	int mss = 536;
	socklen_t length = sizeof mss;

	if (conn->shm)
		return RING_CHUNK + WIRE_UNTAGGED;
	if (conn->peer_is_dapl || conn->swaps)
		return MULPDU_LARGE;
	getsockopt(conn->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &length);
	mss -= 6 + mss % 4;
	return mss < MULPDU_LEAST ? MULPDU_LEAST : mss > WIRE_ULPDU_MAX ? WIRE_ULPDU_MAX : mss;
}

static void get_address(struct dapl_conn *conn)
{
	socklen_t length = sizeof conn->local;

	if (conn->local.ss_family == AF_UNSPEC)
		getsockname(conn->fd, (struct sockaddr *)&conn->local, &length);
}

/* Engine lock held. Both streams carry FPDUs from here on. */
static bool open_stream(struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;

	conn->mulpdu = choose_mulpdu(conn);
	conn->sink_key = soft_random();
	if (conn->reads_in) {
		conn->answers = calloc(conn->reads_in, sizeof *conn->answers);
		if (!conn->answers)
			return false;
	}
	conn->tx.cursor.msn_send = conn->tx.cursor.msn_read = 1;
	conn->tx.cursor.msn_atomic = conn->tx.cursor.msn_dapl = 1;
	conn->rx.msn_send = conn->rx.msn_read = conn->rx.msn_atomic = conn->rx.msn_dapl = 1;
	conn->rx.part_need = 4;
	if (!qp)
		return true;
	dapl_spin_lock(&qp->lock);
	conn->tx.cursor.wqe = qp->sq_tail;
	qp->read_next = qp->sq_tail;
	conn->tx.open = !conn->passive || conn->peer_is_dapl;	/* ours: its first FPDU is here */
	conn->tx.first = !conn->passive && conn->peer_is_dapl && !conn->shm;
	if (qp->state == IBV_QPS_INIT)
		qp->state = qp->qp.state = IBV_QPS_RTS;
	shm_grant_open(qp, conn);
	soft_tcp_send(conn);
	dapl_spin_unlock(&qp->lock);
	return true;
}

/* `err` 0: the text says it. */
static void fail(struct dapl_conn *conn, enum dapl_conn_failure why, int err, const char *text)
{
	soft_cm_caused(conn, err, DAPL_CODE_NONE, 0, text);
	close_socket(conn);
	conn->failure = why;
	soft_cm_tell(conn, SOFT_UP_FAILED);
}

/* The initiator's first frame when it has the memory: a zero-length write that names
 * another STag. From here on both directions are in the rings. */
static bool send_switch(const struct dapl_conn *conn)
{
	uint8_t frame[SWITCH_LENGTH] = { 0 };
	ssize_t n;

	switch_frame(frame);
	n = send(conn->fd, frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0)
		errno = EMSGSIZE;
	return n == sizeof frame;
}

/* True: the peer knows, or will, which way data goes. */
static bool tell_peer(struct dapl_conn *conn)
{
	return !conn->shm || conn->passive || conn->acceptor || send_switch(conn);
}

static void established(struct dapl_conn *conn)
{
	leave_handshake(conn);
	if (!conn->shm)
		cm_unwatch(conn);
	else if (!conn->in_cm)
		cm_watch(conn, EPOLLIN);
	get_address(conn);
	if (!tell_peer(conn)) {
		fail(conn, DAPL_CONN_REFUSED, errno, "first frame");
		return;
	}
	if (!open_stream(conn)) {
		fail(conn, DAPL_CONN_REFUSED, ENOMEM, NULL);
		return;
	}
	set_state(conn, SOFT_OPEN, "established");
	look_after(conn->dev);
	if (!conn->tx.open && !conn->mpa.p2p)
		set_deadline_ms(conn, SOFT_FIRST_MS);
	soft_trace(TRC_LVL_DETAIL, "conn", conn, "data goes %s",
		   conn->shm ? "through shared memory" : "over TCP");
	soft_cm_tell(conn, SOFT_UP_ESTABLISHED);
}

/* The acceptor has the memory now, and its peer takes it for agreed. */
static void rings_agreed(struct dapl_conn *conn, struct shm_segment *segment)
{
	conn->shm = shm_conn_new(conn, segment);
	if (conn->shm)
		established(conn);
	else
		fail(conn, DAPL_CONN_REFUSED, ENOMEM, "shared memory");
}

/* Core knows that the connection is up: completions may come now. */
static void go_live(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;
	struct soft_qp *qp;

	soft_progress_lock(dev);
	qp = conn->qp;
	if (qp)
		dapl_spin_lock(&qp->lock);
	if ((conn->state == SOFT_OPEN || conn->state == SOFT_CLOSING) && !conn->in_data &&
	    !soft_progress_add(conn))
		give_up_watching(conn);
	if (qp)
		dapl_spin_unlock(&qp->lock);
	soft_progress_unlock(dev);
}

void soft_cm_stream_over(struct dapl_conn *conn)
{
	close_socket(conn);
	if (conn->released)
		conn_bury(conn);
}

/* --- MPA frames ---------------------------------------------------------------------------------- */

/* Frames are small and the socket is fresh: it takes them whole, or it's broken, or TCP is
 * not up yet (EAGAIN). */
static bool send_frame(const struct dapl_conn *conn, const struct wire_mpa *mpa,
		       const struct wire_trailer *trailer, const void *pdata, size_t length)
{
	uint8_t frame[WIRE_MPA_MAX];
	size_t n = WIRE_MPA_HEADER;
	struct wire_mpa full = *mpa;
	ssize_t sent;

	if (full.flags & WIRE_MPA_S) {
		wire_enhanced_put(frame + n, &full);
		n += WIRE_MPA_ENHANCED;
	}
	if (trailer) {
		wire_trailer_put(frame + n, trailer);
		n += WIRE_TRAILER;
	}
	if (length)
		memcpy(frame + n, pdata, length);
	n += length;
	full.length = n - WIRE_MPA_HEADER;
	wire_mpa_put(frame, &full);
	sent = send(conn->fd, frame, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent >= 0)
		errno = EMSGSIZE;
	return sent == (ssize_t)n;
}

enum got { GOT_PART, GOT_ALL, GOT_END, GOT_BAD };

/* Reads exactly the frame, no byte of the stream behind it. */
static enum got receive_frame(struct dapl_conn *conn)
{
	while (conn->frame_length < conn->frame_need) {
		ssize_t n = recv(conn->fd, conn->frame + conn->frame_length,
				 conn->frame_need - conn->frame_length, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return GOT_PART;
		if (n < 0)
			conn->io_error = errno;
		if (n <= 0)
			return n || conn->frame_length ? GOT_BAD : GOT_END;
		conn->frame_length += n;
		if (conn->frame_need != WIRE_MPA_HEADER || conn->frame_length != WIRE_MPA_HEADER)
			continue;
		if (!wire_mpa_get(conn->frame, !conn->passive, &conn->mpa) ||
		    conn->mpa.length > WIRE_MPA_MAX - WIRE_MPA_HEADER)
			return GOT_BAD;
		conn->frame_need += conn->mpa.length;
	}
	return GOT_ALL;
}

/* The frame's data behind the enhanced bytes, which are decoded. NULL: malformed. */
static const uint8_t *frame_data(struct dapl_conn *conn, size_t *length)
{
	const uint8_t *p = conn->frame + WIRE_MPA_HEADER;

	*length = conn->mpa.length;
	conn->mpa.ird = conn->mpa.ord = WIRE_ORD_NONE;
	if (!(conn->mpa.flags & WIRE_MPA_S))
		return p;
	if (conn->mpa.revision < 2 || *length < WIRE_MPA_ENHANCED)
		return NULL;
	wire_enhanced_get(p, &conn->mpa);
	*length -= WIRE_MPA_ENHANCED;
	return p + WIRE_MPA_ENHANCED;
}

static void reply(struct dapl_conn *conn, uint8_t flags, const struct wire_trailer *trailer,
		  const void *pdata, size_t length, bool *sent)
{
	struct wire_mpa mpa = {
		.reply = true, .revision = conn->mpa.revision,
		.flags = flags | (conn->mpa.flags & WIRE_MPA_S),
		.ird = conn->reads_in, .ord = conn->reads_out,
	};

	if (conn->peer_is_dapl)
		mpa.flags |= WIRE_DAPL_REPLY;
	if (conn->mpa.p2p) {
		mpa.p2p = true;
		mpa.p2p_write = conn->mpa.p2p_write;
		mpa.p2p_read = !conn->mpa.p2p_write;
	}
	*sent = send_frame(conn, &mpa, trailer, pdata, length);
}

/* The provider says no. A foreign peer has no bit for that and just sees the end. */
static void refuse(struct dapl_conn *conn)
{
	bool sent;

	if (conn->peer_is_dapl)
		reply(conn, WIRE_MPA_REJECT | WIRE_DAPL_REFUSED, NULL, NULL, 0, &sent);
}

/* --- passive: a Request ------------------------------------------------------------------------------ */

static const char *request_fault(const struct dapl_conn *conn)
{
	const struct wire_mpa *mpa = &conn->mpa;

	if (mpa->revision != 1 && mpa->revision != 2)
		return "MPA request of an unknown revision";
	if (mpa->flags & WIRE_MPA_MARKERS)
		return "MPA request that wants markers";
	if (mpa->p2p && !mpa->p2p_write && !mpa->p2p_read)
		return "MPA request for a first frame of an unsupported kind";
	return NULL;
}

/* True: core is to be asked; *request and *sp are filled in. */
static bool request_complete(struct dapl_conn *conn, struct dapl_request *request, void **sp)
{
	const uint8_t *data = frame_data(conn, &request->pdata_len);
	const char *fault = data ? request_fault(conn) : "MPA request with a wrong length";
	struct dapl_listener *listener;
	bool sent;

	if (fault) {
		request_failed(conn, fault);
		if (data && conn->mpa.revision <= 2)
			reply(conn, WIRE_MPA_REJECT, NULL, NULL, 0, &sent);
		conn_bury(conn);
		return false;
	}
	conn->peer_is_dapl = conn->mpa.flags & WIRE_DAPL_REQUEST;
	conn->ud = conn->peer_is_dapl && (conn->mpa.flags & WIRE_DAPL_UD);
	listener = conn->ud ? conn->port->ud : conn->port->rc;
	if (!listener) {
		refuse(conn);
		conn_bury(conn);
		return false;
	}
	leave_handshake(conn);
	cm_unwatch(conn);
	get_address(conn);
	set_state(conn, SOFT_REQUESTED, "the request came");
	request->local = conn->local;
	request->remote = conn->remote;
	request->pdata = data;
	request->ud = conn->ud;
	*sp = listener->sp;
	return true;
}

static bool request_readable(struct dapl_conn *conn, struct dapl_request *request, void **sp)
{
	switch (receive_frame(conn)) {
	case GOT_PART:
		if (!conn->in_cm)
			cm_watch(conn, EPOLLIN);
		return false;
	case GOT_ALL:
		return request_complete(conn, request, sp);
	case GOT_BAD:
		if (!conn->io_error && conn->frame_length == WIRE_MPA_HEADER) {
			get_address(conn);
			request_failed(conn, "no MPA request: the peer speaks another protocol");
		}
		/* fall through */
	default:	/* a port scan, or a health check, is nobody's failure */
		soft_trace(TRC_LVL_NORMAL, "conn", conn, "no MPA request, closed");
		conn_bury(conn);
		return false;
	}
}

/* Closes a half-open connection in favour of another. */
static void evict(struct dapl_conn *conn)
{
	if (!conn)
		return;
	soft_half_open_report(conn);
	conn_bury(conn);
}

/* Out of descriptors, a half-open connection gives up its own. */
static int accept_fd(struct soft_port *port, struct sockaddr_storage *remote)
{
	struct dapl_conn *oldest;
	socklen_t length;
	int fd;

	do {
		length = sizeof *remote;
		fd = accept4(port->fd, (struct sockaddr *)remote, &length,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0 || !is_out_of_descriptors(errno))
			return fd;
		oldest = soft_half_open_oldest(port->dev);
		evict(oldest);
	} while (oldest);
	return -1;
}

/* Memory first: a caller that is not accepted waits in the backlog, one that is accepted and
 * closed takes us for an old implementation and does without what only ours do. */
static struct dapl_conn *accept_one(struct soft_port *port)
{
	struct dapl_device *dev = port->dev;
	struct dapl_conn *conn = conn_new(dev);
	struct sockaddr_storage remote;
	int err;

	if (!conn) {
		errno = ENOMEM;
		return NULL;
	}
	conn->fd = accept_fd(port, &remote);
	if (conn->fd < 0) {
		err = errno;
		conn_free(conn);
		errno = err;
		return NULL;
	}
	conn->passive = true;
	conn->port = port;
	LIST_INSERT_HEAD(&dev->conns, conn, link);
	conn->remote = remote;
	conn->local = port->local;
	set_state(conn, SOFT_WAIT_REQUEST, "TCP accepted");
	soft_half_open_add(conn);
	evict(soft_half_open_surplus(conn));
	port->shortage_reported = false;
	set_class(conn);
	set_deadline(conn, SOFT_HANDSHAKE_S);
	return conn;
}

/* 0, or errno: it stays paused then. */
static int port_watch(struct soft_port *port)
{
	struct epoll_event event = { .events = EPOLLIN,
		.data.u64 = (uintptr_t)port | 1 };

	port->paused = epoll_ctl(port->dev->cm_epoll, EPOLL_CTL_ADD, port->fd, &event) != 0;
	return port->paused ? errno : 0;
}

static void port_unwatch(struct soft_port *port)
{
	if (!port->paused)
		epoll_ctl(port->dev->cm_epoll, EPOLL_CTL_DEL, port->fd, NULL);
	port->paused = true;
}

/* Without descriptors or memory the listener rests until the next sweep. */
static void port_rest(struct soft_port *port)
{
	struct dapl_device *dev = port->dev;
	int err = errno;

	soft_trace(TRC_LVL_ERROR, "port", port, "accept: %s", strerror(err));
	if (!port->shortage_reported)
		soft_report_shortage(dev, err, "accepting connections waits, accept4");
	port->shortage_reported = true;
	port_unwatch(port);
	sweep_within(dev, RETRY_US);
}

/* Cheaper than an accept4 that finds nobody. */
static bool another_waits(const struct soft_port *port)
{
	struct pollfd on = { .fd = port->fd, .events = POLLIN };

	return port->fd >= 0 && poll(&on, 1, 0) > 0;
}

static void take_request(struct dapl_conn *conn);

/* Engine lock held; it's dropped around the upcall for a Request that is there already. */
static void port_ready(struct soft_port *port)
{
	for (int i = 0; port->fd >= 0 && i < CM_ACCEPT_BATCH; i++) {
		struct dapl_conn *conn = accept_one(port);

		if (!conn && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			      errno == ENOMEM))
			port_rest(port);
		if (!conn)
			return;
		take_request(conn);
		if (!another_waits(port))
			return;
	}
}

/* --- active ----------------------------------------------------------------------------------------------- */

static enum dapl_conn_failure why_failed(int err)
{
	switch (err) {
	case ETIMEDOUT:
		return DAPL_CONN_TIMED_OUT;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
	case EACCES:
	case EPERM:
	case EINVAL:
		return DAPL_CONN_UNREACHABLE;
	default:
		return DAPL_CONN_REFUSED;
	}
}

/* A socket bound to this device's address, on its way. 0 or errno of a local failure;
 * what the network says comes later. */
static int start_tcp(struct dapl_conn *conn, int *network)
{
	const struct sockaddr *remote = (struct sockaddr *)&conn->remote;
	struct sockaddr_storage local = conn->dev->address;
	int on = 1;

	*network = 0;
	conn->fd = socket(remote->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return errno;
	set_no_delay(conn->fd);
	set_quiet_handshake(conn->fd);
	if (!same_address(&conn->remote, &local))
		set_keepalive(conn->fd);	/* this host's own TCP tells every end */
	set_class(conn);
	conn->local.ss_family = AF_UNSPEC;
	if (local.ss_family == remote->sa_family) {
		address_set_port((struct sockaddr *)&local, 0);
		setsockopt(conn->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
		if (bind(conn->fd, (struct sockaddr *)&local,
			 address_length((struct sockaddr *)&local)))
			*network = errno;
	}
	if (!*network && connect(conn->fd, remote, address_length(remote)) &&
	    errno != EINPROGRESS)
		*network = errno;
	return 0;
}

static bool send_request(struct dapl_conn *conn)
{
	struct wire_mpa mpa = {
		.revision = conn->rev, .ird = conn->reads_in, .ord = conn->reads_out,
		.flags = conn->dev->want_crc ? WIRE_MPA_CRC : 0,
	};

	if (conn->rev == 2)
		mpa.flags |= WIRE_MPA_S | WIRE_DAPL_REQUEST;
	if (conn->ud)
		mpa.flags |= WIRE_DAPL_UD;
	return send_frame(conn, &mpa, NULL, conn->pdata, conn->pdata_length);
}

/* Once more, as RFC 5044 had it. */
static bool fall_back(struct dapl_conn *conn)
{
	int network, err;

	if (conn->fell_back || conn->ud)
		return false;
	conn->fell_back = true;
	conn->rev = 1;
	cm_unwatch(conn);
	close(conn->fd);
	set_state(conn, SOFT_CONNECTING, "again, as MPA revision 1");
	err = start_tcp(conn, &network);
	if (err || network) {
		soft_cm_caused(conn, err ? err : network, DAPL_CODE_NONE, 0,
			       "second attempt, as MPA revision 1");
		return false;
	}
	conn->frame_length = 0;
	conn->frame_need = WIRE_MPA_HEADER;
	conn->deadline_ns = 0;
	cm_watch(conn, EPOLLOUT);
	return true;
}

/* TCP is up, or has failed, or neither: within a host it is up by the time connect returns. */
static void begin_exchange(struct dapl_conn *conn)
{
	if (send_request(conn)) {
		set_state(conn, SOFT_WAIT_REPLY, "request sent");
		cm_watch(conn, EPOLLIN);
	} else if (errno == EAGAIN) {
		cm_watch(conn, EPOLLOUT);
	} else {
		fail(conn, why_failed(errno), errno, NULL);
	}
}

static void connecting_ready(struct dapl_conn *conn)
{
	int err = 0;
	socklen_t length = sizeof err;

	getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &length);
	if (err)
		fail(conn, why_failed(err), err, NULL);
	else
		begin_exchange(conn);
}

static void rejected(struct dapl_conn *conn, const uint8_t *data, size_t length)
{
	bool by_provider = (conn->mpa.flags & WIRE_DAPL_REPLY) &&
			   (conn->mpa.flags & WIRE_DAPL_REFUSED);

	conn->up_pdata = data;
	conn->up_pdata_length = length;
	soft_cm_caused(conn, 0, DAPL_CODE_MPA, conn->mpa.flags, by_provider ?
		       "refused by the peer's provider" : "rejected by the peer's program");
	fail(conn, by_provider ? DAPL_CONN_REFUSED : DAPL_CONN_REJECTED, 0, NULL);
}

/* The datagram association: our half goes out, then TCP has done its work. */
static int associate(struct dapl_conn *conn, const struct wire_trailer *peer)
{
	struct sockaddr *remote = (struct sockaddr *)&conn->remote;

	conn->peer.qpn = peer->qpn;
	conn->peer.qkey = peer->qkey;
	return conn->qp ? soft_ah_create(conn->qp->qp.pd, remote, peer->udp_port, &conn->peer.ah)
			: ECANCELED;
}

/* Could the peer be on this host? If so it's worth an offer. */
static bool is_local(const struct dapl_conn *conn)
{
	struct sockaddr_storage remote = conn->remote;
	bool bound;
	int fd;

	if (same_address(&conn->remote, &conn->local))
		return true;
	address_set_port((struct sockaddr *)&remote, 0);
	fd = socket(remote.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bound = fd >= 0 && !bind(fd, (struct sockaddr *)&remote,
				 address_length((struct sockaddr *)&remote));
	if (fd >= 0)
		close(fd);
	return bound;
}

static struct wire_trailer our_trailer(const struct dapl_conn *conn)
{
	struct wire_trailer trailer = {
		.version = WIRE_TRAILER_VERSION, .max_fpdu = MULPDU_LARGE,
	};

	if (conn->ud && conn->qp) {
		trailer.qpn = conn->qp->qp.qp_num;
		trailer.qkey = conn->qp->qkey;
		trailer.udp_port = conn->dev->udp_port;
	}
	return trailer;
}

static void associated(struct dapl_conn *conn, const struct wire_trailer *peer)
{
	int err;

	get_address(conn);
	err = associate(conn, peer);
	if (err) {
		fail(conn, DAPL_CONN_REFUSED, err, "address handle");
		return;
	}
	close_socket(conn);
	soft_cm_tell(conn, SOFT_UP_ESTABLISHED);
}

static void associate_active(struct dapl_conn *conn, const struct wire_trailer *peer)
{
	struct wire_trailer trailer = our_trailer(conn);
	uint8_t bytes[WIRE_TRAILER];

	wire_trailer_put(bytes, &trailer);
	if (send(conn->fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof bytes)
		fail(conn, DAPL_CONN_REFUSED, errno, NULL);
	else
		associated(conn, peer);
}

static void begin_attach(struct dapl_conn *conn)
{
	if (conn->state == SOFT_ATTACHING)
		return;
	cm_unwatch(conn);
	set_state(conn, SOFT_ATTACHING, "the reply came");
	conn->attach_end_ns = clock_now_ns() + SOFT_ATTACH_S * 1000000000ull;
}

/* errno is why; 0: memory is not wanted, or not offered. Always false. */
static bool attach_failed(struct dapl_conn *conn)
{
	uint64_t peer;

	memcpy(&peer, conn->attach_token, sizeof peer);
	shm_fallback_report(conn, peer, errno);
	return false;
}

/* The peer process has no room for another caller. False: it had none for too long. */
static bool attach_again(struct dapl_conn *conn)
{
	if (conn->attach_end_ns && clock_now_ns() >= conn->attach_end_ns) {
		errno = EAGAIN;
		return attach_failed(conn);
	}
	begin_attach(conn);
	set_deadline_ms(conn, SOFT_ATTACH_RETRY_MS);
	return true;
}

static bool attach_wait(struct dapl_conn *conn)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

	if (epoll_ctl(conn->dev->cm_epoll, EPOLL_CTL_ADD, conn->attach_fd, &event)) {
		attach_failed(conn);
		close(conn->attach_fd);
		conn->attach_fd = -1;
		return false;
	}
	begin_attach(conn);
	set_deadline(conn, SOFT_ATTACH_S);
	return true;
}

/* Takes what the acceptor offers. True: an answer is to be waited for, or a retry. */
static bool attach_memory(struct dapl_conn *conn)
{
	struct shm_segment *segment;

	if (conn->crc)
		return false;
	switch (soft_attach_begin(conn->dev, conn->attach_token, &conn->attach_fd, &segment,
				  &conn->acceptor)) {
	case SOFT_ATTACH_DONE:
		__atomic_store_n(&conn->shm, shm_conn_new(conn, segment), __ATOMIC_RELEASE);
		return false;
	case SOFT_ATTACH_WAIT:
		return attach_wait(conn);
	case SOFT_ATTACH_AGAIN:
		return attach_again(conn);
	default:
		return attach_failed(conn);
	}
}

/* An acceptor of this device need not hear from the socket what lies in its own table. */
static void both_established(struct dapl_conn *conn)
{
	struct dapl_conn *acceptor = conn->acceptor;
	struct attach_offer *offer;

	established(conn);
	conn->acceptor = NULL;
	if (!acceptor || !conn->shm || conn->state != SOFT_OPEN)
		return;
	offer = acceptor->offer;
	acceptor->offer = NULL;
	rings_agreed(acceptor, attach_offer_end(offer));
}

static void attach_ready(struct dapl_conn *conn)
{
	struct shm_segment *segment;

	switch (soft_attach_go_on(conn->dev, conn->attach_fd, &segment)) {
	case SOFT_ATTACH_WAIT:
		return;
	case SOFT_ATTACH_DONE:
		__atomic_store_n(&conn->shm, shm_conn_new(conn, segment), __ATOMIC_RELEASE);
		break;
	default:
		attach_failed(conn);
	}
	end_attach(conn);
	established(conn);
}

static void reply_complete(struct dapl_conn *conn)
{
	struct wire_trailer trailer;
	size_t length;
	const uint8_t *data = frame_data(conn, &length);
	const struct wire_mpa *mpa = &conn->mpa;

	if (data && mpa->revision == 1 && conn->rev == 2 && (mpa->flags & WIRE_MPA_REJECT) &&
	    fall_back(conn))
		return;
	if (!data || mpa->revision > conn->rev) {
		fail(conn, DAPL_CONN_REFUSED, 0, "malformed MPA reply");
		return;
	}
	if (mpa->flags & WIRE_MPA_REJECT) {
		rejected(conn, data, length);
		return;
	}
	conn->peer_is_dapl = conn->rev == 2 && (mpa->flags & WIRE_DAPL_REPLY);
	conn->swaps = conn->rev == 2 && !conn->peer_is_dapl && (mpa->flags & WIRE_DAPL_REQUEST);
	if (conn->peer_is_dapl) {
		if (length < WIRE_TRAILER || !wire_trailer_get(data, &trailer)) {
			fail(conn, DAPL_CONN_REFUSED, 0, "malformed MPA reply: trailer");
			return;
		}
		memcpy(conn->attach_token, trailer.token, sizeof conn->attach_token);
		data += WIRE_TRAILER;
		length -= WIRE_TRAILER;
	}
	if ((mpa->flags & WIRE_MPA_MARKERS) || (conn->ud && !conn->peer_is_dapl)) {
		fail(conn, DAPL_CONN_REFUSED, 0, mpa->flags & WIRE_MPA_MARKERS ?
		     "the peer wants MPA markers" : "the peer knows no datagram endpoints");
		return;
	}
	conn->crc = (mpa->flags & WIRE_MPA_CRC) || conn->dev->want_crc;
	if (mpa->ird != WIRE_ORD_NONE)
		conn->reads_out = lesser(conn->reads_out, mpa->ird);
	conn->up_pdata = data;
	conn->up_pdata_length = length;
	if (conn->ud)
		associate_active(conn, &trailer);
	else if (!conn->peer_is_dapl || !attach_memory(conn))
		both_established(conn);
}

static void reply_readable(struct dapl_conn *conn)
{
	switch (receive_frame(conn)) {
	case GOT_PART:
		if (!conn->deadline_ns && conn->frame_length)
			set_deadline(conn, SOFT_HANDSHAKE_S);
		break;
	case GOT_ALL:
		reply_complete(conn);
		break;
	case GOT_END:
		if (fall_back(conn))
			break;
		fail(conn, DAPL_CONN_REFUSED, 0, "the peer closed without an MPA reply");
		break;
	default:
		fail(conn, DAPL_CONN_REFUSED, conn->io_error, conn->io_error ? NULL :
		     "malformed MPA reply: the peer speaks another protocol");
	}
}

/* --- passive: the initiator's first FPDU, or its half of an association --------------------------------------- */

/* Wakes us when there are so many bytes to read, or no more will come. */
static void wake_at(struct dapl_conn *conn, int bytes)
{
	if ((bytes > 1) == conn->wakes_late)
		return;
	setsockopt(conn->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
	conn->wakes_late = bytes > 1;
}

static bool no_more_comes(const struct dapl_conn *conn)
{
	struct pollfd on = { .fd = conn->fd, .events = POLLRDHUP };

	return poll(&on, 1, 0) > 0 && on.revents;
}

/* The first frame's form says where data goes. One that says "rings" is taken out, others
 * stay in the stream. */
static void first_frame(struct dapl_conn *conn)
{
	struct shm_segment *segment;
	uint8_t expected[SWITCH_LENGTH] = { 0 }, frame[SWITCH_LENGTH];
	ssize_t n = recv(conn->fd, frame, sizeof frame, MSG_PEEK | MSG_DONTWAIT);
	uint64_t peer = 0;
	int err;

	switch_frame(expected);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && n < SWITCH_LENGTH && conn->offer && !memcmp(frame, expected, n) &&
	    !no_more_comes(conn)) {
		wake_at(conn, SWITCH_LENGTH);
		return;
	}
	err = errno;
	wake_at(conn, 1);
	if (n <= 0) {
		fail(conn, DAPL_CONN_REFUSED, n ? err : 0, n ? NULL :
		     "the peer closed before its first frame");
		return;
	}
	err = attach_offer_error(conn->offer, &peer);
	segment = attach_offer_end(conn->offer);
	conn->offer = NULL;
	if (n == SWITCH_LENGTH && segment && !memcmp(frame, expected, n)) {
		recv(conn->fd, frame, sizeof frame, MSG_DONTWAIT);
		rings_agreed(conn, segment);
		return;
	}
	shm_segment_put(segment);
	shm_fallback_report(conn, peer, err);
	established(conn);
}

static void first_readable(struct dapl_conn *conn)
{
	struct wire_trailer peer;

	if (!conn->ud) {
		first_frame(conn);
		return;
	}
	switch (receive_frame(conn)) {
	case GOT_PART:
		return;
	case GOT_ALL:
		if (wire_trailer_get(conn->frame, &peer)) {
			associated(conn, &peer);
			return;
		}
		fail(conn, DAPL_CONN_REFUSED, 0, "malformed datagram association");
		break;
	default:
		fail(conn, DAPL_CONN_REFUSED, conn->io_error, conn->io_error ? NULL :
		     "the peer closed before its half of the association");
	}
}

/* --- the service thread ------------------------------------------------------------------------------------------ */

static void take_request(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;
	struct dapl_request request;
	void *sp;

	if (!request_readable(conn, &request, &sp))
		return;
	soft_progress_unlock(dev);
	dapl_up_request(sp, conn, &request);
	soft_progress_lock(dev);
}

/* Engine lock held. Events may be stale: the state says what is expected now. */
static void conn_ready(struct dapl_conn *conn)
{
	if (!conn->in_cm && conn->attach_fd < 0)
		return;
	switch (conn->state) {
	case SOFT_ATTACHING:
		attach_ready(conn);
		break;
	case SOFT_CONNECTING:
		connecting_ready(conn);
		break;
	case SOFT_WAIT_REPLY:
		reply_readable(conn);
		break;
	case SOFT_WAIT_REQUEST:
		take_request(conn);
		break;
	case SOFT_WAIT_FIRST:
		first_readable(conn);
		break;
	default:		/* of a pair, once core knows that it is up */
		if (conn->in_data)
			soft_progress_end(conn);
		break;
	}
}

static void cm_ready(struct dapl_watch *watch)
{
	struct dapl_device *dev = container_of(watch, struct dapl_device, cm_watch);
	struct epoll_event event[CM_EVENTS];
	int n = epoll_wait(dev->cm_epoll, event, CM_EVENTS, 0);

	soft_progress_lock(dev);
	for (int i = 0; i < n; i++) {
		uintptr_t p = event[i].data.u64;

		if (p & 1)
			port_ready((struct soft_port *)(p & ~(uintptr_t)1));
		else
			conn_ready((struct dapl_conn *)p);
	}
	soft_progress_unlock(dev);
}

/* A foreign initiator keeps silent, and may be waiting for us: DAT lets either side speak
 * first. Its TCP has our Reply by now, so what we send does not come together with it. */
static void speak_first(struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;
	int unread = 0;

	if (!qp)
		return;
	if (!ioctl(conn->fd, SIOCOUTQ, &unread) && unread) {
		set_deadline_ms(conn, SOFT_FIRST_MS);
		return;
	}
	dapl_spin_lock(&qp->lock);
	conn->tx.open = true;
	soft_tcp_send(conn);
	dapl_spin_unlock(&qp->lock);
}

/* The peer process did not answer, or had no room for another caller until now. */
static void attach_expired(struct dapl_conn *conn)
{
	if (conn->attach_fd < 0 && attach_memory(conn))
		return;
	if (conn->attach_fd >= 0) {
		errno = ETIMEDOUT;
		attach_failed(conn);
	}
	end_attach(conn);
	both_established(conn);
}

static void conn_expired(struct dapl_conn *conn)
{
	conn->deadline_ns = 0;
	if (conn->state == SOFT_OPEN && !conn->unwatched) {
		speak_first(conn);
		return;
	}
	soft_trace(TRC_LVL_NORMAL, "conn", conn, "time is up while %s", state_name[conn->state]);
	switch (conn->state) {
	case SOFT_WAIT_REQUEST:
		conn_bury(conn);
		break;
	case SOFT_ATTACHING:
		attach_expired(conn);
		break;
	case SOFT_CONNECTING:
	case SOFT_WAIT_REPLY:
	case SOFT_WAIT_FIRST:
		fail(conn, DAPL_CONN_TIMED_OUT, ETIMEDOUT, NULL);
		break;
	case SOFT_OPEN:
		end_stream(conn, conn->io_error, "no epoll set takes its socket");
		break;
	default:		/* released, and the peer does not close */
		if (conn->released)
			conn_bury(conn);
	}
}

static void sweep(struct dapl_timer *timer)
{
	struct dapl_device *dev = container_of(timer, struct dapl_device, sweep_timer);
	uint64_t now = clock_now_ns(), next = UINT64_MAX;
	struct dapl_conn *conn, *after;
	struct soft_port *port;
	bool streams = false;

	soft_progress_lock(dev);
	dev->sweep_ns = 0;
	for (conn = LIST_FIRST(&dev->conns); conn; conn = after) {
		after = LIST_NEXT(conn, link);
		if (conn->deadline_ns && conn->deadline_ns <= now)
			conn_expired(conn);
		else if (conn->deadline_ns && conn->deadline_ns < next)
			next = conn->deadline_ns;
		if (conn->in_data && patience_ms())
			streams |= stream_lives(conn, now);
	}
	LIST_FOREACH(port, &dev->ports, link)
		if (port->paused && port_watch(port))
			sweep_within(dev, RETRY_US);
	if (streams)
		look_after(dev);
	if (next != UINT64_MAX)
		sweep_within(dev, (next - now) / 1000 > SWEEP_LEAST_US ? (next - now) / 1000
								      : SWEEP_LEAST_US);
	soft_progress_unlock(dev);
}

/* --- operations: listening ------------------------------------------------------------------------------------------- */

static bool is_any(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
	return !((const struct sockaddr_in *)address)->sin_addr.s_addr;
}

/* Engine lock held. */
static int port_open(struct dapl_device *dev, const struct sockaddr *addr, uint16_t number,
		     int backlog, struct soft_port **out)
{
	struct sockaddr_storage local = dev->address;
	socklen_t length;
	struct soft_port *port;
	int on = 1, err;

	if (addr)
		memcpy(&local, addr, address_length(addr));
	address_set_port((struct sockaddr *)&local, number);
	port = calloc(1, sizeof *port);
	if (!port)
		return ENOMEM;
	port->dev = dev;
	port->fd = socket(local.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (port->fd < 0)
		goto failed;
	setsockopt(port->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	set_no_delay(port->fd);		/* what it accepts inherits these */
	set_keepalive(port->fd);
	length = address_length((struct sockaddr *)&local);
	if (bind(port->fd, (struct sockaddr *)&local, length) || listen(port->fd, backlog) ||
	    port_watch(port))
		goto failed;
	getsockname(port->fd, (struct sockaddr *)&local, &length);
	port->number = address_port((struct sockaddr *)&local);
	if (!is_any(&local))
		port->local = local;
	*out = port;
	return 0;
failed:
	err = errno;
	if (port->fd >= 0)
		close(port->fd);
	free(port);
	return err;
}

/* Engine lock held. A port of ours that the other kind of listener has opened. */
static struct soft_port *port_find(struct dapl_device *dev, uint16_t number, bool ud)
{
	struct soft_port *port;

	LIST_FOREACH(port, &dev->ports, link)
		if (number && port->number == number && !(ud ? port->ud : port->rc))
			return port;
	return NULL;
}

int soft_cm_listen(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *number,
		   bool ud, int backlog, void *sp, struct dapl_listener **listener)
{
	struct dapl_listener *new = calloc(1, sizeof *new);
	struct soft_port *port;
	bool opened;
	int err = 0;

	if (!new)
		return ENOMEM;
	new->sp = sp;
	new->ud = ud;
	soft_progress_lock(dev);
	port = addr ? NULL : port_find(dev, *number, ud);
	opened = !port;
	if (opened)
		err = port_open(dev, addr, *number, backlog < 128 ? 128 : backlog, &port);
	if (!err) {
		new->port = port;
		*(ud ? &port->ud : &port->rc) = new;
		*number = port->number;
	}
	if (!err && opened)
		LIST_INSERT_HEAD(&dev->ports, port, link);
	soft_progress_unlock(dev);
	if (err)
		free(new);
	else
		*listener = new;
	return err;
}

static void port_free(struct dapl_task *task)
{
	free(container_of(task, struct soft_port, task));
}

/* Engine lock held: nobody listens any more. */
static void port_close(struct soft_port *port)
{
	struct dapl_conn *conn, *next;

	for (conn = LIST_FIRST(&port->dev->conns); conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (conn->state == SOFT_WAIT_REQUEST && conn->port == port)
			conn_bury(conn);
	}
	LIST_REMOVE(port, link);
	port_unwatch(port);
	close(port->fd);
	port->fd = -1;
	dapl_task_queue(&port->task, port_free);
}

void soft_cm_unlisten(struct dapl_listener *listener)
{
	struct soft_port *port = listener->port;
	struct dapl_device *dev = port->dev;

	soft_progress_lock(dev);
	*(listener->ud ? &port->ud : &port->rc) = NULL;
	if (!port->ud && !port->rc)
		port_close(port);
	soft_progress_unlock(dev);
	dapl_service_flush();	/* an upcall that runs is over then */
	free(listener);
}

/* --- operations: connections --------------------------------------------------------------------------------------------- */

/* Engine lock held. */
static int attach(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	struct soft_qp *qp = (struct soft_qp *)params->qp;
	int err = 0;

	dapl_spin_lock(&qp->lock);
	if (!params->ud && (qp->conn || qp->state != IBV_QPS_INIT))
		err = EINVAL;
	if (!err && !params->ud)
		qp->conn = conn;
	dapl_spin_unlock(&qp->lock);
	if (err)
		return err;
	conn->qp = qp;
	conn->owner = params->owner;
	conn->reads_in = params->reads_in;
	conn->reads_out = params->reads_out;
	conn->qos = params->qos;
	return 0;
}

void soft_cm_detach(struct soft_qp *qp)
{
	struct dapl_device *dev = qp->dev;
	struct dapl_conn *conn = qp->conn;

	if (qp->qp.qp_type == IBV_QPT_UD) {	/* associations under way */
		LIST_FOREACH(conn, &dev->conns, link)
			if (conn->qp == qp)
				conn->qp = NULL;
		return;
	}
	if (!conn)
		return;
	dapl_spin_lock(&qp->lock);
	if (qp->state == IBV_QPS_RTS)
		soft_qp_flush(qp, 0, IBV_WC_SUCCESS);
	conn->qp = NULL;
	qp->conn = NULL;
	dapl_spin_unlock(&qp->lock);
}

int soft_cm_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
		    struct dapl_conn **out)
{
	struct dapl_conn *conn;
	int err = EINVAL, network;

	if (params->pdata_len > WIRE_PDATA_MAX)
		return EMSGSIZE;
	conn = conn_new(dev);
	if (!conn)
		return ENOMEM;
	memcpy(&conn->remote, params->remote, address_length(params->remote));
	conn->rev = 2;
	conn->ud = params->ud;
	conn->qos = params->qos;
	set_state(conn, SOFT_CONNECTING, "connect");
	if (params->pdata_len) {
		conn->pdata = malloc(params->pdata_len);
		if (!conn->pdata) {
			err = ENOMEM;
			goto failed;
		}
		memcpy(conn->pdata, params->pdata, params->pdata_len);
		conn->pdata_length = params->pdata_len;
	}
	err = start_tcp(conn, &network);
	if (err)
		goto failed;
	soft_progress_lock(dev);
	err = attach(conn, params);
	if (!err) {
		*out = conn;
		LIST_INSERT_HEAD(&dev->conns, conn, link);
		if (network)
			fail(conn, why_failed(network), network, NULL);
		else
			begin_exchange(conn);
	}
	soft_progress_unlock(dev);
	if (!err)
		return 0;
failed:
	if (conn->fd >= 0)
		close(conn->fd);
	conn_free(conn);
	return err;
}

/* Engine lock held: our Reply says yes. */
static void send_accept(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	struct wire_trailer trailer = our_trailer(conn);
	uint8_t flags = 0;
	bool sent;

	if (conn->mpa.ird != WIRE_ORD_NONE)
		conn->reads_out = lesser(conn->reads_out, conn->mpa.ird);
	conn->crc = (conn->mpa.flags & WIRE_MPA_CRC) || conn->dev->want_crc;
	if (conn->crc)
		flags = WIRE_MPA_CRC;
	if (conn->peer_is_dapl && !conn->ud && !conn->crc && is_local(conn)) {
		conn->offer = attach_offer_new(conn->dev, conn, trailer.token);
		if (!conn->offer)
			shm_fallback_report(conn, 0, errno);
	}
	reply(conn, flags, conn->peer_is_dapl ? &trailer : NULL, params->pdata, params->pdata_len, &sent);
	if (!sent) {
		fail(conn, DAPL_CONN_REFUSED, errno, NULL);
		return;
	}
	if (!conn->peer_is_dapl) {
		established(conn);
		return;
	}
	set_state(conn, SOFT_WAIT_FIRST, "reply sent");
	conn->frame_length = 0;
	conn->frame_need = WIRE_TRAILER;
	conn->up_pdata = NULL;
	set_deadline(conn, SOFT_HANDSHAKE_S);
	cm_watch(conn, EPOLLIN);
}

int soft_cm_accept(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	struct dapl_device *dev = conn->dev;
	int err;

	if (params->pdata_len > WIRE_PDATA_MAX)
		return EMSGSIZE;
	if (params->ud != conn->ud)
		return EINVAL;
	soft_progress_lock(dev);
	err = conn->state == SOFT_REQUESTED ? attach(conn, params) : EINVAL;
	if (!err)
		send_accept(conn, params);
	soft_progress_unlock(dev);
	return err;
}

int soft_cm_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len)
{
	struct dapl_device *dev = conn->dev;
	bool sent;

	if (len > WIRE_PDATA_MAX)
		return EMSGSIZE;
	soft_progress_lock(dev);
	if (by_consumer)
		reply(conn, WIRE_MPA_REJECT, NULL, pdata, len, &sent);
	else
		refuse(conn);
	conn_bury(conn);
	soft_progress_unlock(dev);
	return 0;
}

/* Engine lock held. */
static void send_close(struct dapl_conn *conn)
{
	struct soft_qp *qp = conn->qp;

	if (qp)
		dapl_spin_lock(&qp->lock);
	conn->tx.close_notice = true;
	shm_grant_revoke(conn);
	soft_tcp_send(conn);
	set_state(conn, SOFT_CLOSING, "disconnect");
	if (qp)
		dapl_spin_unlock(&qp->lock);
}

int soft_cm_disconnect(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	soft_progress_lock(dev);
	if (conn->state == SOFT_OPEN)
		send_close(conn);
	soft_progress_unlock(dev);
	return 0;
}

void soft_cm_release(struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;

	soft_progress_lock(dev);
	conn->released = true;
	if (conn->state == SOFT_OPEN)
		send_close(conn);
	if (conn->state == SOFT_REQUESTED)
		refuse(conn);
	if (conn->qp && conn->qp->conn == conn)
		soft_cm_detach(conn->qp);
	conn->qp = NULL;
	if (conn->owner)
		soft_cm_tell(conn, SOFT_UP_RELEASED);
	if (conn->state != SOFT_CLOSING || (conn->shm && conn->tx.shut)) {
		conn_bury(conn);	/* what the peer's ring has it can read without us */
	} else {		/* what we sent is to arrive: no close before the peer's FIN */
		if (!conn->in_data)
			soft_progress_add(conn);
		set_deadline(conn, SOFT_LINGER_S);
	}
	soft_progress_unlock(dev);
}

/* --- the device opens and closes ------------------------------------------------------------------------------------------- */

int soft_cm_open(struct dapl_device *dev)
{
	LIST_INIT(&dev->conns);
	TAILQ_INIT(&dev->half_open);
	LIST_INIT(&dev->ports);
	dev->cm_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (dev->cm_epoll < 0)
		return errno;
	return dapl_watch_start(&dev->cm_watch, dev->cm_epoll, cm_ready);
}

/* What the socket has not taken yet gets a moment. */
static void flush_last(struct dapl_conn *conn, uint64_t until)
{
	struct pollfd p = { .fd = conn->fd, .events = POLLOUT };

	while (conn->fd >= 0 && !conn->tx.shut && clock_now_ns() < until) {
		poll(&p, 1, 10);
		conn->tx.blocked = false;
		soft_tcp_send(conn);
	}
}

void soft_cm_close(struct dapl_device *dev)
{
	uint64_t until = clock_now_ns() + CLOSE_FLUSH_MS * 1000000ull;
	struct dapl_conn *conn;

	dapl_watch_stop(&dev->cm_watch);
	soft_progress_lock(dev);
	while ((conn = LIST_FIRST(&dev->conns))) {
		if (conn->state == SOFT_CLOSING)
			flush_last(conn, until);
		conn_bury(conn);
	}
	soft_progress_unlock(dev);
	dapl_timer_drain(&dev->sweep_timer);
	dapl_service_flush();
	if (dev->cm_epoll >= 0)
		close(dev->cm_epoll);
}
