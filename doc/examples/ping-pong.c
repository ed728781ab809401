/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ping-pong.c - messages to and fro: the client sends one, the server answers. Shows
 * posting of receives and sends, and polling with dat_evd_dequeue(). See side.h for the
 * arguments.
 *
 *	cc -D_GNU_SOURCE -o ping-pong ping-pong.c side.c -ldat2 */
#include "side.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 1000, SIZE = 64 };

static char in[SIZE], out[SIZE];

/* Polls: the shortest latency, and a busy processor. wait_for_completion() would block. */
static void poll_for_completion(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_RETURN ret;

	do
		ret = dat_evd_dequeue(evd, &event);
	while (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY);
	check("dat_evd_dequeue", ret);
	check_completion(&event);
}

static void post_receive(const struct side *side, const struct memory *memory)
{
	DAT_LMR_TRIPLET into = segment(memory, 0, SIZE);

	CHECK(dat_ep_post_recv(side->ep, 1, &into, (DAT_DTO_COOKIE){ 0 },
			       DAT_COMPLETION_DEFAULT_FLAG));
}

static void send_message(const struct side *side, const struct memory *memory, int round)
{
	DAT_LMR_TRIPLET from = segment(memory, 0, SIZE);

	snprintf(out, SIZE, "message %d", round);
	CHECK(dat_ep_post_send(side->ep, 1, &from, (DAT_DTO_COOKIE){ 0 },
			       DAT_COMPLETION_DEFAULT_FLAG));
	poll_for_completion(side->requests);
}

/* The next receive is posted before the answer is sent, so that there always is one. */
static void receive_message(const struct side *side, const struct memory *memory, int round)
{
	char expected[SIZE];

	poll_for_completion(side->receives);
	snprintf(expected, SIZE, "message %d", round);
	if (strcmp(in, expected)) {
		fprintf(stderr, "found \"%.*s\", expected \"%s\"\n", SIZE, in, expected);
		exit(1);
	}
	post_receive(side, memory);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	struct memory in_memory, out_memory;
	struct side side;
	double start;

	side_open(&side, argc, argv);
	in_memory = register_memory(&side, in, SIZE);
	out_memory = register_memory(&side, out, SIZE);
	post_receive(&side, &in_memory);
	side_connect(&side, NULL, NULL, 0);
	start = seconds();
	for (int round = 0; round < ROUNDS; round++) {
		if (side.address)
			send_message(&side, &out_memory, round);
		receive_message(&side, &in_memory, round);
		if (!side.address)
			send_message(&side, &out_memory, round);
	}
	if (side.address)
		printf("%d round trips of %d bytes, %.2f us each\n", ROUNDS, SIZE,
		       (seconds() - start) * 1e6 / ROUNDS);
	side_close(&side);
	return 0;
}
