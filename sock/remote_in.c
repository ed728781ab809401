/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_in.c - see remote_in.h. */
#include "sock/remote_in.h"
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/real.h"
#include "sock/remote_chores.h"
#include "sock/remote_frame.h"
#include "sock/remote_out.h"
#include "sock/remote_stream.h"
#include "sock/remote_types.h"

enum { TICKS_TO_TELL = 2 }; /* within the first the program may answer, which tells it, too */

static void tell_soon(struct remote *r)
{
	__atomic_store_n(&r->ticks_to_tell, TICKS_TO_TELL, __ATOMIC_SEQ_CST);
	remote_chores_want_tick();
}

/* in_lock held. Enters the epoch that the peer wants to begin, once TCP was read up to it. */
static void try_agree(struct conn *c)
{
	struct remote *r = c->remote;

	if (!r->wanted || c->rx.active || c->tcp_in < r->want_start)
		return;
	if (c->tcp_in > r->want_start) {
		r->wanted = false; /* bytes behind it have come by TCP: the peer has cancelled it */
		return;
	}
	r->wanted = r->no_frame = r->ends = false;
	STORE(&r->noticed, false);
	__atomic_store_n(&r->told, r->want_position, __ATOMIC_RELAXED);
	r->skip = 0;
	STORE(&r->rx->tail, r->want_position);
	STORE(&r->rx->head, r->want_position);
	STORE(&r->rx->claim, r->want_position);
	c->rx.claim = r->want_position;
	c->rx.epoch = r->want_epoch;
	c->rx_left = 0;
	STORE(&r->rx->epoch, r->want_epoch);
	c->rx.active = true;
	remote_stream_post(r, AGREE, 0, 0, r->want_epoch);
}

void remote_received(struct conn *c)
{
	try_agree(c);
}

void remote_taken(struct conn *c)
{
	struct remote *r = c->remote;

	STORE(&r->rx->full, 1);
	if (c->rx.claim - __atomic_load_n(&r->told, __ATOMIC_RELAXED) < r->ring / 4) {
		/* The program reads long after the bytes have come. */
		if (!__atomic_load_n(&r->ticks_to_tell, __ATOMIC_SEQ_CST))
			tell_soon(r);
		return;
	}
	__atomic_store_n(&r->told, c->rx.claim, __ATOMIC_RELAXED);
	remote_stream_post(r, TAKEN, c->rx.claim, 0, c->rx.epoch);
}

/* in_lock held. */
void remote_in_end_epoch(struct conn *c, uint64_t skip, bool frame)
{
	struct remote *r = c->remote;

	r->skip = skip, r->no_frame = !frame;
	__atomic_fetch_or(&r->rx->claim, RING_REVOKED, __ATOMIC_ACQ_REL);
}

/* Whether TCP has bytes. A receive would take an error of the socket away, which is the program's. */
static bool has_bytes(const struct conn *c)
{
	int n = 0;

	return !REAL(ioctl)(c->fd, FIONREAD, &n) && n > 0;
}

/* Whether no byte comes any more by TCP. */
bool remote_in_has_ended(const struct conn *c)
{
	struct pollfd p = { c->fd, POLLIN | POLLRDHUP, 0 };

	return REAL(poll)(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR) && !has_bytes(c);
}

bool remote_look(struct conn *c)
{
	struct remote *r = c->remote;
	unsigned char bytes[REMOTE_FRAME];
	uint64_t position, ahead;
	ssize_t n;

	if (!c->rx.active || ring_is_revoked(&c->rx))
		return true;
	if (r->ends) {
		if (c->rx.claim == r->end_at)
			remote_in_end_epoch(c, 0, true);
		return true;
	}
	if (!has_bytes(c))
		return true;
	n = REAL(recv)(c->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return true; /* the end is for the read to find */
	if (n < REMOTE_FRAME && !memcmp(bytes, r->key, n < LINK_KEY ? n : LINK_KEY))
		return true; /* the rest comes */
	if (n < REMOTE_FRAME || !remote_decode_frame(bytes, r->key, c->rx.epoch, &position)) {
		if (LOAD(&r->noticed)) {
			move_break(c, "sent over TCP while the ring carried the stream");
			return false;
		}
		remote_in_end_epoch(c, 0, false);
		return true;
	}
	ahead = position - c->rx.claim;
	if (ahead > LOAD(&r->rx->tail) - c->rx.claim && -ahead > r->ring) {
		move_break(c, "ended an epoch at a position that cannot be");
		return false;
	}
	REAL(recv)(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
	__atomic_add_fetch(&c->tcp_in, REMOTE_FRAME, __ATOMIC_RELAXED);
	c->frames_in += REMOTE_FRAME;
	if (-ahead <= r->ring)
		remote_in_end_epoch(c, -ahead, true);
	else
		r->ends = true, r->end_at = position;
	return true;
}

bool remote_skip(struct conn *c)
{
	struct remote *r = c->remote;

	while (r->skip) {
		char none[4096];
		size_t want = r->skip < sizeof none ? r->skip : sizeof none;
		ssize_t n = has_bytes(c) ? REAL(recv)(c->fd, none, want, MSG_DONTWAIT) : 0;

		if (n > 0) {
			r->skip -= n;
			__atomic_add_fetch(&c->tcp_in, n, __ATOMIC_RELAXED);
			c->frames_in += n;
		} else if (remote_in_has_ended(c)) {
			r->skip = 0; /* before all was sent again; no byte is missing */
		} else {
			return false;
		}
	}
	return true;
}

int remote_tcp_bytes(struct conn *c)
{
	int n = 0;

	if (remote_look(c))
		move_receive(c);
	if (REAL(ioctl)(c->fd, FIONREAD, &n) || !c->rx.active)
		return n;
	return ring_is_revoked(&c->rx) && (uint64_t)n > c->remote->skip ? n - (int)c->remote->skip : 0;
}

bool remote_tcp_is_readable(struct conn *c)
{
	if (c->remote && remote_look(c))
		move_receive(c);
	return c->broken || conn_ring_readable(c) || remote_in_has_ended(c) || (!c->rx.active && has_bytes(c));
}

void remote_left(struct conn *c)
{
	struct remote *r = c->remote;

	if (!r->no_frame)
		remote_stream_post(r, LEFT, 0, 0, c->rx.epoch);
	try_agree(c);
}

/* --- messages of the peer, and time ------------------------------------------------------------------------------- */

void remote_in_on_move(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!conn_lock(c))
		return;
	if (c->remote == r && !c->broken) {
		if (c->rx.active && !ring_is_revoked(&c->rx) && LOAD(&r->noticed)) {
			move_break(c, "began an epoch in another one");
		} else if (m->b & RING_REVOKED) {
			move_break(c, "began an epoch at a position that cannot be");
		} else {
			/* The peer has given up the one before, of which it did not know that this end agreed. */
			if (c->rx.active && !ring_is_revoked(&c->rx))
				remote_in_end_epoch(c, 0, false);
			r->wanted = true;
			r->want_start = m->a, r->want_position = m->b, r->want_epoch = m->c;
			move_receive(c);
			try_agree(c);
		}
	}
	conn_unlock(c);
}

void remote_in_on_cancel(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!conn_lock_in(c))
		return;
	if (c->remote == r && r->wanted && r->want_epoch == m->c) {
		r->wanted = false;
	} else if (c->remote == r && c->rx.active && c->rx.epoch == m->c && !ring_is_revoked(&c->rx)) {
		if (LOAD(&r->noticed)) {
			move_break(c, "cancelled an epoch that had begun");
		} else {
			remote_in_end_epoch(c, 0, false);
			move_receive(c);
		}
	}
	conn_unlock_in(c);
	conn_wake(c);
}

void remote_in_on_ended(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!conn_lock_in(c))
		return;
	if (c->remote == r && c->rx.active && c->rx.epoch == m->c && remote_look(c))
		move_receive(c);
	conn_unlock_in(c);
	conn_wake(c);
}

/* Puts bytes that came with the message, and fit, into the ring before position m->a. */
static void store_inline(struct remote *r, const struct link_message *m)
{
	uint64_t at = (m->a - m->size) & (r->ring - 1), first = r->ring - at < m->size ? r->ring - at : m->size;

	if (!m->size)
		return;
	memcpy(r->received + at, m->bytes, first);
	memcpy(r->received, m->bytes + first, m->size - first);
}

bool remote_in_take_notice(struct remote *r, struct conn *c, const struct link_message *m)
{
	uint64_t head = LOAD(&r->rx->head), tail = LOAD(&r->rx->tail);

	if ((uint8_t)LOAD(&r->tx->epoch) == m->flags)
		if (!remote_out_take_credit(r, c, m->b, LOAD(&r->tx->epoch)))
			return false;
	if (LOAD(&r->rx->epoch) != m->c || LOAD(&r->rx->claim) & RING_REVOKED)
		return true; /* of an epoch that this end has left */
	if (m->a - tail > r->ring || m->a - head > r->ring || (m->size && m->size != m->a - tail))
		return false;
	store_inline(r, m);
	STORE(&r->noticed, true);
	STORE(&r->rx->tail, m->a);
	tell_soon(r);
	if (ring_take_wish(&r->rx->asleep))
		conn_wake(c);
	return true;
}

void remote_in_on_notice(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!remote_in_take_notice(r, c, m))
		remote_stream_reset(r, "stored positions that cannot be in the ring");
}

void remote_in_on_sync(struct remote *r, const struct link_message *m)
{
	if (LOAD(&r->rx->epoch) == m->c && LOAD(&r->rx->tail) == m->a)
		remote_stream_post(r, SYNCED, m->a, 0, m->c);
}

/* What the program has read and not answered: the peer need not send it again if this process dies. */
static void tell_taken(struct remote *r, struct conn *c)
{
	uint64_t head = LOAD(&r->rx->head);

	if (head == LOAD(&r->told) || !conn_lock_in(c))
		return;
	if (c->remote == r && c->rx.active && !ring_is_revoked(&c->rx) && c->rx.claim != r->told) {
		__atomic_store_n(&r->told, c->rx.claim, __ATOMIC_RELAXED);
		remote_stream_post(r, TAKEN, c->rx.claim, 0, c->rx.epoch);
	}
	conn_unlock_in(c);
}

bool remote_in_tick(struct remote *r)
{
	struct conn *c = LOAD(&r->conn);

	if (!c || r->state != ATTACHED || !__atomic_load_n(&r->ticks_to_tell, __ATOMIC_RELAXED))
		return false;
	if (__atomic_sub_fetch(&r->ticks_to_tell, 1, __ATOMIC_SEQ_CST))
		return true;
	tell_taken(r, c);
	return false;
}
