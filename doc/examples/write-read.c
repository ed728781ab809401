/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* write-read.c - the client writes into memory of the server and reads it back; the
 * server's program takes no part in either. Shows RDMA write and read, the exchange of
 * memory's address and key by private data, and completion in the order of posts. See
 * side.h for the arguments.
 *
 *	cc -D_GNU_SOURCE -o write-read write-read.c side.c -ldat2 */
#include "side.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 4096 };
static const char text[] = "written by RDMA";

static char memory[2 * SIZE]; /* the server's target; the client's source and copy */

/* The completion of the write is suppressed: the peer executes requests in order, so the read completes after the
 * write. */
static void write_and_read_back(struct side *side, const struct memory *mine,
				const DAT_RMR_TRIPLET *theirs)
{
	DAT_LMR_TRIPLET from = segment(mine, 0, SIZE), into = segment(mine, SIZE, SIZE);
	DAT_DTO_COMPLETION_EVENT_DATA done;

	snprintf(memory, SIZE, "%s", text);
	CHECK(dat_ep_post_rdma_write(side->ep, 1, &from, (DAT_DTO_COOKIE){ .as_64 = 1 }, theirs,
				     DAT_COMPLETION_SUPPRESS_FLAG));
	CHECK(dat_ep_post_rdma_read(side->ep, 1, &into, (DAT_DTO_COOKIE){ .as_64 = 2 }, theirs,
				    DAT_COMPLETION_DEFAULT_FLAG));
	done = wait_for_completion(side->requests);
	if (done.user_cookie.as_64 != 2 || done.transfered_length != SIZE ||
	    memcmp(memory, memory + SIZE, SIZE)) {
		fprintf(stderr, "what was read is not what was written\n");
		exit(1);
	}
	printf("read back: \"%s\"\n", memory + SIZE);
}

int main(int argc, char **argv)
{
	DAT_RMR_TRIPLET mine, theirs;
	struct memory registered;
	struct side side;

	side_open(&side, argc, argv);
	registered = register_memory(&side, memory, sizeof memory);
	mine = remote_segment(&registered, 0, SIZE);
	side_connect(&side, &mine, &theirs, sizeof mine);
	if (side.address)
		write_and_read_back(&side, &registered, &theirs);
	side_close(&side);
	if (!side.address) { /* only the end of the connection shows that data has come */
		printf("found: \"%s\"\n", memory);
		return strcmp(memory, text) != 0;
	}
	return 0;
}
