/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_endpoint.c - the endpoints of a module: one for each process, and none that the next look-up would not find. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/endpoint.h"
#include "contrib/openmpi/frag.h"
#include "test/unit/unit.h"

static int set_result;

EXTEND(opal_hash_table_set_value_uint64)

int __wrap_opal_hash_table_set_value_uint64(opal_hash_table_t *table, uint64_t key, void *value)
{
	return set_result == OPAL_SUCCESS ? __real_opal_hash_table_set_value_uint64(table, key, value) : set_result;
}

static int begin(void **state)
{
	set_result = OPAL_SUCCESS;
	return btl_begin(state);
}

static mca_btl_base_endpoint_t *endpoint_of(uint32_t jobid, uint32_t vpid)
{
	return udapl_endpoint_of(&module, (opal_process_name_t){ .jobid = jobid, .vpid = vpid });
}

static int endpoints(void) { return (int)opal_list_get_size(&module.endpoints); }

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

CASE(new_endpoint_is_idle_and_empty)
{
	mca_btl_base_endpoint_t *e;

	e = endpoint_of(3, 4);
	assert_non_null(e);
	assert_ptr_equal(e->module, &module);
	assert_int_equal(e->name.jobid, 3);
	assert_int_equal(e->name.vpid, 4);
	assert_int_equal(e->state, UDAPL_IDLE);
	assert_null(e->conn);
	assert_null(e->proc);
	assert_null(e->failure);
	assert_false(e->removed);
	assert_true(opal_list_is_empty(&e->sends));
	assert_true(opal_list_is_empty(&e->rdmas));
	assert_true(opal_list_is_empty(&e->flushed_sends));
	assert_true(opal_list_is_empty(&e->flushed_rdmas));
	assert_ptr_equal(opal_list_get_last(&module.endpoints), e);
}

CASE(process_has_one_endpoint)
{
	assert_ptr_equal(endpoint_of(3, 4), endpoint_of(3, 4));
	assert_int_equal(endpoints(), 2);
}

/* All 32 bits of both numbers count. */
CASE(processes_have_different_endpoints)
{
	static const struct { uint32_t jobid, vpid; } names[] = {
		{ 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 }, { 0x80000000, 0 }, { 0, 0x80000000 }, { 0, 0x10000 },
		{ 0, 0xffffffff }, { 0xffffffff, 0xffffffff },
	};
	enum { N = sizeof names / sizeof *names };
	mca_btl_base_endpoint_t *made[N];

	for (int i = 0; i < N; i++)
		made[i] = endpoint_of(names[i].jobid, names[i].vpid);
	assert_int_equal(endpoints(), 1 + N);
	for (int i = 0; i < N; i++) {
		assert_int_equal(made[i]->name.jobid, names[i].jobid);
		assert_int_equal(made[i]->name.vpid, names[i].vpid);
		assert_ptr_equal(endpoint_of(names[i].jobid, names[i].vpid), made[i]);
	}
}

/* A second endpoint for the process would be made later. */
CASE(endpoint_that_cannot_be_found_again_is_not_made)
{
	set_result = OPAL_ERR_OUT_OF_RESOURCE;
	assert_null(endpoint_of(3, 4));
	assert_int_equal(endpoints(), 1);
	set_result = OPAL_SUCCESS;
	assert_non_null(endpoint_of(3, 4));
}

/* Their free lists own them. */
CASE(freed_endpoint_gives_up_its_requests)
{
	mca_btl_base_endpoint_t *e;
	opal_list_item_t *items[4];
	opal_list_t *lists[4];

	e = endpoint_of(3, 4);
	lists[0] = &e->sends;
	lists[1] = &e->rdmas;
	lists[2] = &e->flushed_sends;
	lists[3] = &e->flushed_rdmas;
	for (int i = 0; i < 4; i++) {
		items[i] = i % 2 ? &((udapl_rdma_t *)opal_free_list_get(&module.rdmas))->super.super
				 : &((udapl_frag_t *)udapl_alloc(&module.super, e, 0, 10, 0))->base.super.super;
		opal_list_append(lists[i], items[i]);
	}
	opal_list_remove_item(&module.endpoints, &e->super);
	OBJ_RELEASE(e);
	for (int i = 0; i < 4; i++)
		opal_free_list_return(i % 2 ? &module.rdmas : &module.eager_frags, (opal_free_list_item_t *)items[i]);
}

UNIT_MAIN(NULL, NULL)
