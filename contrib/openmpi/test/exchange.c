/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exchange.c - sends data round a ring, between pairs, from all to all and in floods, in sizes
 * on both sides of every limit. Every byte is checked.
 *
 *	exchange ring|pingpong|alltoall|flood|types|remap [largest size] */
#define _GNU_SOURCE
#include <sys/mman.h>
#include "check.h"

static const size_t sizes[] = { 0,    1,    8,     100,   1000,  4096,   5000,    8192,   8300,
				16300, 16384, 16400, 65536, 70000, 262144, 300001, 1048576, 4194304 };
enum { SIZES = sizeof sizes / sizeof *sizes, TAG = 7 };

/* Each rank receives the data of its left neighbour before it sends its own data to the right one; rank 0
 * sends first. */
static void ring(size_t n)
{
	uint8_t *data = memory(n), *got = memory(n);
	int left = (rank + size - 1) % size, right = (rank + 1) % size;
	MPI_Status status;
	int count;

	for (int round = 0; round < 3; round++) {
		fill(data, n, rank + round);
		memset(got, 0, n);
		if (rank == 0)
			MPI_Send(data, n, MPI_BYTE, right, TAG, MPI_COMM_WORLD);
		MPI_Recv(got, n, MPI_BYTE, left, TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK(count == (int)n, "%d bytes came", count);
		check_filled(got, n, left + round);
		if (rank != 0)
			MPI_Send(data, n, MPI_BYTE, right, TAG, MPI_COMM_WORLD);
	}
	free(data);
	free(got);
}

static void pingpong(size_t n)
{
	uint8_t *data = memory(n), *got = memory(n);
	int peer = rank ^ 1, rounds = n < 10000 ? 50 : 5;

	for (int i = 0; i < rounds && peer < size; i++) {
		fill(data, n, rank + i);
		memset(got, 0, n);
		if (rank & 1)
			MPI_Recv(got, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(data, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
		if (!(rank & 1))
			MPI_Recv(got, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_filled(got, n, peer + i);
	}
	free(data);
	free(got);
}

/* In the first round all ranks connect to all others at once. */
static void alltoall(size_t n)
{
	uint8_t *data = memory(n * size), *got = memory(n * size);
	MPI_Request *requests = memory(2 * size * sizeof *requests);

	for (int i = 0; i < size; i++)
		fill(data + i * n, n, rank * size + i);
	memset(got, 0, n * size);
	for (int i = 0; i < size; i++)
		MPI_Irecv(got + i * n, n, MPI_BYTE, i, TAG, MPI_COMM_WORLD, &requests[i]);
	for (int i = 0; i < size; i++)
		MPI_Isend(data + i * n, n, MPI_BYTE, i, TAG, MPI_COMM_WORLD, &requests[size + i]);
	MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < size; i++)
		check_filled(got + i * n, n, i * size + rank);
	memset(got, 0, n * size);
	MPI_Alltoall(data, n, MPI_BYTE, got, n, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		check_filled(got + i * n, n, i * size + rank);
	free(data);
	free(got);
	free(requests);
}

/* Sends more messages than there are credits, receives or requests: all ranks to rank 0, which receives
 * those of one rank after those of another, then all ranks to their neighbours in both directions. */
static void flood(size_t n)
{
	enum { MANY = 500 };
	int many = n <= 5000 ? MANY : 20;
	uint8_t *data = memory(n * many), *got = memory(n);
	MPI_Request *requests = memory(many * sizeof *requests);

	for (int i = 0; i < many; i++)
		fill(data + i * n, n, rank + i);
	if (rank != 0) {
		for (int i = 0; i < many; i++)
			MPI_Isend(data + i * n, n, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
		MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
	}
	for (int from = 1; rank == 0 && from < size; from++)
		for (int i = 0; i < many; i++) {
			memset(got, 0, n);
			MPI_Recv(got, n, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			check_filled(got, n, from + i);
		}
	int left = (rank + size - 1) % size, right = (rank + 1) % size;

	for (int i = 0; i < many; i++)
		MPI_Isend(data + i * n, n, MPI_BYTE, i & 1 ? left : right, i, MPI_COMM_WORLD,
			  &requests[i]);
	for (int i = 0; i < many; i++) {
		int from = i & 1 ? right : left;

		MPI_Recv(got, n, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_filled(got, n, from + i);
	}
	MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
	free(data);
	free(got);
	free(requests);
}

/* Sends every second block of 24 bytes, so Open MPI must pack and unpack the data. */
static void types(size_t n)
{
	enum { BLOCK = 24 };
	int blocks = (int)(n / BLOCK), peer = rank ^ 1;
	size_t all = (size_t)blocks * 2 * BLOCK;
	uint8_t *data = memory(all), *got = memory(all);
	MPI_Datatype type;

	MPI_Type_vector(blocks, BLOCK, 2 * BLOCK, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	fill(data, all, rank);
	memset(got, 0, all);
	if (peer < size && blocks) {
		MPI_Sendrecv(data, 1, type, peer, TAG, got, 1, type, peer, TAG, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		for (size_t i = 0; i < all; i++)
			CHECK(got[i] == (i / BLOCK % 2 || i >= all - BLOCK ? 0 : byte_at(i, peer)),
			      "byte %zu of %zu", i, all);
	}
	MPI_Type_free(&type);
	free(data);
	free(got);
}

/* Maps at the given address if it is free, otherwise anywhere. */
static uint8_t *map_at(uint8_t *at, size_t n)
{
	uint8_t *p = mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED, "no memory for %zu bytes", n);
	return p;
}

/* Sends much memory at once and unmaps it, which Open MPI must notice. Then other memory is mapped at the
 * same addresses. */
static void remap(size_t n)
{
	enum { AREAS = 20, ROUNDS = 4 };
	size_t area = (n + 32767) / 32768 * 32768 + 32768;
	MPI_Request requests[2 * AREAS];
	uint8_t *out[AREAS], *got[AREAS];
	int peer = rank ^ 1;

	for (int round = 0; round < ROUNDS && peer < size; round++) {
		for (int i = 0; i < AREAS; i++) {
			out[i] = map_at(round ? out[i] : NULL, area);
			got[i] = map_at(round ? got[i] : NULL, area);
			fill(out[i], n, rank + round + i);
			MPI_Irecv(got[i], n, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[i]);
		}
		for (int i = 0; i < AREAS; i++)
			MPI_Isend(out[i], n, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[AREAS + i]);
		MPI_Waitall(2 * AREAS, requests, MPI_STATUSES_IGNORE);
		for (int i = 0; i < AREAS; i++) {
			check_filled(got[i], n, peer + round + i);
			munmap(out[i], area);
			munmap(got[i], area);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(size_t); } kinds[] = {
		{ "ring", ring }, { "pingpong", pingpong }, { "alltoall", alltoall },
		{ "flood", flood }, { "types", types }, { "remap", remap },
	};
	const char *kind = argc > 1 ? argv[1] : "";
	size_t most = argc > 2 ? strtoul(argv[2], NULL, 0) : 4194304;
	int known = 0;

	begin(&argc, &argv);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		if (strcmp(kind, kinds[k].name))
			continue;
		known = 1;
		for (int i = 0; i < SIZES && sizes[i] <= most; i++)
			kinds[k].run(sizes[i]);
	}
	CHECK(known, "unknown kind \"%s\"", kind);
	return end();
}
