/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_stream.c - see remote_stream.h. */
#include "sock/remote_stream.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/remote_chores.h"

enum {
	BUCKETS = 1024,
	AFTER_CANCEL = 16, /* bytes of TCP before the next try; remote_out.c multiplies it */
};

static struct remote *buckets[BUCKETS];
static struct remote *all;

static struct remote **bucket(const struct link *link, uint32_t number)
{
	return &buckets[((uintptr_t)link / 64 + number / 2) % BUCKETS];
}

struct remote *remote_stream_find(const struct link *link, uint32_t number)
{
	struct remote *r = *bucket(link, number);

	while (r && (r->link != link || r->number != number))
		r = r->next;
	return r;
}

void remote_stream_enter(struct remote *r, struct link *link, uint32_t number)
{
	struct remote **at = bucket(link, number);

	link_hold(link);
	link_pause();
	r->link = link, r->number = number;
	r->next = *at, *at = r;
	link_resume();
	remote_chores_want_look();
}

struct remote *remote_stream_create(struct conn *c, const unsigned char key[LINK_KEY])
{
	struct remote *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->conn = c;
	memcpy(r->key, key, LINK_KEY);
	r->after_cancel = AFTER_CANCEL;
	r->next_all = all;
	if (all)
		all->prev_all = r;
	return all = r;
}

void remote_stream_destroy(struct remote *r)
{
	if (r->link) {
		struct remote **at = bucket(r->link, r->number);

		link_pause();
		while (*at != r)
			at = &(*at)->next;
		*at = r->next;
		link_resume();
		link_release(r->link);
	}
	*(r->prev_all ? &r->prev_all->next_all : &all) = r->next_all;
	if (r->next_all)
		r->next_all->prev_all = r->prev_all;
	link_unregister(&r->staging);
	link_unregister(&r->exposed);
	if (r->segment)
		munmap(r->segment, SEGMENT_DATA + 2 * (size_t)r->ring);
	free(r);
}

void remote_stream_post(struct remote *r, enum remote_message type, uint64_t a, uint64_t b, uint64_t c)
{
	link_send(r->link, (struct link_message){ .type = type, .stream = r->number, .a = a, .b = b, .c = c });
}

/* Makes the rings of this end. Memory that is shared is not copied by a fork: the adapter writes to these pages. */
int remote_stream_make_rings(struct remote *r, uint32_t ring)
{
	size_t size = SEGMENT_DATA + 2 * (size_t)ring;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int side = r->conn->connector ? 0 : 1;

	if (p == MAP_FAILED)
		return DAT_SOCKET_WHY_MEMORY;
	madvise(p, size, MADV_DONTFORK);
	r->segment = p, r->ring = ring;
	r->tx = &r->segment->ring[side], r->rx = &r->segment->ring[!side];
	r->staged = (char *)p + SEGMENT_DATA + side * (size_t)ring;
	r->received = (char *)p + SEGMENT_DATA + !side * (size_t)ring;
	if (link_register(r->link, r->staged, ring, false, &r->staging) ||
	    link_register(r->link, r->received, ring, true, &r->exposed))
		return DAT_SOCKET_WHY_MEMORY;
	return 0;
}

/* The peer has lied, or both ends do not agree: the connection is reset. */
void remote_stream_reset(struct remote *r, const char *what)
{
	struct conn *c = LOAD(&r->conn);

	if (!c || !conn_lock(c))
		return;
	if (c->remote == r)
		move_break(c, what);
	conn_unlock(c);
}

struct remote *remote_stream_all(void)
{
	return all;
}

void remote_stream_forget_all(void)
{
	memset(buckets, 0, sizeof buckets);
	all = NULL;
}
