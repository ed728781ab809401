/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_back.c - see remote_back.h. */
#include "sock/remote_back.h"
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/remote_chores.h"
#include "sock/remote_in.h"
#include "sock/remote_out.h"
#include "sock/remote_stream.h"
#include "sock/remote_types.h"
#include "sock/service.h"

enum {
	FRAME_TICKS = 5,
	TICKS = 2000, /* after so many a stream whose peer is gone is left to the program's calls */
};

static void begin(struct remote *r)
{
	r->ticks = 0;
	__atomic_store_n(&r->finishing, true, __ATOMIC_SEQ_CST);
	remote_chores_want_tick();
}

void remote_send_back(struct conn *c)
{
	struct remote *r = c->remote;

	if (c->peer_gone || link_is_over(r->link))
		begin(r);
	else
		remote_stream_post(r, BACK, 0, 0, 0);
}

/* Both locks held. A frame without bytes behind it: if the peer has died, it would bring nothing but a reset, so it
 * waits whether an end of the stream comes. Returns whether it waits on. */
static bool send_kept_frame(struct remote *r, struct conn *c)
{
	if (!c->frame_kept || !c->resend)
		return false;
	if (r->ticks < FRAME_TICKS || remote_in_has_ended(c))
		return true;
	if (!move_flush(c))
		service_watch_resend(c);
	return c->frame_kept = false;
}

/* The service thread: goes on with the way back of both directions. */
static void go_on(struct remote *r)
{
	struct conn *c = LOAD(&r->conn);
	bool detached = false, over = false, kept, broken = link_is_over(r->link);

	if (!c || !conn_lock(c))
		return;
	if (c->remote == r && c->mode == CONN_ATTACHED && !c->broken) {
		c->may_begin = false;
		move_revoke(c);
		kept = send_kept_frame(r, c);
		if (c->rx.active && remote_look(c))
			move_receive(c);
		if (!c->rx.active && !kept && !c->broken) {
			r->wanted = false;
			move_detach(c);
			detached = true;
		} else if (!link_is_up(r->link) || c->peer_gone) {
			/* The peer has died: what it has left is the program's to read. */
			over = remote_in_has_ended(c);
		}
	}
	over |= c->remote != r || c->broken || detached;
	conn_unlock(c);
	if (over || (++r->ticks > TICKS && !LOAD(&c->back_wait)))
		r->finishing = false;
	if (over)
		move_wake_back(c);
	if (detached)
		service_remote_back(c, broken);
}

void remote_notify_end(struct conn *c)
{
	struct remote *r = c->remote;

	c->may_begin = false;
	move_revoke(c);
	if (c->rx.active && !ring_is_revoked(&c->rx))
		remote_in_end_epoch(c, 0, false);
	remote_stream_post(r, CLOSE, LOAD(&r->rx->head), 0, LOAD(&r->rx->epoch));
}

void remote_detach(struct conn *c)
{
	struct remote *r = c->remote;
	struct link *link = r->link;
	struct link_message m = { .type = CLOSE, .stream = r->number, .a = LOAD(&r->rx->head),
				  .c = LOAD(&r->rx->epoch) };

	c->remote = NULL;
	STORE(&r->conn, NULL);
	link_hold(link);
	/* From now on the service thread may free it. */
	STORE(&r->state, CLOSING);
	link_send(link, m);
	link_release(link);
	remote_chores_want_look();
	remote_chores_want_tick();
}

/* The peer has given the stream up, or the link is broken. */
void remote_back_peer_gone(struct remote *r)
{
	struct conn *c = LOAD(&r->conn);

	if (r->state != ATTACHED || !c)
		return;
	__atomic_store_n(&c->peer_gone, true, __ATOMIC_SEQ_CST);
	begin(r);
	go_on(r);
	conn_wake(c);
}

/* --- messages of the peer, and time ------------------------------------------------------------------------------- */

void remote_back_on_back(struct remote *r, struct conn *c)
{
	if (!conn_lock(c))
		return;
	if (c->remote == r) {
		c->may_begin = false;
		move_revoke(c);
	}
	conn_unlock(c);
	remote_stream_post(r, BACKED, 0, 0, 0);
	begin(r);
	go_on(r);
}

void remote_back_on_backed(struct remote *r)
{
	begin(r);
	go_on(r);
}

/* The peer's end has both directions on TCP, or the program has closed it: it waits for no frame. */
void remote_back_on_close(struct remote *r, const struct link_message *m)
{
	struct conn *c = LOAD(&r->conn);

	if (c && r->state == ATTACHED)
		remote_out_on_taken(r, c, m);
	if (c && conn_lock_out(c)) {
		if (c->remote == r)
			r->agreed = false;
		conn_unlock_out(c);
	}
	remote_back_peer_gone(r);
}

bool remote_back_tick(struct remote *r)
{
	if (r->finishing)
		go_on(r);
	return r->finishing;
}
