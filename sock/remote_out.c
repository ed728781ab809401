/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_out.c - see remote_out.h. */
#include "sock/remote_out.h"
#include "common/clock.h"
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/remote_chores.h"
#include "sock/remote_frame.h"
#include "sock/remote_stream.h"
#include "sock/remote_types.h"

enum {
	AGREE_NS = 50000000, /* a receiver that does not read TCP empty in this time goes on with TCP */
	AFTER_CANCELS = 256 << 10, /* bytes of TCP before the next try, at most; 16 times as many after each */
	TCP_TAKES = 16 << 10, /* bytes that a socket takes at the end of a process, however slow the reader is */
};

void remote_push(struct conn *c)
{
	struct remote *r = c->remote;
	uint64_t tail = c->tx.tail, n = tail - r->posted, at = r->posted & (r->ring - 1);
	struct link_piece pieces[LINK_PIECES];
	/* In this order: a head that is read after an epoch is not of an earlier one. */
	uint32_t epoch = LOAD(&r->rx->epoch);
	uint64_t head = LOAD(&r->rx->head);
	int count = 0;

	STORE(&r->tx->asleep, 1);
	if (!r->agreed || !c->tx.active || !n)
		return;
	/* Room that such a peer gives lets the program fill the ring again before it was written. */
	if (LOAD(&r->tx->claim) - r->posted - 1 < n) {
		move_break(c, "took bytes that were not written yet");
		return;
	}
	for (uint64_t done = 0; done < n; count++) {
		uint64_t piece = r->ring - at < n - done ? r->ring - at : n - done;

		pieces[count] = (struct link_piece){ r->staging.lmr_context, r->peer_context,
						     (uintptr_t)r->staged + at, r->peer_address + at, piece };
		done += piece, at = 0;
	}
	r->push_later = !link_write(r->link, pieces, count,
				    (struct link_message){ .type = NOTICE, .flags = epoch,
							   .stream = r->number, .a = tail,
							   .b = head, .c = c->tx.epoch });
	remote_chores_want_look();
	if (r->push_later)
		return;
	r->posted = tail;
	__atomic_store_n(&r->told, head, __ATOMIC_RELAXED);
}

void remote_begin(struct conn *c)
{
	struct remote *r = c->remote;

	r->agreed = false, r->waiting = true;
	r->posted = c->tx.tail;
	r->begun = clock_now_ns();
	remote_stream_post(r, MOVE, c->tcp_out, c->tx.tail, c->tx.epoch);
	remote_chores_want_tick();
}

size_t remote_end(struct conn *c, unsigned char frame[REMOTE_FRAME])
{
	struct remote *r = c->remote;
	bool agreed = r->agreed;

	r->agreed = r->waiting = r->push_later = false;
	if (!agreed) {
		remote_stream_post(r, CANCEL, 0, 0, c->tx.epoch);
		STORE(&r->tx->ack, c->tx.epoch);
		return 0;
	}
	remote_encode_frame(frame, r->key, c->tx.epoch, c->tx.tail);
	c->frames_out += REMOTE_FRAME;
	return REMOTE_FRAME;
}

bool remote_leaves_much(const struct conn *c)
{
	const struct remote *r = c->remote;

	return c->tx.active && r->agreed && !link_is_over(r->link) && c->tx.tail - LOAD(&r->tx->claim) > TCP_TAKES;
}

void remote_ask_synced(struct conn *c)
{
	struct remote *r = c->remote;

	remote_push(c);
	if (!r->push_later)
		remote_stream_post(r, SYNC, c->tx.tail, 0, c->tx.epoch);
}

bool remote_take_synced(struct conn *c)
{
	struct remote *r = c->remote;
	uint64_t claim = LOAD(&r->tx->claim);

	if (LOAD(&r->synced) != c->tx.tail)
		return false;
	/* The peer's program will take them, whatever becomes of this process. */
	while (claim != c->tx.tail && !__atomic_compare_exchange_n(&r->tx->claim, &claim, c->tx.tail, false,
								   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	STORE(&r->tx->head, c->tx.tail);
	return true;
}

void remote_ended(struct conn *c)
{
	remote_stream_post(c->remote, ENDED, 0, 0, c->tx.epoch);
}

bool remote_keeps_frame(struct conn *c)
{
	c->frame_kept = link_is_over(c->remote->link);
	return c->frame_kept;
}

/* --- messages of the peer, and time ------------------------------------------------------------------------------- */

void remote_out_on_agree(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!conn_lock_out(c))
		return;
	if (c->remote == r && c->tx.active && c->tx.epoch == m->c && r->waiting) {
		r->agreed = true, r->waiting = false;
		remote_push(c);
	}
	conn_unlock_out(c);
}

bool remote_out_take_credit(struct remote *r, struct conn *c, uint64_t position, uint32_t epoch)
{
	uint64_t claim = LOAD(&r->tx->claim), tail = LOAD(&r->tx->tail);

	if (LOAD(&r->tx->epoch) != epoch || claim & RING_REVOKED)
		return true;
	if (claim - position <= r->ring)
		return true; /* two threads have told, and this is the earlier position */
	if (position - claim > tail - claim)
		return false;
	if (!__atomic_compare_exchange_n(&r->tx->claim, &claim, position, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return true; /* revoked meanwhile */
	STORE(&r->tx->head, position);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (LOAD(&r->tx->full) && LOAD(&r->tx->tail) - position <= r->ring / 2 && ring_take_wish(&r->tx->full))
		conn_wake(c);
	return true;
}

void remote_out_on_taken(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!remote_out_take_credit(r, c, m->a, m->c))
		remote_stream_reset(r, "stored a head that cannot be in the ring");
}

void remote_out_on_synced(struct remote *r, const struct link_message *m)
{
	if (LOAD(&r->tx->epoch) == m->c)
		STORE(&r->synced, m->a);
}

void remote_out_on_left(struct remote *r, const struct link_message *m)
{
	if (LOAD(&r->tx->epoch) == m->c)
		STORE(&r->tx->ack, m->c);
}

void remote_out_on_room(struct remote *r)
{
	struct conn *c = LOAD(&r->conn);

	if (r->state != ATTACHED || !c || !conn_lock_out(c))
		return;
	if (c->remote == r && r->push_later)
		remote_push(c);
	conn_unlock_out(c);
}

/* Whether the peer has to do something for the stream: to take bytes, or to answer. */
bool remote_out_waits(const struct remote *r)
{
	enum remote_state state = LOAD(&r->state);
	uint64_t claim;

	if (state != ATTACHED)
		return state != EXPECTED;
	claim = LOAD(&r->tx->claim);
	return !(claim & RING_REVOKED) && claim != LOAD(&r->tx->tail);
}

static bool is_full(struct remote *r)
{
	return LOAD(&r->tx->tail) - (LOAD(&r->tx->claim) & ~RING_REVOKED) >= r->ring;
}

void remote_out_look(struct remote *r)
{
	struct conn *c = LOAD(&r->conn);
	uint64_t claim;

	if (!c || r->state != ATTACHED || !is_full(r)) {
		r->full_at = 0;
		return;
	}
	claim = LOAD(&r->tx->claim);
	if (r->full_at != claim + 1) {
		r->full_at = claim + 1; /* 0: it was not full */
		return;
	}
	if (!conn_lock_out(c))
		return;
	if (c->remote == r && c->tx.active && is_full(r) && conn_has_user_timeout(c))
		move_leave_ring(c);
	conn_unlock_out(c);
}

bool remote_out_tick(struct remote *r, uint64_t now)
{
	struct conn *c = LOAD(&r->conn);

	if (!c || r->state != ATTACHED || !__atomic_load_n(&r->waiting, __ATOMIC_RELAXED))
		return false;
	if (now - r->begun > AGREE_NS && conn_lock_out(c)) {
		if (c->remote == r && r->waiting && c->tx.active) {
			move_revoke(c);
			c->begin_at = c->tcp_out + r->after_cancel;
			if (r->after_cancel < AFTER_CANCELS)
				r->after_cancel *= 16;
		}
		conn_unlock_out(c);
	}
	return true;
}
