/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lmr_table.c - dat/lmr_table.c: many entries of several adapters, at random, against a plain array.
 * lmr_table SEED repeats a run. */
#include "dat/lmr_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { IAS = 3, CONTEXTS = 700, STEPS = 200000 };

static DAT_LMR_HANDLE expected[IAS][CONTEXTS];
static unsigned seed;

static unsigned any(unsigned below)
{
	return (unsigned)rand_r(&seed) % below;
}

static DAT_IA_HANDLE ia_number(unsigned i)
{
	return (DAT_IA_HANDLE)(uintptr_t)(i + 1);
}

/* Contexts of devices are spread over all 32 bits. */
static DAT_LMR_CONTEXT context_number(unsigned i)
{
	return i * 0x9e3779b9u;
}

static int complain(const char *what, unsigned ia, unsigned context)
{
	fprintf(stderr, "%s: adapter %u, context %u\n", what, ia, context);
	return 1;
}

static int check_all(void)
{
	for (unsigned i = 0; i < IAS; i++)
		for (unsigned c = 0; c < CONTEXTS; c++)
			if (dats_lmr_find(ia_number(i), context_number(c)) != expected[i][c])
				return complain("wrong LMR", i, c);
	return 0;
}

static int step(void)
{
	unsigned i = any(IAS), c = any(CONTEXTS);
	DAT_LMR_HANDLE lmr = (DAT_LMR_HANDLE)(uintptr_t)(0x10000 + any(1000));

	switch (any(8)) {
	case 0:
		dats_lmr_remove(ia_number(i), context_number(c), expected[i][c]);
		expected[i][c] = DAT_HANDLE_NULL;
		break;
	case 1:		/* of another LMR: nothing happens */
		dats_lmr_remove(ia_number(i), context_number(c), &expected);
		break;
	default:
		if (dats_lmr_add(ia_number(i), context_number(c), lmr))
			return complain("not added", i, c);
		expected[i][c] = lmr;
	}
	if (any(STEPS / 8) == 0) {
		lmr_table_drop(ia_number(i));
		for (c = 0; c < CONTEXTS; c++)
			expected[i][c] = DAT_HANDLE_NULL;
	}
	return 0;
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : (unsigned)time(NULL);
	printf("seed %u\n", seed);
	if (check_all())
		return 1;	/* empty: nothing is found, nothing is read */
	for (unsigned n = 0; n < STEPS; n++)
		if (step() || (n % 1000 == 0 && check_all()))
			return 1;
	if (check_all())
		return 1;
	lmr_table_fini();
	return dats_lmr_find(ia_number(0), context_number(0)) != DAT_HANDLE_NULL;
}
