/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sum.c - the client gives the server two numbers, one by RDMA write and one in a message,
 * and receives their sum. Shows that a message arrives after what was written before it, and
 * byte order: numbers are big-endian on the wire. See side.h for the arguments.
 *
 *	cc -D_GNU_SOURCE -o sum sum.c side.c -ldat2 */
#include "side.h"
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST = 123, SECOND = 456 };

/* The registered memory, the same on both sides. */
static struct {
	uint64_t written; /* target of the RDMA write */
	uint64_t received;
	uint64_t first;	 /* source of the client's RDMA write; big-endian */
	uint64_t second; /* source of messages: the client's number, the server's answer; big-endian */
} numbers;

#define SEGMENT(memory, field) \
	segment(memory, offsetof(__typeof__(numbers), field), sizeof numbers.field)

static void post_receive(const struct side *side, const struct memory *memory)
{
	DAT_LMR_TRIPLET into = SEGMENT(memory, received);

	CHECK(dat_ep_post_recv(side->ep, 1, &into, (DAT_DTO_COOKIE){ 0 },
			       DAT_COMPLETION_DEFAULT_FLAG));
}

static void send_second(const struct side *side, const struct memory *memory, uint64_t number)
{
	DAT_LMR_TRIPLET from = SEGMENT(memory, second);

	numbers.second = htobe64(number);
	CHECK(dat_ep_post_send(side->ep, 1, &from, (DAT_DTO_COOKIE){ 0 },
			       DAT_COMPLETION_DEFAULT_FLAG));
	wait_for_completion(side->requests);
}

static void serve(const struct side *side, const struct memory *memory)
{
	uint64_t a, b;

	wait_for_completion(side->receives); /* the number written before is there, too */
	a = be64toh(numbers.written);
	b = be64toh(numbers.received);
	printf("%llu + %llu\n", (unsigned long long)a, (unsigned long long)b);
	send_second(side, memory, a + b);
}

static void ask(const struct side *side, const struct memory *memory, const DAT_RMR_TRIPLET *theirs)
{
	DAT_LMR_TRIPLET from = SEGMENT(memory, first);
	uint64_t sum;

	numbers.first = htobe64(FIRST);
	CHECK(dat_ep_post_rdma_write(side->ep, 1, &from, (DAT_DTO_COOKIE){ 0 }, theirs,
				     DAT_COMPLETION_SUPPRESS_FLAG));
	send_second(side, memory, SECOND);
	wait_for_completion(side->receives);
	sum = be64toh(numbers.received);
	printf("%d + %d = %llu\n", FIRST, SECOND, (unsigned long long)sum);
	if (sum != FIRST + SECOND)
		exit(1);
}

int main(int argc, char **argv)
{
	DAT_RMR_TRIPLET mine, theirs;
	struct memory memory;
	struct side side;

	side_open(&side, argc, argv);
	memory = register_memory(&side, &numbers, sizeof numbers);
	mine = remote_segment(&memory, offsetof(__typeof__(numbers), written),
			      sizeof numbers.written);
	post_receive(&side, &memory);
	side_connect(&side, &mine, &theirs, sizeof mine);
	if (side.address)
		ask(&side, &memory, &theirs);
	else
		serve(&side, &memory);
	side_close(&side);
	return 0;
}
