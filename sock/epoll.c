/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* epoll.c - registrations of connections with epoll instances, and waiting on them. See epoll.h.
 *
 * A registration that is attached has its own address as the data of its event in the kernel, with the lowest bit set
 * for the wake-up descriptor. Registrations lie in one arena, so such data are told from the program's by their value.
 */
#include "sock/epoll.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/clock.h"
#include "sock/conn.h"
#include "sock/full.h"
#include "sock/move.h"
#include "sock/real.h"
#include "sock/remote_in.h"
#include "sock/wait.h"

enum {
	REGS = 1 << 20,      /* registrations at most; memory is used as they are */
	LEAST_LOW = 1 << 24, /* above all numbers of descriptors */
	KERNEL_TURN = 8,     /* while rings have events, the kernel is asked at one of so many calls */
	TCP_EVENTS = 64,     /* of the kernel that are put before those of rings at a time */
	EMPTY_SCANS = 64,    /* after so many in a row a registration is not scanned: they cost as much as a wake-up */
	IN = EPOLLIN | EPOLLRDNORM,
	OUT = EPOLLOUT | EPOLLWRNORM,
};
static struct reg *arena;
static size_t arena_used; /* guarded by sock_lock */
static struct reg *free_regs;
static struct epoll *free_epolls;

/* Maps the arena where no address has a small number in its lower half: programs that store a descriptor as data.fd
 * leave the upper half as it was, which may be that of an address. */
static void map_arena(void)
{
	const size_t size = REGS * sizeof *arena;
	void *refused[4];
	int count = 0;

	while (!arena && count < 4) {
		void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		uint32_t low = (uint32_t)(uintptr_t)p;

		if (p == MAP_FAILED)
			break;
		if (low >= LEAST_LOW && low < UINT32_MAX - size)
			arena = p;
		else
			refused[count++] = p;
	}
	while (count)
		munmap(refused[--count], size);
}

static bool is_reg(uint64_t data)
{
	return data - (uintptr_t)arena < REGS * sizeof *arena && arena;
}

static struct reg *new_reg(void)
{
	struct reg *r = NULL;

	dapl_mutex_lock(&sock_lock);
	if (!arena)
		map_arena();
	if (free_regs) {
		r = free_regs;
		free_regs = r->next;
	} else if (arena && arena_used < REGS) {
		r = &arena[arena_used++];
	}
	dapl_mutex_unlock(&sock_lock);
	if (r)
		memset(r, 0, sizeof *r);
	return r;
}

/* Not with sock_lock held. */
static void free_reg(struct reg *r)
{
	r->conn = NULL;
	dapl_mutex_lock(&sock_lock);
	r->next = free_regs, free_regs = r;
	dapl_mutex_unlock(&sock_lock);
}

void epoll_track(int fd)
{
	struct slot *slot = conn_slot(fd);
	struct epoll *ep;

	if (!slot || conn_is_vfork_child())
		return;
	if (!conn_process)
		conn_process = getpid();
	dapl_mutex_lock(&sock_lock);
	ep = free_epolls;
	if (ep)
		free_epolls = ep->next;
	dapl_mutex_unlock(&sock_lock);
	if (!ep)
		ep = calloc(1, sizeof *ep);
	if (!ep)
		return;
	memset(ep, 0, sizeof *ep);
	dapl_mutex_init(&ep->lock, RANK_SOCK_EPOLL);
	ep->refs = 1;
	__atomic_store_n(&slot->epoll, ep, __ATOMIC_RELEASE);
}

/* ep->lock held. Takes a registration out of the list that is scanned. */
static void unlist(struct epoll *ep, struct reg *r)
{
	if (!r->listed)
		return;
	*(r->prev_attached ? &r->prev_attached->next_attached : &ep->attached) = r->next_attached;
	if (r->next_attached)
		r->next_attached->prev_attached = r->prev_attached;
	r->listed = false;
}

static void unlink_attached(struct epoll *ep, struct reg *r)
{
	unlist(ep, r);
	r->attached = false;
}

/* ep->lock held. Begins to scan a registration (again). */
static void list(struct epoll *ep, struct reg *r)
{
	r->empty_scans = 0;
	if (r->wish.events & OUT)
		ep->waits_for_tcp = true;
	if (r->listed || r->parked)
		return;
	r->prev_attached = NULL, r->next_attached = ep->attached;
	if (ep->attached)
		ep->attached->prev_attached = r;
	ep->attached = r;
	r->listed = true;
}

/* out_lock held. Notes whether the kernel alone tells of this connection. */
static void set_on_tcp(struct reg *r, bool on_tcp)
{
	if (r->on_tcp == on_tcp)
		return;
	r->on_tcp = on_tcp;
	__atomic_add_fetch(&r->epoll->on_tcp, on_tcp ? 1 : -1, __ATOMIC_RELAXED);
}

static void unlink_reg(struct conn *c, struct reg *r)
{
	set_on_tcp(r, false);
	for (struct reg **p = &c->regs; *p; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			break;
		}
	if (r->attached) {
		dapl_mutex_lock(&r->epoll->lock);
		unlink_attached(r->epoll, r);
		dapl_mutex_unlock(&r->epoll->lock);
	}
	/* free_reg() takes sock_lock, which comes before the locks that the caller holds: the connection keeps it. */
	r->conn = NULL;
}

/* out_lock held. */
static void drop_reg(struct conn *c, struct reg *r)
{
	unlink_reg(c, r);
	r->next = c->dead_regs, c->dead_regs = r;
}

/* An instance has several descriptors after dup(). The number in `fd_of` is enough for epoll_ctl(). */
static int any_fd(struct epoll *ep, int usual)
{
	if (epoll_of(usual) == ep)
		return usual;
	for (int i = 0; i < SLOTS * SLOT_CHUNKS; i++) {
		if (!conn_chunks[i / SLOTS])
			i += SLOTS - 1;
		else if (epoll_of(i) == ep)
			return i;
	}
	return -1;
}

static uint32_t kernel_mask(const struct conn *c, const struct reg *r)
{
	uint32_t events = r->wish.events & ~(EPOLLONESHOT | EPOLLWAKEUP);

	return c->tx.active ? events & ~OUT : events;
}

/* Whether the kernel must be told. Of more than the program wants it may tell: sort_out() corrects it if it does. What
 * is edge-triggered is told anew after each change. */
static bool needs_change(const struct reg *r, uint32_t mask)
{
	return (mask | r->kernel_events) & EPOLLET || mask & ~r->kernel_events;
}

static void kernel_set(struct reg *r, uint32_t mask)
{
	struct epoll_event event = { mask, { .u64 = (uintptr_t)r } };
	int saved = errno;

	r->kernel_events = mask;
	REAL(epoll_ctl)(any_fd(r->epoll, r->epoll_fd), EPOLL_CTL_MOD, r->fd, &event);
	errno = saved;
}

static void watch_wakeups(struct conn *c, struct reg *r, int op)
{
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u64 = (uintptr_t)r | 1 } };
	int saved = errno;

	REAL(epoll_ctl)(any_fd(r->epoll, r->epoll_fd), op, c->efd, &event);
	errno = saved;
}

/* out_lock held. */
static void scan_again(struct reg *r)
{
	dapl_mutex_lock(&r->epoll->lock);
	if (r->attached)
		list(r->epoll, r);
	dapl_mutex_unlock(&r->epoll->lock);
}

/* out_lock held. */
static void attach_reg(struct conn *c, struct reg *r)
{
	struct epoll *ep = r->epoll;

	set_on_tcp(r, false);
	dapl_mutex_lock(&ep->lock);
	r->attached = true;
	r->seen_in = r->seen_full = UINT64_MAX;
	list(ep, r);
	ep->used = true;
	kernel_set(r, r->disabled ? EPOLLET : kernel_mask(c, r));
	dapl_mutex_unlock(&ep->lock);
	/* The wake-up descriptor is registered for one registration of an instance, and wakes all. */
	for (struct reg *other = c->regs; other; other = other->next)
		if (other != r)
			scan_again(other);
	watch_wakeups(c, r, EPOLL_CTL_ADD);
}

bool epoll_attach(struct conn *c)
{
	for (struct reg *r = c->regs; r; r = r->next)
		if (r->epoll->nested || r->wish.events & EPOLLEXCLUSIVE || any_fd(r->epoll, r->epoll_fd) < 0)
			return false;
	for (struct reg *r = c->regs; r; r = r->next)
		attach_reg(c, r);
	return true;
}

/* out_lock held. Makes the kernel forget a registration that the program has deleted. */
static void unpark(struct conn *c, struct reg *r)
{
	struct epoll_event none = { 0 };
	int saved = errno;

	if (!c->closed)
		REAL(epoll_ctl)(any_fd(r->epoll, r->epoll_fd), EPOLL_CTL_DEL, r->fd, &none);
	errno = saved;
	drop_reg(c, r);
}

void epoll_detach(struct conn *c)
{
	for (struct reg *r = c->regs, *next; r; r = next) {
		struct epoll_event event = r->wish;
		int saved = errno, epfd = any_fd(r->epoll, r->epoll_fd);

		next = r->next;
		if (!r->attached)
			continue;
		if (r->parked) {
			REAL(epoll_ctl)(epfd, EPOLL_CTL_DEL, c->efd, &event);
			unpark(c, r);
			errno = saved;
			continue;
		}
		dapl_mutex_lock(&r->epoll->lock);
		unlink_attached(r->epoll, r);
		dapl_mutex_unlock(&r->epoll->lock);
		set_on_tcp(r, true);
		if (r->disabled)
			event.events = EPOLLONESHOT | EPOLLET;
		if (!c->closed)
			REAL(epoll_ctl)(epfd, EPOLL_CTL_MOD, r->fd, &event);
		REAL(epoll_ctl)(epfd, EPOLL_CTL_DEL, c->efd, &event);
		errno = saved;
	}
}

void epoll_out_changed(struct conn *c)
{
	for (struct reg *r = c->regs; r; r = r->next) {
		dapl_mutex_lock(&r->epoll->lock);
		if (r->attached && !r->parked) {
			if (!r->disabled && needs_change(r, kernel_mask(c, r)))
				kernel_set(r, kernel_mask(c, r));
			list(r->epoll, r);
		}
		dapl_mutex_unlock(&r->epoll->lock);
	}
}

void epoll_drop(struct conn *c)
{
	while (c->regs)
		drop_reg(c, c->regs);
}

void epoll_free_dead(struct conn *c)
{
	struct reg *dead;

	if (!conn_lock_out(c))
		return;
	dead = c->dead_regs, c->dead_regs = NULL;
	conn_unlock_out(c);
	while (dead) {
		struct reg *next = dead->next;

		free_reg(dead);
		dead = next;
	}
}

/* out_lock held. */
static void unwatch_wakeups(struct conn *c, struct epoll *ep, struct reg *r)
{
	struct reg *other = c->regs;

	while (other && other->epoll != ep)
		other = other->next;
	if (!other)
		watch_wakeups(c, r, EPOLL_CTL_DEL);
}

/* out_lock held. */
static void remove_parked(struct conn *c, struct reg *r)
{
	unpark(c, r);
	unwatch_wakeups(c, r->epoll, r);
}

bool epoll_has(struct conn *c, int fd)
{
	bool has = false;

	if (!conn_lock_out(c))
		return false;
	for (struct reg *r = c->regs, *next; r; r = next) {
		next = r->next;
		if (r->fd == fd && r->parked)
			remove_parked(c, r);
		else
			has |= r->fd == fd;
	}
	conn_unlock_out(c);
	return has;
}

void epoll_forget(int fd)
{
	struct slot *slot = slot_of(fd);
	struct epoll *ep;

	if (!slot || !slot->epoll || conn_is_vfork_child())
		return;
	dapl_mutex_lock(&sock_lock);
	ep = slot->epoll;
	__atomic_store_n(&slot->epoll, NULL, __ATOMIC_RELEASE);
	if (--ep->refs)
		ep = NULL;
	dapl_mutex_unlock(&sock_lock);
	if (!ep)
		return;
	/* The kernel has dropped its registrations; so does each connection. */
	for (struct conn *c = conn_list, *next; c; c = next) {
		next = c->next;
		if (!c->regs || !conn_lock_out(c))
			continue;
		for (struct reg *r = c->regs, *after; r; r = after) {
			after = r->next;
			if (r->epoll == ep)
				drop_reg(c, r);
		}
		conn_unlock_out(c);
	}
	dapl_mutex_lock(&sock_lock);
	ep->next = free_epolls, free_epolls = ep;
	dapl_mutex_unlock(&sock_lock);
}

void epoll_is_nested(struct epoll *ep)
{
	if (ep->nested)
		return;
	ep->nested = true;
	dapl_mutex_lock(&sock_lock);
	for (struct conn *c = conn_list; c; c = c->next) {
		if (!conn_lock_out(c))
			continue;
		for (struct reg *r = c->regs; r; r = r->next)
			if (r->epoll == ep)
				scan_again(r);
		conn_unlock_out(c);
	}
	dapl_mutex_unlock(&sock_lock);
	for (;;) {
		struct conn *c;

		dapl_mutex_lock(&ep->lock);
		c = ep->attached ? ep->attached->conn : NULL;
		dapl_mutex_unlock(&ep->lock);
		if (!c || !move_back(c, DAT_SOCKET_WHY_EPOLL, true, 1000))
			break;
	}
}

static struct reg *find(struct conn *c, struct epoll *ep, int fd)
{
	struct reg *r = c->regs;

	while (r && (r->epoll != ep || r->fd != fd))
		r = r->next;
	return r;
}

/* out_lock held. */
static int control(int epfd, struct epoll *ep, int op, int fd, struct conn *c, struct epoll_event *event)
{
	struct reg *r = find(c, ep, fd);
	bool attached = c->mode == CONN_ATTACHED;
	struct epoll_event own;
	int result;

	if (r && r->parked && op != EPOLL_CTL_ADD) {
		errno = ENOENT;
		return -1;
	}
	if (op == EPOLL_CTL_DEL && r && r->attached && !(r->wish.events & EPOLLET) && !r->next && c->regs == r) {
		/* Most programs register it again soon. */
		dapl_mutex_lock(&ep->lock);
		unlist(ep, r);
		r->parked = true;
		dapl_mutex_unlock(&ep->lock);
		return 0;
	}
	if (op == EPOLL_CTL_DEL) {
		result = REAL(epoll_ctl)(epfd, op, fd, event);
		if (r) {
			bool was = r->attached;

			drop_reg(c, r);
			if (was && !result)
				unwatch_wakeups(c, ep, r);
		}
		return result;
	}
	if (r && r->parked && event && event->events & (EPOLLET | EPOLLEXCLUSIVE))
		remove_parked(c, r), r = NULL;
	if (r && r->parked && event)
		op = EPOLL_CTL_MOD;
	if (!event || (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD) || (op == EPOLL_CTL_ADD) == !!r || !c->spare_reg)
		return REAL(epoll_ctl)(epfd, op, fd, event);
	if (op == EPOLL_CTL_ADD) {
		result = REAL(epoll_ctl)(epfd, op, fd, event);
		if (result)
			return result;
		r = c->spare_reg, c->spare_reg = NULL;
		*r = (struct reg){ .conn = c, .epoll = ep, .epoll_fd = epfd, .fd = fd, .wish = *event };
		r->next = c->regs, c->regs = r;
		if (attached) {
			attach_reg(c, r);
			conn_wake(c);
		} else {
			set_on_tcp(r, c->connector || c->acceptor);
		}
		return 0;
	}
	if (!attached) {
		result = REAL(epoll_ctl)(epfd, op, fd, event);
		if (!result)
			r->wish = *event, r->disabled = false;
		return result;
	}
	dapl_mutex_lock(&ep->lock);
	r->wish = *event;
	r->disabled = r->parked = false;
	r->seen_in = r->seen_full = UINT64_MAX;
	r->epoll_fd = epfd;
	list(ep, r);
	own = (struct epoll_event){ kernel_mask(c, r), { .u64 = (uintptr_t)r } };
	result = 0;
	if (needs_change(r, own.events)) {
		r->kernel_events = own.events;
		result = REAL(epoll_ctl)(epfd, op, fd, &own);
	}
	dapl_mutex_unlock(&ep->lock);
	if (__atomic_load_n(&ep->sleepers, __ATOMIC_SEQ_CST))
		conn_wake(c);
	return result;
}

int epoll_control(int epfd, int op, int fd, struct epoll_event *event)
{
	struct epoll *ep = epoll_of(epfd), *inner = epoll_of(fd);
	struct conn *c = conn_of(fd);
	int result, saved;

	if (inner && op == EPOLL_CTL_ADD)
		epoll_is_nested(inner);
	if (!c)
		return REAL(epoll_ctl)(epfd, op, fd, event);
	if (op == EPOLL_CTL_ADD && (!ep || ep->nested || (event && event->events & EPOLLEXCLUSIVE)))
		move_back(c, DAT_SOCKET_WHY_EPOLL, true, -1);
	if (!ep)
		return REAL(epoll_ctl)(epfd, op, fd, event);
	if (!c->spare_reg) {
		struct reg *spare = new_reg();

		if (!spare)
			move_back(c, DAT_SOCKET_WHY_MEMORY, true, -1);
		c->spare_reg = spare;
	}
	if (!conn_lock_out(c))
		return REAL(epoll_ctl)(epfd, op, fd, event);
	result = control(epfd, ep, op, fd, c, event);
	saved = errno;
	conn_unlock_out(c);
	if (c->dead_regs)
		epoll_free_dead(c);
	errno = saved;
	return result;
}

static uint32_t ring_events(struct conn *c, uint32_t wish)
{
	return (wish & IN && conn_ring_readable(c) ? wish & IN : 0) |
	       (wish & OUT && conn_ring_writable(c) ? wish & OUT : 0);
}

/* ep->lock held. Asks the peer to wake this end for what the registration waits for. A fence must follow. */
static void ask_peer(struct reg *r)
{
	struct conn *c = r->conn;

	if (r->disabled || r->parked)
		return;
	if (r->wish.events & IN)
		__atomic_store_n(&c->rx.ring->asleep, 1, __ATOMIC_RELAXED);
	if (r->wish.events & OUT && c->tx.active && !ring_is_writable(&c->tx)) {
		__atomic_store_n(&c->tx.ring->full, 1, __ATOMIC_RELAXED);
		full_note(c);
	}
}

/* ep->lock held. What the ring reports of a registration now; edges count once. */
static uint32_t report(struct reg *r)
{
	struct conn *c = r->conn;
	uint32_t events = r->disabled || r->parked ? 0 : ring_events(c, r->wish.events);

	if (events && r->wish.events & EPOLLET) {
		uint64_t tail = __atomic_load_n(&c->rx.ring->tail, __ATOMIC_RELAXED);

		if (!(events & IN && tail != r->seen_in) && !(events & OUT && c->full_count != r->seen_full))
			return 0;
		if (events & IN)
			r->seen_in = tail;
		if (events & OUT)
			r->seen_full = c->full_count;
	}
	return events;
}

/* ep->lock held. Asks the peer for wake-ups and stops scanning, unless there is an event now. Other registrations
 * of the connection would miss the wake-up. */
static uint32_t stop_scanning(struct epoll *ep, struct reg *r)
{
	struct conn *c = r->conn;
	uint32_t events;

	r->empty_scans = 0;
	if (c->regs != r || r->next)
		return 0;
	ask_peer(r);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	events = report(r);
	if (!events)
		unlist(ep, r);
	return events;
}

/* ep->lock held. Makes `r` the first of the list; those before it become the last. */
static void rotate(struct epoll *ep, struct reg *r)
{
	struct reg *last = r;

	if (!r->prev_attached)
		return;
	while (last->next_attached)
		last = last->next_attached;
	last->next_attached = ep->attached;
	ep->attached->prev_attached = last;
	r->prev_attached->next_attached = NULL;
	r->prev_attached = NULL;
	ep->attached = r;
}

/* ep->lock held. Stores events behind `count` of the kernel, with the registration as their data. Returns how many
 * there are. */
static int scan(struct epoll *ep, struct epoll_event *events, int count, int max)
{
	int kernel = count;

	/* A connection of which the kernel has told is told of once, with all of its events. */
	for (int i = 0; i < kernel; i++)
		if (is_reg(events[i].data.u64)) {
			struct reg *r = (struct reg *)(uintptr_t)events[i].data.u64;

			if (r->attached)
				events[i].events |= report(r);
		}
	for (struct reg *r = ep->attached, *next; r; r = next) {
		uint32_t got;
		int i = 0;

		next = r->next_attached;
		while (i < kernel && events[i].data.u64 != (uintptr_t)r)
			i++;
		if (i < kernel)
			continue;
		if (count == max) {
			/* The next call begins here, so that each gets its turn. */
			rotate(ep, r);
			break;
		}
		got = report(r);
		if (got)
			r->empty_scans = 0;
		else if (++r->empty_scans >= EMPTY_SCANS)
			got = stop_scanning(ep, r);
		if (got)
			events[count++] = (struct epoll_event){ got, { .u64 = (uintptr_t)r } };
	}
	return count;
}

/* ep->lock held. The kernel tells of a frame as of bytes. */
static uint32_t drop_frames(struct conn *c, uint32_t events)
{
	if (!(events & IN) || !conn_try_lock_in(c))
		return events;
	if (!remote_tcp_is_readable(c))
		events &= ~IN;
	conn_unlock_in(c);
	return events;
}

/* ep->lock held. What of an event of the kernel is the program's; the kernel stops to tell of the rest. */
static uint32_t sort_out_one(struct epoll *ep, struct epoll_event *event)
{
	struct reg *r = (struct reg *)(uintptr_t)(event->data.u64 & ~1ull);
	uint32_t wanted;

	if (r->epoll != ep || !r->conn)
		return 0;
	if (event->data.u64 & 1) {
		if (r->attached)
			list(ep, r);
		return 0;
	}
	if (unlikely(r->conn->had_frames))
		event->events = drop_frames(r->conn, event->events);
	/* One that is no longer attached was so when the kernel noted the event: it is the program's. */
	if (!r->attached)
		return event->events;
	if (event->events & ~(uint32_t)OUT)
		r->conn->look_at_tcp = true;
	if (r->disabled || r->parked) {
		kernel_set(r, EPOLLET);
		return 0;
	}
	wanted = kernel_mask(r->conn, r);
	if (event->events & ~(wanted | EPOLLERR | EPOLLHUP))
		kernel_set(r, wanted);
	return event->events & (wanted | EPOLLERR | EPOLLHUP);
}

/* ep->lock held. Drops what is the library's own of n events of the kernel. Returns how many are left. */
static int sort_out(struct epoll *ep, struct epoll_event *events, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (is_reg(events[i].data.u64))
			events[i].events = sort_out_one(ep, &events[i]);
		if (events[i].events)
			events[kept++] = events[i];
	}
	return kept;
}

/* ep->lock held. The program's data. */
static void finish(struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++)
		if (is_reg(events[i].data.u64)) {
			struct reg *r = (struct reg *)(uintptr_t)events[i].data.u64;

			events[i].data = r->wish.data;
			if (r->wish.events & EPOLLONESHOT)
				r->disabled = true;
		}
}

static int kernel_wait(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		       const sigset_t *mask)
{
	int ms = -1;

	if (timeout && timeout->tv_nsec % 1000000) {
		int n = REAL(epoll_pwait2) ? REAL(epoll_pwait2)(epfd, events, max, timeout, mask) : -1;

		if (n >= 0 || errno != ENOSYS)
			return n;
	}
	if (timeout)
		ms = timeout->tv_sec > INT_MAX / 1000 - 1
			     ? INT_MAX
			     : (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000);
	return REAL(epoll_pwait)(epfd, events, max, ms, mask);
}

/* ep->lock held. Whether a ring has an event; edges that were not seen yet stay so. */
static bool attached_ready(struct epoll *ep)
{
	bool ready = false;

	for (struct reg *r = ep->attached; r && !ready; r = r->next_attached) {
		uint64_t in = r->seen_in, full = r->seen_full;

		ready = report(r);
		r->seen_in = in, r->seen_full = full;
	}
	return ready;
}

/* Tells peers that threads sleep here. Returns whether a ring has an event meanwhile. */
static bool announce(struct epoll *ep)
{
	bool ready;

	dapl_mutex_lock(&ep->lock);
	ep->sleepers++;
	for (struct reg *r = ep->attached; r; r = r->next_attached)
		ask_peer(r);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ready = attached_ready(ep);
	dapl_mutex_unlock(&ep->lock);
	return ready;
}

static void awake(struct epoll *ep)
{
	dapl_mutex_lock(&ep->lock);
	if (!--ep->sleepers)
		for (struct reg *r = ep->attached; r; r = r->next_attached) {
			struct conn *c = r->conn;

			if (!c->regs || c->regs->next || c->waiters_in || c->waiters_out)
				continue;
			if (__atomic_load_n(&c->rx.ring->asleep, __ATOMIC_RELAXED))
				__atomic_store_n(&c->rx.ring->asleep, 0, __ATOMIC_RELAXED);
			if (__atomic_load_n(&c->tx.ring->full, __ATOMIC_RELAXED))
				__atomic_store_n(&c->tx.ring->full, 0, __ATOMIC_RELAXED);
		}
	dapl_mutex_unlock(&ep->lock);
}

/* ep->lock held. Whether a registration waits for room on TCP, of which only the kernel can tell. */
static bool waits_for_tcp(struct epoll *ep)
{
	if (!ep->waits_for_tcp)
		return false;
	for (struct reg *r = ep->attached; r; r = r->next_attached)
		if (r->wish.events & OUT && !r->conn->tx.active)
			return true;
	ep->waits_for_tcp = false;
	return false;
}

/* Puts events of the kernel before `n` events of rings: what a peer has sent on a connection over TCP is found before
 * what it has sent later on another one. The lock is released meanwhile, so events[] has the program's data already.
 * Returns how many there are. */
static int add_tcp(int epfd, struct epoll *ep, struct epoll_event *events, int n, int max, const sigset_t *mask)
{
	static const struct timespec none;
	struct epoll_event on_tcp[TCP_EVENTS];
	int room = max - n < TCP_EVENTS ? max - n : TCP_EVENTS, got, kept = 0;

	if (!room)
		return n;
	dapl_mutex_unlock(&ep->lock);
	got = kernel_wait(epfd, on_tcp, room, &none, mask);
	dapl_mutex_lock(&ep->lock);
	got = sort_out(ep, on_tcp, got);
	for (int i = 0; i < got; i++) {
		bool attached = is_reg(on_tcp[i].data.u64);
		int same = 0;

		finish(&on_tcp[i], 1);
		while (same < n && !(attached && events[same].data.u64 == on_tcp[i].data.u64))
			same++;
		if (same < n)
			events[same].events |= on_tcp[i].events;
		else
			on_tcp[kept++] = on_tcp[i];
	}
	memmove(events + kept, events, n * sizeof *events);
	memcpy(events, on_tcp, kept * sizeof *events);
	return n + kept;
}

/* Looks at the rings and at the kernel: now and then, and while it alone tells of connections. Returns events, -1:
 * errno. */
static int look(int epfd, struct epoll *ep, struct epoll_event *events, int max, const sigset_t *mask, bool kernel_too)
{
	static const struct timespec none;
	int n = 0, told;

	dapl_mutex_lock(&ep->lock);
	if (kernel_too || waits_for_tcp(ep)) {
		dapl_mutex_unlock(&ep->lock);
		n = kernel_wait(epfd, events, max, &none, mask);
		if (n < 0)
			return n;
		dapl_mutex_lock(&ep->lock);
		n = sort_out(ep, events, n);
	}
	told = n;
	n = scan(ep, events, n, max);
	finish(events, n);
	if (!told && n && __atomic_load_n(&ep->on_tcp, __ATOMIC_RELAXED))
		n = add_tcp(epfd, ep, events, n, max, mask);
	dapl_mutex_unlock(&ep->lock);
	return n;
}

static bool spin(struct epoll *ep)
{
	bool ready = false;
	struct spin s;

	spin_begin(&s);
	while (!ready && spin_again(&s)) {
		dapl_mutex_lock(&ep->lock);
		ready = attached_ready(ep);
		dapl_mutex_unlock(&ep->lock);
	}
	spin_end(&s, ready);
	return ready;
}

int epoll_sleep(int epfd, struct epoll *ep, struct epoll_event *events, int max, const struct timespec *timeout,
		const sigset_t *mask)
{
	bool sleeps = !timeout || timeout->tv_sec || timeout->tv_nsec;
	uint64_t deadline = 0, now;
	struct timespec left;
	int n;

	if (max <= 0 || !events)
		return kernel_wait(epfd, events, max, timeout, mask);
	if (timeout && sleeps)
		deadline = clock_now_ns() + timeout->tv_sec * 1000000000ull + timeout->tv_nsec;
	if (timeout)
		left = *timeout;
	for (;;) {
		bool had = ep->used;

		if (had) {
			n = look(epfd, ep, events, max, mask, !sleeps || !(ep->turn++ % KERNEL_TURN));
			if (n || !sleeps)
				return n;
			if (ep->attached && spin(ep))
				continue;
			if (announce(ep)) {
				awake(ep);
				continue;
			}
		}
		n = kernel_wait(epfd, events, max, timeout ? &left : NULL, mask);
		if (had) {
			int saved = errno;

			awake(ep);
			errno = saved;
		}
		if (n < 0)
			return n;
		dapl_mutex_lock(&ep->lock);
		n = sort_out(ep, events, n);
		if (ep->attached)
			n = scan(ep, events, n, max);
		finish(events, n);
		dapl_mutex_unlock(&ep->lock);
		if (n)
			return n;
		if (timeout) {
			now = clock_now_ns();
			if (now >= deadline)
				return 0;
			left = (struct timespec){ (deadline - now) / 1000000000, (deadline - now) % 1000000000 };
		}
	}
}
