/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_poll.c - the progress function of the component: it polls the rings, and calls progress.c, which
 * decides when anything else is polled. This code runs between a peer's store and the reply to it. So it
 * is inlined into one function, whose shortest path is a message of one slot without piggybacked
 * credits. ring_setup.c explains the rings. */
#include "ring_poll.h"
#include "control.h"
#include "posting.h"
#include "progress.h"
#include "receive.h"
#include "ring.h"
#include "send.h"

/* Whether the next message is complete. */
static inline bool message_ready(const struct udapl_ring_in *r, struct udapl_tail *tail)
{
	const char *end = r->memory.base + r->cursor.end;
	uint64_t word = *(const volatile uint64_t *)(end - sizeof word);

	memcpy(tail, &word, sizeof *tail);
	return tail->lap == r->cursor.lap;
}

/* Prefetches the cache lines before the next tail at each poll: they then arrive together and
 * not one after the other. (GCC drops a function that only prefetches if it is not inlined
 * early.) */
static inline __opal_attribute_always_inline__
void prefetch_tail_lines(const struct udapl_ring_in *r)
{
	const char *end = r->memory.base + r->cursor.end;

	for (int i = 1; i <= UDAPL_PREFETCH_LINES; i++)
		__builtin_prefetch(end - i * UDAPL_CACHE_LINE - 1);
}

/* Clears the places in which a later poll could see a tail. */
static void clear_tails(char *from, char *to)
{
	for (; to > from; to -= UDAPL_RING_SLOT)
		memset(to - sizeof(struct udapl_tail), 0, sizeof(struct udapl_tail));
}

/* For a ring that the peer has not mapped: a later message reports the released slots. */
static void defer_slots(struct udapl_ring_in *r, char *end, uint32_t size, uint32_t slots)
{
	clear_tails(end - size, end - UDAPL_RING_SLOT);
	opal_atomic_wmb();
	udapl_add(&r->slots_to_return, slots);
}

static inline void release_slots(struct udapl_ring_in *r, uint32_t size)
{
	char *end = r->memory.base + r->cursor.end;
	uint32_t slots = udapl_ring_advance(&r->shape, &r->cursor, size);

	if (OPAL_LIKELY(r->ctl->mapped))
		__atomic_store_n(&r->ctl->consumed, r->ctl->consumed + slots, __ATOMIC_RELEASE);
	else
		defer_slots(r, end, size, slots);
}

static inline void deliver(struct udapl_conn *c, struct udapl_tail tail, uint32_t begin)
{
	struct udapl_ring_in *r = &c->ring_in;

	r->segment.seg_addr.pval = r->memory.base + begin;
	r->segment.seg_len = tail.length;
	udapl_deliver(c->module, tail.tag, &r->message);
}

/* Prefetches all lines of the payload: a copy requests them one after the other. */
static inline __opal_attribute_always_inline__
void prefetch_payload(const char *from, const char *to)
{
	for (; from < to; from += UDAPL_CACHE_LINE)
		__builtin_prefetch(from);
}

/* A message of several slots, or with piggybacked credits. */
static inline __opal_attribute_always_inline__ void read_long(struct udapl_conn *c, struct udapl_tail tail)
{
	struct udapl_ring_in *r = &c->ring_in;
	struct udapl_extent extent = udapl_ring_extent(r->cursor.end, tail.length);
	char *end = r->memory.base + r->cursor.end;
	uint32_t size = extent.size;

	__builtin_prefetch(end - size - sizeof tail);	/* the next tail, if it is in this lap */
	if (OPAL_UNLIKELY(tail.piggyback))
		udapl_credits_received(c, tail.credits, tail.eager_credits);
	if (OPAL_LIKELY(size <= r->shape.largest)) {
		prefetch_payload(end - size, end - UDAPL_CACHE_LINE);
		deliver(c, tail, extent.begin);
	} else {
		size = UDAPL_RING_SLOT;	/* a peer that breaks the protocol */
	}
	release_slots(r, size);
}

static inline void read_message(struct udapl_conn *c, struct udapl_tail tail)
{
	struct udapl_ring_in *r = &c->ring_in;

	opal_atomic_rmb();
	if (OPAL_LIKELY(!tail.piggyback && udapl_ring_is_slot(tail.length))) {
		__builtin_prefetch(r->memory.base + r->cursor.end - UDAPL_RING_SLOT - sizeof tail);
		deliver(c, tail, udapl_ring_begin(r->cursor.end, tail.length));
		release_slots(r, UDAPL_RING_SLOT);
	} else {
		read_long(c, tail);
	}
}

/* If the peer has posted something, polls the CQ soon: a posted message should arrive little
 * later than those in the ring. */
static inline void check_posted(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;

	if (OPAL_LIKELY(r->ctl->posted == r->posted))
		return;
	r->posted = r->ctl->posted;
	udapl_request_poll(c->module);
}

/* Reads this message and those behind it. */
static inline __opal_attribute_always_inline__
int read_ring(struct udapl_conn *c, struct udapl_tail tail)
{
	int n = 0;

	do {
		read_message(c, tail);
		n++;
	} while (n < UDAPL_RING_BATCH && message_ready(&c->ring_in, &tail));
	check_posted(c);
	return n;
}

/* Reports released slots, if enough of them are unreported. */
static inline void return_slots_if_due(struct udapl_conn *c)
{
	if (OPAL_UNLIKELY(c->ring_in.slots_to_return) && udapl_credits_due(c))
		udapl_return_credits(c);
}

/* One thread reads at a time. Another thread may have read the message meanwhile. */
static __attribute__((noinline)) int read_ring_locked(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;
	struct udapl_tail tail;
	int n = 0;

	if (!udapl_trylock(&r->busy))
		return 0;
	if (message_ready(r, &tail))
		n = read_ring(c, tail);
	udapl_unlock(&r->busy);
	return_slots_if_due(c);
	return n;
}

/* Reads the messages that have arrived and returns their number. Returns 0 if called from
 * within the callback of a message. Without threads a plain flag replaces the locked
 * instruction, which would wait for all earlier stores. */
static inline __opal_attribute_always_inline__
int poll_ring(struct udapl_conn *c)
{
	struct udapl_ring_in *r = &c->ring_in;
	struct udapl_tail tail;
	int n;

	if (!message_ready(r, &tail)) {
		prefetch_tail_lines(r);
		check_posted(c);
		return 0;
	}
	if (OPAL_UNLIKELY(opal_using_threads()))
		return read_ring_locked(c);
	if (OPAL_UNLIKELY(r->busy))
		return 0;
	r->busy = true;
	n = read_ring(c, tail);
	r->busy = false;
	return_slots_if_due(c);
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

/* Consumes n messages of the budget. Returns true if the CQ must be polled although messages
 * arrive. */
static inline bool budget_exceeded(mca_btl_udapl_module_t *m, int n)
{
	m->budget_left -= n;
	m->empty_polls_left = m->empty_polls_limit;
	return m->budget_left < 0;
}

/* Called after n messages were read from the rings. Returns n plus the number of other events. */
static inline int finish_poll(mca_btl_udapl_module_t *m, int n)
{
	if (n) {
		if (OPAL_UNLIKELY(budget_exceeded(m, n)))
			n += udapl_poll_completions(m);
	} else if (OPAL_UNLIKELY(--m->empty_polls_left <= 0)) {
		n = udapl_poll_completions(m);
	}
	return n;
}

static __attribute__((noinline)) int progress_all(const mca_btl_udapl_component_t *c)
{
	int n = 0;

	for (int i = 0; i < c->num_modules; i++)
		n += finish_poll(c->modules[i], udapl_rings_poll(c->modules[i]));
	return n;
}

int udapl_progress(void)
{
	const mca_btl_udapl_component_t *c = &mca_btl_udapl_component;

	if (OPAL_LIKELY(c->num_modules == 1))
		return finish_poll(c->modules[0], poll_rings(c->modules[0]));
	return progress_all(c);
}
