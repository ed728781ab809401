/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_reg_cache.c - the registration cache: which requests need no call of Open MPI's cache, what happens to a region
 * that it drops, and what the device is asked for. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/help.h"
#include "contrib/openmpi/reg_cache.h"
#include "test/unit/unit.h"

enum {
	READ = MCA_BTL_REG_FLAG_REMOTE_READ,
	WRITE = MCA_BTL_REG_FLAG_REMOTE_WRITE,
	LOCAL = MCA_BTL_REG_FLAG_LOCAL_WRITE,
	ATOMIC = MCA_BTL_REG_FLAG_REMOTE_ATOMIC,
};

static char memory[8192];	/* only its address counts */
static int pauses, reports, lmrs_before;

REPLACE(usleep, udapl_show_help)

int __wrap_usleep(useconds_t us)
{
	assert_int_equal(us, UDAPL_REG_PAUSE_US);
	pauses++;
	return 0;
}

void __wrap_udapl_show_help(const char *topic, ...)
{
	assert_string_equal(topic, "no registration");
	reports++;
}

/* The lists of fragments have their registrations. */
UNIT_FIXTURE(begin)
{
	btl_begin(state);
	lmrs_before = lmrs;
	cache_registers = cache_deregisters = pauses = 0;
}

static mca_btl_base_registration_handle_t *ask(void *at, size_t size, uint32_t access)
{
	return udapl_register_mem(&module.super, peer, at, size, access);
}

static void give_back(mca_btl_base_registration_handle_t *h)
{
	assert_int_equal(udapl_deregister_mem(&module.super, h), OPAL_SUCCESS);
}

static int regions(void) { return lmrs - lmrs_before; }

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

/* --- hits and misses --------------------------------------------------------------------------- */

CASE(memory_is_registered_once)
{
	mca_btl_base_registration_handle_t *first = ask(memory, 4096, READ | LOCAL), *second;

	assert_non_null(first);
	second = ask(memory, 4096, READ | LOCAL);
	assert_ptr_equal(first, second);
	assert_int_equal(cache_registers, 1);
	assert_int_equal(regions(), 1);
	give_back(second);
	assert_int_equal(cache_deregisters, 0);
	give_back(first);
	assert_int_equal(cache_deregisters, 1);
}

CASE(released_region_is_found_again)
{
	give_back(ask(memory, 4096, READ));
	for (int i = 0; i < 3; i++)
		give_back(ask(memory, 4096, READ));
	assert_int_equal(cache_registers, 1);
	assert_int_equal(cache_deregisters, 1);
	assert_int_equal(regions(), 1);
}

CASE(part_of_a_region_with_less_access_is_a_hit)
{
	mca_btl_base_registration_handle_t *whole = ask(memory, 4096, READ | WRITE | LOCAL);

	assert_ptr_equal(ask(memory, 1, READ), whole);
	assert_ptr_equal(ask(memory, 4096, WRITE), whole);
	assert_int_equal(cache_registers, 1);
	give_back(whole), give_back(whole), give_back(whole);
	assert_int_equal(cache_deregisters, 1);
}

CASE(more_than_the_region_or_its_access_is_a_miss)
{
	char *at = memory + (-(uintptr_t)memory & 4095) + 100;
	const struct { const char *what; char *at; size_t size; uint32_t access; } rows[] = {
		{ "a byte behind the region", at, 1001, READ },
		{ "a byte before the region", at - 1, 100, READ },
		{ "more access", at, 1000, READ | LOCAL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		mca_btl_base_registration_handle_t *h = ask(at, 1000, READ), *more;

		more = ask(rows[i].at, rows[i].size, rows[i].access);
		if (h == more)
			fail_msg("%s", rows[i].what);
		give_back(h);
		give_back(more);
	}
}

CASE(unmapped_memory_is_a_miss)
{
	mca_btl_base_registration_handle_t *h;

	give_back(ask(memory, 4096, READ));
	cache_last->flags |= MCA_RCACHE_FLAGS_INVALID;
	h = ask(memory, 4096, READ);
	assert_int_equal(cache_registers, 2);
	give_back(h);
}

/* Another page whose entry is the same. */
static char *page_of_the_same_entry(const char *as)
{
	for (uint64_t i = 1; i < 100000; i++) {
		char *at = (char *)((uintptr_t)as + (i << 12));
		mca_btl_base_registration_handle_t *h = ask(at, 1, READ);
		bool replaced = true;

		for (int k = 0, n = 0; k < UDAPL_RECENT_REGS; k++) {
			n += module.recent[k] != NULL;
			if (n > 1)
				replaced = false;
		}
		give_back(h);
		cache_drops_last();
		if (replaced)
			return at;
	}
	fail_msg("no page with the same entry");
	return NULL;
}

CASE(later_region_of_the_same_entry_replaces_the_earlier)
{
	mca_btl_base_registration_handle_t *h = ask(memory, 1, READ);
	char *other = page_of_the_same_entry(memory);

	cache_registers = 0;
	give_back(ask(memory, 1, READ));
	assert_int_equal(cache_registers, 1);	/* the entry was taken */
	give_back(ask(other, 1, READ));
	give_back(ask(other, 1, READ));
	assert_int_equal(cache_registers, 2);
	give_back(h);
}

/* --- regions that the cache drops -------------------------------------------------------------- */

CASE(dropped_region_is_forgotten)
{
	give_back(ask(memory, 4096, READ));
	assert_int_equal(cache_drops_last(), OPAL_SUCCESS);
	assert_int_equal(regions(), 0);
	give_back(ask(memory, 4096, READ));
	assert_int_equal(cache_registers, 2);
	assert_int_equal(regions(), 1);
}

/* The cache does not know of a use that was a hit. */
CASE(dropped_region_in_use_is_freed_after_its_last_use)
{
	mca_btl_base_registration_handle_t *h;

	give_back(ask(memory, 4096, READ));
	h = ask(memory, 4096, READ);
	ask(memory, 4096, READ);
	assert_int_equal(cache_drops_last(), OPAL_SUCCESS);
	assert_int_equal(regions(), 1);
	give_back(h);
	assert_int_equal(regions(), 1);
	give_back(h);
	assert_int_equal(regions(), 0);
	assert_int_equal(cache_deregisters, 1);
}

CASE(region_that_the_device_keeps_is_an_error)
{
	mca_btl_base_registration_handle_t *h = ask(memory, 4096, READ);

	give_back(h);
	lmr_free_result = UDAPL_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	assert_int_equal(cache_drops_last(), OPAL_ERROR);
	lmr_free_result = DAT_SUCCESS;
	free(h);			/* the first member of the region, which remains with its LMR */
}

/* --- refusals ---------------------------------------------------------------------------------- */

CASE(short_shortage_is_waited_for)
{
	mca_btl_base_registration_handle_t *h;

	cache_refusals = UDAPL_REG_TRIES - 1;
	h = ask(memory, 4096, READ);
	assert_non_null(h);
	assert_int_equal(pauses, UDAPL_REG_TRIES - 1);
	assert_int_equal(reports, 0);
	give_back(h);
}

CASE(lasting_shortage_is_reported_once)
{
	for (int i = 0; i < 2; i++) {
		cache_refusals = UDAPL_REG_TRIES;
		assert_null(ask(memory, 4096, READ));
		assert_int_equal(cache_refusals, 0);
	}
	assert_int_equal(pauses, 2 * (UDAPL_REG_TRIES - 1));
	assert_int_equal(reports, 1);
	assert_int_equal(module.exposed, 0);
}

CASE(refusal_of_the_device_leaves_nothing)
{
	lmr_create_result = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
	assert_null(ask(memory, 4096, READ));
	assert_int_equal(cache_registers, UDAPL_REG_TRIES);
	assert_int_equal(regions(), 0);
	lmr_create_result = DAT_SUCCESS;
	give_back(ask(memory, 4096, READ));
	assert_int_equal(regions(), 1);
}

/* --- polling ----------------------------------------------------------------------------------- */

CASE(message_that_a_peer_accesses_makes_the_cq_polled)
{
	static const uint32_t exposing[] = { READ, WRITE | LOCAL };

	for (int i = 0; i < 2; i++) {
		mca_btl_base_registration_handle_t *h = ask(memory, 4096, exposing[i]);

		assert_int_equal(module.exposed, 1);
		assert_true(module.poll_requested);
		ask(memory, 4096, exposing[i]);
		assert_int_equal(module.exposed, 2);
		give_back(h);
		give_back(h);
		assert_int_equal(module.exposed, 0);
		module.poll_requested = false;
		cache_drops_last();
	}
}

CASE(window_or_local_buffer_does_not)
{
	static const uint32_t others[] = { LOCAL, READ | WRITE | LOCAL | ATOMIC };

	for (int i = 0; i < 2; i++) {
		mca_btl_base_registration_handle_t *h = ask(memory, 4096, others[i]);

		assert_int_equal(module.exposed, 0);
		assert_false(module.poll_requested);
		give_back(h);
		assert_int_equal(module.exposed, 0);
		cache_drops_last();
	}
}

static unsigned privileges_of(uint32_t access)
{
	mca_btl_base_registration_handle_t *h = ask(memory, 4096, access);

	assert_int_equal(h->lmr_context + (1u << 30), h->rmr_context);
	give_back(h);
	cache_drops_last();
	return lmr_privileges;
}

CASE(device_grants_what_is_asked_for)
{
	unsigned least = DAT_MEM_PRIV_LOCAL_READ_FLAG, writable = least | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;

	assert_int_equal(privileges_of(0), least);
	assert_int_equal(privileges_of(LOCAL), writable);
	assert_int_equal(privileges_of(READ), least | DAT_MEM_PRIV_REMOTE_READ_FLAG);
	assert_int_equal(privileges_of(WRITE), writable | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	assert_int_equal(privileges_of(ATOMIC), DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC);
	module.atomics = false;
	assert_int_equal(privileges_of(ATOMIC), least);
	module.provider.rdma_write_for_rdma_read_req = DAT_TRUE;	/* iWARP */
	assert_int_equal(privileges_of(LOCAL), writable | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	assert_int_equal(privileges_of(READ), least | DAT_MEM_PRIV_REMOTE_READ_FLAG);
}

CASE(threads_always_ask_the_cache)
{
	mca_btl_base_registration_handle_t *h, *again;

	give_back(ask(memory, 4096, READ));	/* would be found again */
	opal_uses_threads = true;
	h = ask(memory, 4096, READ);
	again = ask(memory, 4096, READ);
	assert_int_equal(cache_registers, 3);
	give_back(h);
	give_back(again);
	assert_int_equal(cache_deregisters, 3);
	assert_int_equal(module.exposed, 0);
}

CASE(fragment_knows_the_region_of_its_list)
{
	opal_free_list_item_t *item = opal_free_list_get(&module.eager_frags);

	assert_int_equal(udapl_frag_lmr(item), ((udapl_frag_t *)item)->lmr_context);
	assert_int_not_equal(udapl_frag_lmr(item), 0);
	opal_free_list_return(&module.eager_frags, item);
}

UNIT_MAIN(NULL, NULL)
