/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr.c - remote memory regions: windows on an LMR, bound through an endpoint. */
#include "pair.h"

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG
#define READ_WRITE ((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))

static DAT_RMR_HANDLE an_rmr(DAT_PZ_HANDLE pz)
{
	DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;

	needs_rmr();
	OK(dat_rmr_create(pz, &rmr));
	return rmr;
}

static DAT_RETURN try_bind(DAT_RMR_HANDLE rmr, const struct end *end, const struct region *region,
			   size_t offset, size_t length, DAT_MEM_PRIV_FLAGS rights, uint64_t cookie,
			   DAT_RMR_CONTEXT *context)
{
	return dat_rmr_bind(rmr, region->lmr, SEGMENT(region, offset, length), rights, DAT_VA_TYPE_VA,
			    end->ep, COOKIE(cookie), DEFAULT, context);
}

static void expect_bound(const struct end *end, DAT_RMR_HANDLE rmr, uint64_t cookie)
{
	DAT_EVENT event = EVENT(end->request, DAT_RMR_BIND_COMPLETION_EVENT);

	EQUAL(event.event_data.rmr_completion_event_data.rmr_handle, rmr);
	EQUAL(event.event_data.rmr_completion_event_data.user_cookie.as_64, cookie);
	EQUAL(event.event_data.rmr_completion_event_data.status, DAT_DTO_SUCCESS);
}

/* Binds a window on b's memory. Returns it as a region whose context the peer can use. */
static struct region a_window(struct pair *p, DAT_RMR_HANDLE rmr, size_t offset, size_t length)
{
	struct region window = { .at = p->b.mem.at + offset, .size = length };

	OK(try_bind(rmr, &p->b, &p->b.mem, offset, length, READ_WRITE, 500, &window.remote));
	expect_bound(&p->b, rmr, 500);
	return window;
}

TEST("RMR-1", a_new_rmr_is_unbound)
{
	DAT_PZ_HANDLE pz = a_pz();
	DAT_RMR_HANDLE rmr = an_rmr(pz);
	DAT_RMR_PARAM param = { .rmr_scope = (DAT_RMR_SCOPE)77 };

	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	EQUAL(param.ia_handle, ia());
	EQUAL(param.pz_handle, pz);
	HOLDS(param.rmr_scope <= DAT_RMR_SCOPE_ANY);
}

TEST("RMR-2", a_bound_rmr_gives_the_peer_access)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);
	struct region window = a_window(&p, rmr, 1000, 2000);
	DAT_RMR_PARAM param;

	fill(p.a.mem.at, 500, 1);
	post_write(&p.a, 0, 500, &window, 0, 1);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	post_read(&p.a, 1000, 500, &window, 0, 2);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	HOLDS(is_filled(p.a.mem.at + 1000, 500, 1));
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	EQUAL(param.rmr_context, window.remote);
	EQUAL(param.lmr_triplet.virtual_address, (uintptr_t)window.at);
	EQUAL(param.lmr_triplet.segment_length, 2000);
	EQUAL(param.mem_priv, READ_WRITE);
}

static void expect_no_access(struct pair *p, const struct region *window)
{
	post_read(&p->a, 0, 64, window, 0, 77);
	COMPLETES(p->a.request, 77, DAT_DTO_ERR_REMOTE_ACCESS);
	ENDS(p->a.conn);
	ENDS(p->b.conn);
}

TEST("RMR-3", an_rmr_is_unbound_by_a_bind_of_no_length)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);
	struct region window = a_window(&p, rmr, 0, 4096);
	DAT_RMR_CONTEXT context;

	OK(try_bind(rmr, &p.b, &p.b.mem, 0, 0, READ_WRITE, 2, &context));
	expect_bound(&p.b, rmr, 2);
	expect_no_access(&p, &window);
}

TEST("RMR-4", an_rmr_is_not_bound_through_an_unconnected_ep)
{
	struct end end = AN_END();
	DAT_RMR_HANDLE rmr = an_rmr(end.pz);
	DAT_RMR_CONTEXT context;

	FAILS(try_bind(rmr, &end, &end.mem, 0, 4096, READ_WRITE, 1, &context),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED);
}

TEST("RMR-5", an_rmr_is_bound_within_its_pz)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);
	struct region other = a_region(a_pz(), 4096, ALL_RIGHTS);
	DAT_RMR_CONTEXT context;

	AT("dat_rmr_bind of an LMR of another PZ");
	DAT_RETURN ret = try_bind(rmr, &p.b, &other, 0, 4096, READ_WRITE, 1, &context);
	if (ret != DAT_SUCCESS) {
		FAILS(ret, DAT_PROTECTION_VIOLATION);
		return;
	}
	DAT_EVENT event = EVENT(p.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
	HOLDS(event.event_data.rmr_completion_event_data.status != DAT_DTO_SUCCESS);
}

TEST("RMR-6", an_rmr_gives_no_rights_that_its_lmr_lacks)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);
	struct region read_only = a_region(p.b.pz, 4096, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	DAT_RMR_CONTEXT context;

	FAILS(try_bind(rmr, &p.b, &read_only, 0, 4096, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 1, &context),
	      DAT_PRIVILEGES_VIOLATION);
}

TEST("RMR-7", an_rmr_is_bound_within_its_lmr)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);
	DAT_RMR_CONTEXT context;

	FAILS(try_bind(rmr, &p.b, &p.b.mem, END_MEMORY - 64, 8192, READ_WRITE, 1, &context),
	      DAT_INVALID_PARAMETER, DAT_LENGTH_ERROR);
}

TEST("RMR-8", a_rebound_rmr_has_another_context)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);
	struct region old = a_window(&p, rmr, 0, 4096), new = a_window(&p, rmr, 0, 4096);

	HOLDS(new.remote != old.remote);
	post_write(&p.a, 0, 64, &new, 0, 1);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	expect_no_access(&p, &old);
}

TEST("RMR-9", a_message_starts_after_the_bind_before_it)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);

	/* A peer that gets the context in a message can use it at once. */
	for (int i = 0; i < 10; i++) {
		struct region window = { .at = p.b.mem.at };
		post_recv(&p.a, 4096, 64, 1);
		OK(try_bind(rmr, &p.b, &p.b.mem, 0, 4096, READ_WRITE, 2, &window.remote));
		*(DAT_RMR_CONTEXT *)(p.b.mem.at + 8192) = window.remote;
		post_send(&p.b, 8192, 64, 3);
		COMPLETES(p.a.recv, 1, DAT_DTO_SUCCESS);
		window.remote = *(DAT_RMR_CONTEXT *)(p.a.mem.at + 4096);
		post_write(&p.a, 0, 64, &window, 0, 4);
		COMPLETES(p.a.request, 4, DAT_DTO_SUCCESS);
		expect_bound(&p.b, rmr, 2);
		COMPLETES(p.b.request, 3, DAT_DTO_SUCCESS);
	}
}

TEST("RMR-10", freeing_a_bound_rmr_ends_access)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);
	struct region window = a_window(&p, rmr, 0, 4096);

	OK(dat_rmr_free(rmr));
	expect_no_access(&p, &window);
}

TEST("RMR-11", an_rmr_has_seven_fields)
{
	DAT_RMR_HANDLE rmr = an_rmr(a_pz());
	DAT_RMR_PARAM param;

	FAILS(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)0x80, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("RMR-12", a_bind_that_fails_at_the_device_breaks_the_connection)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr = an_rmr(p.b.pz);
	struct region other = a_region(a_pz(), 4096, ALL_RIGHTS);
	struct region read_only = a_region(p.b.pz, 4096, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	DAT_RMR_CONTEXT context;

	/* Tries faults until one is not found before the device finds it. */
	if (try_bind(rmr, &p.b, &other, 0, 4096, READ_WRITE, 1, &context) &&
	    try_bind(rmr, &p.b, &read_only, 0, 4096, READ_WRITE, 1, &context) &&
	    try_bind(rmr, &p.b, &p.b.mem, 0, END_MEMORY + 4096, READ_WRITE, 1, &context))
		skip("dat_rmr_bind finds all faults before the device does");
	DAT_EVENT event = EVENT(p.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
	HOLDS(event.event_data.rmr_completion_event_data.status != DAT_DTO_SUCCESS);
	EVENT(p.b.conn, DAT_CONNECTION_EVENT_BROKEN);
	STATE(p.b.ep, DAT_EP_STATE_DISCONNECTED);
}

TEST("RMR-13", without_rmrs_none_is_created)
{
	DAT_RMR_HANDLE rmr;

	if (ia_attr()->max_rmrs)
		skip("max_rmrs is %d", ia_attr()->max_rmrs);
	FAILS(dat_rmr_create(a_pz(), &rmr), DAT_NOT_IMPLEMENTED, DAT_MODEL_NOT_SUPPORTED);
}
