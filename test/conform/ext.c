/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ext.c - extensions: atomics, writes with immediate data, counters, datagrams, asking
 * without opening, vendor attributes. */
#include "pair.h"
#include <string.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG

static void needs_extensions(void)
{
	if (ia_attr()->extension_supported == DAT_EXTENSION_NONE)
		skip("extension_supported is DAT_EXTENSION_NONE");
}

TEST("EXT-1", without_an_open_ia_there_are_no_extensions)
{
	FAILS(dat_extension_op((DAT_HANDLE)1, DAT_IB_FETCH_AND_ADD_OP), DAT_NOT_IMPLEMENTED);
}

TEST("EXT-2", null_has_no_extensions)
{
	needs_extensions();
	FAILS(dat_extension_op(DAT_HANDLE_NULL, DAT_IB_FETCH_AND_ADD_OP),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1);
}

TEST("EXT-3", extensions_are_listed_as_attributes)
{
	needs_extensions();
	const DAT_PROVIDER_ATTR *p = provider_attr();

	HOLDS(p->num_provider_specific_attr > 0);
	HOLDS(p->provider_specific_attr != NULL);
	for (int i = 0; i < p->num_provider_specific_attr; i++) {
		HOLDS(p->provider_specific_attr[i].name && p->provider_specific_attr[i].name[0]);
		HOLDS(p->provider_specific_attr[i].value != NULL);
	}
	HOLDS(named_attr("DAT_EXTENSION_INTERFACE") != NULL);
}

/* Makes two ends with memory for atomics. The operand is the first word of b, the answer goes to that of a.
 * */
static struct pair an_atomic_pair(const char *attr)
{
	needs_attr(attr);
	struct pair p = CONNECTED_PAIR();

	p.b.mem = a_region(p.b.pz, 4096, (DAT_MEM_PRIV_FLAGS)(ALL_RIGHTS | DAT_IB_MEM_PRIV_REMOTE_ATOMIC));
	return p;
}

static uint64_t *word(const struct end *end)
{
	return (uint64_t *)end->mem.at;
}

static void expect_atomic(const struct end *a, DAT_IB_EXT_TYPE type, DAT_DTOS operation)
{
	DAT_EVENT event = EVENT(a->request, DAT_IB_DTO_EVENT);

	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EQUAL(event.event_data.dto_completion_event_data.operation, operation);
	EQUAL(extension(&event)->type, type);
	EQUAL(extension(&event)->status, DAT_OP_SUCCESS);
}

TEST("EXT-4", fetch_and_add_adds_and_tells_what_was_there)
{
	struct pair p = an_atomic_pair(DAT_IB_ATTR_FETCH_AND_ADD);

	*word(&p.b) = 5;
	OK(dat_ib_post_fetch_and_add(p.a.ep, 3, SEGMENT(&p.a.mem, 0, 8), COOKIE(1), TARGET(&p.b.mem, 0, 8),
				     DEFAULT));
	expect_atomic(&p.a, DAT_IB_FETCH_AND_ADD, (DAT_DTOS)DAT_IB_DTO_FETCH_ADD);
	EQUAL(*word(&p.a), 5);
	EQUAL(*word(&p.b), 8);
}

static void swap(struct pair *p, uint64_t compare, uint64_t to)
{
	*word(&p->b) = 8;
	OK(dat_ib_post_cmp_and_swap(p->a.ep, compare, to, SEGMENT(&p->a.mem, 0, 8), COOKIE(1),
				    TARGET(&p->b.mem, 0, 8), DEFAULT));
	expect_atomic(&p->a, DAT_IB_CMP_AND_SWAP, (DAT_DTOS)DAT_IB_DTO_CMP_SWAP);
}

TEST("EXT-5", compare_and_swap_swaps_what_it_expects)
{
	struct pair p = an_atomic_pair(DAT_IB_ATTR_CMP_AND_SWAP);

	swap(&p, 8, 20);
	EQUAL(*word(&p.a), 8);
	EQUAL(*word(&p.b), 20);
}

TEST("EXT-6", compare_and_swap_leaves_what_it_does_not_expect)
{
	struct pair p = an_atomic_pair(DAT_IB_ATTR_CMP_AND_SWAP);

	swap(&p, 9, 20);
	EQUAL(*word(&p.a), 8);
	EQUAL(*word(&p.b), 8);
}

TEST("EXT-7", atomics_need_their_own_right)
{
	struct pair p = an_atomic_pair(DAT_IB_ATTR_FETCH_AND_ADD);
	struct region plain = a_region(p.b.pz, 4096, ALL_RIGHTS);

	OK(dat_ib_post_fetch_and_add(p.a.ep, 3, SEGMENT(&p.a.mem, 0, 8), COOKIE(1), TARGET(&plain, 0, 8),
				     DEFAULT));
	COMPLETES(p.a.request, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	EQUAL(*(uint64_t *)plain.at, 0);
}

static void write_immediate(struct pair *p, size_t length, DAT_UINT32 data)
{
	OK(dat_ib_post_rdma_write_immed(p->a.ep, 1, SEGMENT(&p->a.mem, 0, length), COOKIE(1),
					TARGET(&p->b.mem, 0, length), data, DEFAULT));
}

static void expect_immediate(struct pair *p, uint64_t cookie, size_t length, DAT_UINT32 data)
{
	DAT_EVENT event = EVENT(p->b.recv, DAT_IB_DTO_EVENT);

	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EQUAL(event.event_data.dto_completion_event_data.transfered_length, length);
	EQUAL(extension(&event)->type, DAT_IB_RDMA_WRITE_IMMED_DATA);
	EQUAL(extension(&event)->val.immed.data, data);
}

TEST("EXT-8", a_write_with_immediate_data_tells_the_peer)
{
	needs_attr(DAT_IB_ATTR_IMMED_DATA);
	struct pair p = CONNECTED_PAIR();

	post_recv(&p.b, 8192, 64, 2);
	fill(p.a.mem.at, 1000, 1);
	write_immediate(&p, 1000, 0x7777);
	DAT_EVENT event = EVENT(p.a.request, DAT_IB_DTO_EVENT);
	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EQUAL(event.event_data.dto_completion_event_data.transfered_length, 1000);
	EQUAL(extension(&event)->type, DAT_IB_RDMA_WRITE_IMMED);
	expect_immediate(&p, 2, 1000, 0x7777);
	HOLDS(is_filled(p.b.mem.at, 1000, 1));
	HOLDS(is_zero(p.b.mem.at + 8192, 64));
	/* The order among messages is kept, and messages are reported as messages. */
	post_recv(&p.b, 8192, 64, 3);
	post_recv(&p.b, 8192, 64, 4);
	write_immediate(&p, 0, 0xfeedf00d);
	post_send(&p.a, 0, 64, 5);
	expect_immediate(&p, 3, 0, 0xfeedf00d);
	event = EVENT(p.b.recv, DAT_DTO_COMPLETION_EVENT);
	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, 4);
}

TEST("EXT-9", a_write_with_immediate_data_waits_for_a_receive)
{
	needs_attr(DAT_IB_ATTR_IMMED_DATA);
	struct pair p = CONNECTED_PAIR();
	DAT_EVENT event;

	write_immediate(&p, 64, 0x1234);
	NO_EVENT(p.b.recv);
	if (dat_evd_dequeue(p.a.request, &event) == DAT_SUCCESS &&
	    event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) {
		EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_RECEIVER_NOT_READY);
		return;
	}
	post_recv(&p.b, 8192, 64, 2);
	expect_immediate(&p, 2, 64, 0x1234);
}

TEST("EXT-10", an_ia_is_asked_without_being_opened)
{
	needs_extensions();
	DAT_HANDLE query = DAT_HANDLE_NULL;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;

	memset(&attr, 0, sizeof(attr));
	OK(dat_ib_open_query(ia_name(), &query, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
	HOLDS(query != DAT_HANDLE_NULL);
	EQUAL(attr.max_eps, ia_attr()->max_eps);
	EQUAL(attr.max_message_size, ia_attr()->max_message_size);
	HOLDS(!strcmp(provider.provider_name, provider_attr()->provider_name));
	OK(dat_ib_close_query(query));
}

TEST("EXT-11", an_unknown_ia_is_not_asked)
{
	needs_extensions();
	DAT_HANDLE query = DAT_HANDLE_NULL;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;

	FAILS(dat_ib_open_query("no such adapter", &query, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
				&provider), DAT_PROVIDER_NOT_FOUND);
}

TEST("EXT-12", an_operation_that_does_not_exist_is_refused)
{
	needs_extensions();
	FAILS(dat_extension_op(AN_END().ep, 999), DAT_NOT_IMPLEMENTED, DAT_INVALID_PARAMETER);
	FAILS(dat_extension_op(ia(), 999), DAT_NOT_IMPLEMENTED, DAT_INVALID_PARAMETER);
}

TEST("EXT-13", counters_count)
{
	needs_attr(DAT_IB_ATTR_COUNTERS);
	struct pair p = CONNECTED_PAIR();
	DAT_UINT64 before = 0, after = 0, all[DCNT_EP_ALL_COUNTERS];

	OK(dat_ib_query_counters(p.a.ep, DCNT_EP_POST_SEND, &before, 0));
	post_recv(&p.b, 0, 64, 1);
	post_send(&p.a, 0, 64, 2);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	OK(dat_ib_query_counters(p.a.ep, DCNT_EP_POST_SEND, &after, 1));
	EQUAL(after, before + 1);
	OK(dat_ib_query_counters(p.a.ep, DCNT_EP_POST_SEND, &after, 0));
	EQUAL(after, 0);
	OK(dat_ib_query_counters(p.b.ep, DCNT_EP_ALL_COUNTERS, all, 0));
	EQUAL(all[DCNT_EP_POST_RECV], 1);
	FAILS(dat_ib_query_counters(p.a.ep, 999, all, 0), DAT_INVALID_PARAMETER);
}

TEST("EXT-14", without_counters_nothing_is_counted)
{
	needs_extensions();
	DAT_UINT64 all[DCNT_EP_ALL_COUNTERS];

	if (named_attr(DAT_IB_ATTR_COUNTERS))
		skip("there is an attribute %s", DAT_IB_ATTR_COUNTERS);
	FAILS(dat_ib_query_counters(AN_END().ep, DCNT_EP_ALL_COUNTERS, all, 0), DAT_NOT_IMPLEMENTED);
}

TEST("EXT-3", datagram_endpoints_exist_where_they_are_listed)
{
	needs_extensions();
	DAT_EVD_HANDLE dto = an_evd((DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_IB_EVD_EXTENSION_FLAG)),
		       conn = an_evd((DAT_EVD_FLAGS)(DAT_EVD_CONNECTION_FLAG | DAT_IB_EVD_EXTENSION_FLAG));
	DAT_EP_ATTR attr = ud_attr();
	DAT_EP_HANDLE ep;
	DAT_RETURN ret = dat_ep_create(ia(), a_pz(), dto, dto, conn, &attr, &ep);

	if (!named_attr(DAT_IB_ATTR_UD)) {
		EQUAL(ret == DAT_SUCCESS, false);
		return;
	}
	OK(ret);
	OK(dat_ep_free(ep));
}

TEST("EXT-15", a_datagram_is_received_behind_its_header)
{
	needs_attr(DAT_IB_ATTR_UD);
	struct end a = a_ud_end(), b = a_ud_end();
	struct listener listener = a_listener_on(
		ia(), an_evd((DAT_EVD_FLAGS)(DAT_EVD_CR_FLAG | DAT_IB_EVD_EXTENSION_FLAG)), DAT_PSP_CONSUMER_FLAG);

	post_recv(&b, 0, 1024, 1);
	dial(a.ep, listener.qual);
	DAT_EVENT event = EVENT(listener.evd, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	event = EVENT(a.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	EQUAL(extension(&event)->type, DAT_IB_UD_REMOTE_AH);
	DAT_IB_ADDR_HANDLE to = extension(&event)->remote_ah;
	fill(a.mem.at, 100, 1);
	OK(dat_ib_post_send_ud(a.ep, 1, SEGMENT(&a.mem, 0, 100), &to, COOKIE(2), DEFAULT));
	event = EVENT(b.recv, DAT_IB_DTO_EVENT);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EQUAL(event.event_data.dto_completion_event_data.transfered_length, 140);
	EQUAL(extension(&event)->type, DAT_IB_UD_RECV);
	HOLDS(is_filled(b.mem.at + 40, 100, 1));
}

TEST("EXT-26", a_qualifier_of_64_bits_is_called_for_datagrams)
{
	needs_attr(DAT_IB_ATTR_UD);
	struct end a = a_ud_end(), b = a_ud_end();
	struct listener listener =
		a_large_listener(an_evd((DAT_EVD_FLAGS)(DAT_EVD_CR_FLAG | DAT_IB_EVD_EXTENSION_FLAG)));

	dial(a.ep, listener.qual);
	DAT_EVENT event = EVENT(listener.evd, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, listener.qual);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	EVENT(a.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
}

/* Makes two datagram endpoints, of which the first can send to the second. */
struct ud_pair {
	struct end a, b;
	struct listener listener;
	DAT_IB_EXTENSION_EVENT_DATA here, there;	/* of the ESTABLISHED events */
};

static struct listener a_ud_listener(void)
{
	return a_listener_on(ia(), an_evd((DAT_EVD_FLAGS)(DAT_EVD_CR_FLAG | DAT_IB_EVD_EXTENSION_FLAG)),
			     DAT_PSP_CONSUMER_FLAG);
}

static DAT_CR_HANDLE call_for_datagrams(struct ud_pair *p)
{
	needs_attr(DAT_IB_ATTR_UD);
	p->a = a_ud_end();
	p->b = a_ud_end();
	p->listener = a_ud_listener();
	dial(p->a.ep, p->listener.qual);
	DAT_EVENT event = EVENT(p->listener.evd, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

static struct ud_pair a_ud_pair(void)
{
	struct ud_pair p;
	DAT_EVENT event;
	DAT_CR_HANDLE cr = call_for_datagrams(&p);

	OK(dat_cr_accept(cr, p.b.ep, 0, NULL));
	event = EVENT(p.a.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	p.here = *extension(&event);
	event = EVENT(p.b.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	p.there = *extension(&event);
	return p;
}

static void expect_datagram(const struct ud_pair *p, uint64_t cookie)
{
	DAT_IB_ADDR_HANDLE to = p->here.remote_ah;

	post_recv(&p->b, 0, 1024, cookie);
	OK(dat_ib_post_send_ud(p->a.ep, 1, SEGMENT(&p->a.mem, 0, 100), &to, COOKIE(cookie), DEFAULT));
	DAT_EVENT event = EVENT(p->b.recv, DAT_IB_DTO_EVENT);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	event = EVENT(p->a.request, DAT_IB_DTO_EVENT);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

TEST("EXT-19", an_address_handle_outlives_the_connection_that_told_it)
{
	struct ud_pair p = a_ud_pair();

	expect_datagram(&p, 1);
	OK(dat_ib_ud_cm_free(p.a.ep, p.here.context));
	expect_datagram(&p, 2);
	OK(dat_ep_disconnect(p.b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_datagram(&p, 3);
}

TEST("EXT-20", a_freed_address_handle_is_no_address)
{
	struct ud_pair p = a_ud_pair();
	DAT_IB_ADDR_HANDLE to = p.here.remote_ah, freed = p.here.remote_ah;

	OK(dat_ib_ud_cm_free(p.a.ep, p.here.context));
	FAILS(dat_ib_ud_cm_free(p.a.ep, p.here.context), DAT_INVALID_PARAMETER);	/* the address handle lives */
	OK(dat_ib_ud_ah_free(p.a.ep, &freed));
	FAILS(dat_ib_post_send_ud(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 100), &to, COOKIE(1), DEFAULT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ib_ud_ah_free(p.a.ep, &to), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_ud_ah_free(p.a.ep, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_ud_cm_free(p.a.ep, p.here.context), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_ud_cm_free(AN_END().ep, p.here.context), DAT_INVALID_PARAMETER, DAT_INVALID_HANDLE);
}

TEST("EXT-21", a_refused_request_for_datagrams_is_told_with_private_data)
{
	struct ud_pair p;
	DAT_CR_HANDLE cr = call_for_datagrams(&p);

	OK(dat_cr_reject(cr, 3, "no."));
	DAT_EVENT event = EVENT(p.a.conn, DAT_IB_UD_CONNECTION_REJECT_EVENT);
	EQUAL(extension(&event)->type, DAT_IB_UD_CONNECT_REJECT);
	HOLDS(event.event_data.connect_event_data.private_data_size >= 3);
	HOLDS(!memcmp(event.event_data.connect_event_data.private_data, "no.", 3));
}

/* b, which has accepted, is an endpoint like any other. */
static void expect_usual_ud_end(struct ud_pair *p)
{
	DAT_EVENT event = EVENT(p->a.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);

	p->here = *extension(&event);
	EVENT(p->b.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	STATE(p->b.ep, DAT_EP_STATE_CONNECTED);
	expect_datagram(p, 1);
	OK(dat_ep_disconnect(p->b.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ep_free(p->b.ep));
}

TEST("SP-12 EXT-27", a_psp_makes_endpoints_for_datagrams)
{
	needs_attr(DAT_IB_ATTR_UD);
	struct ud_pair p = { .a = a_ud_end(), .b = a_ud_end() };
	DAT_EP_PARAM param = { .pz_handle = p.b.pz, .recv_evd_handle = p.b.recv,
			       .request_evd_handle = p.b.request, .connect_evd_handle = p.b.conn };
	struct listener listener = a_listener_on(
		ia(), an_evd((DAT_EVD_FLAGS)(DAT_EVD_CR_FLAG | DAT_IB_EVD_EXTENSION_FLAG)), DAT_PSP_PROVIDER_FLAG);
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	dial(p.a.ep, listener.qual);
	event = EVENT(listener.evd, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	p.b.ep = cr_param(cr).local_ep_handle;
	STATE(p.b.ep, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	OK(dat_ep_modify(p.b.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	expect_usual_ud_end(&p);
}

TEST("SP-16 EXT-28", a_reservation_takes_a_request_for_datagrams)
{
	needs_attr(DAT_IB_ATTR_UD);
	struct ud_pair p = { .a = a_ud_end(), .b = a_ud_end() };
	struct end other = a_ud_end();
	struct reservation r = a_reservation(p.b.ep);
	struct listener listener = a_ud_listener();
	DAT_CR_HANDLE cr, elsewhere;
	DAT_EVENT event;

	dial(p.a.ep, r.qual);
	event = EVENT(r.evd, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	STATE(p.b.ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	/* another request does not get the endpoint of this one */
	dial(other.ep, listener.qual);
	event = EVENT(listener.evd, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	elsewhere = event.event_data.cr_arrival_event_data.cr_handle;
	FAILS(dat_cr_accept(elsewhere, p.b.ep, 0, NULL), DAT_INVALID_STATE);
	STATE(p.b.ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	expect_usual_ud_end(&p);
	OK(dat_cr_reject(elsewhere, 0, NULL));
}

TEST("EXT-22", a_request_for_datagrams_without_a_listener_fails)
{
	needs_attr(DAT_IB_ATTR_UD);
	struct end a = a_ud_end();

	dial(a.ep, new_qual());
	DAT_EVENT event = next_event(a.conn);
	HOLDS((int)event.event_number == (int)DAT_IB_UD_CONNECTION_ERROR_EVENT ||
	      (int)event.event_number == (int)DAT_IB_UD_CONNECTION_REJECT_EVENT);
}

TEST("EXT-23", a_datagram_that_cannot_be_sent_is_refused)
{
	struct ud_pair p = a_ud_pair();
	DAT_IB_ADDR_HANDLE to = p.here.remote_ah, none = { 0 };

	FAILS(dat_ib_post_send_ud(AN_END().ep, 1, SEGMENT(&p.a.mem, 0, 100), &to, COOKIE(1), DEFAULT),
	      DAT_INVALID_PARAMETER, DAT_INVALID_STATE, DAT_INVALID_HANDLE);
	FAILS(dat_ib_post_send_ud(p.a.ep, -1, SEGMENT(&p.a.mem, 0, 100), &to, COOKIE(1), DEFAULT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ib_post_send_ud(p.a.ep, 1, NULL, &to, COOKIE(1), DEFAULT), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_post_send_ud(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 100), NULL, COOKIE(1), DEFAULT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ib_post_send_ud(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 100), &none, COOKIE(1), DEFAULT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ib_post_send_ud(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 16384), &to, COOKIE(1), DEFAULT),
	      DAT_LENGTH_ERROR);
}

TEST("EXT-24", counters_are_printed_started_and_stopped)
{
	needs_attr(DAT_IB_ATTR_COUNTERS);
	struct pair p = CONNECTED_PAIR();
	DAT_UINT64 before = 0, after = 0;

	WORKS(p.a, p.b);
	OK(dat_ib_query_counters(p.a.ep, DCNT_EP_POST_SEND, &before, 0));
	HOLDS(before > 0);
	OK(dat_ib_print_counters(p.a.ep, DCNT_EP_POST_SEND, 0));
	OK(dat_ib_print_counters(p.a.recv, DCNT_EVD_ALL_COUNTERS, 0));
	OK(dat_ib_print_counters(ia(), DCNT_IA_ALL_COUNTERS, 0));
	OK(dat_ib_print_counters(p.a.ep, DCNT_EP_ALL_COUNTERS, 1));
	OK(dat_ib_query_counters(p.a.ep, DCNT_EP_POST_SEND, &after, 0));
	EQUAL(after, 0);
	FAILS(dat_ib_print_counters(p.a.ep, 999, 0), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_print_counters(p.a.pz, 0, 0), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_query_counters(p.a.ep, DCNT_EP_POST_SEND, NULL, 0), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_query_counters(p.a.pz, 0, &after, 0), DAT_INVALID_PARAMETER);
	for (int group = DCNT_IA_CM; group <= DCNT_IA_DIAG; group++) {
		OK(dat_ib_start_counter(ia(), group));
		OK(dat_ib_stop_counter(ia(), group));
	}
	FAILS(dat_ib_start_counter(ia(), 999), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_stop_counter(p.a.ep, DCNT_IA_CM), DAT_INVALID_PARAMETER);
}

static DAT_EVENT event_into_noise(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	memset(&event, 0xee, sizeof(event));
	UNTIL(dat_evd_dequeue(evd, &event) == DAT_SUCCESS, "an event");
	return event;
}

TEST("EXT-16", a_plain_event_has_zeroed_extension_data)
{
	struct pair p = CONNECTED_PAIR();
	DAT_EVD_HANDLE soft = an_evd(DAT_EVD_SOFTWARE_FLAG);
	DAT_EVENT event;

	post_recv(&p.b, 0, 64, 1);
	post_send(&p.a, 0, 64, 2);
	event = event_into_noise(p.a.request);
	HOLDS(is_zero((char *)event.event_extension_data, sizeof(event.event_extension_data)));
	event = event_into_noise(p.b.recv);
	HOLDS(is_zero((char *)event.event_extension_data, sizeof(event.event_extension_data)));
	OK(post_number(soft, 1));
	event = event_into_noise(soft);
	HOLDS(is_zero((char *)event.event_extension_data, sizeof(event.event_extension_data)));
	hang_up(&p.a);
	event = event_into_noise(p.b.conn);
	HOLDS(is_zero((char *)event.event_extension_data, sizeof(event.event_extension_data)));
}

static const char *vendor_attr(const char *name)
{
	const DAT_IA_ATTR *attr = ia_attr();

	for (int i = 0; attr->vendor_attr && i < attr->num_vendor_attr; i++)
		if (!strcmp(attr->vendor_attr[i].name, name))
			return attr->vendor_attr[i].value;
	return NULL;
}

TEST("EXT-17", delayed_acknowledgement_is_switched_on_where_it_exists)
{
	const char *supported = vendor_attr("delayed_ack_supported");
	DAT_NAMED_ATTR on = { "delayed_ack", "true" };
	DAT_EP_PARAM param;
	struct end end = AN_END();

	if (!supported)
		skip("there is no attribute delayed_ack_supported");
	memset(&param, 0, sizeof(param));
	param.ep_attr.ep_provider_specific_count = 1;
	param.ep_attr.ep_provider_specific = &on;
	if (strcmp(supported, "true")) {
		FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR |
				    DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, &param),
		      DAT_MODEL_NOT_SUPPORTED, DAT_INVALID_PARAMETER);
		skip("delayed_ack_supported is \"%s\"", supported);
	}
	OK(dat_ep_modify(end.ep, DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR |
			 DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, &param));
}

static struct pair a_delayed_pair(void)
{
	static DAT_NAMED_ATTR on = { "delayed_ack", "true" };
	const char *supported = vendor_attr("delayed_ack_supported");
	DAT_EP_ATTR attr = ep_attr();

	if (!supported || strcmp(supported, "true"))
		skip("delayed_ack_supported is not \"true\"");
	attr.ep_provider_specific_count = 1;
	attr.ep_provider_specific = &on;
	return CONNECTED_PAIR(.attr = &attr);
}

TEST("EXT-42", a_delayed_write_completes_when_its_data_is_in_the_peers_memory)
{
	static const size_t sizes[] = { 0, 1, 8, 64, 1000, 4096, 20000, 32768 };
	struct pair p = a_delayed_pair();
	int max = ep_param(p.a.ep).ep_attr.max_request_dtos;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		fill(p.a.mem.at, sizes[i], (int)i + 1);
		post_write(&p.a, 0, sizes[i], &p.b.mem, 100, i);
		DAT_DTO_COMPLETION_EVENT_DATA done = COMPLETES(p.a.request, i, DAT_DTO_SUCCESS);
		HOLDS(is_filled(p.b.mem.at + 100, sizes[i], (int)i + 1));
		EQUAL(done.operation, DAT_DTO_RDMA_WRITE);
		EQUAL(done.transfered_length, sizes[i]);
	}
	for (int i = 0; i < max; i++)	/* the queue has room for as many as for other writes */
		post_write(&p.a, (size_t)i, 1, &p.b.mem, 40000 + (size_t)i, 100 + (uint64_t)i);
	for (int i = 0; i < max; i++)
		COMPLETES(p.a.request, 100 + i, DAT_DTO_SUCCESS);
	HOLDS(!memcmp(p.a.mem.at, p.b.mem.at + 40000, (size_t)max));
	NO_EVENT(p.a.request);
	WORKS(p.a, p.b);
}

TEST("EXT-43", each_of_several_delayed_writes_that_fail_completes_once)
{
	struct pair p = a_delayed_pair();
	struct region wrong = forged(&p.b.mem);

	uint64_t last = 1;

	post_write(&p.a, 0, 64, &wrong, 0, 1);
	while (last < 4 && dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(last + 1),
						  TARGET(&p.b.mem, 0, 64), DEFAULT) == DAT_SUCCESS)
		last++;		/* until the connection is broken */
	COMPLETES(p.a.request, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	for (uint64_t i = 2; i <= last; i++)
		COMPLETES(p.a.request, i, DAT_DTO_ERR_FLUSHED);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_BROKEN);
	ENDS(p.b.conn);
	NO_EVENT(p.a.request);
}

TEST("EXT-25", a_request_for_datagrams_without_an_answer_times_out)
{
	needs_attr(DAT_IB_ATTR_UD);
	struct end a = a_ud_end();
	struct listener listener = a_ud_listener();

	OK(dat_ep_connect(a.ep, address(), listener.qual, 300000, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	EVENT(listener.evd, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	DAT_EVENT event = EVENT(a.conn, DAT_IB_UD_CONNECTION_ERROR_EVENT);
	EQUAL(extension(&event)->type, DAT_IB_UD_CONNECT_ERROR);
}

TEST("EXT-18", tracing_is_controlled_where_it_is_announced)
{
	if (!vendor_attr("vendor_extension")) {
		HOLDS(!vendor_attr("debug_query"));
		HOLDS(!vendor_attr("debug_modify"));
		return;
	}
	HOLDS(!strcmp(vendor_attr("vendor_extension"), "1.0"));
	HOLDS(vendor_attr("debug_query") != NULL);
	HOLDS(vendor_attr("debug_modify") != NULL);
}
