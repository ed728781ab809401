/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* atomics.c - a ticket counter and a lock in the memory of the server: the client takes
 * tickets by fetch-and-add and the lock by compare-and-swap; the server's program takes no
 * part. Shows the InfiniBand extension's atomics. See side.h for the arguments.
 *
 *	cc -D_GNU_SOURCE -o atomics atomics.c side.c -ldat2 */
#include "side.h"
#include <dat/dat_ib_extensions.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TICKETS = 10 };

static struct {
	uint64_t next, lock; /* the targets, at the server */
	uint64_t before;     /* at the client: the target's value before the operation */
} words;

#define FIELD(field) offsetof(__typeof__(words), field), sizeof words.field

/* Memory that atomics may change has a privilege of its own; its extension events need an
 * EVD with the extension flag. */
static struct memory register_words(const struct side *side)
{
	DAT_REGION_DESCRIPTION region = { .for_va = &words };
	struct memory memory = { .at = &words };

	CHECK(dat_lmr_create(
		side->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof words, side->pz,
		(DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
		DAT_VA_TYPE_VA, &memory.lmr, &memory.lmr_context, &memory.rmr_context, NULL, NULL));
	return memory;
}

static void open_with_extension_events(struct side *side, int argc, char **argv)
{
	DAT_EVD_FLAGS flags = (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_IB_EVD_EXTENSION_FLAG);

	side_open_ia(side, argc, argv);
	CHECK(dat_evd_create(side->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG,
			     &side->connection));
	CHECK(dat_evd_create(side->ia, 8, DAT_HANDLE_NULL, flags, &side->receives));
	CHECK(dat_evd_create(side->ia, 8, DAT_HANDLE_NULL, flags, &side->requests));
	CHECK(dat_ep_create(side->ia, side->pz, side->receives, side->requests, side->connection,
			    NULL, &side->ep));
}

static uint64_t value_before(const struct side *side)
{
	DAT_EVENT event = wait_for(side->requests, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);

	check_completion(&event);
	return words.before;
}

static void take_tickets(const struct side *side, const struct memory *memory,
			 const struct memory *theirs)
{
	DAT_RMR_TRIPLET next = remote_segment(theirs, FIELD(next)),
			lock = remote_segment(theirs, FIELD(lock));
	DAT_LMR_TRIPLET before = segment(memory, FIELD(before));
	const DAT_DTO_COOKIE cookie = { 0 };

	CHECK(dat_ib_post_cmp_and_swap(side->ep, 0, 1, &before, cookie, &lock,
				       DAT_COMPLETION_DEFAULT_FLAG));
	printf("lock was %" PRIu64 "\n", value_before(side));
	for (uint64_t i = 0; i < TICKETS; i++) {
		CHECK(dat_ib_post_fetch_and_add(side->ep, 1, &before, cookie, &next,
						DAT_COMPLETION_DEFAULT_FLAG));
		if (value_before(side) != i) {
			fprintf(stderr, "found ticket %" PRIu64 ", expected %" PRIu64 "\n",
				words.before, i);
			exit(1);
		}
	}
	CHECK(dat_ib_post_cmp_and_swap(side->ep, 1, 0, &before, cookie, &lock,
				       DAT_COMPLETION_DEFAULT_FLAG));
	printf("%d tickets, lock was %" PRIu64 "\n", TICKETS, value_before(side));
}

int main(int argc, char **argv)
{
	struct memory memory, theirs;
	struct side side;

	open_with_extension_events(&side, argc, argv);
	memory = register_words(&side);
	side_connect(&side, &memory, &theirs, sizeof memory);
	if (side.address)
		take_tickets(&side, &memory, &theirs);
	side_close(&side);
	if (!side.address)
		printf("next ticket %" PRIu64 ", lock %" PRIu64 "\n", words.next, words.lock);
	return !side.address && (words.next != TICKETS || words.lock);
}
