/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_completed.c - completions of what was sent: which slots they free, what is reported to Open MPI, which buffers
 * are freed, and which requests wait for the fate of their connection. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/completed.h"
#include "contrib/openmpi/frag.h"
#include "test/unit/unit.h"

static udapl_frag_t *f;
static int callbacks, status_of_callback;

static void on_sent(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, mca_btl_base_descriptor_t *des, int status)
{
	assert_ptr_equal(btl, &module.super);
	assert_ptr_equal(e, peer);
	assert_ptr_equal(des, &f->base);
	callbacks++;
	status_of_callback = status;
}

static udapl_frag_t *new_frag(void)
{
	udapl_frag_t *new = (udapl_frag_t *)udapl_alloc(&module.super, peer, MCA_BTL_NO_ORDER, 10, 0);

	new->base.des_cbfunc = on_sent;
	new->callback = true;
	new->work.conn = conn;
	return new;
}

/* A request of each kind is outstanding, so that no slot is free. */
UNIT_FIXTURE(begin)
{
	btl_begin(state);
	f = new_frag();
	conn->sq_free = conn->control_free = 0;
	conn->posted = 2;
	callbacks = 0;
	status_of_callback = 1;
}

/* Whether it is in its free list; if so, it is taken again. */
static bool is_free(udapl_frag_t *frag)
{
	opal_free_list_item_t *next = opal_free_list_get(frag->list);
	bool found = next == &frag->base.super;

	if (!found)
		opal_free_list_return(frag->list, next);
	return found;
}

static void slots_are(int sq_free, int control_free, int posted)
{
	assert_int_equal(conn->sq_free, sq_free);
	assert_int_equal(conn->control_free, control_free);
	assert_int_equal(conn->posted, posted);
}

static void message_waits(void)
{
	udapl_frag_t *waiting = new_frag();

	conn->credits = 1;
	opal_list_append(&peer->sends, &waiting->base.super.super);
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

CASE(fragment_is_reported_and_freed_as_its_owner_wants)
{
	static const struct { bool callback, function, btl_owned, closing, called, freed; } table[] = {
		{ .callback = true, .function = true, .called = true },
		{ .callback = true, .function = true, .btl_owned = true, .called = true, .freed = true },
		{ .callback = true, .btl_owned = true, .freed = true },
		{ .callback = true },
		{ .function = true, .freed = true },		/* it was reported as sent before */
		{ .function = true, .btl_owned = true, .freed = true },
		/* the component of the callback may already be unloaded */
		{ .callback = true, .function = true, .closing = true, .freed = true },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		f->callback = table[i].callback;
		f->base.des_cbfunc = table[i].function ? on_sent : NULL;
		f->base.des_flags = table[i].btl_owned ? MCA_BTL_DES_FLAGS_BTL_OWNERSHIP : 0;
		module.closing = table[i].closing;
		callbacks = 0;
		udapl_send_done(f, OPAL_ERR_UNREACH);
		if (callbacks != table[i].called || is_free(f) != table[i].freed)
			fail_msg("row %u: %d callbacks", i, callbacks);
		if (callbacks)
			assert_int_equal(status_of_callback, OPAL_ERR_UNREACH);
	}
}

/* --- messages ---------------------------------------------------------------------------------- */

CASE(sent_message_is_reported)
{
	udapl_send_completed(f, DAT_DTO_SUCCESS);
	slots_are(1, 0, 1);
	assert_int_equal(callbacks, 1);
	assert_int_equal(status_of_callback, OPAL_SUCCESS);
}

/* The close notification or the end of the connection decides. */
CASE(failed_message_waits_for_the_fate_of_its_connection)
{
	udapl_send_completed(f, DAT_DTO_ERR_FLUSHED);
	slots_are(1, 0, 1);
	assert_int_equal(callbacks, 0);
	assert_ptr_equal(opal_list_remove_first(&peer->flushed_sends), f);
	assert_false(is_free(f));
}

CASE(failed_message_that_was_reported_before_is_freed)
{
	f->callback = false;
	udapl_send_completed(f, DAT_DTO_ERR_FLUSHED);
	assert_true(opal_list_is_empty(&peer->flushed_sends));
	assert_int_equal(callbacks, 0);
	assert_true(is_free(f));
}

CASE(control_message_frees_a_slot_of_its_own)
{
	static const DAT_DTO_COMPLETION_STATUS statuses[] = { DAT_DTO_SUCCESS, DAT_DTO_ERR_FLUSHED };

	for (int i = 0; i < 2; i++) {
		f = (udapl_frag_t *)opal_free_list_get(&module.control_frags);
		f->endpoint = peer;
		f->work.conn = conn;
		f->callback = false;
		udapl_send_completed(f, statuses[i]);
		slots_are(0, i + 1, 1 - i);
		assert_true(opal_list_is_empty(&peer->flushed_sends));
		assert_true(is_free(f));
		opal_free_list_return(f->list, &f->base.super);
	}
	assert_int_equal(callbacks, 0);
}

CASE(control_slot_reports_credits_that_found_none)
{
	f = (udapl_frag_t *)opal_free_list_get(&module.control_frags);
	f->endpoint = peer;
	f->work.conn = conn;
	f->callback = false;
	conn->control_free = 1;		/* reserved for the close notification */
	conn->credits_to_return = mca_btl_udapl_component.credits / 2;
	udapl_send_completed(f, DAT_DTO_SUCCESS);
	assert_int_equal(num_posts, 1);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_CREDITS);
	assert_int_equal(sent_header(&posts[0])->credits, mca_btl_udapl_component.credits / 2);
}

CASE(free_slot_is_used_by_a_waiting_message)
{
	message_waits();
	udapl_send_completed(f, DAT_DTO_SUCCESS);
	assert_int_equal(num_posts, 1);
	assert_true(opal_list_is_empty(&peer->sends));
	slots_are(0, 0, 2);
}

/* --- staged writes and RDMA operations --------------------------------------------------------- */

CASE(staged_write_frees_the_slots_of_its_interval)
{
	enum { INTERVAL = 16 / UDAPL_SIGNALS_PER_QUEUE };	/* requests: see btl.c */

	udapl_staged_completed(conn);
	slots_are(INTERVAL, 0, 1);
	message_waits();
	udapl_staged_completed(conn);
	assert_int_equal(num_posts, 1);
	slots_are(2 * INTERVAL - 1, 0, 1);
}

static void on_rdma(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		    mca_btl_base_registration_handle_t *handle, void *context, void *data, int status)
{
	callbacks++;
	status_of_callback = status;
}

static udapl_rdma_t *new_rdma(void)
{
	udapl_rdma_t *r = (udapl_rdma_t *)opal_free_list_get(&module.rdmas);

	r->endpoint = peer;
	r->work.conn = conn;
	r->cbfunc = on_rdma;
	return r;
}

CASE(operation_is_reported)
{
	udapl_rdma_completed(new_rdma(), DAT_DTO_SUCCESS);
	slots_are(1, 0, 1);
	assert_int_equal(callbacks, 1);
	assert_int_equal(status_of_callback, OPAL_SUCCESS);
}

CASE(failed_operation_waits_for_the_fate_of_its_connection)
{
	udapl_rdma_t *r;

	r = new_rdma();
	udapl_rdma_completed(r, DAT_DTO_ERR_FLUSHED);
	slots_are(1, 0, 1);
	assert_int_equal(callbacks, 0);
	assert_ptr_equal(opal_list_remove_first(&peer->flushed_rdmas), r);
}

CASE(slot_of_an_operation_is_used_by_a_waiting_message)
{
	message_waits();
	udapl_rdma_completed(new_rdma(), DAT_DTO_SUCCESS);
	assert_int_equal(num_posts, 1);
	slots_are(0, 0, 2);
}

UNIT_MAIN(NULL, NULL)
