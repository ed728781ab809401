/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rmr_map.c - mapped memory of a peer: which endpoints may map, errors of the device, and that each
 * mapping ends. */
#include "dapl/core/mem/rmr_map.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_ep *ep;
static int map_error;
static unsigned maps;
static void *last_pages;

/* `at` is not where the pages begin, as with memory that is not page-aligned at the peer. */
static int map(uint32_t rkey, uint64_t remote, uint64_t length, struct dapl_mapping *mapping)
{
	assert_int_equal(rkey, 9);
	assert_int_equal(remote, 0x1234);
	assert_int_equal(length, 100);
	maps++;
	if (map_error)
		return map_error;
	mapping->size = (size_t)sysconf(_SC_PAGESIZE);
	mapping->pages = last_pages = mmap(NULL, mapping->size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mapping->pages, MAP_FAILED);
	mapping->at = (char *)mapping->pages + 0x234;
	return 0;
}

static const DAT_RMR_TRIPLET memory = { .rmr_context = 9, .virtual_address = 0x1234, .segment_length = 100 };

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .map_remote = map };
	map_error = 0;
	maps = 0;
	ia = core_ia_new();
	ep = core_ep_new(ia, NULL, 16);
}

UNIT_FIXTURE(tear_down)
{
	dapl_map_end(ep);
	core_ep_free(ep);
	core_ia_free(ia);
}

UNIT_CASE(endpoint_must_be_connected)
{
	DAT_PVOID at = NULL;

	ep->state = DAT_EP_STATE_DISCONNECT_PENDING;
	assert_int_equal(DAT_GET_TYPE(dapl_map_rmr(ep, &memory, &at)), DAT_INVALID_STATE);
	ep->state = DAT_EP_STATE_CONNECTED;
	ep->is_ud = true;
	assert_int_equal(DAT_GET_TYPE(dapl_map_rmr(ep, &memory, &at)), DAT_MODEL_NOT_SUPPORTED);
	assert_int_equal(maps, 0);
	assert_null(at);
	assert_null(ep->maps);
}

UNIT_CASE(errors_of_the_device_have_codes)
{
	static const struct { int err; DAT_RETURN type; } cases[] = {
		{ EOPNOTSUPP, DAT_MODEL_NOT_SUPPORTED }, { EACCES, DAT_PRIVILEGES_VIOLATION },
		{ ENOMEM, DAT_INSUFFICIENT_RESOURCES }, { EIO, DAT_INTERNAL_ERROR },
	};
	DAT_PVOID at = NULL;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		map_error = cases[i].err;
		assert_int_equal(DAT_GET_TYPE(dapl_map_rmr(ep, &memory, &at)), cases[i].type);
		assert_null(at);
		assert_null(ep->maps);
	}
}

UNIT_CASE(endpoint_that_lost_its_connection_can_unmap)
{
	DAT_PVOID at;

	assert_int_equal(dapl_map_rmr(ep, &memory, &at), DAT_SUCCESS);
	ep->state = DAT_EP_STATE_DISCONNECTED;
	assert_int_equal(dapl_map_unmap(ep, at), DAT_SUCCESS);
}

UNIT_MAIN(NULL, NULL)
