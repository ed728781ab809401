/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* check.h - for the MPI test programs: data that can be checked, failures that are reported. */
#ifndef CHECK_H
#define CHECK_H
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: rank %d: %s: ", __FILE__, __LINE__, rank,          \
				#condition);                                                       \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			MPI_Abort(MPI_COMM_WORLD, 1);                                              \
		}                                                                                  \
	} while (0)

/* A byte that depends on its offset and on a seed. */
static inline uint8_t byte_at(size_t i, unsigned seed)
{
	return (uint8_t)((i * 2654435761u >> 7) + i + seed * 97);
}

static inline void fill(uint8_t *to, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		to[i] = byte_at(i, seed);
}

static inline void check_filled(const uint8_t *from, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		CHECK(from[i] == byte_at(i, seed), "byte %zu of %zu is %u, not %u", i, n, from[i],
		      byte_at(i, seed));
}

static inline void *memory(size_t n)
{
	void *p = malloc(n ? n : 1);

	CHECK(p, "no memory");
	return p;
}

static inline void begin(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Prints "passed": only a program that reaches this call has passed. */
static inline int end(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		puts("passed");
	MPI_Finalize();
	return 0;
}

#endif
