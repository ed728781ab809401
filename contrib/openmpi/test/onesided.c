/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* onesided.c - one-sided communication: each kind of operation under each kind of
 * synchronisation, with predictable results.
 *
 *	onesided [create|allocate] */
#include "check.h"

enum { WORDS = 4096, BIG = 1 << 20 };	/* a rank's window: int64_t; bytes in large() */

static MPI_Win win;
static int64_t *mem;

static int64_t word(int owner, int i, int round)
{
	return (int64_t)owner * 1000003 + i * 17 + round;
}

static void set_own(int round)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	for (int i = 0; i < WORDS; i++)
		mem[i] = word(rank, i, round);
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void check_own(int writer, int from, int n, int round)
{
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	for (int i = from; i < from + n; i++)
		CHECK(mem[i] == word(writer, i, round), "word %d is %lld", i, (long long)mem[i]);
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void put_and_get_with_fence(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	static int64_t out[WORDS], in[WORDS];

	set_own(0);
	for (int i = 0; i < WORDS; i++)
		out[i] = word(rank, i, 1);
	MPI_Win_fence(0, win);
	MPI_Put(out, WORDS / 2, MPI_INT64_T, right, 0, WORDS / 2, MPI_INT64_T, win);
	MPI_Win_fence(0, win);
	check_own(left, 0, WORDS / 2, 1);
	check_own(rank, WORDS / 2, WORDS / 2, 0);
	MPI_Win_fence(0, win);
	MPI_Get(in, WORDS, MPI_INT64_T, right, 0, WORDS, MPI_INT64_T, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < WORDS; i++)
		CHECK(in[i] == (i < WORDS / 2 ? word(rank, i, 1) : word(right, i, 0)), "word %d", i);
}

static void odd_sizes_and_places(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	uint8_t out[300], *bytes = (uint8_t *)mem;

	for (int n = 1; n < 300; n += 37) {
		set_own(2);
		fill(out, n, rank);
		MPI_Win_fence(0, win);
		MPI_Put(out, n, MPI_BYTE, right, n, n, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		for (int i = 0; i < n; i++)
			CHECK(bytes[n + i] == byte_at(i, left), "byte %d of %d", i, n);
		int64_t before = word(rank, 0, 2);
		CHECK(!memcmp(bytes, &before, n < 8 ? n : 8), "wrong data before %d bytes", n);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static void locks(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	int64_t out[64], in[64];

	set_own(3);
	for (int i = 0; i < 64; i++)
		out[i] = word(rank, i + 128, 4);
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	MPI_Put(out, 64, MPI_INT64_T, right, 128 * 8, 64, MPI_INT64_T, win);
	MPI_Win_flush(right, win);
	MPI_Get(in, 64, MPI_INT64_T, right, 128 * 8, 64, MPI_INT64_T, win);
	MPI_Win_unlock(right, win);
	CHECK(!memcmp(in, out, sizeof in), "the data read is not the data written");
	MPI_Barrier(MPI_COMM_WORLD);
	check_own(left, 128, 64, 4);
}

/* All ranks add to the same words of rank 0. No addition may be lost. */
static void accumulates(void)
{
	enum { ROUNDS = 20 };
	int64_t zero = 0, add[8], old, sum = 0;

	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		for (int i = 0; i < 16; i++)
			mem[i] = zero;
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < 8; i++)
			add[i] = rank + i + r;
		MPI_Accumulate(add, 8, MPI_INT64_T, 0, 0, 8, MPI_INT64_T, MPI_SUM, win);
		MPI_Fetch_and_op(&add[0], &old, MPI_INT64_T, 0, 8 * 8, MPI_SUM, win);
		MPI_Win_flush(0, win);
		CHECK(old >= 0, "fetched %lld", (long long)old);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int who = 0; who < size; who++)
		for (int r = 0; r < ROUNDS; r++)
			sum += who + r;
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		for (int i = 0; i < 8; i++)
			CHECK(mem[i] == sum + (int64_t)i * ROUNDS * size, "word %d is %lld", i,
			      (long long)mem[i]);
		CHECK(mem[8] == sum, "the fetched word is %lld", (long long)mem[8]);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Operations that the device does not have. The sum of the replaced values and of the remaining one must be
 * that of all values. */
static void other_operations(void)
{
	int64_t mine = rank + 1, old, taken = 0, all;

	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		mem[0] = mem[1] = 0;
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int r = 0; r < 10; r++) {
		MPI_Accumulate(&mine, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_MAX, win);
		MPI_Fetch_and_op(&mine, &old, MPI_INT64_T, 0, 8, MPI_REPLACE, win);
		MPI_Win_flush(0, win);
		taken += old;
	}
	MPI_Win_unlock_all(win);
	MPI_Reduce(&taken, &all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		CHECK(mem[0] == size, "the greatest of %d is %lld", size, (long long)mem[0]);
		CHECK(all + mem[1] == 10 * size * (size + 1) / 2, "replaced %lld, left %lld",
		      (long long)all, (long long)mem[1]);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A counter that all ranks increment by compare and swap, and a plain counter guarded by a lock. */
static void swaps_and_exclusion(void)
{
	enum { ROUNDS = 10 };
	int64_t got, next, old;

	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		mem[0] = mem[1] = 0;
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int r = 0; r < ROUNDS; r++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		for (old = 0;; old = got) {
			next = old + 1;
			MPI_Compare_and_swap(&next, &old, &got, MPI_INT64_T, 0, 0, win);
			MPI_Win_flush(0, win);
			if (got == old)
				break;
		}
		MPI_Win_unlock(0, win);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&got, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		got++;
		MPI_Put(&got, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		CHECK(mem[0] == ROUNDS * size, "swapped to %lld", (long long)mem[0]);
		CHECK(mem[1] == ROUNDS * size, "counted to %lld", (long long)mem[1]);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void post_start_complete_wait(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	int64_t out[32];
	MPI_Group all, to, from;

	set_own(5);
	for (int i = 0; i < 32; i++)
		out[i] = word(rank, i, 6);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &right, &to);
	MPI_Group_incl(all, 1, &left, &from);
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Put(out, 32, MPI_INT64_T, right, 0, 32, MPI_INT64_T, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	check_own(left, 0, 32, 6);
	MPI_Group_free(&all);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
}

static void large(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	uint8_t *mine = memory(BIG), *got = memory(BIG), *base;
	MPI_Win big;

	MPI_Win_allocate(BIG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &big);
	fill(mine, BIG, rank);
	MPI_Win_fence(0, big);
	MPI_Put(mine, BIG, MPI_BYTE, right, 0, BIG, MPI_BYTE, big);
	MPI_Win_fence(0, big);
	check_filled(base, BIG, left);
	MPI_Get(got, BIG, MPI_BYTE, right, 0, BIG, MPI_BYTE, big);
	MPI_Win_fence(0, big);
	check_filled(got, BIG, rank);
	MPI_Win_free(&big);
	free(mine);
	free(got);
}

int main(int argc, char **argv)
{
	int own = argc < 2 || strcmp(argv[1], "allocate");

	begin(&argc, &argv);
	if (own) {
		mem = memory(WORDS * sizeof *mem);
		MPI_Win_create(mem, WORDS * sizeof *mem, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	} else {
		MPI_Win_allocate(WORDS * sizeof *mem, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	}
	put_and_get_with_fence();
	odd_sizes_and_places();
	locks();
	accumulates();
	other_operations();
	swaps_and_exclusion();
	post_start_complete_wait();
	large();
	MPI_Win_free(&win);
	if (own)
		free(mem);
	return end();
}
