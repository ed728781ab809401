/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.c - memory of the device: allocation, registration, copies, mapping, and requests to it. */
#include "actors.h"
#include "place.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG
#define BAD_DM (DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1)
#define BAD_ARG(n) (DAT_INVALID_PARAMETER | DAT_INVALID_ARG##n)

static DAT_VLEN dm_size(void)
{
	needs_attr(DAT_DM_ATTR_SIZE);
	return strtoull(named_attr(DAT_DM_ATTR_SIZE), NULL, 10);
}

static DAT_VLEN dm_unit(void)
{
	return strtoull(named_attr(DAT_DM_ATTR_UNIT), NULL, 10);
}

static DAT_DM_HANDLE some_dm(DAT_VLEN length)
{
	DAT_DM_HANDLE dm = DAT_HANDLE_NULL;

	needs_attr(DAT_DM_ATTR_SIZE);
	OK(dat_dm_alloc(ia(), length, 0, &dm));
	return dm;
}

static DAT_RETURN lmr_of(DAT_DM_HANDLE dm, DAT_VLEN offset, DAT_VLEN length, DAT_PZ_HANDLE pz,
			 DAT_LMR_HANDLE *lmr)
{
	return dat_dm_lmr_create(dm, offset, length, pz, ALL_RIGHTS, lmr, NULL, NULL);
}

/* --- allocation ---------------------------------------------------------------------------- */

TEST("DM-1", an_ia_without_device_memory_says_so)
{
	DAT_DM_HANDLE dm;

	if (named_attr(DAT_DM_ATTR_SIZE))
		skip("there is device memory");
	FAILS(dat_dm_alloc(ia(), 4096, 0, &dm), DAT_MODEL_NOT_SUPPORTED, DAT_NOT_IMPLEMENTED);
	HOLDS(!named_attr(DAT_DM_ATTR_UNIT));
	HOLDS(!named_attr(DAT_DM_ATTR_MAP));
}

TEST("DM-2", the_arguments_of_an_allocation_are_checked)
{
	DAT_VLEN size = dm_size();
	DAT_DM_HANDLE dm;

	FAILS(dat_dm_alloc(ia(), 0, 0, &dm), BAD_ARG(3));
	FAILS(dat_dm_alloc(ia(), size + 1, 0, &dm), BAD_ARG(3));
	FAILS(dat_dm_alloc(ia(), ~(DAT_VLEN)0, 0, &dm), BAD_ARG(3));
	FAILS(dat_dm_alloc(ia(), 64, 13, &dm), BAD_ARG(4));
	FAILS(dat_dm_alloc(ia(), 64, 0, NULL), BAD_ARG(5));
	FAILS(dat_dm_alloc(a_pz(), 64, 0, &dm), DAT_INVALID_HANDLE);
	OK(dat_dm_alloc(ia(), 64, 12, &dm));
	OK(dat_dm_free(dm));
}

TEST("DM-3", all_of_it_can_be_used_again_and_again)
{
	DAT_VLEN size = dm_size();
	DAT_DM_HANDLE dm;

	for (int i = 0; i < 3; i++) {
		OK(dat_dm_alloc(ia(), size, 0, &dm));
		OK(dat_dm_free(dm));
	}
}

TEST("DM-3", more_than_there_is_cannot_be_allocated)
{
	DAT_DM_HANDLE first = some_dm(dm_size()), second;

	FAILS(dat_dm_alloc(ia(), 4096, 0, &second),
	      DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY);
	OK(dat_dm_free(first));
	OK(dat_dm_alloc(ia(), 4096, 0, &second));
}

TEST("DM-4", memory_is_zeroed_before_each_owner)
{
	enum { PIECES = 8, SIZE = 8192 };
	DAT_DM_HANDLE dm[PIECES];
	char data[SIZE];

	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < PIECES; i++) {
			dm[i] = some_dm(SIZE);
			OK(dat_dm_copy_from(dm[i], 0, data, SIZE));
			HOLDS(is_zero(data, SIZE));
			fill(data, SIZE, i + 1);
			OK(dat_dm_copy_to(dm[i], 0, data, SIZE));
		}
		for (int i = 0; i < PIECES; i++)
			OK(dat_dm_free(dm[i]));
	}
}

TEST("DM-5", memory_with_an_lmr_is_not_freed)
{
	DAT_DM_HANDLE dm = some_dm(4096);
	DAT_LMR_HANDLE lmr;
	char data[4];

	OK(lmr_of(dm, 0, 4096, a_pz(), &lmr));
	FAILS(dat_dm_free(dm), DAT_INVALID_STATE | DAT_INVALID_STATE_LMR_IN_USE);
	OK(dat_dm_copy_from(dm, 0, data, 4));
	OK(dat_lmr_free(lmr));
	OK(dat_dm_free(dm));
}

/* --- handles --------------------------------------------------------------------------------- */

static void expect_useless(DAT_DM_HANDLE dm)
{
	DAT_LMR_HANDLE lmr;
	DAT_PVOID at;
	char data[8];

	FAILS(lmr_of(dm, 0, 64, a_pz(), &lmr), BAD_DM);
	FAILS(dat_dm_copy_to(dm, 0, data, 8), BAD_DM);
	FAILS(dat_dm_copy_from(dm, 0, data, 8), BAD_DM);
	FAILS(dat_dm_map(dm, &at), BAD_DM);
	FAILS(dat_dm_free(dm), BAD_DM);
}

TEST("DM-6", a_stale_handle_is_refused)
{
	DAT_DM_HANDLE dm = some_dm(4096);

	OK(dat_dm_free(dm));
	expect_useless(dm);
}

TEST("DM-6", a_handle_of_another_kind_is_refused)
{
	needs_attr(DAT_DM_ATTR_SIZE);
	expect_useless(a_pz());
	expect_useless(ia());
}

TEST("DM-7", a_handle_tells_its_type_and_carries_a_context)
{
	DAT_DM_HANDLE dm = some_dm(64);
	DAT_CONTEXT context = { .as_64 = 0x123456789abcdef }, found;
	DAT_HANDLE_TYPE type;

	OK(dat_get_handle_type(dm, &type));
	EQUAL(type, DAT_HANDLE_TYPE_DM);
	OK(dat_set_consumer_context(dm, context));
	OK(dat_get_consumer_context(dm, &found));
	EQUAL(found.as_64, context.as_64);
}

TEST("DM-8", a_forked_child_has_none_of_it)
{
	DAT_DM_HANDLE dm = some_dm(4096), other;
	char data[8] = "parent";
	int status;
	pid_t child;

	OK(dat_dm_copy_to(dm, 0, data, 8));
	child = fork();
	if (!child) {
		int wrong = DAT_GET_TYPE(dat_dm_copy_from(dm, 0, data, 8)) != DAT_INVALID_HANDLE;

		wrong |= (DAT_GET_TYPE(dat_dm_free(dm)) != DAT_INVALID_HANDLE) << 1;
		wrong |= (DAT_GET_TYPE(dat_dm_alloc(ia(), 64, 0, &other)) !=
			  DAT_INVALID_HANDLE) << 2;
		_exit(wrong);
	}
	HOLDS(child > 0);
	HOLDS(waitpid(child, &status, 0) == child);
	EQUAL(status, 0);
	OK(dat_dm_copy_from(dm, 0, data, 8));
	HOLDS(!strcmp(data, "parent"));
	OK(dat_dm_free(dm));
}

/* --- LMRs -------------------------------------------------------------------------------------- */

TEST("DM-9", the_arguments_of_an_lmr_are_checked)
{
	DAT_DM_HANDLE dm = some_dm(4096);
	DAT_PZ_HANDLE pz = a_pz();
	DAT_LMR_HANDLE lmr;

	FAILS(lmr_of(dm, 4100, 4, pz, &lmr), BAD_ARG(3));
	FAILS(lmr_of(dm, ~(DAT_VLEN)3, 4, pz, &lmr), BAD_ARG(3));
	FAILS(lmr_of(dm, 0, 4100, pz, &lmr), BAD_ARG(4));
	FAILS(lmr_of(dm, 4092, 8, pz, &lmr), BAD_ARG(4));
	FAILS(lmr_of(dm, 4, ~(DAT_VLEN)3, pz, &lmr), BAD_ARG(4));
	FAILS(lmr_of(dm, 0, 0, pz, &lmr), BAD_ARG(4));
	FAILS(lmr_of(dm, 0, 64, DAT_HANDLE_NULL, &lmr), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
	FAILS(lmr_of(dm, 0, 64, pz, NULL), BAD_ARG(7));
	FAILS(dat_dm_lmr_create(dm, 0, 64, pz, 0x1000, &lmr, NULL, NULL), BAD_ARG(6));
	if (dm_unit() > 1) {
		FAILS(lmr_of(dm, 2, 4, pz, &lmr), BAD_ARG(3));
		FAILS(lmr_of(dm, 0, 6, pz, &lmr), BAD_ARG(4));
	}
	OK(lmr_of(dm, 0, 4096, pz, &lmr));
	OK(lmr_of(dm, 0, 4, pz, &lmr));
}

TEST("DM-9", an_lmr_is_in_a_pz_of_its_own_ia)
{
	DAT_DM_HANDLE dm = some_dm(4096);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;

	OK(dat_pz_create(open_ia(&async), &pz));
	FAILS(lmr_of(dm, 0, 64, pz, &lmr), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
}

TEST("DM-9", atomics_need_a_device_that_has_them)
{
	DAT_DM_HANDLE dm = some_dm(4096);
	DAT_LMR_HANDLE lmr;

	if (named_attr(DAT_IB_ATTR_FETCH_AND_ADD))
		skip("the device has atomics");
	FAILS(dat_dm_lmr_create(dm, 0, 64, a_pz(), (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC, &lmr, NULL,
				NULL), DAT_MODEL_NOT_SUPPORTED);
}

TEST("DM-10", an_lmr_tells_how_it_was_created)
{
	DAT_DM_HANDLE dm = some_dm(8192);
	DAT_PZ_HANDLE pz = a_pz();
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_PARAM param;

	OK(dat_dm_lmr_create(dm, 4096, 1024, pz, ALL_RIGHTS, &lmr, &local, &remote));
	OK(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	EQUAL(param.ia_handle, ia());
	EQUAL(param.mem_type, DAT_DM_MEM_TYPE);
	EQUAL(param.region_desc.for_va, dm);
	EQUAL(param.length, 1024);
	EQUAL(param.pz_handle, pz);
	EQUAL(param.mem_priv, ALL_RIGHTS);
	EQUAL(param.va_type, DAT_VA_TYPE_ZB);
	EQUAL(param.lmr_context, local);
	EQUAL(param.rmr_context, remote);
	EQUAL(param.registered_size, 1024);
	EQUAL(param.registered_address, 0);
	HOLDS(remote != 0);
	OK(dat_dm_lmr_create(dm, 0, 64, pz, LOCAL_RIGHTS, &lmr, NULL, &remote));
	EQUAL(remote, 0);
}

/* The devices that test/verbs/dm.c makes cannot do this: the kernel registers memory of the
 * host with addresses that count from 0 in whole pages only. */
TEST("DM-10", an_lmr_may_begin_anywhere)
{
	struct pair p = CONNECTED_PAIR();
	DAT_DM_HANDLE dm = some_dm(4096);
	DAT_RMR_TRIPLET target = { .virtual_address = 8, .segment_length = 64 };
	DAT_LMR_HANDLE lmr;
	char data[64];

	if (device_is("rxe"))
		skip("rxe registers whole pages");
	OK(dat_dm_lmr_create(dm, 1020, 100, p.b.pz, ALL_RIGHTS, &lmr, NULL, &target.rmr_context));
	fill(p.a.mem.at, 64, 1);
	OK(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(1), &target,
				  DEFAULT));
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	OK(dat_dm_copy_from(dm, 1028, data, 64));
	HOLDS(is_filled(data, 64, 1));
}

TEST("DM-11", no_lmr_is_made_of_such_an_lmr)
{
	DAT_DM_HANDLE dm = some_dm(4096);
	DAT_LMR_HANDLE lmr, other;

	OK(lmr_of(dm, 0, 4096, a_pz(), &lmr));
	FAILS(dat_lmr_create(ia(), DAT_MEM_TYPE_LMR,
			     (DAT_REGION_DESCRIPTION){ .for_lmr_handle = lmr }, 4096, a_pz(),
			     ALL_RIGHTS, DAT_VA_TYPE_VA, &other, NULL, NULL, NULL, NULL),
	      BAD_ARG(3));
}

/* --- copies and mapping --------------------------------------------------------------------- */

TEST("DM-12", copies_return_what_was_copied)
{
	DAT_VLEN unit = (dm_size(), dm_unit()), size = 8192;
	DAT_DM_HANDLE dm = some_dm(size);
	char in[8192], model[8192] = "", out[8192];

	for (int i = 0; i < 200; i++) {
		DAT_VLEN offset = chance(size / unit) * unit;
		DAT_VLEN length = chance((size - offset) / unit + 1) * unit;

		fill(in, length, i);
		OK(dat_dm_copy_to(dm, offset, in, length));
		memcpy(model + offset, in, length);
		offset = chance(size / unit) * unit;
		length = chance((size - offset) / unit + 1) * unit;
		OK(dat_dm_copy_from(dm, offset, out, length));
		HOLDS(!memcmp(out, model + offset, length));
	}
	OK(dat_dm_copy_from(dm, 0, out, size));
	HOLDS(!memcmp(out, model, size));
}

TEST("DM-13", a_bad_copy_copies_nothing)
{
	DAT_DM_HANDLE dm = some_dm(4096);
	char data[4096 + 8], zero[4096];

	fill(data, sizeof(data), 3);
	FAILS(dat_dm_copy_to(dm, 4100, data, 4), BAD_ARG(3));
	FAILS(dat_dm_copy_to(dm, ~(DAT_VLEN)3, data, 8), BAD_ARG(3));
	FAILS(dat_dm_copy_to(dm, 0, NULL, 4), BAD_ARG(4));
	FAILS(dat_dm_copy_to(dm, 0, data, 4100), BAD_ARG(5));
	FAILS(dat_dm_copy_to(dm, 4092, data, 8), BAD_ARG(5));
	FAILS(dat_dm_copy_to(dm, 8, data, ~(DAT_VLEN)3), BAD_ARG(5));
	if (dm_unit() > 1) {
		FAILS(dat_dm_copy_to(dm, 2, data, 4), BAD_ARG(3));
		FAILS(dat_dm_copy_to(dm, 0, data, 6), BAD_ARG(5));
	}
	OK(dat_dm_copy_from(dm, 0, zero, 4096));
	HOLDS(is_zero(zero, 4096));
	FAILS(dat_dm_copy_from(dm, 4092, data, 8), BAD_ARG(5));
	FAILS(dat_dm_copy_from(dm, 4100, data, 4), BAD_ARG(3));
	FAILS(dat_dm_copy_from(dm, 0, NULL, 4), BAD_ARG(4));
	HOLDS(is_filled(data, sizeof(data), 3));
	OK(dat_dm_copy_to(dm, 4096, data, 0));
}

TEST("DM-14", mapped_device_memory_is_what_copies_see)
{
	DAT_DM_HANDLE dm = some_dm(4096);
	DAT_PVOID at = NULL, again;
	char data[64];

	if (!named_attr(DAT_DM_ATTR_MAP)) {
		FAILS(dat_dm_map(dm, &at), DAT_MODEL_NOT_SUPPORTED);
		return;
	}
	FAILS(dat_dm_map(dm, NULL), BAD_ARG(3));
	OK(dat_dm_map(dm, &at));
	OK(dat_dm_map(dm, &again));
	EQUAL(again, at);
	fill((char *)at + 128, 64, 5);
	OK(dat_dm_copy_from(dm, 128, data, 64));
	HOLDS(is_filled(data, 64, 5));
	fill(data, 64, 6);
	OK(dat_dm_copy_to(dm, 4032, data, 64));
	HOLDS(is_filled((char *)at + 4032, 64, 6));
}

/* --- requests ----------------------------------------------------------------------------------- */

TEST("DM-15", data_goes_from_device_memory_to_device_memory)
{
	struct pair p = CONNECTED_PAIR();
	struct place mine = a_device_place(p.a.pz), theirs = a_device_place(p.b.pz);

	expect_transfers(&p, &mine, &theirs);
	WORKS(p.a, p.b);
}

TEST("DM-15", data_goes_from_device_memory_to_zero_based_memory)
{
	needs_attr(DAT_DM_ATTR_SIZE);
	struct pair p = CONNECTED_PAIR();
	struct place mine = a_device_place(p.a.pz), theirs = a_host_place(p.b.pz);

	expect_transfers(&p, &mine, &theirs);
}

TEST("DM-15", data_goes_from_zero_based_memory_to_device_memory)
{
	needs_attr(DAT_DM_ATTR_SIZE);
	struct pair p = CONNECTED_PAIR();
	struct place mine = a_host_place(p.a.pz), theirs = a_device_place(p.b.pz);

	expect_transfers(&p, &mine, &theirs);
}

TEST("DM-15", an_endpoint_made_later_uses_device_memory)
{
	needs_attr(DAT_DM_ATTR_SIZE);
	DAT_PZ_HANDLE pz = a_pz();
	struct place place = a_device_place(pz);
	struct pair p = CONNECTED_PAIR(.pz = pz);

	expect_transfers(&p, &place, &place);
}

TEST("DM-16", an_srq_receives_into_device_memory)
{
	needs_srq();
	needs_attr(DAT_DM_ATTR_SIZE);
	DAT_PZ_HANDLE pz = a_pz();
	struct place place = a_device_place(pz);
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_SRQ_HANDLE srq;

	OK(dat_srq_create(ia(), pz, &attr, &srq));
	struct pair p = CONNECTED_PAIR(.pz = pz, .srq = srq);

	OK(dat_srq_post_recv(srq, 1, PLACE_SEGMENT(&place, 1024, 256), COOKIE(1)));
	fill(p.a.mem.at, 200, 9);
	post_send(&p.a, 0, 200, 2);
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	HOLDS(place_is_filled(&place, 1024, 200, 9));
}

TEST("DM-17", a_write_with_immediate_data_goes_to_device_memory)
{
	needs_attr(DAT_IB_ATTR_IMMED_DATA);
	needs_attr(DAT_DM_ATTR_SIZE);
	struct pair p = CONNECTED_PAIR();
	struct place theirs = a_device_place(p.b.pz);
	DAT_EVENT event;

	post_recv(&p.b, 0, 64, 1);
	fill(p.a.mem.at, 48, 4);
	OK(dat_ib_post_rdma_write_immed(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 48), COOKIE(2),
					PLACE_TARGET(&theirs, 64, 48), (DAT_UINT32)77, DEFAULT));
	event = EVENT(p.b.recv, DAT_IB_DTO_EVENT);
	EQUAL(((DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data)->val.immed.data, 77);
	HOLDS(place_is_filled(&theirs, 64, 48, 4));
}

static void expect_refused_write(struct pair *p, DAT_RMR_TRIPLET target)
{
	OK(dat_ep_post_rdma_write(p->a.ep, 1, SEGMENT(&p->a.mem, 0, 64), COOKIE(1), &target,
				  DEFAULT));
	COMPLETES(p->a.request, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	ENDS(p->a.conn);
	ENDS(p->b.conn);
}

TEST("DM-18", a_peer_does_not_write_beyond_the_lmr)
{
	needs_attr(DAT_DM_ATTR_SIZE);
	struct pair p = CONNECTED_PAIR();
	struct place theirs = a_device_place(p.b.pz);

	expect_refused_write(&p, place_target(&theirs, PLACE_SIZE - 60, 64));
	HOLDS(!place_is_filled(&theirs, PLACE_SIZE - 60, 60, 0));
}

TEST("DM-18", a_peer_does_not_write_where_it_may_only_read)
{
	struct pair p = CONNECTED_PAIR();
	DAT_DM_HANDLE dm = some_dm(4096);
	DAT_RMR_TRIPLET target = { .segment_length = 64 };
	DAT_LMR_HANDLE lmr;
	char data[64];

	fill(p.a.mem.at, 64, 1);
	OK(dat_dm_lmr_create(dm, 0, 4096, p.b.pz, LOCAL_RIGHTS | DAT_MEM_PRIV_REMOTE_READ_FLAG,
			     &lmr, NULL, &target.rmr_context));
	expect_refused_write(&p, target);
	OK(dat_dm_copy_from(dm, 0, data, 64));
	HOLDS(is_zero(data, 64));
}

TEST("DM-18", a_freed_lmr_does_not_work_for_the_peer)
{
	needs_attr(DAT_DM_ATTR_SIZE);
	struct pair p = CONNECTED_PAIR();
	struct place theirs = a_device_place(p.b.pz);

	OK(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(1),
				  PLACE_TARGET(&theirs, 0, 64), DEFAULT));
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	OK(dat_lmr_free(theirs.lmr));
	OK(dat_dm_free(theirs.dm));
	expect_refused_write(&p, place_target(&theirs, 0, 64));
}

TEST("DM-19", a_window_onto_device_memory_works_or_is_not_supported)
{
	needs_rmr();
	needs_attr(DAT_DM_ATTR_SIZE);
	struct pair p = CONNECTED_PAIR();
	struct place theirs = a_device_place(p.b.pz);
	DAT_RMR_HANDLE rmr;
	DAT_RMR_TRIPLET target = { .virtual_address = 1024, .segment_length = 64 };

	OK(dat_rmr_create(p.b.pz, &rmr));
	OPTIONAL(dat_rmr_bind(rmr, theirs.lmr, PLACE_SEGMENT(&theirs, 1024, 256),
			      DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA, p.b.ep, COOKIE(1),
			      DEFAULT, &target.rmr_context));
	EVENT(p.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
	fill(p.a.mem.at, 64, 8);
	OK(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(2), &target,
				  DEFAULT));
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	HOLDS(place_is_filled(&theirs, 1024, 64, 8));
}

/* --- life ---------------------------------------------------------------------------------------- */

TEST("DM-20", an_ia_with_device_memory_is_in_use)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE other = open_ia(&async);
	DAT_DM_HANDLE dm;

	needs_attr(DAT_DM_ATTR_SIZE);
	OK(dat_dm_alloc(other, 64, 0, &dm));
	FAILS(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE);
	OK(dat_dm_free(dm));
	OK(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST("DM-20", an_abrupt_close_frees_device_memory)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_VLEN size = dm_size();
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_DM_HANDLE dm;

	for (int i = 0; i < 3; i++) {
		DAT_IA_HANDLE other = open_ia(&async);

		OK(dat_pz_create(other, &pz));
		OK(dat_dm_alloc(other, size, 0, &dm));
		OK(lmr_of(dm, 0, 64, pz, &lmr));
		OK(dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
		async = DAT_HANDLE_NULL;
	}
}

/* Allocates, registers, copies and frees. Fails if it finds data of another thread. */
static void use_memory(void *arg, int me)
{
	DAT_PZ_HANDLE pz = *(DAT_PZ_HANDLE *)arg;
	char data[256];

	for (int i = 0; i < 20; i++) {
		DAT_DM_HANDLE dm;
		DAT_LMR_HANDLE lmr;

		OK(dat_dm_alloc(ia(), 256, 0, &dm));
		OK(dat_dm_copy_from(dm, 0, data, 256));
		HOLDS(is_zero(data, 256));
		OK(lmr_of(dm, 0, 256, pz, &lmr));
		fill(data, 256, me * 100 + i);
		OK(dat_dm_copy_to(dm, 0, data, 256));
		memset(data, 0, 256);
		OK(dat_dm_copy_from(dm, 0, data, 256));
		HOLDS(is_filled(data, 256, me * 100 + i));
		FAILS(dat_dm_free(dm), DAT_INVALID_STATE | DAT_INVALID_STATE_LMR_IN_USE);
		OK(dat_lmr_free(lmr));
		OK(dat_dm_free(dm));
	}
}

TEST("DM-21", sixty_four_threads_use_device_memory)
{
	DAT_PZ_HANDLE pz = a_pz();

	needs_attr(DAT_DM_ATTR_SIZE);
	crew(MAX_CREW, use_memory, &pz);
}
