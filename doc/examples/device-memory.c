/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device-memory.c - a counter and a flag in memory of the server's device: the client adds to the
 * counter by fetch-and-add and then sets the flag by RDMA write. The server looks at the flag, and
 * reads the counter. Shows dat_dm_alloc() and its relatives. See side.h for the arguments.
 *
 *	cc -D_GNU_SOURCE -o device-memory device-memory.c side.c -ldat2 */
#include "side.h"
#include <dat/dat_dm_extensions.h>
#include <dat/dat_ib_extensions.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ADDITIONS = 100, PATIENCE_S = 10 };

struct words {
	uint64_t counter, flag;
};
#define FIELD(field) offsetof(struct words, field), sizeof((struct words *)0)->field

/* Addresses in such memory count from 0, so memory.at is NULL. */
static struct memory allocate_words(const struct side *side, DAT_DM_HANDLE *dm)
{
	struct memory memory = { .at = NULL };

	CHECK(dat_dm_alloc(side->ia, sizeof(struct words), 3, dm));
	CHECK(dat_dm_lmr_create(*dm, 0, sizeof(struct words), side->pz,
				DAT_MEM_PRIV_ALL_FLAG | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC,
				&memory.lmr, &memory.lmr_context, &memory.rmr_context));
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

static void wait_for_atomic(const struct side *side)
{
	DAT_EVENT event = wait_for(side->requests, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);

	check_completion(&event);
}

/* The flag is prepared in the client's own device memory and written from there. */
static void count(const struct side *side, DAT_DM_HANDLE dm, const struct memory *memory,
		  const struct memory *theirs)
{
	DAT_RMR_TRIPLET counter = remote_segment(theirs, FIELD(counter)),
			flag = remote_segment(theirs, FIELD(flag));
	DAT_LMR_TRIPLET before = segment(memory, FIELD(counter)),
			set = segment(memory, FIELD(flag));
	const DAT_DTO_COOKIE cookie = { 0 };
	const uint64_t one = 1;

	for (int i = 0; i < ADDITIONS; i++) {
		CHECK(dat_ib_post_fetch_and_add(side->ep, one, &before, cookie, &counter,
						DAT_COMPLETION_DEFAULT_FLAG));
		wait_for_atomic(side);
	}
	CHECK(dat_dm_copy_to(dm, offsetof(struct words, flag), &one, sizeof one));
	CHECK(dat_ep_post_rdma_write(side->ep, 1, &set, cookie, &flag,
				     DAT_COMPLETION_DEFAULT_FLAG));
	wait_for_completion(side->requests);
	printf("added %d times\n", ADDITIONS);
}

static uint64_t read_word(DAT_DM_HANDLE dm, size_t offset)
{
	uint64_t word;

	CHECK(dat_dm_copy_from(dm, offset, &word, sizeof word));
	return word;
}

/* Returns the counter once the flag is set. The counter is read after the flag, by a call of its own: one call copies
 * its words in any order. */
static uint64_t wait_for_flag(DAT_DM_HANDLE dm)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < PATIENCE_S * 1000; i++) {
		if (read_word(dm, offsetof(struct words, flag)))
			return read_word(dm, offsetof(struct words, counter));
		nanosleep(&pause, NULL);
	}
	fprintf(stderr, "the flag was not set within %d s\n", PATIENCE_S);
	exit(1);
}

int main(int argc, char **argv)
{
	struct memory memory, theirs;
	uint64_t counter = ADDITIONS;
	DAT_DM_HANDLE dm;
	struct side side;

	open_with_extension_events(&side, argc, argv);
	memory = allocate_words(&side, &dm);
	side_connect(&side, &memory, &theirs, sizeof memory);
	if (side.address) {
		count(&side, dm, &memory, &theirs);
	} else {
		counter = wait_for_flag(dm);
		printf("counter %" PRIu64 "\n", counter);
	}
	CHECK(dat_lmr_free(memory.lmr));
	CHECK(dat_dm_free(dm));
	side_close(&side);
	return counter != ADDITIONS;
}
