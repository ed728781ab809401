/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* posting.h - what each file that posts requests asks and records: which requests wait or may be posted, which
 * are signaled, and that the CQ is to be polled. It calls no other file, so that all may include it. */
#ifndef BTL_UDAPL_POSTING_H
#define BTL_UDAPL_POSTING_H

#include "udapl.h"

/* Called with e->lock held. */
static inline bool udapl_has_waiting(mca_btl_base_endpoint_t *e)
{
	assert_held(&e->lock);
	return !opal_list_is_empty(&e->sends) || !opal_list_is_empty(&e->rdmas);
}

/* Called with e->lock held, for requests that need no credit or already have one. */
static inline bool udapl_may_post(const struct udapl_conn *c)
{
	assert_held(&c->endpoint->lock);
	return c->state == UDAPL_CONN_ESTABLISHED && c->sq_free > 0;
}

/* Called with e->lock held. The count makes the peer poll its CQ, which also drives its device. */
static inline void udapl_count_post(struct udapl_conn *c)
{
	assert_held(&c->endpoint->lock);
	if (c->ring_out.ctl)
		c->ring_out.ctl->posted++;
}

/* One write in this many is signaled; its completion implies those before it. */
static inline int udapl_signal_interval(void)
{
	return (unsigned)mca_btl_udapl_component.requests / UDAPL_SIGNALS_PER_QUEUE;
}

/* Requests a poll of the CQ after the next poll of the rings. */
static inline void udapl_request_poll(struct mca_btl_udapl_module_t *m)
{
	m->poll_requested = true;
	m->empty_polls_left = m->empty_polls_limit = 1;
	m->budget -= m->budget_left;
	m->budget_left = 0;
}

#endif
