/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_posts.c - see tap_posts.h. */
#include "dapl/core/base/tap_posts.h"
#include <string.h>
#include "common/lock.h"
#include "dapl/core/base/fork.h"

struct dapl_tap_posts dapl_tap_posts = { .lock = DAPL_SPIN_INIT(RANK_TAP_POSTS) };

static void before_fork(void)
{
	dapl_spin_lock(&dapl_tap_posts.lock);
}

static void after_fork(void)
{
	dapl_spin_unlock(&dapl_tap_posts.lock);
}

void dapl_tap_posts_init(void)
{
	static struct dapl_fork_part part = { .rank = RANK_TAP_POSTS, .before = before_fork,
		.parent = after_fork, .child = after_fork };

	dapl_fork_register(&part);
}

void dapl_tap_put_address(struct tap_address *to, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *four = (const struct sockaddr_in *)from;

	if (from->ss_family == AF_INET6) {
		to->family = 6;
		to->port = ntohs(six->sin6_port);
		memcpy(to->ip, &six->sin6_addr, 16);
	} else {
		to->family = 4;
		to->port = ntohs(four->sin_port);
		memcpy(to->ip, &four->sin_addr, 4);
	}
}

/* --- memory of posts ---------------------------------------------------------------------------- */

/* Most lists have one segment: a call of memcpy() costs more than that. */
static ALWAYS_INLINE void copy_sges(struct ibv_sge *to, const struct ibv_sge *from, uint32_t n)
{
	if (likely(n == 1))
		*to = *from;
	else if (n)
		memcpy(to, from, n * sizeof *to);
}

/* Called with the lock held. */
static ALWAYS_INLINE struct dapl_tap_sink *put_sink(uint64_t wr_id, const struct ibv_sge *sge, int sges)
{
	struct dapl_tap_sink *sink = dapl_tap_sink_of(wr_id);

	assert_held(&dapl_tap_posts.lock);
	sink->wr_id = wr_id;
	sink->sges = sges < DAPL_TAP_SGES ? (uint32_t)sges : DAPL_TAP_SGES;
	copy_sges(sink->sge, sge, sink->sges);
	return sink;
}

void dapl_tap_remember(uint64_t wr_id, const struct ibv_sge *sge, int sges, const struct tap_message *request)
{
	struct dapl_tap_sink *sink;

	dapl_spin_lock(&dapl_tap_posts.lock);
	sink = put_sink(wr_id, sge, sges);
	sink->length = request->length;
	sink->stag = request->stag;
	sink->sink_stag = request->word;
	sink->remote = request->remote;
	sink->sink = request->sink;
	sink->compare_add = request->compare_add;
	sink->swap = request->swap;
	dapl_spin_unlock(&dapl_tap_posts.lock);
}

void dapl_tap_remember_receives(const struct ibv_recv_wr *wr)
{
	dapl_spin_lock(&dapl_tap_posts.lock);
	for (; wr; wr = wr->next)
		if (wr->num_sge >= 0)
			put_sink(wr->wr_id, wr->sg_list, wr->num_sge);
	dapl_spin_unlock(&dapl_tap_posts.lock);
}

/* Copies an entry and frees it: for a receive the memory, otherwise the request, too. Returns false if
 * there is none. */
static ALWAYS_INLINE bool recall(uint64_t wr_id, bool receive, struct dapl_tap_sink *copy)
{
	struct dapl_tap_sink *sink = dapl_tap_sink_of(wr_id);
	bool found;

	dapl_spin_lock(&dapl_tap_posts.lock);
	found = sink->wr_id == wr_id;
	if (found) {
		copy->sges = sink->sges;
		if (receive)
			copy_sges(copy->sge, sink->sge, sink->sges);
		else
			*copy = *sink;
		sink->wr_id = 0;
	}
	dapl_spin_unlock(&dapl_tap_posts.lock);
	return found;
}

bool dapl_tap_recall(const struct ibv_wc *wc, struct dapl_tap_sink *sink)
{
	bool received = wc->opcode & IBV_WC_RECV;

	sink->sges = 0;
	return (recall(wc->wr_id, received, sink) || received) && wc->status == IBV_WC_SUCCESS;
}
