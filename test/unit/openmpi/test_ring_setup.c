/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ring_setup.c - eager rings: which peers get one and how large it is, which offers are accepted, and what is
 * freed. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/memory.h"
#include "contrib/openmpi/ring.h"
#include "contrib/openmpi/ring_setup.h"
#include "test/unit/unit.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* A ring that a peer may offer. */
static const struct udapl_ring_offer good = { .address = 0x10000, .rmr_context = 77,
					      .shape = { .size = 8192, .largest = 1152 } };

static int lmrs_of_lists;

/* A list of fragments for control messages registers memory when the first is taken. */
static int begin(void **state)
{
	btl_begin(state);
	opal_free_list_return(&module.control_frags, opal_free_list_get(&module.control_frags));
	lmrs_of_lists = lmrs;
	return 0;
}

static int end(void **state)
{
	udapl_memory_free(&conn->ring_in.memory);
	udapl_memory_free(&conn->ring_out.staging);
	return btl_end(state);
}

static const struct udapl_ring_offer *sent_offer(void)
{
	assert_int_equal(num_posts, 1);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_RING_OFFER);
	assert_int_equal(posts[0].local.segment_length, sizeof(struct udapl_header) + sizeof(struct udapl_ring_offer));
	return (const struct udapl_ring_offer *)(sent_header(&posts[0]) + 1);
}

#define CASE(name) UNIT_TEST_WITH(name, begin, end)

/* --- incoming ring ----------------------------------------------------------------------------- */

CASE(offer_names_memory_that_is_polled)
{
	struct udapl_ring_in *r = &conn->ring_in;
	const struct udapl_ring_offer *offer;

	LOCKED(udapl_ring_offer(conn));
	offer = sent_offer();
	assert_true(r->offered);
	assert_int_equal(offer->address, (uintptr_t)r->memory.base);
	assert_int_equal(offer->rmr_context, r->memory.rmr_context);
	assert_int_equal(offer->shape.size, r->shape.size);
	assert_int_equal(offer->shape.largest, r->shape.largest);
	assert_true(lmr_privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	assert_ptr_equal(module.rings[0], conn);
	assert_int_equal(module.num_rings, 1);
	assert_int_equal(r->cursor.end, r->shape.size);
	assert_int_equal(r->cursor.lap, 1);
	assert_ptr_equal(r->ctl, r->memory.base + r->shape.size);
	assert_true(r->memory.size >= r->shape.size + sizeof *r->ctl);
}

static opal_proc_t near = { .proc_flags = OPAL_PROC_ON_NODE | OPAL_PROC_ON_HOST };
static opal_proc_t far = { .proc_flags = OPAL_PROC_ON_CLUSTER };

static void expect_room(int messages)
{
	const struct udapl_ring_shape *shape = &conn->ring_in.shape;

	assert_int_equal(shape->size, messages * shape->largest);
	assert_true(conn->ring_in.memory.size >= shape->size + sizeof *conn->ring_in.ctl);
	assert_int_equal(sent_offer()->shape.size, shape->size);
}

CASE(ring_holds_messages_of_the_eager_limit)
{
	struct udapl_ring_shape *shape = &conn->ring_in.shape;

	peer->proc = &near;
	LOCKED(udapl_ring_offer(conn));
	assert_int_equal(shape->largest % UDAPL_CACHE_LINE, 0);
	assert_true(shape->largest >= module.super.btl_eager_limit + UDAPL_MESSAGE_OVERHEAD);
	assert_true(shape->largest < module.super.btl_eager_limit + UDAPL_MESSAGE_OVERHEAD + UDAPL_CACHE_LINE);
	expect_room(mca_btl_udapl_component.eager_messages);
}

static void first_ring_is_small(opal_proc_t *proc)
{
	mca_btl_udapl_component.eager_messages = UDAPL_RING_LATER * 10;
	peer->proc = proc;
	LOCKED(udapl_ring_offer(conn));
	expect_room(10);
}

CASE(first_ring_of_another_host_is_small) { first_ring_is_small(&far); }

CASE(first_ring_of_an_unknown_process_is_small) { first_ring_is_small(NULL); }

CASE(later_rings_are_smaller)
{
	mca_btl_udapl_component.eager_messages = UDAPL_RING_LATER * 10;
	peer->proc = &near;
	module.rings[0] = conn;		/* another connection */
	module.num_rings = 1;
	LOCKED(udapl_ring_offer(conn));
	assert_ptr_equal(module.rings[1], conn);
	assert_int_equal(module.num_rings, 2);
	expect_room(5);
}

/* Memory that is no file is not mapped by the peer. */
CASE(ring_beyond_the_limit_of_files_is_small)
{
	struct rlimit before, limit;

	mca_btl_udapl_component.eager_messages = UDAPL_RING_LATER * 10;
	peer->proc = &near;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)mca_btl_udapl_component.eager_messages * module.super.btl_eager_limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	LOCKED(udapl_ring_offer(conn));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(lmr_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
	expect_room(10);
}

static int registrations_to_refuse;

static void refuse_some(void)
{
	lmr_create_result = registrations_to_refuse-- > 0 ? UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE)
							  : DAT_SUCCESS;
}

CASE(large_ring_that_cannot_be_registered_is_small)
{
	mca_btl_udapl_component.eager_messages = UDAPL_RING_LATER * 10;
	peer->proc = &near;
	registrations_to_refuse = 2;	/* as shared memory, as ordinary memory */
	during_lmr_create = refuse_some;
	LOCKED(udapl_ring_offer(conn));
	assert_int_equal(lmrs, lmrs_of_lists + 1);
	expect_room(10);
}

CASE(ring_has_room_for_a_few_messages)
{
	mca_btl_udapl_component.eager_messages = UDAPL_RING_MIN_MESSAGES;
	module.rings[0] = conn;
	module.num_rings = 1;
	LOCKED(udapl_ring_offer(conn));
	assert_int_equal(conn->ring_in.shape.size, UDAPL_RING_MIN_MESSAGES * conn->ring_in.shape.largest);
}

/* 16 bits report the released slots. */
CASE(ring_has_no_more_slots_than_can_be_reported)
{
	mca_btl_udapl_component.eager_messages = 0x7fff;
	peer->proc = &near;
	LOCKED(udapl_ring_offer(conn));
	assert_int_equal(conn->ring_in.shape.size / UDAPL_RING_SLOT, UDAPL_RING_MAX_SLOTS);
	assert_int_equal(conn->ring_in.shape.size % UDAPL_CACHE_LINE, 0);
}

static void no_ring_is_offered(void)
{
	LOCKED(udapl_ring_offer(conn));
	assert_true(conn->ring_in.offered);	/* later messages do not try again */
	assert_null(conn->ring_in.memory.base);
	assert_int_equal(num_posts, 0);
	assert_int_equal(lmrs, lmrs_of_lists);
}

CASE(parameter_switches_rings_off)
{
	mca_btl_udapl_component.eager_rdma = false;
	no_ring_is_offered();
}

CASE(few_peers_get_a_ring)
{
	module.rings[0] = module.rings[1] = conn;
	module.num_rings = 2;
	no_ring_is_offered();
}

static udapl_conn_t other;

static void take_first_place(void)
{
	module.rings[0] = &other;
	module.num_rings = 1;
}

static void take_all_places(void)
{
	module.rings[0] = module.rings[1] = &other;
	module.num_rings = 2;
}

/* Another thread creates a ring while memory for this one is registered. */
CASE(place_is_taken_from_no_other_ring)
{
	during_lmr_create = take_first_place;
	LOCKED(udapl_ring_offer(conn));
	assert_ptr_equal(module.rings[0], &other);
	assert_ptr_equal(module.rings[1], conn);
	assert_int_equal(module.num_rings, 2);
	assert_int_equal(num_posts, 1);
}

CASE(ring_without_a_place_is_freed)
{
	during_lmr_create = take_all_places;
	no_ring_is_offered();
	assert_ptr_equal(module.rings[0], &other);
	assert_ptr_equal(module.rings[1], &other);
}

CASE(memory_that_cannot_be_registered_is_no_ring)
{
	lmr_create_result = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	no_ring_is_offered();
	assert_null(module.rings[0]);
}

CASE(unestablished_connection_offers_later)
{
	conn->state = UDAPL_CONN_ACCEPTED;
	LOCKED(udapl_ring_offer(conn));
	assert_false(conn->ring_in.offered);
	assert_null(conn->ring_in.memory.base);
}

/* The same ring is offered when a slot of the send queue is free. */
CASE(offer_without_a_free_slot_is_repeated)
{
	char *base;

	conn->control_free = 1;
	LOCKED(udapl_ring_offer(conn));
	base = conn->ring_in.memory.base;
	assert_non_null(base);
	assert_false(conn->ring_in.offered);
	assert_int_equal(num_posts, 0);
	conn->control_free = 2;
	LOCKED(udapl_ring_offer(conn));
	assert_true(conn->ring_in.offered);
	assert_int_equal(sent_offer()->address, (uintptr_t)base);
	assert_null(module.rings[1]);
}

CASE(device_without_shared_memory_gets_a_small_ring)
{
	lmr_refused_type = DAT_MEM_TYPE_SHARED_VIRTUAL;
	mca_btl_udapl_component.eager_messages = UDAPL_RING_LATER * 10;
	peer->proc = &near;
	LOCKED(udapl_ring_offer(conn));
	assert_int_equal(lmrs, lmrs_of_lists + 1);
	expect_room(10);
	assert_int_equal(lmr_type, DAT_MEM_TYPE_VIRTUAL);
}

CASE(freed_place_is_used_again)
{
	LOCKED(udapl_ring_offer(conn));
	udapl_ring_free(conn);
	assert_null(module.rings[0]);
	assert_int_equal(module.num_rings, 1);
	assert_null(conn->ring_in.memory.base);
	assert_int_equal(lmrs, lmrs_of_lists);
	module.rings[1] = conn;
	module.num_rings = 2;
	LOCKED(udapl_ring_offer(conn));
	assert_ptr_equal(module.rings[0], conn);
	assert_int_equal(module.num_rings, 2);
}

/* --- outgoing ring ----------------------------------------------------------------------------- */

CASE(ring_that_cannot_be_mapped_is_staged)
{
	struct udapl_ring_out *r = &conn->ring_out;

	LOCKED(udapl_ring_accept(conn, &good));
	assert_null(r->ctl);
	assert_ptr_equal(r->buffer, r->staging.base);
	assert_int_equal(r->staging.size, good.shape.size);
	assert_false(lmr_privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	assert_int_equal(r->free_slots, good.shape.size / UDAPL_RING_SLOT);
	assert_int_equal(r->max_payload, good.shape.largest - UDAPL_MESSAGE_OVERHEAD);
	assert_int_equal(r->cursor.end, good.shape.size);
	assert_int_equal(r->cursor.lap, 1);
	assert_int_equal(r->work.kind, UDAPL_STAGED);
	assert_ptr_equal(r->work.conn, conn);
	udapl_ring_free(conn);
	assert_int_equal(lmrs, lmrs_of_lists);
}

CASE(ring_of_a_peer_on_this_host_is_mapped)
{
	static _Alignas(UDAPL_CACHE_LINE) char memory[8192 + sizeof(struct udapl_ring_ctl)];
	struct udapl_ring_out *r = &conn->ring_out;

	mapping = memory;
	LOCKED(udapl_ring_accept(conn, &good));
	assert_ptr_equal(r->buffer, memory);
	assert_ptr_equal(r->ctl, memory + 8192);
	assert_int_equal(r->ctl->mapped, 1);
	assert_null(r->staging.base);
	assert_int_equal(mapped_range.virtual_address, good.address);
	assert_int_equal(mapped_range.rmr_context, good.rmr_context);
	assert_int_equal(mapped_range.segment_length, sizeof memory);
}

/* Whether page tables of this process have the page; -1: that cannot be found. */
static int is_present(const char *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = pread(fd, &entry, sizeof entry, (uintptr_t)at / sysconf(_SC_PAGESIZE) * sizeof entry);
	close(fd);
	return n == sizeof entry ? (int)(entry >> 63) : -1;
}

/* The mapping begins within a page, as that of a region does. */
CASE(mapped_ring_is_present_before_the_first_message)
{
	size_t page = sysconf(_SC_PAGESIZE), size = 8 * page;
	struct udapl_ring_offer offer = good;
	int fd = memfd_create("test", MFD_CLOEXEC);
	char *pages;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	close(fd);
	if (madvise(pages, page, 23) || is_present(pages) != 1)
		skip();		/* Linux before 5.14 */
	mapping = pages + page + UDAPL_CACHE_LINE;
	offer.shape.size = 4 * page;
	LOCKED(udapl_ring_accept(conn, &offer));
	for (int i = 1; i < 6; i++)
		assert_int_equal(is_present(pages + i * page), 1);
	assert_int_equal(is_present(pages + 6 * page), 0);
	munmap(pages, size);
}

/* Messages may be under way to the first one. */
CASE(second_offer_is_ignored)
{
	struct udapl_ring_offer second = good;
	int registered;

	LOCKED(udapl_ring_accept(conn, &good));
	registered = lmrs;
	conn->ring_out.free_slots = 3;
	second.address += 0x10000;
	LOCKED(udapl_ring_accept(conn, &second));
	assert_int_equal(conn->ring_out.offer.address, good.address);
	assert_int_equal(conn->ring_out.free_slots, 3);
	assert_int_equal(lmrs, registered);
}

/* Fragments are written into the ring even if nothing can be staged. */
CASE(ring_is_used_without_a_staging_buffer)
{
	lmr_create_result = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	LOCKED(udapl_ring_accept(conn, &good));
	assert_null(conn->ring_out.buffer);
	assert_true(udapl_ring_takes_posts(conn, 100));
}

CASE(offers_of_another_shape_are_ignored)
{
	static const struct udapl_ring_shape bad[] = {
		{ 0, 0 },
		{ 8192, 0 },
		{ 8192, 64 },		/* nothing fits beside the overhead */
		{ 8192, 1152 + 32 },	/* no multiple of a line */
		{ 8192 + 32, 1152 },
		{ 1152, 1152 + 64 },	/* smaller than a message */
		{ (UDAPL_RING_MAX_SLOTS + 2) * UDAPL_RING_SLOT, 1152 },	/* more slots than are reported */
		{ UINT32_MAX & ~63u, 1152 },
	};
	struct udapl_ring_offer offer = good;

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		offer.shape = bad[i];
		LOCKED(udapl_ring_accept(conn, &offer));
		if (conn->ring_out.max_payload || conn->ring_out.buffer)
			fail_msg("shape %u is accepted", i);
	}
	assert_int_equal(lmrs, lmrs_of_lists);
}

/* The length field of a tail has 16 bits. */
CASE(longest_message_has_65535_bytes)
{
	struct udapl_ring_offer offer = good;

	offer.shape = (struct udapl_ring_shape){ 1 << 20, 1 << 17 };
	LOCKED(udapl_ring_accept(conn, &offer));
	assert_int_equal(conn->ring_out.max_payload, UINT16_MAX);
}

UNIT_MAIN(NULL, NULL)
