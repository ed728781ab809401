/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Streams over a DAT connection: both ends are in this process, over a TCP connection of the loopback device. The test
 * plays the link: messages are delivered when it says so, and the link breaks when it says so. */
#include "sock/remote.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "sock/conn.h"
#include "sock/epoll.h"
#include "sock/full.h"
#include "sock/move.h"
#include "sock/remote_back.h"
#include "sock/remote_chores.h"
#include "sock/remote_frame.h"
#include "sock/remote_in.h"
#include "sock/remote_open.h"
#include "sock/remote_out.h"
#include "sock/settings.h"
#include "sock/stream.h"
#include "test/unit/unit.h"

enum { MOST = 4096, PIECE = 3000 };

/* The types of messages: those of remote_types.h. */
enum { OPEN = 1, RING, OPENED, NO, MOVE, AGREE, CANCEL, NOTICE, TAKEN, LEFT, BACK };

/* --- the link ---------------------------------------------------------------------------------------------------- */

struct link {
	int number;
};
static struct link ends[2] = { { 0 }, { 1 } };
static const struct link_user *user;
static struct link_message queue[2][MOST]; /* to each end */
static unsigned char behind[2][MOST][LINK_INLINE]; /* bytes of a stream behind the message */
static unsigned writes;
static unsigned first[2], last[2];
static bool broken_link, stopped; /* link_break() was called */
static int held;	/* references of streams */
static const char *stopped_by;

void link_set_user(const struct link_user *u)
{
	user = u;
}

struct link *link_connect(const char *ia, const struct sockaddr *peer, uint64_t qualifier,
			  const unsigned char token[LINK_KEY])
{
	return user->knows(token) ? &ends[0] : NULL;
}

bool link_is_up(const struct link *l)
{
	return !broken_link;
}

bool link_is_over(const struct link *l)
{
	return broken_link;
}

bool link_is_asker(const struct link *l)
{
	return !l->number;
}

static unsigned looks; /* calls of link_watch() */
static bool silent;

bool link_watch(struct link *l, uint64_t now)
{
	looks++;
	if (!silent)
		return true;
	broken_link = true;
	user->down(&ends[0]);
	user->down(&ends[1]);
	return false;
}

const char *link_ia(const struct link *l)
{
	return "ia";
}

void link_pause(void) {}
void link_resume(void) {}
int link_run(void) { return -1; }
void link_borrow(struct link *l) {}
void link_give_back(struct link *l) {}
void link_ask(struct link *l) {}
void link_return(struct link *l) {}
void full_note(struct conn *c) {}
enum link_taken link_take(struct link *l, unsigned sleep_us) { return LINK_SERVED; }

void link_hold(struct link *l) { held++; }
void link_release(struct link *l) { held--; }

void link_break(struct link *l, const char *what)
{
	stopped = true, stopped_by = what;
}

void link_send(struct link *l, struct link_message m)
{
	int to = !l->number;

	if (broken_link)
		return;
	assert_true(last[to] - first[to] < MOST);
	queue[to][last[to]++ % MOST] = m;
}

bool link_write(struct link *l, const struct link_piece *pieces, int count, struct link_message m)
{
	size_t total = 0;

	if (broken_link)
		return false;
	for (int i = 0; i < count; i++)
		total += pieces[i].length;
	/* Short ones both ways. */
	m.bytes = behind[!l->number][last[!l->number] % MOST];
	if (total <= LINK_INLINE && writes++ % 2)
		m.size = total;
	for (size_t i = 0, n = 0; i < (size_t)count; n += pieces[i++].length)
		memcpy(m.size ? (void *)(m.bytes + n) : (void *)(uintptr_t)pieces[i].to,
		       (void *)(uintptr_t)pieces[i].from, pieces[i].length);
	link_send(l, m);
	return true;
}

int link_register(struct link *l, void *memory, size_t size, bool exposed, struct link_memory *out)
{
	*out = (struct link_memory){ .lmr_context = 1, .rmr_context = 2 };
	return 0;
}

void link_unregister(struct link_memory *memory) { }

void link_failure_text(const struct link_failure *failure, char *text, size_t size)
{
	snprintf(text, size, "%s %u", failure->call, failure->error);
}

void link_after_fork(void)
{
}

/* Delivers one message to an end. */
static bool deliver(int to)
{
	struct link_message m;

	if (first[to] == last[to])
		return false;
	m = queue[to][first[to]++ % MOST];
	user->message(&ends[to], &m);
	return true;
}

static void deliver_all(void)
{
	while (deliver(0) || deliver(1))
		;
}

/* What is under way is lost. */
static void break_link(void)
{
	broken_link = true;
	first[0] = last[0], first[1] = last[1];
	user->down(&ends[0]);
	user->down(&ends[1]);
}

/* --- what the rest of the library does --------------------------------------------------------------------------- */

static enum dat_socket_why outcome[2];
static struct conn *conns[2];
static bool woken;
struct service_counts service_counts;

void service_remote_opened(struct conn *c, enum dat_socket_why why)
{
	outcome[c == conns[1]] = why;
}

static struct {
	unsigned times;
	bool broken;
} backs[2];

void service_remote_back(struct conn *c, bool broken)
{
	backs[c == conns[1]].times++;
	backs[c == conns[1]].broken = broken;
}

void service_wake(void)
{
	woken = true;
}

bool service_is_forking(void)
{
	return false;
}

void service_ask(struct conn *c) { }
void service_watch_resend(struct conn *c) { }

bool service_send_back(struct conn *c)
{
	return false;
}

void service_closed(struct conn *c)
{
	conn_recycle(c);
}

bool epoll_attach(struct conn *c)
{
	return true;
}

void epoll_detach(struct conn *c) { }
void epoll_out_changed(struct conn *c) { }
void epoll_drop(struct conn *c) { }
void epoll_free_dead(struct conn *c) { }

/* --- two ends ---------------------------------------------------------------------------------------------------- */

static const unsigned char key[LINK_KEY] = "0123456789abcde";
static uint64_t written[2], read_bytes[2]; /* written[i] by end i; read_bytes[i] at end i */
static uint64_t random_state;

static uint32_t random32(void)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return random_state >> 33;
}

static char byte_at(uint64_t position)
{
	return (char)(position * 2654435761u >> 13 ^ position >> 24);
}

static struct conn *track(int fd, bool connector)
{
	struct conn *c = conn_track(fd, true);
	int one = 1;

	assert_non_null(c);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	c->connector = connector, c->acceptor = !connector;
	c->mode = CONN_WATCHED;
	c->efd = eventfd(0, EFD_NONBLOCK);
	return c;
}

UNIT_FIXTURE(connect_ends)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof sa;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	settings.ring = 64 << 10;
	settings.after_calls = 1 << 30, settings.after_bytes = 1 << 30;
	broken_link = stopped = silent = false;
	memset(first, 0, sizeof first), memset(last, 0, sizeof last);
	memset(written, 0, sizeof written), memset(read_bytes, 0, sizeof read_bytes);
	outcome[0] = outcome[1] = DAT_SOCKET_WHY_TRAFFIC;
	memset(backs, 0, sizeof backs);
	assert_int_equal(bind(listener, (void *)&sa, sizeof sa), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (void *)&sa, &size), 0);
	assert_int_equal(connect(fd, (void *)&sa, size), 0);
	conns[0] = track(fd, true);
	conns[1] = track(accept(listener, NULL, NULL), false);
	close(listener);
}

static void open_stream(void)
{
	struct sockaddr_in none = { .sin_family = AF_INET };

	assert_true(remote_expect(conns[1], key));
	assert_int_equal(remote_open(conns[0], "ia", (void *)&none, 1, key), 0);
	deliver_all();
	assert_int_equal(outcome[0], DAT_SOCKET_WHY_NONE);
	assert_int_equal(outcome[1], DAT_SOCKET_WHY_NONE);
}

UNIT_FIXTURE(connect_stream)
{
	connect_ends(state);
	open_stream();
}

UNIT_FIXTURE(close_ends)
{
	if (!broken_link)
		break_link();
	for (int i = 0; i < 2; i++) {
		int fd = conns[i]->fd, efd = conns[i]->efd;

		conn_forget(fd);
		move_close(conns[i], fd);
		close(fd), close(efd);
	}
	for (int i = 0; i < 5000 && held; i++) {	/* streams are freed by a tick */
		remote_chores_run();
		usleep(1000);
	}
	assert_int_equal(held, 0);
}

static ssize_t put(int end, size_t n)
{
	char bytes[PIECE];
	struct iovec iov = { bytes, n };
	ssize_t sent;

	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(written[end] + i);
	sent = stream_send(conns[end], conns[end]->fd, &iov, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		written[end] += sent;
	return sent;
}

/* Receives what is there, up to n bytes, and checks them. */
static ssize_t get(int end, size_t n)
{
	char bytes[PIECE];
	struct iovec iov = { bytes, n };
	ssize_t got = stream_receive(conns[end], conns[end]->fd, &iov, 1, MSG_DONTWAIT);

	for (ssize_t i = 0; i < got; i++)
		if (bytes[i] != byte_at(read_bytes[end] + i))
			fail_msg("wrong byte %llu", (unsigned long long)(read_bytes[end] + i));
	if (got > 0)
		read_bytes[end] += got;
	return got;
}

/* Gets what the other end has written. TCP needs a moment, also on the loopback device. */
static void get_all(int end)
{
	for (int i = 0; i < 20000 && read_bytes[end] < written[!end]; i++) {
		deliver_all();
		if (get(end, PIECE) <= 0)
			usleep(100);
	}
	assert_int_equal(read_bytes[end], written[!end]);
}

static void end_epoch(int end)
{
	conn_lock(conns[end]);
	move_revoke(conns[end]);
	conn_unlock(conns[end]);
}

#define TEST(name) UNIT_TEST_WITH(name, connect_stream, close_ends)

UNIT_TEST(frame_tells_its_position)
{
	unsigned char frame[REMOTE_FRAME];
	uint64_t position = 0;

	remote_encode_frame(frame, key, 7, 0x123456789a);
	assert_true(remote_decode_frame(frame, key, 7, &position));
	assert_true(position == 0x123456789a);
	assert_false(remote_decode_frame(frame, key, 8, &position));
}

UNIT_TEST(changed_frame_is_none)
{
	unsigned char frame[REMOTE_FRAME];
	uint64_t position;

	for (unsigned bit = 0; bit < 8 * REMOTE_FRAME; bit++) {
		remote_encode_frame(frame, key, 7, 99);
		frame[bit / 8] ^= 1 << bit % 8;
		assert_false(remote_decode_frame(frame, key, 7, &position));
	}
}

/* --- the stream -------------------------------------------------------------------------------------------------- */

TEST(bytes_go_by_the_ring)
{
	uint64_t over_tcp;

	put(0, 100);
	get_all(1);
	over_tcp = conns[0]->tcp_out;
	put(0, 1000);
	get_all(1);
	assert_true(conns[0]->tx.active);
	assert_int_equal(conns[0]->tcp_out, over_tcp);
}

TEST(epoch_begins_behind_the_bytes_on_tcp)
{
	conns[0]->begin_at = 10;
	put(0, 10);
	put(0, 10);
	deliver_all();
	assert_false(conns[1]->rx.active);
	get(1, 5);
	assert_false(conns[1]->rx.active);
	get_all(1);
	assert_true(conns[1]->rx.active);
}

TEST(end_of_an_epoch_sends_no_byte_twice)
{
	put(0, 10);
	get_all(1);
	put(0, 1000);
	deliver_all();
	get(1, 400); /* of which the sender does not know */
	end_epoch(0);
	put(0, 1000);
	get_all(1);
	put(0, 1000);
	get_all(1);
	assert_true(conns[0]->moves > 1);
}

TEST(epoch_that_was_not_agreed_to_ends_without_a_frame)
{
	put(0, 500);
	assert_true(conns[0]->tx.active);
	end_epoch(0);
	assert_int_equal(conns[0]->tcp_out, 500);
	get_all(1);
}

static bool tcp_is_readable(void)
{
	struct pollfd p = { conns[1]->fd, POLLIN, 0 };
	bool readable;

	assert_int_equal(poll(&p, 1, 20000), 1);
	conn_lock_in(conns[1]);
	readable = remote_tcp_is_readable(conns[1]);
	conn_unlock_in(conns[1]);
	return readable;
}

TEST(frame_does_not_make_the_stream_readable)
{
	put(0, 10);
	get_all(1);
	end_epoch(0);
	assert_false(tcp_is_readable());
	put(0, 10);
	assert_true(tcp_is_readable());
	get_all(1);
}

TEST(large_rest_stays_in_the_ring_at_the_end)
{
	uint64_t over_tcp;

	put(0, 100);
	get_all(1);
	for (int i = 0; i < 18; i++)
		put(0, PIECE);
	deliver_all();
	over_tcp = conns[0]->tcp_out;
	conn_lock(conns[0]);
	assert_true(remote_leaves_much(conns[0]));
	assert_false(remote_take_synced(conns[0]));
	remote_ask_synced(conns[0]);
	deliver_all();
	assert_true(remote_take_synced(conns[0]));
	remote_notify_end(conns[0]);
	conn_unlock(conns[0]);
	assert_int_equal(conns[0]->tcp_out, over_tcp + REMOTE_FRAME);
	break_link();
	put(0, 10);
	shutdown(conns[0]->fd, SHUT_WR);
	get_all(1);
	for (int i = 0; i < 20000 && get(1, 1) < 0 && errno == EAGAIN; i++)
		usleep(100);
	assert_int_equal(get(1, 1), 0);
}

TEST(both_directions_go_back)
{
	put(0, 100), put(1, 100);
	get_all(0), get_all(1);
	conn_lock(conns[0]);
	conns[0]->may_begin = false;
	move_revoke(conns[0]);
	conns[0]->back_wait = 1;
	remote_send_back(conns[0]);
	conn_unlock(conns[0]);
	for (int i = 0; i < 20000 && (conns[0]->mode == CONN_ATTACHED || conns[1]->mode == CONN_ATTACHED); i++) {
		deliver_all();
		remote_chores_run();
		usleep(100);
	}
	assert_int_equal(conns[0]->mode, CONN_PLAIN);
	assert_int_equal(conns[1]->mode, CONN_PLAIN);
	assert_int_equal(conns[0]->back_wait, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(backs[i].times, 1);
		assert_false(backs[i].broken);
	}
}

TEST(stream_tells_that_it_has_broken)
{
	put(0, 100), put(1, 100);
	get_all(0), get_all(1);
	assert_string_equal(remote_ia(conns[0]), "ia");
	break_link();
	for (int i = 0; i < 20000 && !(backs[0].times && backs[1].times); i++) {
		get(0, 1), get(1, 1);
		remote_chores_run();
		usleep(100);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(backs[i].times, 1);
		assert_true(backs[i].broken);
	}
	assert_string_equal(remote_ia(conns[0]), "");
}

TEST(random_operations_keep_the_stream)
{
	uint64_t seed = time(NULL);

	print_message("the seed is %llu\n", (unsigned long long)seed);
	random_state = seed;
	for (int run = 0; run < 200; run++) {
		for (int i = 0; i < 200; i++) {
			int end = random32() & 1;

			switch (random32() % 8) {
			case 0:
			case 1: put(end, 1 + random32() % PIECE); break;
			case 2: get(end, 1 + random32() % PIECE); break;
			case 3:
			case 4:
			case 5: deliver(end); break;
			case 6:
				if (random32() % 8 == 0)
					end_epoch(end);
				break;
			default: remote_chores_run(); break;
			}
			if (!broken_link && random32() % 400 == 0)
				break_link();
		}
		get_all(0), get_all(1);
		close_ends(NULL);
		connect_stream(NULL);
	}
}

/* --- a peer that lies -------------------------------------------------------------------------------------------- */

static void inject(int to, uint8_t type, uint64_t a, uint64_t b, uint64_t c)
{
	struct link_message m = { .type = type, .stream = 3, .a = a, .b = b, .c = c };

	/* The number of the only stream is that of the last message. */
	m.stream = queue[to][(last[to] - 1) % MOST].stream;
	user->message(&ends[to], &m);
}

static void expect_reset(int end)
{
	assert_true(conns[end]->broken);
	assert_int_equal(get(end, 1), -1);
	assert_int_equal(errno, ECONNRESET);
}

#define LIE(name, to, type, a, b, c) \
	TEST(name) \
	{ \
		put(0, 100); \
		get_all(1); \
		inject(to, type, a, b, c); \
		expect_reset(to); \
	}
LIE(tail_behind_the_ring_resets, 1, NOTICE, 100 + (64 << 10) + 1, 0, 1)
LIE(tail_that_goes_back_resets, 1, NOTICE, 99, 0, 1)

TEST(bytes_that_are_not_those_before_the_tail_reset)
{
	struct link_message m = { .type = NOTICE, .a = 126, .c = 1, .bytes = behind[0][0], .size = 27 };

	put(0, 100);
	get_all(1);
	m.stream = queue[1][(last[1] - 1) % MOST].stream;
	user->message(&ends[1], &m);
	expect_reset(1);
}

LIE(head_behind_the_tail_resets, 0, TAKEN, 101, 0, 1)
LIE(epoch_within_an_epoch_resets, 1, MOVE, 0, 0, 2)
LIE(cancelling_what_has_begun_resets, 1, CANCEL, 0, 0, 1)

static void send_frame(uint64_t position)
{
	unsigned char frame[REMOTE_FRAME];
	struct pollfd p = { conns[1]->fd, POLLIN, 0 };

	put(0, 100);
	get_all(1);
	remote_encode_frame(frame, key, 1, position);
	assert_int_equal(send(conns[0]->fd, frame, sizeof frame, 0), sizeof frame);
	assert_int_equal(poll(&p, 1, 20000), 1);
	conns[1]->look_at_tcp = true; /* as poll() notes */
}

TEST(frame_behind_what_has_come_resets)
{
	send_frame(101);
	get(1, 1);
	expect_reset(1);
}

TEST(bytes_on_tcp_in_an_epoch_reset)
{
	struct pollfd p = { conns[1]->fd, POLLIN, 0 };

	put(0, 100);
	get_all(1);
	assert_int_equal(send(conns[0]->fd, "hello", 5, 0), 5);
	assert_int_equal(poll(&p, 1, 20000), 1);
	conns[1]->look_at_tcp = true; /* as poll() notes */
	get(1, 1);
	expect_reset(1);
}

TEST(number_of_another_stream_breaks_the_link)
{
	inject(1, OPEN, 0, 0, 4096);
	assert_true(stopped);
}

TEST(unknown_message_breaks_the_link)
{
	inject(1, 200, 0, 0, 0);
	assert_true(stopped);
}

/* A second passes between two looks. */
static void run_for_a_look(void)
{
	looks = 0;
	for (int i = 0; i < 1100; i++) {
		remote_chores_run();
		deliver_all();
		usleep(1000);
	}
}

TEST(link_of_a_stream_with_bytes_for_the_peer_is_watched)
{
	run_for_a_look();
	assert_int_equal(looks, 0);
	woken = false;
	assert_int_equal(put(0, 100), 100);
	deliver_all();
	assert_int_equal(put(0, 100), 100);
	deliver_all();
	assert_true(woken);
	run_for_a_look();
	assert_true(looks > 0);
	assert_int_equal(get(1, 200), 200);
	/* The reader's end tells it by itself. */
	for (int i = 0; i < 5000 && conns[0]->tx.ring->claim != conns[0]->tx.tail; i++) {
		remote_chores_run();
		deliver_all();
		usleep(1000);
	}
	assert_int_equal(conns[0]->tx.ring->claim, conns[0]->tx.tail);
	run_for_a_look();
	assert_int_equal(looks, 0);
}

TEST(bytes_for_a_silent_peer_go_to_tcp)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(put(0, 100), 100);
		deliver_all();
	}
	silent = true;
	for (int i = 0; i < 5000 && !broken_link; i++) {
		remote_chores_run();
		usleep(1000);
	}
	assert_true(broken_link);
	for (int i = 0; i < 2000 && conns[0]->mode == CONN_ATTACHED; i++) {
		remote_chores_run();
		usleep(1000);
	}
	assert_int_equal(get(1, 200), 200);
	assert_int_equal(put(0, 100), 100);
	assert_int_equal(get(1, 100), 100);
}

TEST(error_that_the_library_has_seen_is_a_writers_too)
{
	conns[0]->pending_error = ETIMEDOUT;
	assert_int_equal(put(0, 100), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(conns[0]->pending_error, 0);
}

/* The service thread has not heard of the peer's end yet. */
TEST(writer_does_not_write_after_a_reader_has_got_a_reset)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	for (int i = 0; i < 2; i++) {
		assert_int_equal(put(0, 100), 100);
		deliver_all();
	}
	assert_true(conns[0]->tx.active);
	assert_int_equal(connect(conns[1]->fd, &none, sizeof none), 0);
	assert_int_equal(get(0, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(put(0, 100), -1);
	assert_int_equal(errno, EPIPE);
}

/* Of a peer that answers twice, or to nothing: the program goes on by memory that is there. */
TEST(stream_that_is_attached_is_not_opened_again)
{
	for (int to = 0; to < 2; to++) {
		struct link_message m = { .type = OPENED, .stream = queue[1][0].stream };

		stopped = false;
		user->message(&ends[to], &m);
		assert_true(stopped);
		assert_string_equal(stopped_by, "a message of an unknown type");
		assert_int_equal(outcome[to], DAT_SOCKET_WHY_NONE);
	}
	assert_int_equal(put(0, 100), 100);
	deliver_all();
	assert_int_equal(get(1, 100), 100);
}

TEST(epoch_at_a_position_that_cannot_be_resets)
{
	struct link_message m = { .type = MOVE, .stream = queue[1][0].stream, .b = 1ull << 63, .c = 1 };

	user->message(&ends[1], &m);
	assert_true(conns[1]->broken);
}

UNIT_TEST_WITH(ring_of_another_size_is_refused, connect_ends, close_ends)
{
	struct sockaddr_in none = { .sin_family = AF_INET };

	assert_true(remote_expect(conns[1], key));
	assert_int_equal(remote_open(conns[0], "ia", (void *)&none, 1, key), 0);
	deliver(1);
	queue[1][first[1] % MOST].c *= 2;
	deliver_all();
	assert_int_equal(outcome[0], DAT_SOCKET_WHY_PEER);
	assert_int_equal(outcome[1], DAT_SOCKET_WHY_PEER);
}

UNIT_TEST_WITH(unexpected_key_is_refused, connect_ends, close_ends)
{
	struct link_message m = { .type = OPEN, .stream = 77, .a = 1, .b = 2, .c = 65536 };

	assert_true(remote_expect(conns[1], key));
	user->message(&ends[1], &m);
	assert_int_equal(queue[0][(last[0] - 1) % MOST].type, NO);
	assert_int_equal(conns[1]->mode, CONN_WATCHED);
	remote_forget(conns[1]);
}

UNIT_MAIN(NULL, NULL)
