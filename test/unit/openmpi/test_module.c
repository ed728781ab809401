/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_module.c - an adapter: what is opened with which limits, which processes get an endpoint, how connections end
 * when processes leave, and that a failed or closed adapter leaves nothing. */
#include "test/unit/openmpi/adapters.h"
#include "test/unit/openmpi/eps.h"
#include "test/unit/openmpi/modex.h"
#include "contrib/openmpi/completed.h"
#include "contrib/openmpi/conn.h"
#include "contrib/openmpi/endpoint.h"
#include "contrib/openmpi/frag.h"
#include "contrib/openmpi/help.h"
#include "contrib/openmpi/module.h"
#include "opal/class/opal_bitmap.h"
#include "test/unit/unit.h"

#define FAILURE UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE)

static mca_btl_udapl_module_t *opened;
static mca_btl_udapl_module_t *modules[4];
static struct udapl_address address_of_peers;
static int lmrs_before;
static double now;
static bool sends_complete;	/* while time passes */
static int reports;
static char name_reported[64], reason[64];
static size_t calloc_fails;	/* of so many elements; 0: none fails */

REPLACE(clock_gettime, udapl_show_help)
UNIT_FAIL_CALLOC(calloc_fails && n == calloc_fails)

static void complete_sends(void)
{
	for (int i = 0; i < num_posts; i++)
		if (posts[i].kind == POSTED_SEND)
			completion_comes(posts[i].work, DAT_DTO_SUCCESS, 0);
	num_posts = 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	now += 0.25;
	if (sends_complete)
		complete_sends();
	t->tv_sec = (time_t)now;
	t->tv_nsec = (long)((now - (double)t->tv_sec) * 1e9);
	return 0;
}

void __wrap_udapl_show_help(const char *topic, ...)
{
	va_list args;

	assert_string_equal(topic, "cannot open");
	reports++;
	va_start(args, topic);
	(void)va_arg(args, const char *);
	snprintf(name_reported, sizeof name_reported, "%s", va_arg(args, const char *));
	snprintf(reason, sizeof reason, "%s", va_arg(args, const char *));
	va_end(args);
}

UNIT_FIXTURE(set_up)
{
	btl_begin(state);
	adapters_begin();
	modex_begin();
	memset(&address_of_peers, 0, sizeof address_of_peers);
	address_of_peers.at.sin6_family = AF_INET;
	((struct sockaddr_in *)&address_of_peers.at)->sin_addr.s_addr = htonl(0x0a000002);
	address_of_peers.qualifier = 4711;
	modex_theirs = &address_of_peers;
	modex_theirs_size = sizeof address_of_peers;
	mca_btl_udapl_component.any_network = true;
	mca_btl_udapl_component.srq_depth = 500;
	mca_btl_udapl_component.include = NULL;
	mca_btl_udapl_component.modules = modules;
	mca_btl_udapl_component.num_modules = 0;
	opal_process_info.my_local_rank = 0;
	lmrs_before = lmrs;
	caches = reports = 0;
	now = 1000;
	sends_complete = false;
	opened = NULL;
}

static void check_nothing_remains(void)
{
	assert_int_equal(adapters_open, 0);
	assert_int_equal(psps, 0);
	assert_int_equal(srqs, 0);
	assert_int_equal(caches, 0);
	assert_int_equal(eps_existing(), 1);
	assert_int_equal(lmrs, lmrs_before);
}

static int tear_down(void **state)
{
	if (opened)
		udapl_finalize(&opened->super);
	check_nothing_remains();
	return btl_end(state);
}

static mca_btl_udapl_module_t *open_adapter(void)
{
	opened = udapl_module_open("ia7");
	assert_non_null(opened);
	modules[0] = opened;
	mca_btl_udapl_component.num_modules = 1;
	return opened;
}

static void close_adapter(void)
{
	udapl_finalize(&opened->super);
	opened = NULL;
}

/* --- opening ----------------------------------------------------------------------------------- */

UNIT_CASE(opened_adapter_has_an_address_and_a_service_point)
{
	const mca_btl_udapl_module_t *m;

	m = open_adapter();
	assert_string_equal(adapter_name, "ia7");
	assert_string_equal(m->name, "ia7");
	assert_string_equal(m->address.ia, "ia7");
	assert_int_equal(m->address.qualifier, ADAPTER_QUALIFIER);
	assert_int_equal(((const struct sockaddr_in *)&m->address.at)->sin_addr.s_addr, htonl(0x0a000001));
	assert_int_equal(m->dto_length, UDAPL_DTO_EVD_LENGTH);
	assert_int_equal(psps, 1);
	assert_int_equal(reports, 0);
}

UNIT_CASE(limits_are_those_of_the_device_and_of_each_other)
{
	static const struct { size_t eager, rndv, most; uint64_t rdma; size_t eager_expected,
		rndv_expected; } table[] = {
		{ 1000, 2000, 4000, 1 << 16, 1000, 2000 },
		{ 5000, 2000, 4000, 1 << 30, 4000, 2000 },
		{ 1000, 4001, 4000, 1, 1000, 4000 },
	};
	mca_btl_base_module_t *template = &mca_btl_udapl_template.super, saved = *template;

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		const mca_btl_udapl_module_t *m;

		template->btl_eager_limit = table[i].eager;
		template->btl_rndv_eager_limit = table[i].rndv;
		template->btl_max_send_size = table[i].most;
		adapter_attr.max_rdma_size = table[i].rdma;
		m = open_adapter();
		assert_int_equal(m->super.btl_eager_limit, table[i].eager_expected);
		assert_int_equal(m->super.btl_rndv_eager_limit, table[i].rndv_expected);
		assert_int_equal(m->message_size, table[i].most + sizeof(struct udapl_header));
		assert_int_equal(m->super.btl_put_limit, table[i].rdma);
		assert_int_equal(m->super.btl_get_limit, table[i].rdma);
		close_adapter();
	}
	*template = saved;
}

/* With the longest header of the PML. */
UNIT_CASE(data_of_16_kib_is_one_message)
{
	const mca_btl_base_module_t *b = &mca_btl_udapl_template.super;

	assert_true(b->btl_eager_limit >= 16384 + 64);
	assert_true(b->btl_max_send_size >= b->btl_eager_limit);
}

UNIT_CASE(device_needs_both_atomic_operations)
{
	static DAT_NAMED_ATTR attrs[] = { { "OTHER", "TRUE" }, { DAT_IB_ATTR_FETCH_AND_ADD, "TRUE" },
					  { DAT_IB_ATTR_CMP_AND_SWAP, "TRUE" } };
	static const struct { int first, n; bool atomics; } table[] = { { 0, 0, false }, { 0, 2, false },
									{ 2, 1, false }, { 1, 2, true },
									{ 0, 3, true } };
	enum { FLAGS = MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS };

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		const mca_btl_base_module_t *b;

		adapter_provider.provider_specific_attr = &attrs[table[i].first];
		adapter_provider.num_provider_specific_attr = table[i].n;
		b = &open_adapter()->super;
		assert_int_equal(opened->atomics, table[i].atomics);
		assert_int_equal(b->btl_flags & FLAGS, table[i].atomics ? FLAGS : 0);
		assert_int_equal(b->btl_atomic_flags != 0, table[i].atomics);
		assert_int_equal(b->btl_atomic_op != NULL, table[i].atomics);
		assert_int_equal(b->btl_atomic_fop != NULL, table[i].atomics);
		assert_int_equal(b->btl_atomic_cswap != NULL, table[i].atomics);
		close_adapter();
	}
}

UNIT_CASE(shared_queue_is_made_where_it_is_wanted_and_possible)
{
	static const struct { bool wanted, supported; int max; DAT_RETURN result; bool made; } table[] = {
		{ true, true, 1, DAT_SUCCESS, true },
		{ false, true, 1, DAT_SUCCESS, false },
		{ true, false, 1, DAT_SUCCESS, false },
		{ true, true, 0, DAT_SUCCESS, false },
		{ true, true, 1, FAILURE, false },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		mca_btl_udapl_component.use_srq = table[i].wanted;
		adapter_provider.srq_supported = table[i].supported;
		adapter_attr.max_srqs = table[i].max;
		adapter_results.srq = table[i].result;
		open_adapter();
		assert_int_equal(opened->srq != DAT_HANDLE_NULL, table[i].made);
		assert_int_equal(srqs, table[i].made);
		close_adapter();
	}
}

UNIT_CASE(shared_queue_is_as_long_as_the_device_allows)
{
	static const struct { int wanted, most, expected; } table[] = { { 500, 1000, 500 }, { 500, 500, 500 },
									{ 500, 499, 499 } };

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		mca_btl_udapl_component.srq_depth = table[i].wanted;
		adapter_attr.max_recv_per_srq = table[i].most;
		open_adapter();
		assert_int_equal(srq_attr.max_recv_dtos, table[i].expected);
		assert_int_equal(srq_attr.max_recv_iov, 1);
		close_adapter();
	}
}

UNIT_CASE(adapter_that_cannot_be_opened_leaves_nothing)
{
	DAT_RETURN *const steps[] = { &adapter_results.open, &adapter_results.query, &adapter_results.pz,
				      &adapter_results.dto_evd, &adapter_results.conn_evd, &adapter_results.psp,
				      &lmr_create_result };

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		*steps[i] = FAILURE;
		if (udapl_module_open("ia7"))
			fail_msg("step %u does not fail", i);
		*steps[i] = DAT_SUCCESS;
		check_nothing_remains();
	}
}

UNIT_CASE(adapter_without_an_ip_address_is_not_opened)
{
	adapter_attr.ia_address_ptr = NULL;
	assert_null(udapl_module_open("ia7"));
	check_nothing_remains();
}

/* Not every adapter of dat.conf must be usable on each host. */
UNIT_CASE(failure_is_reported_if_the_user_named_the_adapter)
{
	static const struct { const char *include; int rank, reports; } table[] = {
		{ NULL, 0, 0 }, { "", 0, 0 }, { "ia7", 0, 1 }, { "ia7", 1, 0 },
	};

	adapter_results.query = UDAPL_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		mca_btl_udapl_component.include = (char *)(uintptr_t)table[i].include;
		opal_process_info.my_local_rank = table[i].rank;
		reports = 0;
		assert_null(udapl_module_open("ia7"));
		assert_int_equal(reports, table[i].reports);
	}
	assert_string_equal(name_reported, "ia7");
	assert_string_equal(reason, "DAT_INVALID_STATE DAT_INVALID_STATE_EP_CONNECTED");
}

UNIT_CASE(adapter_without_memory_for_rings_is_reported_so)
{
	mca_btl_udapl_component.include = (char *)(uintptr_t)"ia7";
	mca_btl_udapl_component.eager_peers = 12345;
	calloc_fails = 12346;
	assert_null(udapl_module_open("ia7"));
	calloc_fails = 0;
	assert_int_equal(reports, 1);
	assert_string_equal(reason, "DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_MEMORY");
	check_nothing_remains();
}

/* --- processes --------------------------------------------------------------------------------- */

enum { PROCS = 3 };

static opal_proc_t procs[PROCS];
static mca_btl_base_endpoint_t *endpoints[PROCS];

/* Returns which processes are reachable, one bit each. */
static unsigned add_procs(void)
{
	opal_proc_t *list[PROCS];
	opal_bitmap_t reachable;
	unsigned bits = 0;

	OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
	opal_bitmap_init(&reachable, PROCS);
	for (unsigned i = 0; i < PROCS; i++) {
		procs[i].proc_name = (opal_process_name_t){ .jobid = 1, .vpid = i };
		list[i] = &procs[i];
		endpoints[i] = peer;
	}
	assert_int_equal(opened->super.btl_add_procs(&opened->super, PROCS, list, endpoints, &reachable), OPAL_SUCCESS);
	for (unsigned i = 0; i < PROCS; i++)
		bits |= opal_bitmap_is_set_bit(&reachable, (int)i) ? 1u << i : 0;
	OBJ_DESTRUCT(&reachable);
	return bits;
}

UNIT_CASE(processes_with_an_address_get_endpoints)
{
	open_adapter();
	assert_int_equal(add_procs(), 7);
	for (unsigned i = 0; i < PROCS; i++) {
		assert_ptr_equal(endpoints[i]->module, opened);
		assert_ptr_equal(endpoints[i]->proc, &procs[i]);
		assert_int_equal(endpoints[i]->name.vpid, i);
		assert_int_equal(endpoints[i]->address.qualifier, 4711);
	}
}

UNIT_CASE(process_that_published_nothing_is_unreachable)
{
	open_adapter();
	modex_without = 1;
	assert_int_equal(add_procs(), 5);
	assert_null(endpoints[1]);
	assert_int_equal(opal_list_get_size(&opened->endpoints), 2);
}

UNIT_CASE(process_without_a_reachable_address_is_unreachable)
{
	open_adapter();
	address_of_peers.at.sin6_family = AF_INET6;
	assert_int_equal(add_procs(), 0);
	assert_null(endpoints[0]);
	address_of_peers.at.sin6_family = AF_INET;
	modex_theirs_size = sizeof address_of_peers - 1;	/* no whole address */
	assert_int_equal(add_procs(), 0);
	assert_true(opal_list_is_empty(&opened->endpoints));
}

UNIT_CASE(processes_are_added_without_a_bitmap_too)
{
	opal_proc_t *list[] = { &procs[0] };

	open_adapter();
	udapl_add_procs(&opened->super, 1, list, endpoints, NULL);
	assert_non_null(endpoints[0]);
}

/* Its request came before. */
UNIT_CASE(known_process_keeps_its_endpoint)
{
	mca_btl_base_endpoint_t *e;

	open_adapter();
	e = udapl_endpoint_of(opened, (opal_process_name_t){ .jobid = 1, .vpid = 2 });
	add_procs();
	assert_ptr_equal(endpoints[2], e);
	assert_ptr_equal(e->proc, &procs[2]);
}

static udapl_conn_t *connect_to(mca_btl_base_endpoint_t *e)
{
	udapl_conn_t *c = udapl_conn_new(e, true);

	assert_non_null(c);
	c->state = UDAPL_CONN_ESTABLISHED;
	if (!e->conn) {
		e->conn = c;
		e->state = UDAPL_CONNECTED;
	}
	return c;
}

UNIT_CASE(removed_process_loses_all_its_connections)
{
	mca_btl_base_endpoint_t *removed[2];
	udapl_conn_t *first, *second, *other;

	open_adapter();
	add_procs();
	first = connect_to(endpoints[0]);
	second = connect_to(endpoints[0]);
	other = connect_to(endpoints[1]);
	removed[0] = NULL;
	removed[1] = endpoints[0];
	assert_int_equal(opened->super.btl_del_procs(&opened->super, 2, NULL, removed), OPAL_SUCCESS);
	assert_int_equal(first->state, UDAPL_CONN_CLOSING);
	assert_int_equal(second->state, UDAPL_CONN_CLOSING);
	assert_int_equal(other->state, UDAPL_CONN_ESTABLISHED);
	assert_true(endpoints[0]->removed);
	assert_null(endpoints[0]->proc);
	assert_false(endpoints[1]->removed);
	first->state = second->state = other->state = UDAPL_CONN_CLOSED;
}

UNIT_CASE(process_can_be_added_again)
{
	mca_btl_base_endpoint_t *e;

	open_adapter();
	add_procs();
	e = endpoints[0];
	udapl_del_procs(&opened->super, 1, NULL, endpoints);
	add_procs();
	assert_ptr_equal(endpoints[0], e);
	assert_false(e->removed);
	assert_ptr_equal(e->proc, &procs[0]);
}

static void on_error(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *why)
{
}

UNIT_CASE(callback_for_errors_is_kept)
{
	open_adapter();
	assert_int_equal(opened->super.btl_register_error(&opened->super, on_error), OPAL_SUCCESS);
	assert_true(opened->error_cb == on_error);
}

/* --- closing ----------------------------------------------------------------------------------- */

UNIT_CASE(closed_adapter_is_no_module_any_more)
{
	open_adapter();
	modules[0] = &module;
	modules[1] = opened;
	modules[2] = modules[0];
	mca_btl_udapl_component.num_modules = 3;
	close_adapter();
	assert_int_equal(mca_btl_udapl_component.num_modules, 2);
	assert_ptr_equal(modules[0], &module);
	assert_ptr_equal(modules[1], &module);
}

/* The peer shall get the close notification, and the device its buffers back. */
UNIT_CASE(close_waits_for_disconnects_and_completions)
{
	open_adapter();
	add_procs();
	connect_to(endpoints[0]);
	connect_to(endpoints[1]);
	disconnects_succeed = sends_complete = true;
	num_posts = 0;
	now = 1000;
	close_adapter();
	assert_int_equal(disconnects, 2);
	assert_true(now < 1000 + UDAPL_CLOSE_TIMEOUT);
	check_nothing_remains();
}

UNIT_CASE(close_waits_a_limited_time)
{
	for (int i = 0; i < 2; i++) {
		open_adapter();
		add_procs();
		connect_to(endpoints[0]);
		disconnects_succeed = i == 0;	/* without the completion, then without the event */
		sends_complete = i == 1;
		num_posts = 0;
		now = 1000;
		close_adapter();
		assert_true(now > 1000 + UDAPL_CLOSE_TIMEOUT);
		assert_true(now < 1000 + 2 * UDAPL_CLOSE_TIMEOUT);
		check_nothing_remains();
	}
}

UNIT_CASE(adapter_without_connections_closes_at_once)
{
	open_adapter();
	add_procs();
	now = 1000;
	close_adapter();
	assert_true(now < 1000 + 1);
}

static int callbacks;

static void on_sent(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, mca_btl_base_descriptor_t *des, int status)
{
	callbacks++;
}

/* The component that registered it may already be unloaded. */
UNIT_CASE(no_callback_is_called_while_closing)
{
	udapl_frag_t *f;

	open_adapter();
	add_procs();
	connect_to(endpoints[0]);
	f = (udapl_frag_t *)udapl_alloc(&opened->super, endpoints[0], MCA_BTL_NO_ORDER, 10, 0);
	f->base.des_cbfunc = on_sent;
	f->callback = true;
	f->work.conn = endpoints[0]->conn;
	endpoints[0]->conn->posted++;
	num_posts = 0;
	completion_comes(&f->work, DAT_DTO_SUCCESS, 0);
	disconnects_succeed = sends_complete = true;
	callbacks = 0;
	close_adapter();
	assert_int_equal(callbacks, 0);
}

UNIT_MAIN(NULL, NULL)
