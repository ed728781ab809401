/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.c - see dm.h. The peer writes to device memory, and adds to a counter in it, while the owner polls
 * or sleeps; the owner copies into it. */
#include <string.h>
#include <dat/udat.h>
#include <dat/dat_dm_extensions.h>
#include <dat/dat_ib_extensions.h>
#include "dm.h"
#include "plain.h"
#include "rounds.h"
#include "rows.h"
#include "side.h"
#include "two.h"

enum { PIECE = 64, COPIES = 10000 };	/* bytes of a copy; copies of a batch */

static DAT_DM_HANDLE dm;

/* Its addresses count from 0. */
static void target_device_memory(void)
{
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_PVOID at;

	good(dat_dm_alloc(ia, LARGE, 12, &dm), "dat_dm_alloc");
	good(dat_dm_lmr_create(dm, 0, LARGE, pz,
			       DAT_MEM_PRIV_ALL_FLAG | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC, &lmr,
			       NULL, &context), "dat_dm_lmr_create");
	good(dat_dm_map(dm, &at), "dat_dm_map");
	set_target(at, 0, context);
	together();
}

static void add_and_wait(size_t bytes)
{
	DAT_LMR_TRIPLET before = { .virtual_address = (uintptr_t)in, .segment_length = bytes,
				   .lmr_context = lmr_context };
	DAT_RMR_TRIPLET counter = { .virtual_address = shared->target[!me], .segment_length = bytes,
				    .rmr_context = shared->context[!me] };
	static const DAT_DTO_COOKIE cookie;

	posted++;
	good(dat_ib_post_fetch_and_add(ep, (DAT_UINT64)1, &before, cookie, &counter,
				       DAT_COMPLETION_DEFAULT_FLAG), "dat_ib_post_fetch_and_add");
	while (completed < posted)
		poll_once();
}

static void copy_by_call(const char *from)
{
	good(dat_dm_copy_to(dm, 0, from, PIECE), "dat_dm_copy_to");
}

static void copy_by_hand(const char *from)
{
	memcpy(target, from, PIECE);
	__asm__ volatile("" : : "r"(target) : "memory");
}

static void copy(const char *what, void (*once)(const char *))
{
	char from[PIECE] = "piece";
	double took[BATCHES];

	for (int batch = 0; !me && batch < BATCHES; batch++) {
		took[batch] = now();
		for (int i = 0; i < COPIES; i++)
			once(from);
		took[batch] = now() - took[batch];
	}
	if (!me)
		report(what, median(took, BATCHES) / COPIES * 1e9, "ns");
	together();
}

void dm_rows(void)
{
	hand_overs();
	data_ping_pong("RDMA write 8 B until seen", SMALL, true, ROUNDS);
	to_sleeper("fetch-and-add, its owner sleeps", add_and_wait, sizeof(uint64_t));
	target_device_memory();
	data_ping_pong("device memory: RDMA write 8 B until seen", SMALL, true, ROUNDS);
	to_sleeper("device memory: fetch-and-add, its owner sleeps", add_and_wait, sizeof(uint64_t));
	copy("dat_dm_copy_to of 64 B", copy_by_call);
	copy("memcpy of 64 B", copy_by_hand);
}
