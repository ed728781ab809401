/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_frag.c - descriptors: from which list they come, how much they hold, and what is packed into them. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/frag.h"
#include "test/unit/unit.h"

static udapl_frag_t *alloc(size_t size)
{
	return (udapl_frag_t *)udapl_alloc(&module.super, peer, MCA_BTL_NO_ORDER, size, 77);
}

#define CASE(name) UNIT_TEST_WITH(name, btl_begin, btl_end)

CASE(descriptor_has_room_for_header_payload_and_tail)
{
	static const size_t sizes[] = { 0, 1, 1000, 1001, 4000 };

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		udapl_frag_t *f = alloc(sizes[i]);

		assert_non_null(f);
		assert_ptr_equal(f->endpoint, peer);
		assert_ptr_equal(f->segment.seg_addr.pval, f->header + 1);
		assert_int_equal(f->segment.seg_len, sizes[i]);
		assert_ptr_equal(f->base.des_segments, &f->segment);
		assert_int_equal(f->base.des_segment_count, 1);
		assert_int_equal(f->base.des_flags, 77);
		assert_int_equal(f->base.order, MCA_BTL_NO_ORDER);
		assert_int_equal(f->work.kind, UDAPL_SEND);
		assert_int_not_equal(f->lmr_context, 0);
		memset(f->header, 1, sizeof *f->header + sizes[i] + UDAPL_TAIL_ROOM);	/* the sanitizers look */
		udapl_free(&module.super, &f->base);
	}
}

CASE(short_message_has_a_short_buffer)
{
	udapl_frag_t *eager = alloc(1000), *max = alloc(1001);

	assert_ptr_equal(eager->list, &module.eager_frags);
	assert_int_equal(eager->capacity, 1000);
	assert_ptr_equal(max->list, &module.max_frags);
	assert_int_equal(max->capacity, 4000);
	udapl_free(&module.super, &max->base);
	udapl_free(&module.super, &eager->base);
	assert_ptr_equal(alloc(1), eager);	/* each is back in its list */
	assert_ptr_equal(alloc(4000), max);
}

CASE(longer_message_than_the_largest_gets_none)
{
	assert_null(alloc(4001));
}

CASE(list_that_cannot_grow_gives_none)
{
	cache_refusals = 100;
	assert_null(alloc(4000));
	cache_refusals = 0;
	assert_non_null(alloc(4000));
}

/* The registered buffers of the other lists. */
CASE(lists_have_buffers_for_their_messages)
{
	udapl_frag_t *control = (udapl_frag_t *)opal_free_list_get(&module.control_frags);
	udapl_frag_t *receive = (udapl_frag_t *)opal_free_list_get(&module.recv_frags);
	udapl_rdma_t *rdma = (udapl_rdma_t *)opal_free_list_get(&module.rdmas);

	assert_int_equal(control->work.kind, UDAPL_CONTROL);
	assert_true(control->capacity >= sizeof(struct udapl_ring_offer));
	assert_int_equal(receive->work.kind, UDAPL_RECEIVE);
	assert_int_equal(receive->capacity + sizeof *receive->header, module.message_size);
	assert_int_equal(rdma->work.kind, UDAPL_RDMA);
	assert_non_null(rdma->super.ptr);
}

/* --- data of programs -------------------------------------------------------------------------- */

static udapl_frag_t *prepare(const char *data, size_t reserve, size_t *size)
{
	opal_convertor_t conv = convertor_of(data, true);

	return (udapl_frag_t *)udapl_prepare_src(&module.super, peer, &conv, MCA_BTL_NO_ORDER, reserve, size, 0);
}

CASE(data_are_packed_behind_the_reserved_bytes)
{
	size_t size = 7;
	udapl_frag_t *f = prepare("payload", 20, &size);

	assert_non_null(f);
	assert_int_equal(size, 7);
	assert_int_equal(f->segment.seg_len, 27);
	assert_memory_equal((char *)(f->header + 1) + 20, "payload", 7);
}

/* The caller sends the rest later. */
CASE(data_are_cut_to_the_largest_message)
{
	static char data[5000];
	size_t size = sizeof data;
	udapl_frag_t *f;

	f = prepare(data, 100, &size);
	assert_int_equal(size, 3900);
	assert_int_equal(f->segment.seg_len, 4000);
	size = SIZE_MAX;
	f = prepare(data, 4000, &size);
	assert_int_equal(size, 0);
}

CASE(more_reserved_bytes_than_the_largest_message_get_none)
{
	size_t size = 1;

	assert_null(prepare("x", 4001, &size));
	assert_null(prepare("x", SIZE_MAX, &size));	/* no sum wraps */
	assert_int_equal(size, 1);
}

CASE(data_that_cannot_be_packed_keep_no_descriptor)
{
	udapl_frag_t *first = alloc(1);
	size_t size = 1;

	udapl_free(&module.super, &first->base);
	pack_result = -1;
	assert_null(prepare("x", 0, &size));
	assert_ptr_equal(alloc(1), first);
}

CASE(lists_that_were_not_made_are_not_freed)
{
	static mca_btl_udapl_module_t none;

	udapl_frags_fini(&none);
}

UNIT_MAIN(NULL, NULL)
