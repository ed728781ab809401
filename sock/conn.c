/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - the table of descriptors, the life of connection objects, their locks, wake-ups and positions. */
#include "sock/conn.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "common/clock.h"
#include "sock/foreign.h"
#include "sock/rate.h"
#include "sock/real.h"
#include "sock/settings.h"

struct slot *conn_chunks[SLOT_CHUNKS];
struct dapl_mutex sock_lock = DAPL_MUTEX_INIT(RANK_SOCK);
struct conn *conn_list;
static struct conn *last_conn;
int conn_process;
bool conn_vforked;
static struct conn *free_conns;
static uint64_t last_id;
static __thread char this_thread __attribute__((tls_model("initial-exec")));

struct slot *conn_slot(int fd)
{
	struct slot *slot = slot_of(fd), *chunk;

	if (slot || (unsigned)fd >= SLOTS * SLOT_CHUNKS)
		return slot;
	chunk = calloc(SLOTS, sizeof *chunk);
	if (!chunk)
		return NULL;
	dapl_mutex_lock(&sock_lock);
	if (conn_chunks[(unsigned)fd / SLOTS])
		free(chunk);
	else
		__atomic_store_n(&conn_chunks[(unsigned)fd / SLOTS], chunk, __ATOMIC_RELEASE);
	dapl_mutex_unlock(&sock_lock);
	return slot_of(fd);
}

bool conn_is_vfork_child(void)
{
	return conn_vforked && conn_process && getpid() != conn_process;
}

struct conn *conn_track(int fd, bool nonblock)
{
	struct slot *slot = conn_slot(fd);
	struct conn *c;

	if (!slot || conn_is_vfork_child())
		return NULL;
	if (!conn_process)
		conn_process = getpid();
	if (slot->conn && (c = conn_forget(fd)))
		conn_recycle(c);
	dapl_mutex_lock(&sock_lock);
	c = free_conns;
	if (c)
		free_conns = c->next;
	dapl_mutex_unlock(&sock_lock);
	if (!c)
		c = aligned_alloc(64, (sizeof *c + 63) & ~63ul);
	if (!c)
		return NULL;
	memset(c, 0, sizeof *c);
	dapl_mutex_init(&c->in_lock, RANK_SOCK_IN);
	dapl_mutex_init(&c->out_lock, RANK_SOCK_OUT);
	c->fd = fd, c->refs = 1, c->nonblock = nonblock;
	c->efd = c->peer_efd = c->control = c->listener = -1;
	c->why = DAT_SOCKET_WHY_TRAFFIC;
	c->ask_bytes = settings.after_bytes, c->ask_calls = settings.after_calls;
	c->rate.at = clock_now_ns();
	dapl_mutex_lock(&sock_lock);
	c->id = ++last_id;
	c->prev = last_conn;
	*(last_conn ? &last_conn->next : &conn_list) = c;
	last_conn = c;
	__atomic_store_n(&slot->conn, c, __ATOMIC_RELEASE);
	dapl_mutex_unlock(&sock_lock);
	return c;
}

void conn_share(int from, int fd)
{
	struct slot *old = slot_of(from), *slot;

	if (!old || (!old->conn && !old->epoll) || conn_is_vfork_child())
		return;
	slot = conn_slot(fd);
	if (!slot)
		return;
	dapl_mutex_lock(&sock_lock);
	if (old->conn)
		old->conn->refs++;
	if (old->epoll)
		old->epoll->refs++;
	__atomic_store_n(&slot->conn, old->conn, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->epoll, old->epoll, __ATOMIC_RELEASE);
	dapl_mutex_unlock(&sock_lock);
}

struct conn *conn_forget(int fd)
{
	struct slot *slot = slot_of(fd);
	struct conn *c;

	if (!slot)
		return NULL;
	dapl_mutex_lock(&sock_lock);
	c = slot->conn;
	__atomic_store_n(&slot->conn, NULL, __ATOMIC_RELEASE);
	if (c && --c->refs) {
		if (c->fd == fd)
			for (unsigned i = 0; i < SLOTS * SLOT_CHUNKS; i++) {
				if (!conn_chunks[i / SLOTS]) {
					i += SLOTS - 1;
				} else if (conn_of(i) == c) {
					c->fd = i;
					break;
				}
			}
		c = NULL;
	}
	dapl_mutex_unlock(&sock_lock);
	return c;
}

void conn_recycle(struct conn *c)
{
	dapl_mutex_lock(&sock_lock);
	*(c->prev ? &c->prev->next : &conn_list) = c->next;
	*(c->next ? &c->next->prev : &last_conn) = c->prev;
	c->id = 0;
	c->next = free_conns, free_conns = c;
	dapl_mutex_unlock(&sock_lock);
}

static bool take(struct dapl_mutex *lock, void **owner)
{
	if (__atomic_load_n(owner, __ATOMIC_RELAXED) == &this_thread)
		return false;
	dapl_mutex_lock(lock);
	__atomic_store_n(owner, &this_thread, __ATOMIC_RELAXED);
	return true;
}

static void release(struct dapl_mutex *lock, void **owner)
{
	__atomic_store_n(owner, NULL, __ATOMIC_RELAXED);
	dapl_mutex_unlock(lock);
}

bool conn_lock_in(struct conn *c)
{
	return take(&c->in_lock, &c->in_owner);
}

bool conn_try_lock_in(struct conn *c)
{
	if (__atomic_load_n(&c->in_owner, __ATOMIC_RELAXED) == &this_thread || !dapl_mutex_try(&c->in_lock))
		return false;
	__atomic_store_n(&c->in_owner, &this_thread, __ATOMIC_RELAXED);
	return true;
}

void conn_unlock_in(struct conn *c)
{
	release(&c->in_lock, &c->in_owner);
}

bool conn_lock_out(struct conn *c)
{
	return take(&c->out_lock, &c->out_owner);
}

void conn_unlock_out(struct conn *c)
{
	release(&c->out_lock, &c->out_owner);
}

bool conn_lock(struct conn *c)
{
	if (!conn_lock_in(c))
		return false;
	if (conn_lock_out(c))
		return true;
	conn_unlock_in(c);
	return false;
}

void conn_unlock(struct conn *c)
{
	conn_unlock_out(c);
	conn_unlock_in(c);
}

int own_fd(int fd)
{
	struct rlimit limit;
	struct slot *slot;
	int high = -1;

	if (fd < 0)
		return -1;
	/* The program expects the lowest free number from its next call. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		long top = limit.rlim_cur < 65536 ? (long)limit.rlim_cur : 65536;

		high = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, (int)(top * 3 / 4));
	}
	REAL(close)(fd);
	slot = high < 0 ? NULL : conn_slot(high);
	if (!slot) {
		if (high >= 0)
			REAL(close)(high);
		return -1;
	}
	slot->own = true;
	return high;
}

void own_fd_close(int fd)
{
	struct slot *slot = slot_of(fd);

	if (fd < 0)
		return;
	if (slot)
		slot->own = false;
	REAL(close)(fd);
}

static void wake(const struct conn *c, int efd)
{
	uint64_t one = 1;
	int saved = errno;

	if (efd >= 0 && c->foreign)
		foreign_fire(efd);
	else if (efd >= 0 && REAL(write)(efd, &one, sizeof one) < 0)
		errno = saved; /* EAGAIN: it is readable anyway */
}

void conn_wake(struct conn *c)
{
	wake(c, c->efd);
}

void conn_wake_peer(struct conn *c)
{
	c->wakeups++;
	wake(c, c->peer_efd);
}

bool conn_ring_readable(struct conn *c)
{
	bool broken = false;
	uint64_t before;

	if (!c->segment || (!c->rx.active && !ring_has_epoch(&c->rx)))
		return false;
	/* Bytes that TCP has not brought yet come first. A start that cannot be is for the read to find. */
	before = c->rx.active ? c->rx_left
			      : __atomic_load_n(&c->rx.ring->start, __ATOMIC_RELAXED) -
					__atomic_load_n(&c->tcp_in, __ATOMIC_RELAXED);
	if (before && before <= 1ull << 40)
		return false;
	return ring_available(&c->rx, &broken) || broken;
}

bool conn_ring_writable(struct conn *c)
{
	return c->segment && c->tx.active && ring_is_writable(&c->tx);
}

bool conn_has_user_timeout(const struct conn *c)
{
	unsigned ms = 0;
	socklen_t size = sizeof ms;

	return !REAL(getsockopt)(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &size) && ms;
}

/* Reads a counter of the socket and what is queued until the counter holds still between two looks. */
static bool count(struct conn *c, bool sent, uint64_t *bytes)
{
	for (int i = 0; i < 20; i++) {
		struct tcp_info before = { 0 }, after = { 0 };
		socklen_t n = sizeof before, m = sizeof after;
		int queued;
		uint64_t a, b;

		if (REAL(getsockopt)(c->fd, IPPROTO_TCP, TCP_INFO, &before, &n) ||
		    REAL(ioctl)(c->fd, sent ? SIOCOUTQ : SIOCINQ, &queued) ||
		    REAL(getsockopt)(c->fd, IPPROTO_TCP, TCP_INFO, &after, &m) ||
		    n < offsetof(struct tcp_info, tcpi_bytes_received) + 8)
			return false;
		a = sent ? before.tcpi_bytes_acked : before.tcpi_bytes_received;
		b = sent ? after.tcpi_bytes_acked : after.tcpi_bytes_received;
		if (a == b) {
			/* The SYN of the active opener counts as one byte. */
			*bytes = sent ? a + queued - c->connector : a - queued;
			return true;
		}
	}
	return false;
}

bool conn_kernel_sent(struct conn *c, uint64_t *bytes)
{
	return count(c, true, bytes);
}

bool conn_kernel_received(struct conn *c, uint64_t *bytes)
{
	return count(c, false, bytes);
}

/* Connections of the time of the fork are shared with the parent: not moved here before the parent has closed them. Nor
 * are those that an epoll instance watches, which the parent has, too. The parent's descriptors of the library are
 * closed. */
void conn_after_fork(void)
{
	conn_process = getpid();
	for (struct conn *c = conn_list; c; c = c->next) {
		dapl_mutex_init(&c->in_lock, RANK_SOCK_IN);
		dapl_mutex_init(&c->out_lock, RANK_SOCK_OUT);
		c->in_owner = c->out_owner = NULL;
		c->kernel_in = c->kernel_out = c->waiters_in = c->waiters_out = 0;
		c->inherited_epoll |= !!c->regs;
		if (!c->share || c->regs || c->mode == CONN_ATTACHED || c->resend)
			c->never = true;
		c->asked = false, c->why = DAT_SOCKET_WHY_FORK, c->tries = 0, c->logged = false;
		rate_ask_after(c, settings.after_calls, settings.after_bytes);
		c->mode = c->not_for_child ? CONN_WATCHED : CONN_PLAIN;
		c->broken |= c->not_for_child;
		c->foreign = false;
		c->efd = c->peer_efd = c->control = c->listener = -1;
		c->link = LINK_NONE, c->timer.place = 0;
		free(c->resend), c->resend = NULL;
		c->resend_at = c->resend_end = 0;
		c->segment = NULL, c->remote = NULL;
		settings_give_memory(c->memory), c->memory = 0;
		settings_streams -= c->streaming, c->streaming = false;
		c->tx.active = c->rx.active = false;
	}
	for (int i = 0; i < SLOTS * SLOT_CHUNKS; i++) {
		struct slot *chunk = conn_chunks[i / SLOTS];

		if (!chunk)
			i += SLOTS - 1;
		else if (chunk[i % SLOTS].own)
			own_fd_close(i);
	}
}
