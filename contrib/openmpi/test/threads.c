/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* threads.c - MPI_THREAD_MULTIPLE: several threads of a process exchange short and long messages
 * with threads of another process at the same time. Every byte is checked. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 40 };
static const size_t sizes[] = { 8, 900, 4000, 9000, 70000 };

static void *exchange(void *arg)
{
	int me = (int)(intptr_t)arg, peer = rank ^ 1;
	uint8_t *out = memory(70000), *in = memory(70000);

	for (int round = 0; round < ROUNDS && peer < size; round++) {
		size_t n = sizes[(round + me) % 5];
		unsigned seed = me * 100 + round;

		fill(out, n, seed + rank);
		memset(in, 0, n);
		MPI_Sendrecv(out, n, MPI_BYTE, peer, me, in, n, MPI_BYTE, peer, me, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		check_filled(in, n, seed + peer);
	}
	free(out);
	free(in);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(provided == MPI_THREAD_MULTIPLE, "provided is %d", provided);
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, exchange, (void *)i), "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return end();
}
