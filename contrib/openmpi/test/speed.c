/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* speed.c - speed of MPI: half round trips between ranks 0 and 1, bandwidth in one direction, rate
 * of short messages, all-to-all of all ranks. Each figure is the median of several batches: the best
 * batch varies more than the median.
 *
 *	speed		prints lines: benchmark size figure
 *	speed few	fewer sizes and rounds, for slow devices */
#include "check.h"
#include <time.h>

enum { WINDOW = 64, BATCHES = 9 };

static int few;
static uint8_t *out, *in;

/* Not MPI_Wtime(): it may read a counter that differs between processors. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static size_t most(void)
{
	return few ? 1 << 20 : 4 << 20;
}

static int batches(void)
{
	return few ? 3 : BATCHES;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *took)
{
	qsort(took, batches(), sizeof *took, by_size);
	return took[batches() / 2];
}

static int rounds_of(size_t n)
{
	int rounds = n <= 4096 ? 400 : n <= 65536 ? 80 : 10;

	return few ? rounds / 5 : rounds;
}

static int windows_of(size_t n)
{
	int windows = n <= 4096 ? 40 : n <= 65536 ? 6 : 1;

	return few ? (windows + 4) / 5 : windows;
}

static size_t next_size(size_t n)
{
	if (few)
		return n * 16;
	return n * (n < 4096 ? 8 : 4);
}

static double half_round_trip(size_t n)
{
	int rounds = rounds_of(n);
	double took[BATCHES];

	for (int b = 0; b < batches(); b++) {
		double start = now();

		for (int i = 0; i < rounds && rank < 2; i++) {
			if (rank == 1)
				MPI_Recv(in, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(out, n, MPI_BYTE, !rank, 0, MPI_COMM_WORLD);
			if (rank == 0)
				MPI_Recv(in, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
		took[b] = (now() - start) / rounds / 2;
	}
	return median(took);
}

/* Seconds for one message with WINDOW messages outstanding. */
static double one_way(size_t n)
{
	int windows = windows_of(n);
	MPI_Request requests[WINDOW];
	double took[BATCHES];

	for (int b = 0; b < batches(); b++) {
		double start = now();

		for (int w = 0; w < windows && rank < 2; w++) {
			for (int i = 0; i < WINDOW; i++) {
				if (rank == 0)
					MPI_Isend(out, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
				else
					MPI_Irecv(in, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
			}
			MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
		}
		if (rank == 0)
			MPI_Recv(in, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else if (rank == 1)
			MPI_Send(out, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		took[b] = (now() - start) / windows / WINDOW;
	}
	return median(took);
}

static double all_to_all(size_t n)
{
	double took[BATCHES];

	for (int b = 0; b < batches(); b++) {
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = now();
		for (int i = 0; i < 20; i++)
			MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
		took[b] = (now() - start) / 20;
	}
	return median(took);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	few = argc > 1 && !strcmp(argv[1], "few");
	out = memory(most());
	in = memory(most());
	fill(out, most(), rank);
	memset(in, 0, most());
	if (size > 2) {
		for (size_t n = 8; n <= 65536; n *= 8) {
			double t = all_to_all(n);
			if (rank == 0)
				printf("alltoall%d %zu %.1f\n", size, n, t * 1e6);
		}
		return end();
	}
	for (size_t n = 1; n <= most(); n = next_size(n)) {
		double t = half_round_trip(n);
		if (rank == 0)
			printf("latency %zu %.2f\n", n, t * 1e6);
	}
	for (size_t n = 8; n <= most(); n = few && n == 8 ? 4096 : next_size(n)) {
		double t = one_way(n);
		if (rank == 0)
			printf("%s %zu %.1f\n", n == 8 ? "rate" : "bandwidth", n,
			       n == 8 ? 1e-3 / t : n / t / 1e6);
	}
	return end();
}
