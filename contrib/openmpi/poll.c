/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll.c - Open MPI's call for progress, and reading the rings, which is most of it. Whether something
 * else must be looked at progress.c knows. Between the store of a peer and our answer to it all of this is
 * run, so it is one function, as short as it can be where a message fits into its slot and brings no
 * news. eager.c says how a ring works. */
#include "ring.h"

enum { IN_A_ROW = 64 };		/* messages read before others have their turn */

/* Is the next message there? Then it is whole. */
static inline bool is_there(const struct udapl_ring_in *r, struct udapl_tail *tail)
{
	const char *end = r->memory.base + r->at.end;
	uint64_t word = *(const volatile uint64_t *)(end - sizeof word);

	memcpy(tail, &word, sizeof *tail);
	return tail->lap == r->at.lap;
}

/* The lines before the last of the next message are asked for as often as that: so they come at the
 * same time, not one after the other. (A function of nothing but prefetches that is not inlined at once is
 * dropped by gcc, as one that does nothing.) */
static inline __opal_attribute_always_inline__
void ask_for_more(const struct udapl_ring_in *r)
{
	const char *end = r->memory.base + r->at.end;

	for (int i = 1; i <= UDAPL_ALONG; i++)
		__builtin_prefetch(end - i * UDAPL_LINE - 1);
}

/* So that none of these slots looks like the end of a message. */
static void clear(char *from, char *to)
{
	for (; to > from; to -= UDAPL_SLOT)
		memset(to - sizeof(struct udapl_tail), 0, sizeof(struct udapl_tail));
}

/* Who writes has not mapped it: the message that ended there has been read. */
static void owe(struct udapl_ring_in *r, char *end, uint32_t size, uint32_t slots)
{
	clear(end - size, end - UDAPL_SLOT);
	opal_atomic_wmb();
	OPAL_THREAD_ADD_FETCH32(&r->owed, slots);
}

static inline void pass(struct udapl_ring_in *r, uint32_t size)
{
	char *end = r->memory.base + r->at.end;
	uint32_t slots = udapl_ring_pass(&r->shape, &r->at, size);

	if (OPAL_LIKELY(r->notes->mapped))
		__atomic_store_n(&r->notes->read, r->notes->read + slots, __ATOMIC_RELEASE);
	else
		owe(r, end, size, slots);
}

static inline void deliver(struct udapl_conn *c, struct udapl_tail tail, uint32_t begin)
{
	struct udapl_ring_in *r = &c->ring_in;

	r->segment.seg_addr.pval = r->memory.base + begin;
	r->segment.seg_len = tail.length;
	udapl_deliver(c->module, tail.tag, &r->des);
}

/* All lines at once: who copies asks for them one after the other. */
static inline __opal_attribute_always_inline__
void fetch(const char *from, const char *to)
{
	for (; from < to; from += UDAPL_LINE)
		__builtin_prefetch(from);
}

/* More than one slot, or news. */
static inline __opal_attribute_always_inline__ void read_other(struct udapl_conn *c, struct udapl_tail tail)
{
	struct udapl_ring_in *r = &c->ring_in;
	struct udapl_extent extent = udapl_ring_extent(r->at.end, tail.length);
	char *end = r->memory.base + r->at.end;
	uint32_t size = extent.size;

	__builtin_prefetch(end - size - sizeof tail);	/* the next tail, if it's in this lap */
	if (OPAL_UNLIKELY(tail.news))
		udapl_take_news(c, tail.credits, tail.eager_credits);
	if (OPAL_LIKELY(size <= r->shape.largest)) {
		fetch(end - size, end - UDAPL_LINE);
		deliver(c, tail, extent.begin);
	} else {
		size = UDAPL_SLOT;	/* not a writer of ours */
	}
	pass(r, size);
}

static inline void read_message(struct udapl_conn *c, struct udapl_tail tail)
{
	struct udapl_ring_in *r = &c->ring_in;

	opal_atomic_rmb();
	if (OPAL_LIKELY(!tail.news && udapl_ring_is_slot(tail.length))) {
		__builtin_prefetch(r->memory.base + r->at.end - UDAPL_SLOT - sizeof tail);
		deliver(c, tail, udapl_ring_begin(r->at.end, tail.length));
		pass(r, UDAPL_SLOT);
	} else {
		read_other(c, tail);
	}
}

/* Has the peer posted something? It should not be much later than what is in the ring. */
static inline void look_for_posted(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;

	if (OPAL_LIKELY(r->notes->posted == r->posted))
		return;
	r->posted = r->notes->posted;
	udapl_look_soon(c->module);
}

/* What is there: this message, and those behind it. */
static inline __opal_attribute_always_inline__
int read_ring(struct udapl_conn *c, struct udapl_tail tail)
{
	int n = 0;

	do {
		read_message(c, tail);
		n++;
	} while (n < IN_A_ROW && is_there(&c->ring_in, &tail));
	look_for_posted(c);
	return n;
}

/* Slots that were read are told, if it's time. */
static inline void tell(struct udapl_conn *c)
{
	if (OPAL_UNLIKELY(c->ring_in.owed) && udapl_owes(c))
		udapl_return_credits(c);
}

/* One thread reads at a time. What was seen may be read by now. */
static __attribute__((noinline)) int read_in_turn(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;
	struct udapl_tail tail;
	int n = 0;

	if (opal_atomic_trylock(&r->busy))
		return 0;
	if (is_there(r, &tail))
		n = read_ring(c, tail);
	opal_atomic_unlock(&r->busy);
	tell(c);
	return n;
}

/* Reads what has come; as many messages. Not from what it was called by when a message came. Where there
 * is one thread, it does without the locked instruction: that waits for all stores before it. */
static inline __opal_attribute_always_inline__
int poll_ring(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;
	struct udapl_tail tail;
	int n;

	if (!is_there(r, &tail)) {
		ask_for_more(r);
		look_for_posted(c);
		return 0;
	}
	if (OPAL_UNLIKELY(opal_using_threads()))
		return read_in_turn(c);
	if (OPAL_UNLIKELY(r->busy.u.lock == OPAL_ATOMIC_LOCK_LOCKED))
		return 0;
	r->busy.u.lock = OPAL_ATOMIC_LOCK_LOCKED;
	n = read_ring(c, tail);
	r->busy.u.lock = OPAL_ATOMIC_LOCK_UNLOCKED;
	tell(c);
	return n;
}

static inline __opal_attribute_always_inline__
int poll_rings(mca_btl_udapl_module_t *m)
{
	int n = 0;

	for (int i = 0; i < m->num_rings; i++)
		if (m->rings[i])
			n += poll_ring(m->rings[i]);
	return n;
}

int udapl_rings_poll(mca_btl_udapl_module_t *m)
{
	return poll_rings(m);
}

/* So many messages came: is it time to look at completions all the same? */
static inline bool is_due(mca_btl_udapl_module_t *m, int n)
{
	m->may_come -= n;
	m->polls_left = m->vain_polls;
	return m->may_come < 0;
}

/* As many messages were in its rings. Returns them, and what else there was. */
static inline int go_on(mca_btl_udapl_module_t *m, int n)
{
	if (n) {
		if (OPAL_UNLIKELY(is_due(m, n)))
			n += udapl_look_now(m);
	} else if (OPAL_UNLIKELY(--m->polls_left <= 0)) {
		n = udapl_look_now(m);
	}
	return n;
}

static __attribute__((noinline)) int progress_all(const mca_btl_udapl_component_t *c)
{
	int n = 0;

	for (int i = 0; i < c->num_modules; i++)
		n += go_on(c->modules[i], udapl_rings_poll(c->modules[i]));
	return n;
}

int udapl_progress(void)
{
	const mca_btl_udapl_component_t *c = &mca_btl_udapl_component;

	if (OPAL_LIKELY(c->num_modules == 1))
		return go_on(c->modules[0], poll_rings(c->modules[0]));
	return progress_all(c);
}
