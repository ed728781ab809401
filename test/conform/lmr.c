/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lmr.c - registered memory: its attributes, its kinds, and that rights are enforced. */
#include "actors.h"
#include "pair.h"
#include "place.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

TEST("LMR-1", registered_memory_covers_what_was_asked)
{
	struct end end = AN_END();
	char *at = some_memory(8192) + 100;	/* any alignment */
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	DAT_LMR_CONTEXT context = 0;
	DAT_VLEN size = 0;
	DAT_VADDR address_ = 0;

	OK(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){ .for_va = at }, 1000,
			  end.pz, LOCAL_RIGHTS, DAT_VA_TYPE_VA, &lmr, &context, NULL, &size, &address_));
	HOLDS(lmr != DAT_HANDLE_NULL);
	HOLDS(address_ <= (uintptr_t)at);
	HOLDS(address_ + size >= (uintptr_t)at + 1000);

	DAT_LMR_TRIPLET whole = { .virtual_address = (uintptr_t)at, .segment_length = 1000,
				  .lmr_context = context };
	struct end other = AN_END();
	connect_ends(&other, &end);
	OK(dat_ep_post_recv(end.ep, 1, &whole, COOKIE(1), DAT_COMPLETION_DEFAULT_FLAG));
	fill(other.mem.at, 1000, 1);
	post_send(&other, 0, 1000, 2);
	COMPLETES(end.recv, 1, DAT_DTO_SUCCESS);
	HOLDS(is_filled(at, 1000, 1));
}

TEST("LMR-2", without_remote_rights_there_is_no_rmr_context)
{
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT context = 77;

	OK(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL,
			  (DAT_REGION_DESCRIPTION){ .for_va = some_memory(4096) }, 4096, a_pz(),
			  LOCAL_RIGHTS, DAT_VA_TYPE_VA, &lmr, NULL, &context, NULL, NULL));
	EQUAL(context, 0);
}

TEST("LMR-3", with_remote_rights_the_peer_has_access)
{
	struct pair p = CONNECTED_PAIR();

	HOLDS(p.b.mem.remote != 0);
	fill(p.a.mem.at, 100, 1);
	post_write(&p.a, 0, 100, &p.b.mem, 200, 1);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	post_read(&p.a, 300, 100, &p.b.mem, 200, 2);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	HOLDS(is_filled(p.a.mem.at + 300, 100, 1));
}

TEST("LMR-4", memory_of_no_length_is_not_registered)
{
	DAT_LMR_HANDLE lmr;

	/* dapltest wants LENGTH_ERROR: see DOUBTS.md */
	FAILS(register_memory(some_memory(4096), 0, a_pz(), LOCAL_RIGHTS, &lmr),
	      DAT_LENGTH_ERROR);
}

TEST("LMR-5", memory_beyond_max_lmr_block_size_is_not_registered)
{
	DAT_LMR_HANDLE lmr;
	DAT_VLEN too_much = (DAT_VLEN)ia_attr()->max_lmr_block_size + 1;

	FAILS(register_memory(some_memory(4096), too_much, a_pz(), LOCAL_RIGHTS, &lmr),
	      DAT_INVALID_PARAMETER, DAT_INSUFFICIENT_RESOURCES);
}

TEST("LMR-6", only_the_handle_of_an_lmr_is_a_necessary_answer)
{
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;

	OK(register_memory(some_memory(4096), 4096, a_pz(), ALL_RIGHTS, &lmr));
	HOLDS(lmr != DAT_HANDLE_NULL);
}

TEST("LMR-7", lmr_create_wants_room_for_the_handle)
{
	FAILS(register_memory(some_memory(4096), 4096, a_pz(), LOCAL_RIGHTS, NULL),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG8);
}

TEST("LMR-8", memory_is_registered_in_a_pz)
{
	DAT_LMR_HANDLE lmr;

	FAILS(register_memory(some_memory(4096), 4096, DAT_HANDLE_NULL, LOCAL_RIGHTS, &lmr),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
}

TEST("LMR-9", memory_of_unknown_type_is_not_registered)
{
	DAT_LMR_HANDLE lmr;

	FAILS(dat_lmr_create(ia(), (DAT_MEM_TYPE)9,
			     (DAT_REGION_DESCRIPTION){ .for_va = some_memory(4096) }, 4096, a_pz(),
			     LOCAL_RIGHTS, DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2, DAT_MODEL_NOT_SUPPORTED);
}

static void needs_mem_type(DAT_MEM_TYPE type)
{
	if (!(provider_attr()->lmr_mem_types_supported & type))
		skip("lmr_mem_types_supported is 0x%x, without 0x%x",
		     provider_attr()->lmr_mem_types_supported, type);
}

TEST("LMR-10", an_lmr_of_an_lmr_is_the_same_memory)
{
	needs_mem_type(DAT_MEM_TYPE_LMR);
	struct pair p = CONNECTED_PAIR();
	struct region first = a_region(a_pz(), 4096, LOCAL_RIGHTS), second = first;

	/* Another PZ, other rights; a length that is no length. */
	OK(dat_lmr_create(ia(), DAT_MEM_TYPE_LMR, (DAT_REGION_DESCRIPTION){ .for_lmr_handle = first.lmr },
			  1, p.b.pz, ALL_RIGHTS, DAT_VA_TYPE_VA, &second.lmr, &second.local,
			  &second.remote, NULL, NULL));
	HOLDS(second.lmr != first.lmr);
	fill(p.a.mem.at, 4096, 1);
	post_write(&p.a, 0, 4096, &second, 0, 1);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	post_read(&p.a, 8192, 4096, &second, 0, 2);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	HOLDS(is_filled(first.at, 4096, 1));
}

/* --- memory shared by two processes ---------------------------------------------------- */

static struct region a_shared_region(char *at, DAT_VLEN size, char *cookie, DAT_PZ_HANDLE pz)
{
	struct region region = { .at = at, .size = size };
	DAT_SHARED_MEMORY shared = { .virtual_address = at, .shared_memory_id = (DAT_LMR_COOKIE)cookie };

	OPTIONAL(dat_lmr_create(ia(), DAT_MEM_TYPE_SHARED_VIRTUAL,
				(DAT_REGION_DESCRIPTION){ .for_shared_memory = shared }, size, pz,
				ALL_RIGHTS, DAT_VA_TYPE_VA, &region.lmr, &region.local, &region.remote,
				NULL, NULL));
	return region;
}

static char *shared_memory(int fd)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		fail("no shared memory for the test");
	return at;
}

static void register_it_too(struct peer *self, void *fd)
{
	char cookie[DAT_LMR_COOKIE_SIZE];
	char done = 1;

	memset(cookie, 'c', sizeof(cookie));
	a_shared_region(shared_memory(*(int *)fd), 4096, cookie, a_pz());
	tell(self, &done, 1);
	hear(self, &done, 1);	/* registered in both at once */
	OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
}

TEST("LMR-11", shared_memory_is_told_apart_by_all_40_bytes_of_its_cookie)
{
	int fd = memfd_create("shared", MFD_CLOEXEC), other_fd = memfd_create("other", MFD_CLOEXEC);
	char cookie[DAT_LMR_COOKIE_SIZE], other_cookie[DAT_LMR_COOKIE_SIZE], done;

	if (ftruncate(fd, 4096) || ftruncate(other_fd, 4096))
		fail("no shared memory for the test");
	memset(cookie, 'c', sizeof(cookie));
	memcpy(other_cookie, cookie, sizeof(cookie));
	other_cookie[39] = 'd';
	struct peer peer = a_peer(register_it_too, &fd);

	needs_mem_type(DAT_MEM_TYPE_SHARED_VIRTUAL);
	struct pair p = CONNECTED_PAIR();
	struct region mine = a_shared_region(shared_memory(fd), 4096, cookie, p.b.pz);
	struct region other = a_shared_region(shared_memory(other_fd), 4096, other_cookie, p.b.pz);
	hear(&peer, &done, 1);
	fill(p.a.mem.at, 4096, 1);
	fill(p.a.mem.at + 4096, 4096, 2);
	post_write(&p.a, 0, 4096, &mine, 0, 1);
	post_write(&p.a, 4096, 4096, &other, 0, 2);
	post_read(&p.a, 8192, 64, &other, 0, 3);	/* the writes are there when it's done */
	for (int i = 1; i <= 3; i++)
		COMPLETES(p.a.request, i, DAT_DTO_SUCCESS);
	HOLDS(is_filled(shared_memory(fd), 4096, 1));
	HOLDS(is_filled(shared_memory(other_fd), 4096, 2));
	tell(&peer, &done, 1);
	expect_peer_done(&peer);
}

TEST("LMR-12", zero_based_addresses_need_zb_supported)
{
	DAT_LMR_HANDLE lmr;
	bool supported = ia_attr()->zb_supported;

	if (supported)
		skip("zb_supported is true");
	FAILS(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL,
			     (DAT_REGION_DESCRIPTION){ .for_va = some_memory(4096) }, 4096, a_pz(),
			     LOCAL_RIGHTS, DAT_VA_TYPE_ZB, &lmr, NULL, NULL, NULL, NULL),
	      DAT_MODEL_NOT_SUPPORTED);
}

TEST("LMR-13", an_lmr_tells_how_it_was_created)
{
	DAT_PZ_HANDLE pz = a_pz();
	char *at = some_memory(8192);
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_VLEN size;
	DAT_VADDR where;
	DAT_LMR_PARAM param;

	OK(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){ .for_va = at }, 5000, pz,
			  ALL_RIGHTS, DAT_VA_TYPE_VA, &lmr, &local, &remote, &size, &where));
	memset(&param, 0xee, sizeof(param));
	OK(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	EQUAL(param.ia_handle, ia());
	EQUAL(param.mem_type, DAT_MEM_TYPE_VIRTUAL);
	EQUAL(param.region_desc.for_va, at);
	EQUAL(param.length, 5000);
	EQUAL(param.pz_handle, pz);
	EQUAL(param.mem_priv, ALL_RIGHTS);
	EQUAL(param.va_type, DAT_VA_TYPE_VA);
	EQUAL(param.lmr_context, local);
	EQUAL(param.rmr_context, remote);
	EQUAL(param.registered_size, size);
	EQUAL(param.registered_address, where);
}

TEST("LMR-14", an_lmr_has_eleven_fields)
{
	DAT_LMR_PARAM param;
	struct region region = a_region(a_pz(), 4096, LOCAL_RIGHTS);

	FAILS(dat_lmr_query(region.lmr, (DAT_LMR_PARAM_MASK)0x800, &param),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("LMR-15", an_lmr_with_a_bound_rmr_is_in_use)
{
	needs_rmr();
	struct pair p = CONNECTED_PAIR();
	struct region region = a_region(p.a.pz, 4096, ALL_RIGHTS);
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;

	OK(dat_rmr_create(p.a.pz, &rmr));
	OK(dat_rmr_bind(rmr, region.lmr, SEGMENT(&region, 0, 4096), DAT_MEM_PRIV_REMOTE_READ_FLAG,
			DAT_VA_TYPE_VA, p.a.ep, COOKIE(1), DAT_COMPLETION_DEFAULT_FLAG, &context));
	EVENT(p.a.request, DAT_RMR_BIND_COMPLETION_EVENT);
	FAILS(dat_lmr_free(region.lmr), DAT_INVALID_STATE | DAT_INVALID_STATE_LMR_IN_USE);
	OK(dat_rmr_free(rmr));
	OK(dat_lmr_free(region.lmr));
}

static void expect_freed_is_not_sent(uint32_t length)
{
	struct pair p = CONNECTED_PAIR();
	struct region region = a_region(p.a.pz, 4096, ALL_RIGHTS);

	post_recv(&p.b, 0, 4096, 1);
	OK(dat_lmr_free(region.lmr));
	AT("dat_ep_post_send with the freed LMR's context");
	DAT_RETURN ret = dat_ep_post_send(p.a.ep, 1, SEGMENT(&region, 0, length), COOKIE(2),
					  DAT_COMPLETION_DEFAULT_FLAG);
	if (ret == DAT_SUCCESS && may_be_inlined(length))
		EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
	else if (ret == DAT_SUCCESS)
		COMPLETES(p.a.request, 2, device_is("rxe") ? DAT_DTO_ERR_LOCAL_EP :
			  DAT_DTO_ERR_LOCAL_PROTECTION);
	else
		FAILS(ret, DAT_PRIVILEGES_VIOLATION, DAT_PROTECTION_VIOLATION, DAT_INVALID_PARAMETER);
}

TEST("LMR-16", a_freed_lmr_does_not_work_for_local_use)
{
	for (int i = 0; i < INLINE_LENGTHS; i++)
		expect_freed_is_not_sent(inline_lengths[i]);
}

TEST("LMR-17", memory_is_synchronised_on_request)
{
	struct region region = a_region(a_pz(), 4096, ALL_RIGHTS);

	OK(dat_lmr_sync_rdma_read(ia(), SEGMENT(&region, 100, 200), 1));
	OK(dat_lmr_sync_rdma_write(ia(), SEGMENT(&region, 100, 200), 1));
}

TEST("LMR-18", memory_outside_an_lmr_is_not_synchronised)
{
	struct region region = a_region(a_pz(), 4096, ALL_RIGHTS);

	FAILS(dat_lmr_sync_rdma_read(ia(), SEGMENT(&region, 4000, 65536), 1), DAT_INVALID_PARAMETER);
}

/* The peer's access must fail, and end the connection. */
static void expect_refused(struct pair *p, uint64_t cookie)
{
	COMPLETES(p->a.request, cookie, DAT_DTO_ERR_REMOTE_ACCESS);
	ENDS(p->a.conn);
	ENDS(p->b.conn);
}

TEST("LMR-19", a_freed_lmr_does_not_work_for_the_peer)
{
	struct pair p = CONNECTED_PAIR();
	struct region region = a_region(p.b.pz, 4096, ALL_RIGHTS);

	OK(dat_lmr_free(region.lmr));
	post_read(&p.a, 0, 100, &region, 0, 1);
	expect_refused(&p, 1);
}

TEST("LMR-20", an_lmr_of_another_pz_does_not_work_for_the_peer)
{
	struct pair p = CONNECTED_PAIR();
	struct region region = a_region(a_pz(), 4096, ALL_RIGHTS);

	post_read(&p.a, 0, 100, &region, 0, 1);
	expect_refused(&p, 1);
}

TEST("LMR-21", the_peer_does_not_write_where_it_may_only_read)
{
	struct pair p = CONNECTED_PAIR();
	struct region region = a_region(p.b.pz, 4096, (DAT_MEM_PRIV_FLAGS)(LOCAL_RIGHTS |
						      DAT_MEM_PRIV_REMOTE_READ_FLAG));

	fill(p.a.mem.at, 100, 1);
	post_write(&p.a, 0, 100, &region, 0, 1);
	expect_refused(&p, 1);
	HOLDS(is_zero(region.at, 100));
}

/* --- addresses that count from 0 ---------------------------------------------------------- */

TEST("LMR-22", a_zero_based_lmr_tells_so)
{
	DAT_PZ_HANDLE pz = a_pz();
	DAT_LMR_PARAM param;
	struct place place = a_host_place(pz);

	OK(dat_lmr_query(place.lmr, DAT_LMR_FIELD_ALL, &param));
	EQUAL(param.va_type, DAT_VA_TYPE_ZB);
	EQUAL(param.registered_address, 0);
	EQUAL(param.registered_size, PLACE_SIZE);
	EQUAL(param.region_desc.for_va, place.at);
}

/* The endpoints exist before: until then they may send data inline. */
TEST("LMR-23", existing_endpoints_use_a_zero_based_lmr)
{
	struct pair p = CONNECTED_PAIR();
	struct place mine, theirs;

	WORKS(p.a, p.b);
	mine = a_host_place(p.a.pz);
	theirs = a_host_place(p.b.pz);
	expect_transfers(&p, &mine, &theirs);
	WORKS(p.a, p.b);
}

TEST("LMR-23", later_endpoints_use_a_zero_based_lmr)
{
	DAT_PZ_HANDLE pz = a_pz();
	struct place place = a_host_place(pz);
	struct pair p = CONNECTED_PAIR(.pz = pz);

	expect_transfers(&p, &place, &place);
	WORKS(p.a, p.b);
}

TEST("LMR-23", an_endpoint_that_moves_to_the_pz_uses_a_zero_based_lmr)
{
	DAT_PZ_HANDLE pz = a_pz();
	struct place mine = a_host_place(pz), theirs;
	struct end a = AN_END(), b = AN_END();
	DAT_EP_PARAM param = { .pz_handle = pz };

	OK(dat_ep_modify(a.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	a.pz = pz;
	a.mem = a_region(pz, END_MEMORY, ALL_RIGHTS);
	connect_ends(&a, &b);
	struct pair p = { a, b };

	theirs = a_host_place(b.pz);
	expect_transfers(&p, &mine, &theirs);
}

TEST("LMR-24", the_peer_does_not_reach_beyond_a_zero_based_lmr)
{
	struct pair p = CONNECTED_PAIR();
	struct place theirs = a_host_place(p.b.pz);

	OK(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(1),
				  PLACE_TARGET(&theirs, PLACE_SIZE - 60, 64),
				  DAT_COMPLETION_DEFAULT_FLAG));
	expect_refused(&p, 1);
}

TEST("LMR-24", the_peer_does_not_use_pointers_into_a_zero_based_lmr)
{
	struct pair p = CONNECTED_PAIR();
	struct place theirs = a_host_place(p.b.pz);

	OK(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(1),
				  PLACE_TARGET(&theirs, (uintptr_t)theirs.at, 64),
				  DAT_COMPLETION_DEFAULT_FLAG));
	expect_refused(&p, 1);
}

TEST("LMR-25", a_zero_based_lmr_is_synchronised_by_its_addresses)
{
	struct place place = a_host_place(a_pz());

	OK(dat_lmr_sync_rdma_write(ia(), PLACE_SEGMENT(&place, 0, PLACE_SIZE), 1));
	FAILS(dat_lmr_sync_rdma_write(ia(), PLACE_SEGMENT(&place, 8, PLACE_SIZE), 1),
	      DAT_INVALID_PARAMETER);
}

/* RDMA devices register whole pages if addresses count from 0. */
TEST("LMR-26", a_zero_based_lmr_within_a_page_works_or_is_not_supported)
{
	struct pair p = CONNECTED_PAIR();
	char *at = some_memory(8192) + 100;
	DAT_RMR_TRIPLET target = { .virtual_address = 10, .segment_length = 64 };
	DAT_LMR_HANDLE lmr;

	OPTIONAL(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL,
				(DAT_REGION_DESCRIPTION){ .for_va = at }, 100, p.b.pz, ALL_RIGHTS,
				DAT_VA_TYPE_ZB, &lmr, NULL, &target.rmr_context, NULL, NULL));
	post_recv(&p.b, 0, 64, 2);
	fill(p.a.mem.at, 64, 1);
	OK(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(1), &target,
				  DAT_COMPLETION_DEFAULT_FLAG));
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	post_send(&p.a, 0, 64, 3);	/* an iWARP write is placed before the message behind it */
	COMPLETES(p.b.recv, 2, DAT_DTO_SUCCESS);
	HOLDS(is_filled(at + 10, 64, 1));
	HOLDS(is_zero(at, 10));
	HOLDS(is_zero(at + 74, 26));
}
