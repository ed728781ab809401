/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote.c - takes what the link of streams tells, and hands it to the file of its kind. See remote.h. */
#include "sock/remote.h"
#include "sock/conn.h"
#include "sock/remote_back.h"
#include "sock/remote_chores.h"
#include "sock/remote_in.h"
#include "sock/remote_open.h"
#include "sock/remote_out.h"
#include "sock/remote_stream.h"
#include "sock/remote_types.h"

const char *remote_ia(const struct conn *c)
{
	const struct remote *r = LOAD(&c->remote); /* it is freed by this thread only */

	return r ? link_ia(r->link) : "";
}

struct link *remote_link(struct conn *c)
{
	link_borrow(c->remote->link);
	return c->remote->link;
}

struct link *remote_borrow(struct conn *c)
{
	struct link *link = NULL;

	if (conn_lock_in(c)) {
		if (c->remote && !c->regs)
			link = remote_link(c);
		conn_unlock_in(c);
	}
	return link;
}

void remote_return(struct conn *c)
{
	link_return(c->remote->link);
}

static void on_message_of(struct remote *r, const struct link_message *m)
{
	struct conn *c = LOAD(&r->conn);

	if (m->type == CLOSED) {
		if (LOAD(&r->state) == CLOSING)
			remote_stream_destroy(r);
		return;
	}
	if (!c || r->state != ATTACHED)
		return; /* it was closed at this end meanwhile */
	switch (m->type) {
	case MOVE: remote_in_on_move(r, c, m); break;
	case AGREE: remote_out_on_agree(r, c, m); break;
	case CANCEL: remote_in_on_cancel(r, c, m); break;
	case NOTICE: remote_in_on_notice(r, c, m); break;
	case ENDED: remote_in_on_ended(r, c, m); break;
	case SYNC: remote_in_on_sync(r, m); break;
	case SYNCED: remote_out_on_synced(r, m); break;
	case TAKEN: remote_out_on_taken(r, c, m); break;
	case LEFT: remote_out_on_left(r, m); break;
	case BACK: remote_back_on_back(r, c); break;
	case BACKED: remote_back_on_backed(r); break;
	default: link_break(r->link, "a message of an unknown type"); break;
	}
}

static void on_message(struct link *link, const struct link_message *m)
{
	struct remote *r = remote_stream_find(link, m->stream);

	if (m->size && m->type != NOTICE) {
		link_break(link, "bytes behind a message that has none");
		return;
	}
	if (m->type == OPEN) {
		remote_open_on_open(link, m);
		return;
	}
	if (m->type == CLOSE) {
		link_send(link, (struct link_message){ .type = CLOSED, .stream = m->stream });
		if (r && r->state != ATTACHED && r->state != CLOSING)
			remote_open_refuse(r, DAT_SOCKET_WHY_PEER);
		else if (r)
			remote_back_on_close(r, m);
		return;
	}
	if (!r) {
		/* It was given up before it was attached here. */
		if (m->type == OPENED || m->type == MOVE || m->type == BACK)
			link_send(link, (struct link_message){ .type = CLOSE, .stream = m->stream });
		return;
	}
	if (m->type == RING)
		remote_open_on_ring(r, m);
	else if (m->type == OPENED && r->state == OPENING)
		remote_open_on_opened(r);
	else if (m->type == NO && r->state == OPENING)
		remote_open_refuse(r, m->a < 32 ? m->a : DAT_SOCKET_WHY_PEER);
	else
		on_message_of(r, m);
}

/* Any thread: messages that come with bytes of the stream, and that need no lock. */
static bool on_fast(struct link *link, const struct link_message *m)
{
	bool fast = m->type == NOTICE || (m->type == TAKEN && !m->size);
	struct remote *r = fast ? remote_stream_find(link, m->stream) : NULL;
	struct conn *c = r ? LOAD(&r->conn) : NULL;

	if (!c || LOAD(&r->state) != ATTACHED)
		return false;
	return m->type == NOTICE ? remote_in_take_notice(r, c, m) : remote_out_take_credit(r, c, m->a, m->c);
}

static void on_up(struct link *link)
{
	(void)link;
}

static void on_down(struct link *link)
{
	for (struct remote *r = remote_stream_all(), *next; r; r = next) {
		next = r->next_all;
		if (r->link != link)
			continue;
		if (r->state == ATTACHED)
			remote_back_peer_gone(r);
		else if (LOAD(&r->state) == CLOSING)
			remote_stream_destroy(r);
		else
			remote_open_refuse(r, DAT_SOCKET_WHY_PEER);
	}
}

static void on_room(struct link *link)
{
	for (struct remote *r = remote_stream_all(); r; r = r->next_all)
		if (r->link == link)
			remote_out_on_room(r);
}

void remote_serve_links(void)
{
	static const struct link_user user = { remote_open_knows, on_up, on_down, on_message, on_room, on_fast };

	link_set_user(&user);
}

void remote_after_fork(void)
{
	remote_stream_forget_all();
	remote_chores_after_fork();
	link_after_fork();
}
