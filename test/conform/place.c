/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.c - transfers between places whose addresses count from 0 (place.h). */
#include "place.h"
#include <string.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG

static const size_t lengths[] = { 4, 8, 60, 64, 68, 256, 1024, 1028, 4096, PLACE_SIZE };
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

static DAT_MEM_PRIV_FLAGS all_rights(void)
{
	int rights = DAT_MEM_PRIV_ALL_FLAG;

	if (named_attr(DAT_IB_ATTR_FETCH_AND_ADD))
		rights |= (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
	return (DAT_MEM_PRIV_FLAGS)rights;
}

struct place a_host_place(DAT_PZ_HANDLE pz)
{
	struct place place = { .at = NULL };

	if (!ia_attr()->zb_supported)
		skip("zb_supported is false");
	place.at = some_memory(PLACE_SIZE);
	OK(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL,
			  (DAT_REGION_DESCRIPTION){ .for_va = place.at }, PLACE_SIZE, pz,
			  all_rights(), DAT_VA_TYPE_ZB, &place.lmr, &place.local, &place.remote,
			  NULL, NULL));
	return place;
}

struct place a_device_place(DAT_PZ_HANDLE pz)
{
	struct place place = { .at = NULL };

	needs_attr(DAT_DM_ATTR_SIZE);
	OK(dat_dm_alloc(ia(), PLACE_SIZE, 0, &place.dm));
	OK(dat_dm_lmr_create(place.dm, 0, PLACE_SIZE, pz, all_rights(), &place.lmr, &place.local,
			     &place.remote));
	return place;
}

DAT_LMR_TRIPLET place_segment(const struct place *place, size_t offset, size_t length)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = offset, .segment_length = length,
		.lmr_context = place->local };
}

DAT_RMR_TRIPLET place_target(const struct place *place, size_t offset, size_t length)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = offset, .segment_length = length,
		.rmr_context = place->remote };
}

void place_fill(const struct place *place, size_t offset, size_t length, unsigned seed)
{
	char data[PLACE_SIZE];

	if (place->at) {
		fill(place->at + offset, length, seed);
		return;
	}
	fill(data, length, seed);
	OK(dat_dm_copy_to(place->dm, offset, data, length));
}

bool place_is_filled(const struct place *place, size_t offset, size_t length, unsigned seed)
{
	char data[PLACE_SIZE];

	if (place->at)
		return is_filled(place->at + offset, length, seed);
	OK(dat_dm_copy_from(place->dm, offset, data, length));
	return is_filled(data, length, seed);
}

static void expect_send(struct pair *p, const struct place *mine, const struct place *theirs,
			size_t length, unsigned seed)
{
	place_fill(mine, 0, length, seed);
	OK(dat_ep_post_recv(p->b.ep, 1, PLACE_SEGMENT(theirs, 0, PLACE_SIZE), COOKIE(seed), DEFAULT));
	OK(dat_ep_post_send(p->a.ep, 1, PLACE_SEGMENT(mine, 0, length), COOKIE(1), DEFAULT));
	COMPLETES(p->a.request, 1, DAT_DTO_SUCCESS);
	EQUAL(COMPLETES(p->b.recv, seed, DAT_DTO_SUCCESS).transfered_length, length);
	HOLDS(place_is_filled(theirs, 0, length, seed));
}

/* An iWARP write may complete before it is placed; the message behind it arrives after that. */
static void expect_write(struct pair *p, const struct place *mine, const struct place *theirs,
			 size_t length, unsigned seed)
{
	size_t offset = PLACE_SIZE - length;

	place_fill(mine, 0, length, seed);
	OK(dat_ep_post_rdma_write(p->a.ep, 1, PLACE_SEGMENT(mine, 0, length), COOKIE(2),
				  PLACE_TARGET(theirs, offset, length), DEFAULT));
	COMPLETES(p->a.request, 2, DAT_DTO_SUCCESS);
	post_recv(&p->b, 0, 8, 4);
	post_send(&p->a, 0, 8, 5);
	COMPLETES(p->a.request, 5, DAT_DTO_SUCCESS);
	COMPLETES(p->b.recv, 4, DAT_DTO_SUCCESS);
	HOLDS(place_is_filled(theirs, offset, length, seed));
}

static void expect_read(struct pair *p, const struct place *mine, const struct place *theirs,
			size_t length, unsigned seed)
{
	size_t offset = PLACE_SIZE - length;

	place_fill(theirs, offset, length, seed);
	OK(dat_ep_post_rdma_read(p->a.ep, 1, PLACE_SEGMENT(mine, 0, length), COOKIE(3),
				 PLACE_TARGET(theirs, offset, length), DEFAULT));
	COMPLETES(p->a.request, 3, DAT_DTO_SUCCESS);
	HOLDS(place_is_filled(mine, 0, length, seed));
}

/* Returns 8 bytes at `offset` as a number. */
static uint64_t number_at(const struct place *place, size_t offset)
{
	uint64_t number;

	if (place->at)
		memcpy(&number, place->at + offset, sizeof(number));
	else
		OK(dat_dm_copy_from(place->dm, offset, &number, sizeof(number)));
	return number;
}

static void set_number(const struct place *place, size_t offset, uint64_t number)
{
	if (place->at)
		memcpy(place->at + offset, &number, sizeof(number));
	else
		OK(dat_dm_copy_to(place->dm, offset, &number, sizeof(number)));
}

static void expect_atomics(struct pair *p, const struct place *mine, const struct place *theirs)
{
	if (!named_attr(DAT_IB_ATTR_FETCH_AND_ADD))
		return;
	set_number(theirs, 64, 40);
	OK(dat_ib_post_fetch_and_add(p->a.ep, (DAT_UINT64)2, PLACE_SEGMENT(mine, 8, 8), COOKIE(4),
				     PLACE_TARGET(theirs, 64, 8), DEFAULT));
	EVENT(p->a.request, DAT_IB_DTO_EVENT);
	EQUAL(number_at(theirs, 64), 42);
	EQUAL(number_at(mine, 8), 40);
	OK(dat_ib_post_cmp_and_swap(p->a.ep, (DAT_UINT64)42, (DAT_UINT64)7,
				    PLACE_SEGMENT(mine, 16, 8), COOKIE(5),
				    PLACE_TARGET(theirs, 64, 8), DEFAULT));
	EVENT(p->a.request, DAT_IB_DTO_EVENT);
	EQUAL(number_at(theirs, 64), 7);
	EQUAL(number_at(mine, 16), 42);
}

/* Makes a list of two segments: one of ordinary memory, one of this place. */
static void expect_mixed(struct pair *p, const struct place *mine, const struct place *theirs)
{
	char host[16], data[32];
	DAT_LMR_TRIPLET list[2] = { segment(&p->a.mem, 0, 16), place_segment(mine, 128, 16) };

	fill(data, sizeof(data), 77);
	memcpy(p->a.mem.at, data, 16);
	if (mine->at)
		memcpy(mine->at + 128, data + 16, 16);
	else
		OK(dat_dm_copy_to(mine->dm, 128, data + 16, 16));
	OK(dat_ep_post_recv(p->b.ep, 2, ((DAT_LMR_TRIPLET[]){ place_segment(theirs, 0, 16),
				segment(&p->b.mem, 0, 16) }), COOKIE(6), DEFAULT));
	OK(dat_ep_post_send(p->a.ep, 2, list, COOKIE(7), DEFAULT));
	COMPLETES(p->a.request, 7, DAT_DTO_SUCCESS);
	COMPLETES(p->b.recv, 6, DAT_DTO_SUCCESS);
	if (theirs->at)
		memcpy(host, theirs->at, 16);
	else
		OK(dat_dm_copy_from(theirs->dm, 0, host, 16));
	HOLDS(!memcmp(host, data, 16));
	HOLDS(!memcmp(p->b.mem.at, data + 16, 16));
}

void expect_transfers(struct pair *p, const struct place *mine, const struct place *theirs)
{
	unsigned seed = 10;

	for (size_t i = 0; i < LENGTHS; i++) {
		expect_send(p, mine, theirs, lengths[i], seed++);
		expect_write(p, mine, theirs, lengths[i], seed++);
		expect_read(p, mine, theirs, lengths[i], seed++);
	}
	expect_atomics(p, mine, theirs);
	expect_mixed(p, mine, theirs);
}
