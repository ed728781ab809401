/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait.c - spins and sleeps for one connection. */
#include "sock/wait.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include "common/clock.h"
#include "sock/conn.h"
#include "sock/foreign.h"
#include "sock/full.h"
#include "sock/real.h"
#include "sock/remote.h"
#include "sock/settings.h"

enum {
	MISSES = 4,       /* spins without success in a row, after which a thread spins rarely */
	RARELY = 16,      /* one of so many waits spins then */
	SHORT_NS = 5000000, /* a wait for a stream over DAT that takes less */
	SHORT_WAITS = 4,  /* in a row, after which threads of the program take messages themselves */
	YIELD_NS = 15000, /* a yield that takes longer: another thread has run, so the processors are busy */
};
static __thread unsigned misses __attribute__((tls_model("initial-exec")));

void spin_begin(struct spin *s)
{
	s->rounds = 0;
	s->off = !settings.spin || (misses >= MISSES && ++misses % RARELY);
	s->end = s->off ? 0 : clock_now_ns() + settings.spin * 1000;
}

bool spin_again(struct spin *s)
{
	uint64_t before, after;

	if (s->off)
		return false;
	if (++s->rounds % 16) {
		dapl_pause();
		return true;
	}
	before = clock_now_ns();
	if (before >= s->end)
		return false;
	sched_yield();
	after = clock_now_ns();
	if (after - before > YIELD_NS) {
		/* One more look: what ran may have been the peer. */
		s->off = true;
		misses += 2;
	}
	return true;
}

void spin_end(struct spin *s, bool found)
{
	if (found && !s->off)
		misses = 0;
	else if (s->end)
		misses++;
}

bool wait_restarts(void)
{
	for (int i = 1; i < NSIG; i++) {
		struct sigaction action;

		if (!sigaction(i, NULL, &action) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
		    !(action.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}

void wait_announce(struct conn *c, bool in, bool out)
{
	if (!c->segment)
		return;
	if (in)
		__atomic_store_n(&c->rx.ring->asleep, 1, __ATOMIC_RELAXED);
	if (out && c->tx.active) {
		__atomic_store_n(&c->tx.ring->full, 1, __ATOMIC_RELAXED);
		full_note(c);
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void wait_drain(struct conn *c)
{
	uint64_t count;
	int saved = errno;
	bool again = false;

	if (c->foreign)
		foreign_clear(c->efd);
	else if (REAL(read)(c->efd, &count, sizeof count) < 0)
		errno = saved;
	/* The wake-up may have been another thread's as well. */
	if (__atomic_load_n(&c->waiters_in, __ATOMIC_SEQ_CST) + __atomic_load_n(&c->waiters_out, __ATOMIC_SEQ_CST) < 1)
		return;
	if (!conn_lock(c))
		return;
	wait_announce(c, c->waiters_in, c->waiters_out);
	again = (c->waiters_in && conn_ring_readable(c)) || (c->waiters_out && conn_ring_writable(c));
	conn_unlock(c);
	if (again)
		conn_wake(c);
}

static uint64_t timeout_of(int fd, bool in)
{
	struct timeval tv = { 0 };
	socklen_t size = sizeof tv;

	if (REAL(getsockopt)(fd, SOL_SOCKET, in ? SO_RCVTIMEO : SO_SNDTIMEO, &tv, &size))
		return 0;
	return tv.tv_sec * 1000000000ull + tv.tv_usec * 1000ull;
}

/* Whether the ring has what the thread waits for. */
static bool is_ready(struct conn *c, bool in)
{
	bool ready = true;

	if (in) {
		if (conn_lock_in(c)) {
			ready = conn_ring_readable(c);
			conn_unlock_in(c);
		}
	} else if (conn_lock_out(c)) {
		ready = conn_ring_writable(c);
		conn_unlock_out(c);
	}
	return ready;
}

static bool announce_and_look(struct conn *c, bool in)
{
	bool ready = true;

	if (conn_lock(c)) {
		wait_announce(c, in, !in);
		ready = in ? conn_ring_readable(c) : conn_ring_writable(c);
		conn_unlock(c);
	}
	return ready;
}

/* Spins until the ring is ready. A link that is lent tells of it by messages, which this thread takes. */
static bool spin_for(struct conn *c, bool in, struct link *link)
{
	bool ready;
	struct spin s;

	spin_begin(&s);
	do {
		if (link)
			link_take(link, 0);
		ready = is_ready(c, in) || c->closed;
	} while (!ready && spin_again(&s));
	spin_end(&s, ready);
	return ready;
}

/* Takes messages of a link that is lent until the ring is ready, or for a moment. Stores whether it is. Returns 0, or
 * EINTR. */
static int take_messages(struct conn *c, bool in, struct link *link, uint64_t until, bool *ready)
{
	uint64_t now;

	while (!*ready && (now = clock_now_ns()) < until) {
		enum link_taken taken = link_take(link, (until - now) / 1000 + 1);

		if (taken == LINK_SERVED)
			return 0;
		*ready = is_ready(c, in) || c->closed;
		if (taken == LINK_INTERRUPTED && !*ready)
			return EINTR;
	}
	if (!*ready)
		link_return(link);
	return 0;
}

static void note_wait(struct conn *c, uint64_t begun)
{
	if (clock_now_ns() - begun >= SHORT_NS)
		c->short_waits = 0;
	else if (c->short_waits < SHORT_WAITS)
		c->short_waits++;
}

static int sleep_for(struct conn *c, int fd, bool in, uint64_t *deadline)
{
	int *waiters = in ? &c->waiters_in : &c->waiters_out;
	struct pollfd p[2];
	bool by_ring;
	uint64_t now;
	int n, ms = -1, err;

	if (*deadline != UINT64_MAX) {
		now = clock_now_ns();
		if (now >= *deadline)
			return EAGAIN;
		ms = (*deadline - now) / 1000000 < 1000000000 ? (*deadline - now + 999999) / 1000000 : 1000000000;
	}
	by_ring = !in && c->tx.active;
	p[0] = (struct pollfd){ fd, in ? POLLIN | POLLRDHUP : by_ring ? 0 : POLLOUT, 0 };
	p[1] = (struct pollfd){ c->efd, POLLIN, 0 };
	/* epoll instances watch the wake-up descriptor's edges, which must not be taken away: look again and again. */
	if (c->regs)
		p[1].fd = -1, ms = ms < 0 || ms > 1 ? 1 : ms;
	/* A writer looks now and then whether the peer reads at all. */
	if (by_ring && (ms < 0 || ms > 20))
		ms = 20;
	__atomic_add_fetch(waiters, 1, __ATOMIC_SEQ_CST);
	if (announce_and_look(c, in)) {
		__atomic_sub_fetch(waiters, 1, __ATOMIC_SEQ_CST);
		return 0;
	}
	n = REAL(poll)(p, 2, ms);
	err = n < 0 ? errno : 0;
	__atomic_sub_fetch(waiters, 1, __ATOMIC_SEQ_CST);
	if (n > 0 && p[1].revents)
		wait_drain(c);
	if (n > 0 && by_ring && p[0].revents & (POLLERR | POLLHUP))
		__atomic_store_n(&c->peer_gone, true, __ATOMIC_SEQ_CST);
	return err;
}

static void set_deadline(int fd, bool in, uint64_t *deadline)
{
	uint64_t limit;

	if (*deadline)
		return;
	limit = timeout_of(fd, in);
	*deadline = limit ? clock_now_ns() + limit : UINT64_MAX;
}

/* A wait for a stream over DAT, after the spinning. `link` may be NULL. */
static int wait_for_remote(struct conn *c, int fd, bool in, uint64_t *deadline, struct link *link)
{
	uint64_t until = clock_now_ns() + SHORT_NS;
	bool ready = false;
	int err = 0;

	if (link)
		err = take_messages(c, in, link, until < *deadline ? until : *deadline, &ready);
	return ready || err ? err : sleep_for(c, fd, in, deadline);
}

int wait_for(struct conn *c, int fd, bool in, uint64_t *deadline)
{
	bool attached = c->mode == CONN_ATTACHED;
	bool remote = attached && __atomic_load_n(&c->remote, __ATOMIC_RELAXED);
	struct link *link = remote ? remote_borrow(c) : NULL;
	uint64_t begun = remote ? clock_now_ns() : 0;
	int err = 0;

	if (!attached || !spin_for(c, in, link)) {
		set_deadline(fd, in, deadline);
		err = remote ? wait_for_remote(c, fd, in, deadline, link) : sleep_for(c, fd, in, deadline);
	}
	if (remote)
		note_wait(c, begun);
	if (link && c->short_waits >= SHORT_WAITS)
		link_ask(link);
	if (link)
		link_give_back(link);
	return err == EINTR && *deadline == UINT64_MAX && wait_restarts() ? 0 : err;
}
