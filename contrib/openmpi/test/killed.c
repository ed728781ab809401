/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* killed.c - the last rank dies in the middle of the traffic. The others must not wait for ever:
 * the caller checks that all ranks end with an error and that no process is left. Before that, rank 0
 * prints "exchanged" to show that there was traffic. */
#include "check.h"
#include <signal.h>

int main(int argc, char **argv)
{
	uint8_t buffer[2000];

	begin(&argc, &argv);
	for (int i = 0;; i++) {
		fill(buffer, sizeof buffer, i);
		MPI_Sendrecv_replace(buffer, sizeof buffer, MPI_BYTE, (rank + 1) % size, 0,
				     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_filled(buffer, sizeof buffer, i);
		if (i == 0 && rank == 0) {
			puts("exchanged");
			fflush(stdout);
		}
		if (i == 100 && rank == size - 1)
			raise(SIGKILL);
	}
}
