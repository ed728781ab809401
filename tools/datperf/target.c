/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* target.c - see target.h. */
#include "target.h"
#include "../call.h"
#include "../cli.h"
#include <dat/dat_dm_extensions.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAST = 4096, /* bytes of a target in device memory; adapters with 128 KiB can have 16 threads at each side */
	UNIT = 4,     /* a multiple of every value of DAT_DM_ATTR_UNIT */
	ALIGNMENT = 6 /* log2: a cache line */
};

unsigned long long target_device_threads(const struct adapter *a)
{
	return a->dm_size / 2 / LEAST;
}

void target_open_device(struct target *t, const struct adapter *a, unsigned threads, size_t most,
			DAT_MEM_PRIV_FLAGS rights)
{
	DAT_PVOID at;

	*t = (struct target){ .size = most };
	while (t->size > a->dm_size / 2 / threads)
		t->size /= 2;
	good_call(dat_dm_alloc(a->ia, t->size, ALIGNMENT, &t->dm), "dat_dm_alloc");
	if (a->dm_maps) {
		good_call(dat_dm_map(t->dm, &at), "dat_dm_map");
		t->at = at;
	} else {
		t->copy = calloc(1, t->size);
		if (!t->copy)
			fail("no memory");
	}
	good_call(dat_dm_lmr_create(t->dm, 0, t->size, a->pz, rights, &t->lmr, &t->lmr_context, &t->rmr_context),
		  "dat_dm_lmr_create");
}

void target_close(struct target *t)
{
	if (t->lmr)
		good(dat_lmr_free(t->lmr), "dat_lmr_free");
	if (t->dm)
		good(dat_dm_free(t->dm), "dat_dm_free");
	free(t->copy);
	*t = (struct target){ 0 };
}

static size_t whole_units(size_t size)
{
	return (size + UNIT - 1) / UNIT * UNIT;
}

void target_clear(struct target *t, size_t size)
{
	memset(t->at ? t->at : t->copy, 0, size);
	if (!t->at)
		good(dat_dm_copy_to(t->dm, 0, t->copy, whole_units(size)), "dat_dm_copy_to");
}

const char *target_read(struct target *t, size_t size)
{
	if (t->at)
		return t->at;
	good(dat_dm_copy_from(t->dm, 0, t->copy, whole_units(size)), "dat_dm_copy_from");
	return t->copy;
}

uint8_t target_byte(struct target *t, size_t i)
{
	uint8_t unit[UNIT];

	if (t->at)
		return __atomic_load_n((uint8_t *)t->at + i, __ATOMIC_ACQUIRE);
	good(dat_dm_copy_from(t->dm, i / UNIT * UNIT, unit, UNIT), "dat_dm_copy_from");
	return unit[i % UNIT];
}
