/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.h - memory whose addresses count from 0, on the host or on the device, and transfers
 * between two such places in all ways. */
#ifndef CONFORM_PLACE_H
#define CONFORM_PLACE_H
#include "pair.h"
#include <dat/dat_dm_extensions.h>

#define PLACE_SIZE 8192
struct place {
	char *at;		/* host memory; NULL: device memory */
	DAT_DM_HANDLE dm;	/* device memory; host memory: DAT_HANDLE_NULL */
	DAT_LMR_HANDLE lmr;	/* all of it: PLACE_SIZE bytes, all rights, atomics where there are */
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
};

struct place a_host_place(DAT_PZ_HANDLE pz);	/* skips without zb_supported */
struct place a_device_place(DAT_PZ_HANDLE pz);	/* skips without device memory */

DAT_LMR_TRIPLET place_segment(const struct place *place, size_t offset, size_t length);
DAT_RMR_TRIPLET place_target(const struct place *place, size_t offset, size_t length);
#define PLACE_SEGMENT(place, offset, length) \
	((DAT_LMR_TRIPLET[]){ place_segment(place, offset, length) })
#define PLACE_TARGET(place, offset, length) \
	((DAT_RMR_TRIPLET[]){ place_target(place, offset, length) })

/* fill() and is_filled() there; offset and length are multiples of 4. */
void place_fill(const struct place *place, size_t offset, size_t length, unsigned seed);
bool place_is_filled(const struct place *place, size_t offset, size_t length, unsigned seed);

/* Sends, writes and reads of many lengths, those that devices inline above all, and atomics:
 * between `mine` of p->a and `theirs` of p->b. */
void expect_transfers(struct pair *p, const struct place *mine, const struct place *theirs);

#endif
