/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rounds.c - see rounds.h. */
#include <string.h>
#include "rounds.h"
#include "side.h"
#include "two.h"

size_t size;
double answer_after;

static uint64_t streams;	/* done; side 0 says so in shared->ping */

/* For `answer_after` seconds. To ask the clock would be a quarter of a round trip. */
static void compute(void)
{
	if (!answer_after)
		return;
	for (double begin = now(); now() - begin < answer_after;)
		;
}

/* The receiver of a message answers first, and posts the receive again while that is under way, as
 * ucx_perftest does. */
void send_round(uint64_t n)
{
	if (!me)
		post(size, false);
	renew();
	while (received < n)
		poll_once();
	if (me) {
		compute();
		post(size, false);
	}
}

/* The last 8 bytes of what is written are the number of the round. They may be there without
 * a poll of ours: completions must be taken all the same. The other has seen the number before when
 * it's overwritten, so that write is done with our memory. */
static void write_number(uint64_t n)
{
	*(uint64_t *)(out + size - 8) = n;
	post(size, true);
}

void write_round(uint64_t n)
{
	uint64_t *seen = (uint64_t *)(target + size - 8);

	while (posted - completed >= DEPTH)
		poll_once();
	if (!me)
		write_number(n);
	while (__atomic_load_n(seen, __ATOMIC_ACQUIRE) != n)
		poll_once();
	if (me)
		write_number(n);
}

void finish(void)
{
	while (completed < posted)
		poll_once();
	renew();
	together();
	received = completed = posted = 0;
	memset(target, 0, LARGE);
	together();
}

double data_half_round(size_t bytes, bool write, int rounds, int most)
{
	double us;

	size = bytes;
	finish();
	us = half_round(write ? write_round : send_round, rounds, most);
	finish();
	return us;
}

double stream_speed(size_t bytes, bool write, unsigned count, int most)
{
	double took[STREAMS], begin = now();
	int batches = 0;

	finish();
	for (; !me && batches < most && now() - begin < ROW_S; batches++) {
		took[batches] = now();
		for (unsigned i = 0; i < count; i++) {
			while (posted - completed >= DEPTH)
				poll_once();
			post(bytes, write);
		}
		while (completed < posted)
			poll_once();
		took[batches] = now() - took[batches];
	}
	if (!me)
		__atomic_add_fetch(&shared->ping, 1, __ATOMIC_RELEASE);
	while (me && __atomic_load_n(&shared->ping, __ATOMIC_ACQUIRE) == streams) {
		poll_once();
		renew();
	}
	streams++;
	finish();
	return me ? 0 : count * (double)bytes / median(took, batches);
}

static void read_back(size_t bytes)
{
	DAT_LMR_TRIPLET to = { .virtual_address = (uintptr_t)in, .segment_length = bytes,
			       .lmr_context = lmr_context };
	DAT_RMR_TRIPLET from = { .virtual_address = shared->target[!me], .segment_length = bytes,
				 .rmr_context = shared->context[!me] };
	static const DAT_DTO_COOKIE cookie;

	posted++;
	good(dat_ep_post_rdma_read(ep, 1, &to, cookie, &from, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_read");
}

void write_and_wait(size_t bytes)
{
	post(bytes, true);
	while (completed < posted)
		poll_once();
}

void read_and_wait(size_t bytes)
{
	read_back(bytes);
	while (completed < posted)
		poll_once();
}
