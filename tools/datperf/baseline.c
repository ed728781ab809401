/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* baseline.c - see baseline.h. */
#include "baseline.h"
#include "../call.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 };	/* copies between looks at the clock */

double baseline_memcpy_bandwidth(size_t size, double seconds)
{
	char *from = calloc(1, size), *to = calloc(1, size);
	double start, copied = 0;

	if (!from || !to)
		fail("no memory for %zu bytes", size);
	memcpy(to, from, size);
	start = now();
	do {
		for (int i = 0; i < CHUNK; i++) {
			memcpy(to, from, size);
			__asm__ volatile("" : : "r"(to) : "memory"); /* no copy is optimised out */
		}
		copied += (double)size * CHUNK;
	} while (now() - start < seconds);
	copied /= now() - start;
	free(from);
	free(to);
	return copied;
}
