/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* laps.c - many messages of random sizes, alone and in bursts, whose payload looks like the tail of a
 * message in an eager ring (struct udapl_tail). Data that an earlier lap left in the ring must not be taken
 * for the next message. Messages are exchanged between pairs of ranks, and every byte is checked.
 *
 *	laps [messages [seed]] */
#include "check.h"
#include <time.h>

enum { TAG = 7, MOST = 4000, PML_MATCH = 65, PML_HEADER = 14, IN_A_ROW = 40 };

static uint64_t state;

/* xorshift64* */
static uint32_t draw(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)(state * 2685821657736338717ull >> 32) % below;
}

/* Fills with tails of a 24-byte message with the tag of a match, for each of the 255 laps in turn. Words of
 * the ring are aligned to the header of a message or, in long messages, to the data behind the header. */
static void fill_with_tails(uint8_t *to, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (const uint8_t[8]){ [4] = 24, [6] = PML_MATCH,
					    [7] = (uint8_t)((i / 8 + seed) % 255 + 1),
					    }[(i + (seed & 1) * PML_HEADER) % 8];
}

static size_t next_size(void)
{
	return draw(2) ? draw(100) : draw(MOST);
}

static void to_peer(int peer, uint8_t *data, int first, int n)
{
	MPI_Request requests[IN_A_ROW];

	for (int i = 0; i < n; i++) {
		uint8_t *at = data + (size_t)i * MOST;
		size_t length = next_size();

		fill_with_tails(at, length, first + i);
		MPI_Isend(at, length, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void from_peer(int peer, uint8_t *got, uint8_t *expected, int first, int n)
{
	MPI_Status status;
	int count;

	for (int i = 0; i < n; i++) {
		int length = (int)next_size();

		fill_with_tails(expected, length, first + i);
		memset(got, 0, MOST);
		MPI_Recv(got, MOST, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK(count == length, "message %d has %d bytes, not %d", first + i, count, length);
		CHECK(!memcmp(got, expected, length), "message %d has other bytes", first + i);
	}
}

/* Both ranks of a pair draw the same numbers, so the receiver knows what is sent. */
int main(int argc, char **argv)
{
	int messages = argc > 1 ? atoi(argv[1]) : 100000, peer;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	uint8_t *data = memory(IN_A_ROW * MOST), *expected = memory(MOST);

	begin(&argc, &argv);
	MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("seed %llu\n", (unsigned long long)seed);
	peer = rank ^ 1;
	state = seed * 2 + 1;
	for (int done = 0, n; done < messages && peer < size; done += n) {
		n = 1 + (int)draw(IN_A_ROW);
		if (rank & 1)
			from_peer(peer, data, expected, done, n);
		else
			to_peer(peer, data, done, n);
		n++;
		if (rank & 1)
			to_peer(peer, data, done, 1);
		else
			from_peer(peer, data, expected, done, 1);
	}
	free(data);
	free(expected);
	return end();
}
