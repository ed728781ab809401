/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sockstream_fuzz.c - any messages, and any bytes of TCP, as what a peer sends on a stream over DAT of libdatsock
 * (sock/remote.h), between the calls of this end's program: no access outside of the rings, no byte posted from or to
 * elsewhere than the rings of the stream, and no more bytes read than came.
 *
 * The first byte of an input says which end opens the stream (1), and whether the peer does it properly (2). Records
 * follow: an action, and its argument. Members of a message may be near to those that a correct peer would send, which
 * random numbers seldom are. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "sock/conn.h"
#include "sock/epoll.h"
#include "sock/full.h"
#include "sock/move.h"
#include "sock/remote.h"
#include "sock/remote_back.h"
#include "sock/remote_frame.h"
#include "sock/remote_in.h"
#include "sock/remote_open.h"
#include "sock/remote_types.h"
#include "sock/service.h"
#include "sock/settings.h"
#include "sock/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RING_SIZE = 4096, BUFFER = 5000, WIRE_MOST = LINK_MESSAGE + LINK_INLINE };
/* Those from RARE on are bytes from 0xf0 on. */
enum action { NEAR, RAW, TCP, FRAME, READ, WRITE, REVOKE, SEND_BACK, SHUT, ROOM, DOWN, RARE, TICK = RARE, POLL };
static const uint64_t PEER_ADDRESS = 1 << 20;
static const unsigned char key[LINK_KEY] = "0123456789abcde";

struct link {
	bool asker, over, full;
	struct {
		uint64_t from, to;
	} regions[2];
	int registered;
	uint64_t tcp;  /* bytes that the peer has sent over TCP */
	uint64_t ring; /* bytes that it says are in the ring */
};
static struct link ends;
static const struct link_user *user;
static struct conn *conn;
static int peer = -1; /* its TCP socket */
static uint32_t number; /* of the stream, as this end says */

/* With the line: what fails may depend on when TCP delivers, and so not fail again. */
#define demand(good) demand_at(good, __LINE__)
static void demand_at(bool good, int line)
{
	if (good)
		return;
	fprintf(stderr, "line %d is not so: errno %d\n", line, errno);
	abort();
}

/* --- the link ---------------------------------------------------------------------------------------------------- */

void link_set_user(const struct link_user *u) { user = u; }
bool link_is_up(const struct link *l) { return !l->over; }
bool link_is_over(const struct link *l) { return l->over; }
bool link_is_asker(const struct link *l) { return l->asker; }
const char *link_ia(const struct link *l) { (void)l; return "ia"; }
bool link_watch(struct link *l, uint64_t now) { (void)l, (void)now; return true; }
void link_pause(void) {}
void link_resume(void) {}
int link_run(void) { return -1; }
void link_borrow(struct link *l) { (void)l; }
void link_give_back(struct link *l) { (void)l; }
void link_ask(struct link *l) { (void)l; }
void link_return(struct link *l) { (void)l; }
void link_hold(struct link *l) { (void)l; }
void link_release(struct link *l) { (void)l; }
void link_after_fork(void) {}
enum link_taken link_take(struct link *l, unsigned sleep_us) { (void)l, (void)sleep_us; return LINK_SERVED; }

struct link *link_connect(const char *ia, const struct sockaddr *address, uint64_t qualifier,
			  const unsigned char token[LINK_KEY])
{
	(void)ia, (void)address, (void)qualifier, (void)token;
	return &ends;
}

/* user->down() comes later, as it does in link.c if a thread of the program has found the error. */
void link_break(struct link *l, const char *what)
{
	demand(what);
	l->over = true;
}

void link_send(struct link *l, struct link_message m)
{
	if (m.type == OPEN)
		number = m.stream;
	demand(!m.size && l == &ends);
}

bool link_write(struct link *l, const struct link_piece *pieces, int count, struct link_message m)
{
	uint64_t total = 0;

	demand(count >= 1 && count <= LINK_PIECES && m.type == NOTICE);
	for (int i = 0; i < count; i++) {
		const struct link_piece *p = &pieces[i];
		bool inside = false;

		for (int k = 0; k < l->registered; k++)
			inside |= p->from >= l->regions[k].from && p->from + p->length <= l->regions[k].to;
		demand(inside && p->length && p->to - PEER_ADDRESS + p->length <= RING_SIZE);
		total += p->length;
	}
	demand(total <= RING_SIZE);
	return !l->full && !l->over;
}

int link_register(struct link *l, void *memory, size_t size, bool exposed, struct link_memory *out)
{
	*out = (struct link_memory){ .lmr_context = 1, .rmr_context = 2 };
	if (!exposed && l->registered < 2) {
		l->regions[l->registered].from = (uintptr_t)memory;
		l->regions[l->registered++].to = (uintptr_t)memory + size;
	}
	return 0;
}

void link_unregister(struct link_memory *memory) { (void)memory; }

void link_failure_text(const struct link_failure *failure, char *text, size_t size)
{
	(void)failure;
	if (size)
		*text = 0;
}

/* --- the rest of the library ------------------------------------------------------------------------------------- */

struct service_counts service_counts;
void service_remote_opened(struct conn *c, enum dat_socket_why why) { (void)c, (void)why; }
void service_remote_back(struct conn *c, bool broken) { (void)c, (void)broken; }
void service_wake(void) {}
bool service_is_forking(void) { return false; }
void service_ask(struct conn *c) { (void)c; }
void service_watch_resend(struct conn *c) { (void)c; }
bool service_send_back(struct conn *c) { (void)c; return false; }
void service_closed(struct conn *c) { conn_recycle(c); }
void full_note(struct conn *c) { (void)c; }
bool epoll_attach(struct conn *c) { (void)c; return true; }
void epoll_detach(struct conn *c) { (void)c; }
void epoll_out_changed(struct conn *c) { (void)c; }
void epoll_drop(struct conn *c) { (void)c; }
void epoll_free_dead(struct conn *c) { (void)c; }

/* --- the connection ---------------------------------------------------------------------------------------------- */

/* Closed by a reset, so that no connection of an input stays in the kernel. */
static void set_reset(int fd)
{
	struct linger linger = { 1, 0 };

	demand(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

static void connect_ends(bool connector)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof sa;
	static int listener = -1;
	int one, other;

	if (listener < 0) {
		listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		demand(listener >= 0 && !bind(listener, (void *)&sa, sizeof sa) && !listen(listener, 1));
	}
	demand(!getsockname(listener, (void *)&sa, &size));
	one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	demand(one >= 0 && !connect(one, (void *)&sa, size));
	other = accept(listener, NULL, NULL);
	demand(other >= 0);
	peer = connector ? other : one;
	set_reset(one), set_reset(other);
	demand(!fcntl(peer, F_SETFL, O_NONBLOCK));
	conn = conn_track(connector ? one : other, true);
	demand(conn);
	conn->connector = connector, conn->acceptor = !connector;
	conn->mode = CONN_WATCHED;
}

static void take(const struct link_message *m)
{
	if (ends.over)
		return;
	/* As a thread of the program does that waits for the stream, and then the service thread. */
	if (!user->fast(&ends, m))
		user->message(&ends, m);
}

static void open_stream(bool asker, bool properly)
{
	struct sockaddr_in none = { .sin_family = AF_INET };
	uint64_t words[2];

	ends = (struct link){ .asker = asker };
	settings.ring = RING_SIZE;
	settings.after_calls = 1 << 30, settings.after_bytes = 1 << 30;
	number = 2 + !asker;
	if (asker)
		demand(!remote_open(conn, "ia", (void *)&none, 1, key));
	else
		demand(remote_expect(conn, key) && user->knows(key));
	if (!properly)
		return;
	memcpy(words, key, sizeof words);
	if (!asker)
		take(&(struct link_message){ .type = OPEN, .stream = number, .a = be64toh(words[0]),
					     .b = be64toh(words[1]), .c = RING_SIZE });
	take(&(struct link_message){ .type = RING, .stream = number, .a = PEER_ADDRESS, .b = 1, .c = RING_SIZE });
	if (asker)
		take(&(struct link_message){ .type = OPENED, .stream = number });
}

static void close_stream(void)
{
	int fd = conn->fd;

	ends.over = true;
	user->down(&ends);
	remote_forget(conn);
	conn_forget(fd);
	move_close(conn, fd);
	close(fd), close(peer);
	user->down(&ends); /* frees streams that wait for the peer's CLOSED */
}

/* --- actions ----------------------------------------------------------------------------------------------------- */

struct input {
	const uint8_t *at;
	size_t left;
};

static uint64_t number_of(struct input *in, size_t bytes)
{
	uint64_t n = 0;

	while (bytes-- && in->left)
		n = n << 8 | *in->at++, in->left--;
	return n;
}

/* A number that the peer says: any, or one near to `expected`. */
static uint64_t near(struct input *in, uint64_t expected)
{
	uint8_t how = number_of(in, 1);

	return how == 0xff ? number_of(in, 8) : how & 1 ? expected + (int16_t)number_of(in, 2) : expected;
}

static void send_near(struct input *in)
{
	unsigned char bytes[LINK_INLINE];
	const struct remote *r = conn->remote;
	struct link_message m = { .type = number_of(in, 1) % (SYNCED + 2), .bytes = bytes };
	uint64_t tail = r ? r->rx->tail : 0, claim = r ? r->tx->claim & ~RING_REVOKED : 0;
	bool in_direction = m.type == MOVE || m.type == CANCEL || m.type == NOTICE || m.type == ENDED || m.type == SYNC;

	m.stream = near(in, number);
	m.flags = number_of(in, 1);
	if (m.flags & 1 && r)
		m.flags = r->tx->epoch;
	if (m.type == NOTICE && number_of(in, 1) & 1) {
		m.size = number_of(in, 1) % (LINK_INLINE + 1);
		for (uint32_t i = 0; i < m.size; i++)
			bytes[i] = number_of(in, 1);
	}
	m.a = m.type == MOVE ? near(in, ends.tcp) : near(in, in_direction ? tail + m.size : claim);
	m.b = m.type == MOVE ? near(in, tail) : near(in, claim);
	m.c = near(in, r ? in_direction ? r->rx->epoch + (m.type == MOVE) : r->tx->epoch : RING_SIZE);
	if (m.type == RING)
		m.a = PEER_ADDRESS; /* whatever the peer says is its own */
	take(&m);
}

/* As they come from the adapter: allocated by their size, so that a read behind them shows. */
static void send_raw(struct input *in)
{
	size_t size = number_of(in, 1) % (WIRE_MOST + 2);
	unsigned char *wire = calloc(1, size + !size);
	struct link_message m;

	demand(wire);
	for (size_t i = 0; i < size; i++)
		wire[i] = number_of(in, 1);
	if (link_message_decode(wire, size, &m)) {
		demand(m.size == size - LINK_MESSAGE);
		if (m.type == RING)
			m.a = PEER_ADDRESS;
		take(&m);
	} else
		demand(size < LINK_MESSAGE || size > WIRE_MOST);
	free(wire);
}

static void send_tcp(const void *bytes, size_t size)
{
	ssize_t n = send(peer, bytes, size, MSG_NOSIGNAL);

	if (n > 0)
		ends.tcp += n;
}

static void send_frame(struct input *in)
{
	const struct remote *r = conn->remote;
	unsigned char frame[REMOTE_FRAME];
	uint64_t position = near(in, r ? r->rx->tail : 0);

	remote_encode_frame(frame, key, near(in, r ? r->rx->epoch : 1), position);
	send_tcp(frame, 1 + number_of(in, 1) % REMOTE_FRAME);
}

static void read_some(size_t size)
{
	static char buffer[BUFFER];
	struct iovec iov = { buffer, size % (BUFFER + 1) };
	ssize_t n = stream_receive(conn, conn->fd, &iov, 1, size & 1 ? MSG_PEEK : 0);

	demand(n <= (ssize_t)iov.iov_len);
	stream_readable_bytes(conn, conn->fd);
}

static void write_some(size_t size)
{
	static char buffer[BUFFER];
	struct iovec iov = { buffer, size % (BUFFER + 1) };

	demand(stream_send(conn, conn->fd, &iov, 1, MSG_NOSIGNAL) <= (ssize_t)iov.iov_len);
}

static void go_back(bool both)
{
	if (!conn_lock(conn))
		return;
	if (conn->remote) {
		move_revoke(conn);
		if (both)
			remote_send_back(conn);
	}
	conn_unlock(conn);
}

/* What must hold whatever the peer has said. */
static void check(void)
{
	const struct remote *r = conn->remote;

	if (!r || conn->broken)
		return;
	demand(r->rx->tail - conn->rx.claim <= RING_SIZE || !conn->rx.active);
	demand(r->tx->tail - (r->tx->claim & ~RING_REVOKED) <= RING_SIZE || !conn->tx.active);
}

static void poll_stream(void)
{
	if (!conn_lock_in(conn))
		return;
	if (conn->mode == CONN_ATTACHED)
		remote_tcp_is_readable(conn);
	conn_unlock_in(conn);
}

static void act(struct input *in)
{
	unsigned char bytes[256];
	uint8_t what = number_of(in, 1);
	size_t size;

	switch ((enum action)(what < 0xf0 ? what % RARE : RARE + (what & 1))) {
	case NEAR: send_near(in); break;
	case RAW: send_raw(in); break;
	case TCP:
		size = number_of(in, 1);
		for (size_t i = 0; i < size; i++)
			bytes[i] = number_of(in, 1);
		send_tcp(bytes, size);
		break;
	case FRAME: send_frame(in); break;
	case READ: read_some(number_of(in, 2)); break;
	case WRITE: write_some(number_of(in, 2)); break;
	case REVOKE: go_back(false); break;
	case SEND_BACK: go_back(true); break;
	case SHUT: shutdown(peer, SHUT_WR); break;
	case ROOM:
		ends.full = !ends.full;
		if (!ends.full && !ends.over)
			user->room(&ends);
		break;
	case DOWN:
		ends.over = true;
		user->down(&ends);
		break;
	case TICK:
		if (conn->remote)
			remote_in_tick(conn->remote);
		break;
	case POLL: poll_stream(); break;
	default: break;
	}
	if (ends.over && conn->remote)
		user->down(&ends);
	check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t how = number_of(&in, 1);

	signal(SIGPIPE, SIG_IGN);
	remote_serve_links();
	connect_ends(how & 1);
	open_stream(how & 1, how & 2);
	while (in.left)
		act(&in);
	close_stream();
	return 0;
}
