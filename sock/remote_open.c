/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_open.c - see remote_open.h. */
#include "sock/remote_open.h"
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/remote.h"
#include "sock/remote_stream.h"
#include "sock/remote_types.h"
#include "sock/service.h"
#include "sock/settings.h"

enum { RING_MOST = 256 << 10 }; /* bytes: 20 us at 100 Gb/s; all of it is pinned by an adapter */

static uint32_t last_number;

static void send_ring(struct remote *r)
{
	int side = r->tx == &r->segment->ring[0] ? 0 : 1;

	remote_stream_post(r, RING, (uintptr_t)r->segment + SEGMENT_DATA + !side * (size_t)r->ring,
			   r->exposed.rmr_context, r->ring);
}

/* The connection goes on by these rings. Returns 0 or a DAT_SOCKET_WHY_*. */
static int attach(struct remote *r)
{
	struct conn *c = r->conn;
	size_t size = 2 * (size_t)r->ring, memory = size > RING_MIN ? size - RING_MIN : 0; /* besides move_attach() */
	int why = DAT_SOCKET_WHY_BUSY;

	if (!settings_take_memory(memory))
		return DAT_SOCKET_WHY_MEMORY;
	if (conn_lock(c)) {
		c->remote = r;
		c->had_frames = true;
		why = service_is_forking() ? DAT_SOCKET_WHY_BUSY :
					     move_attach(c, r->segment, SEGMENT_DATA + size, r->ring, -1);
		if (why) {
			c->remote = NULL;
		} else {
			c->memory += memory;
			c->tx.size = r->ring;
			STORE(&r->tx->size, r->ring), STORE(&r->rx->size, r->ring);
			/* So that the other side of each ring, which is this file, hears of each change. */
			STORE(&r->tx->asleep, 1), STORE(&r->rx->full, 1);
			r->state = ATTACHED;
		}
		conn_unlock(c);
	}
	if (why)
		settings_give_memory(memory);
	return why;
}

/* Nothing was attached: gives the stream up. */
static void give_up(struct remote *r)
{
	r->conn = NULL;
	if (r->link && !link_is_over(r->link)) {
		r->state = CLOSING;
		remote_stream_post(r, CLOSE, 0, 0, 0);
	} else {
		remote_stream_destroy(r);
	}
}

void remote_open_refuse(struct remote *r, enum dat_socket_why why)
{
	struct conn *c = r->conn;

	give_up(r);
	if (c)
		service_remote_opened(c, why);
}

bool remote_expect(struct conn *c, const unsigned char key[LINK_KEY])
{
	struct remote *r;

	remote_serve_links();
	remote_forget(c);
	r = remote_stream_create(c, key);
	if (r)
		r->state = EXPECTED;
	return r;
}

static void send_open(struct remote *r)
{
	uint64_t words[2];

	memcpy(words, r->key, sizeof words);
	remote_stream_post(r, OPEN, be64toh(words[0]), be64toh(words[1]), r->ring);
	send_ring(r);
}

int remote_open(struct conn *c, const char *ia, const struct sockaddr *peer, uint64_t qualifier,
		const unsigned char key[LINK_KEY])
{
	uint32_t ring = settings.ring < RING_MOST ? settings.ring : RING_MOST;
	struct link *link;
	struct remote *r;

	remote_serve_links();
	link = link_connect(ia, peer, qualifier, key);
	if (!link)
		return errno == EIO ? DAT_SOCKET_WHY_ADAPTER : DAT_SOCKET_WHY_MEMORY;
	remote_forget(c);
	r = remote_stream_create(c, key);
	if (!r)
		return DAT_SOCKET_WHY_MEMORY;
	r->state = OPENING;
	last_number += 2;
	remote_stream_enter(r, link, last_number | link_is_asker(link));
	if (remote_stream_make_rings(r, ring)) {
		remote_stream_destroy(r);
		return DAT_SOCKET_WHY_MEMORY;
	}
	send_open(r); /* waits in the queue of the link until it is up */
	return 0;
}

void remote_forget(struct conn *c)
{
	for (struct remote *r = remote_stream_all(), *next; r; r = next) {
		next = r->next_all;
		if (r->conn == c && (r->state == EXPECTED || r->state == OPENING || r->state == ANSWERED))
			give_up(r);
	}
}

/* Once for each key: a peer cannot make links without end. */
bool remote_open_knows(const unsigned char token[LINK_KEY])
{
	for (struct remote *r = remote_stream_all(); r; r = r->next_all)
		if (r->state == EXPECTED && !r->came && !memcmp(r->key, token, LINK_KEY))
			return r->came = true;
	return false;
}

static void answer_no(struct link *link, uint32_t stream, enum dat_socket_why why)
{
	link_send(link, (struct link_message){ .type = NO, .stream = stream, .a = why });
}

void remote_open_on_open(struct link *link, const struct link_message *m)
{
	uint64_t words[2] = { htobe64(m->a), htobe64(m->b) };
	struct remote *r = remote_stream_all();
	int why = DAT_SOCKET_WHY_SETTING;

	if ((m->stream & 1) == link_is_asker(link) || remote_stream_find(link, m->stream)) {
		link_break(link, "a stream with a number that cannot be");
		return;
	}
	while (r && (r->state != EXPECTED || memcmp(r->key, words, sizeof words)))
		r = r->next_all;
	if (!r) {
		answer_no(link, m->stream, DAT_SOCKET_WHY_PEER);
		return;
	}
	remote_stream_enter(r, link, m->stream);
	if (m->c >= 4096 && m->c <= settings.ring && m->c <= RING_MOST && !(m->c & (m->c - 1)))
		why = remote_stream_make_rings(r, m->c);
	r->state = ANSWERED;
	if (why) {
		answer_no(link, m->stream, why);
		remote_open_refuse(r, why);
	}
}

void remote_open_on_ring(struct remote *r, const struct link_message *m)
{
	struct conn *c = r->conn;
	int why;

	if (r->state != ANSWERED && r->state != OPENING)
		return;
	if (m->c != r->ring || m->b > UINT32_MAX) {
		answer_no(r->link, r->number, DAT_SOCKET_WHY_PEER);
		remote_open_refuse(r, DAT_SOCKET_WHY_PEER);
		return;
	}
	r->peer_address = m->a, r->peer_context = m->b;
	if (r->state == OPENING)
		return;
	why = attach(r);
	if (why) {
		answer_no(r->link, r->number, why);
		remote_open_refuse(r, why);
		return;
	}
	send_ring(r);
	remote_stream_post(r, OPENED, 0, 0, 0);
	service_remote_opened(c, DAT_SOCKET_WHY_NONE);
}

void remote_open_on_opened(struct remote *r)
{
	struct conn *c = r->conn;
	int why = r->peer_address ? attach(r) : DAT_SOCKET_WHY_PEER;

	if (why)
		remote_open_refuse(r, why);
	else
		service_remote_opened(c, DAT_SOCKET_WHY_NONE);
}
