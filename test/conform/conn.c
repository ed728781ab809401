/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - connections: how they come about, fail and end, and what private data they
 * carry. Service points are in sp.c; every call in every state in states.c. */
#include "actors.h"
#include "pair.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define GREETING 48	/* bytes of private data that every transport carries */

static DAT_RETURN dial_with(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout, DAT_COUNT size,
			    void *data)
{
	return dat_ep_connect(ep, address(), qual, timeout, size, data, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

TEST("CONN-1", both_sides_are_told_of_the_connection)
{
	struct end a = AN_END(), b = AN_END();
	struct listener listener = a_listener();

	dial(a.ep, listener.qual);
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EQUAL(EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data.ep_handle, a.ep);
	EQUAL(EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data.ep_handle, b.ep);
	STATE(a.ep, DAT_EP_STATE_CONNECTED);
	STATE(b.ep, DAT_EP_STATE_CONNECTED);
	WORKS(a, b);
}

TEST("CONN-2", a_request_carries_private_data)
{
	struct end a = AN_END();
	struct listener listener = a_listener();
	char data[GREETING];

	fill(data, GREETING, 1);
	OK(dial_with(a.ep, listener.qual, AMPLE_TIME, GREETING, data));
	memset(data, 0, GREETING);	/* it was copied */
	DAT_CR_PARAM param = cr_param(request_on(listener.evd));
	HOLDS(param.private_data_size >= GREETING);
	HOLDS(is_filled(param.private_data, GREETING, 1));
}

TEST("CONN-3", an_acceptance_carries_private_data)
{
	struct end a = AN_END(), b = AN_END();
	struct listener listener = a_listener();
	char data[GREETING];

	fill(data, GREETING, 2);
	dial(a.ep, listener.qual);
	OK(dat_cr_accept(request_on(listener.evd), b.ep, GREETING, data));
	memset(data, 0, GREETING);
	DAT_EVENT event = EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	HOLDS(event.event_data.connect_event_data.private_data_size >= GREETING);
	HOLDS(is_filled(event.event_data.connect_event_data.private_data, GREETING, 2));
}

TEST("CONN-4", more_private_data_than_the_maximum_is_refused)
{
	struct end a = AN_END();
	DAT_COUNT size = provider_attr()->max_private_data_size + 1;

	FAILS(dial_with(a.ep, a_listener().qual, AMPLE_TIME, size, some_memory(size)),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	STATE(a.ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("CONN-5", private_data_is_somewhere)
{
	struct end a = AN_END();

	FAILS(dial_with(a.ep, a_listener().qual, AMPLE_TIME, 8, NULL),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG6);
	STATE(a.ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("CONN-6", connecting_takes_time)
{
	struct end a = AN_END();

	FAILS(dial_with(a.ep, a_listener().qual, 0, 0, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
	STATE(a.ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("CONN-7", one_connects_to_an_address)
{
	struct end a = AN_END();

	FAILS(dat_ep_connect(a.ep, NULL, a_listener().qual, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	STATE(a.ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("CONN-8", a_connected_ep_does_not_connect)
{
	struct pair p = CONNECTED_PAIR();

	FAILS(try_dial(p.a.ep, a_listener().qual), DAT_INVALID_STATE | DAT_INVALID_STATE_EP_CONNECTED);
	WORKS(p.a, p.b);
}

TEST("CONN-9", an_ep_without_connect_evd_does_not_connect)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(ia(), a_pz(), an_evd(DAT_EVD_DTO_FLAG), an_evd(DAT_EVD_DTO_FLAG),
			 DAT_HANDLE_NULL, &attr, &ep));
	FAILS(try_dial(ep, a_listener().qual), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_CONN,
	      DAT_INVALID_STATE);
	STATE(ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("CONN-10", an_ep_without_pz_does_not_connect)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(ia(), DAT_HANDLE_NULL, an_evd(DAT_EVD_DTO_FLAG), an_evd(DAT_EVD_DTO_FLAG),
			 an_evd(DAT_EVD_CONNECTION_FLAG), &attr, &ep));
	FAILS(try_dial(ep, a_listener().qual), DAT_INVALID_STATE);
	STATE(ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("CONN-11", without_a_listener_a_connection_is_refused)
{
	struct end a = AN_END();

	post_recv(&a, 0, 64, 1);
	dial(a.ep, new_qual());
	EVENT(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	STATE(a.ep, DAT_EP_STATE_DISCONNECTED);
	COMPLETES(a.recv, 1, DAT_DTO_ERR_FLUSHED);
	NO_EVENT(a.conn);
}

TEST("CONN-12", an_address_without_a_route_is_unreachable)
{
	struct end a = AN_END();
	/* An address for documentation, which no host has. */
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_addr.s6_addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } };
	DAT_IA_ADDRESS_PTR nowhere = address()->sa_family == AF_INET ? (DAT_IA_ADDRESS_PTR)&four :
								       (DAT_IA_ADDRESS_PTR)&six;
	AT("dat_ep_connect to a documentation address");
	DAT_RETURN ret = dat_ep_connect(a.ep, nowhere, new_qual(), 5000000, 0, NULL,
					DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);

	if (ret != DAT_SUCCESS) {
		FAILS(ret, DAT_INVALID_ADDRESS);
		STATE(a.ep, DAT_EP_STATE_UNCONNECTED);
	} else {
		/* rdma_cm asks ARP for longer than the time-out allows: see DOUBTS.md */
		EVENT(a.conn, device_is("rxe") ?
		      DAT_CONNECTION_EVENT_TIMED_OUT : DAT_CONNECTION_EVENT_UNREACHABLE);
		STATE(a.ep, DAT_EP_STATE_DISCONNECTED);
	}
}

TEST("CONN-13", a_request_that_is_never_answered_times_out)
{
	struct end a = AN_END();
	struct listener listener = a_listener();
	double begin = now();

	OK(dial_with(a.ep, listener.qual, 500000, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_TIMED_OUT);
	double took = now() - begin;
	HOLDS(took >= 0.5);
	HOLDS(took < 0.5 + patience() / 4);
	STATE(a.ep, DAT_EP_STATE_DISCONNECTED);
}

TEST("CONN-14", a_rejection_carries_private_data)
{
	struct end a = AN_END();
	struct listener listener = a_listener();
	char data[GREETING];

	fill(data, GREETING, 3);
	dial(a.ep, listener.qual);
	OK(dat_cr_reject(request_on(listener.evd), GREETING, data));
	DAT_EVENT event = EVENT(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	HOLDS(event.event_data.connect_event_data.private_data_size >= GREETING);
	HOLDS(is_filled(event.event_data.connect_event_data.private_data, GREETING, 3));
	STATE(a.ep, DAT_EP_STATE_DISCONNECTED);
}

TEST("CONN-15", a_rejection_without_private_data_carries_none)
{
	struct end a = AN_END();
	struct listener listener = a_listener();

	dial(a.ep, listener.qual);
	OK(dat_cr_reject(request_on(listener.evd), 0, NULL));
	DAT_EVENT event = EVENT(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	EQUAL(event.event_data.connect_event_data.private_data_size, 0);
}

TEST("CONN-16", after_a_failed_attempt_and_a_reset_an_ep_connects)
{
	struct end a = AN_END(), b = AN_END();

	dial(a.ep, new_qual());
	EVENT(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_ep_reset(a.ep));
	connect_ends(&a, &b);
	WORKS(a, b);
}

TEST("CONN-17", receives_posted_before_connecting_are_used)
{
	struct end a = AN_END(), b = AN_END();

	for (int i = 0; i < 4; i++) {
		post_recv(&a, i * 64, 64, i);
		post_recv(&b, i * 64, 64, i);
	}
	connect_ends(&a, &b);
	for (int i = 0; i < 4; i++) {
		post_send(&a, 1024, 64, 100 + i);
		post_send(&b, 1024, 64, 200 + i);
	}
	for (int i = 0; i < 4; i++) {
		COMPLETES(a.recv, i, DAT_DTO_SUCCESS);
		COMPLETES(b.recv, i, DAT_DTO_SUCCESS);
	}
}

TEST("CONN-18", a_connection_is_duplicated)
{
	struct end a = AN_END(), b = AN_END(), second_a = AN_END(), second_b = AN_END();
	struct listener listener = a_listener();

	dial(a.ep, listener.qual);
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	OK(dat_ep_dup_connect(second_a.ep, a.ep, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT));
	OK(dat_cr_accept(request_on(listener.evd), second_b.ep, 0, NULL));
	EVENT(second_a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(second_b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	WORKS(second_a, second_b);
	WORKS(a, b);
}

TEST("CONN-19", there_is_nothing_to_duplicate_in_an_unconnected_ep)
{
	struct end a = AN_END(), b = AN_END();

	FAILS(dat_ep_dup_connect(a.ep, b.ep, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED);
	STATE(a.ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("CONN-20", duplicating_takes_time)
{
	struct pair p = CONNECTED_PAIR();
	struct end a = AN_END();

	FAILS(dat_ep_dup_connect(a.ep, p.a.ep, 0, 0, NULL, DAT_QOS_BEST_EFFORT),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("CONN-21", an_unconnected_ep_does_not_disconnect)
{
	struct end a = AN_END();

	FAILS(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED);
	FAILS(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED);
}

TEST("CONN-22", disconnecting_again_does_nothing)
{
	struct pair p = CONNECTED_PAIR();

	hang_up(&p.a);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	STATE(p.a.ep, DAT_EP_STATE_DISCONNECTED);
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	ENDS(p.b.conn);
	NO_EVENT(p.a.conn);
}

TEST("CONN-23", a_disconnect_is_graceful_or_abrupt)
{
	struct pair p = CONNECTED_PAIR();

	FAILS(dat_ep_disconnect(p.a.ep, (DAT_CLOSE_FLAGS)7), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	WORKS(p.a, p.b);
}

TEST("CONN-24", an_abrupt_disconnect_flushes_both_sides)
{
	struct pair p = CONNECTED_PAIR();

	for (int i = 0; i < 4; i++) {
		post_recv(&p.a, i * 64, 64, i);
		post_recv(&p.b, i * 64, 64, i);
	}
	hang_up(&p.a);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	EVENT(p.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (int i = 0; i < 4; i++) {
		COMPLETES(p.a.recv, i, DAT_DTO_ERR_FLUSHED);
		COMPLETES(p.b.recv, i, DAT_DTO_ERR_FLUSHED);
	}
	STATE(p.a.ep, DAT_EP_STATE_DISCONNECTED);
	STATE(p.b.ep, DAT_EP_STATE_DISCONNECTED);
}

TEST("CONN-25", a_graceful_disconnect_lets_sends_finish)
{
	struct pair p = CONNECTED_PAIR();

	for (int i = 0; i < 8; i++)
		post_recv(&p.b, i * 4096, 4096, i);
	for (int i = 0; i < 8; i++)
		post_send(&p.a, i * 4096, 4096, i);
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	for (int i = 0; i < 8; i++)
		COMPLETES(p.a.request, i, DAT_DTO_SUCCESS);
	for (int i = 0; i < 8; i++)
		COMPLETES(p.b.recv, i, DAT_DTO_SUCCESS);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	EVENT(p.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

TEST("CONN-26", a_second_graceful_disconnect_changes_nothing)
{
	struct pair p = CONNECTED_PAIR();

	hold_requests(&p);
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	STATE(p.a.ep, DAT_EP_STATE_DISCONNECT_PENDING);
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	STATE(p.a.ep, DAT_EP_STATE_DISCONNECT_PENDING);
	post_recv(&p.b, 0, 64, 1);
	COMPLETES(p.a.request, 900, DAT_DTO_SUCCESS);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	EVENT(p.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	NO_EVENT(p.a.conn);
}

TEST("CONN-27", an_attempt_that_was_given_up_does_not_succeed_later)
{
	struct end a = AN_END(), b = AN_END();
	struct listener listener = a_listener();

	dial(a.ep, listener.qual);
	DAT_CR_HANDLE cr = request_on(listener.evd);
	STATE(a.ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	hang_up(&a);
	EVENT(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	STATE(a.ep, DAT_EP_STATE_DISCONNECTED);
	if (dat_cr_accept(cr, b.ep, 0, NULL) == DAT_SUCCESS)
		next_event(b.conn);
	NO_EVENT(a.conn);
	STATE(a.ep, DAT_EP_STATE_DISCONNECTED);
}

static void expect_one_end_each(struct pair *p)
{
	ENDS(p->a.conn);
	ENDS(p->b.conn);
	NO_EVENT(p->a.conn);
	NO_EVENT(p->b.conn);
	STATE(p->a.ep, DAT_EP_STATE_DISCONNECTED);
	STATE(p->b.ep, DAT_EP_STATE_DISCONNECTED);
	OK(dat_ep_reset(p->a.ep));
	OK(dat_ep_reset(p->b.ep));
}

TEST("CONN-28", a_connection_ends_once_on_each_side)
{
	struct pair p = CONNECTED_PAIR();

	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_one_end_each(&p);

	connect_ends(&p.a, &p.b);
	OK(dat_ep_disconnect(p.b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_one_end_each(&p);

	connect_ends(&p.a, &p.b);	/* both at once */
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ep_disconnect(p.b.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_one_end_each(&p);

	connect_ends(&p.a, &p.b);	/* an error, and a disconnect on top of it */
	post_read(&p.a, 0, 64, &(struct region){ .at = p.b.mem.at, .remote = p.b.mem.remote + 0x5500 }, 0, 1);
	OK(dat_ep_disconnect(p.b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_one_end_each(&p);
}

TEST("CONN-29", on_one_evd_the_flushes_come_before_the_end)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_COMPLETION_FLAGS threshold = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	DAT_EVD_FLAGS all = (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);

	if (!provider_attr()->evd_stream_merging_supported[2][3])
		skip("evd_stream_merging_supported: not DTO with CONNECTION");
	if (provider_attr()->completion_flags_supported & threshold)
		attr.recv_completion_flags = attr.request_completion_flags = threshold;
	DAT_EVD_HANDLE evd = an_evd(all);
	struct end a = AN_END(.attr = &attr, .recv = evd, .request = evd, .conn = evd);
	struct end b = AN_END(.attr = &attr);

	for (int i = 0; i < 4; i++)
		post_recv(&a, i * 64, 64, i);
	connect_ends(&a, &b);
	hang_up(&b);
	for (int i = 0; i < 4; i++)
		COMPLETES(evd, i, DAT_DTO_ERR_FLUSHED);
	EVENT(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

TEST("CONN-30", private_data_of_an_acceptance_stays)
{
	struct end a = AN_END(), b = AN_END();
	struct listener listener = a_listener();
	char data[GREETING];

	fill(data, GREETING, 4);
	dial(a.ep, listener.qual);
	OK(dat_cr_accept(request_on(listener.evd), b.ep, GREETING, data));
	DAT_EVENT event = EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	OK(dat_psp_free(listener.psp));
	WORKS(a, b);
	hang_up(&b);
	EVENT(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	HOLDS(is_filled(event.event_data.connect_event_data.private_data, GREETING, 4));
}

static const void *ip_of(DAT_IA_ADDRESS_PTR where)
{
	return where->sa_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)where)->sin6_addr :
					      (void *)&((struct sockaddr_in *)where)->sin_addr;
}

static void expect_address(DAT_IA_ADDRESS_PTR found, DAT_IA_ADDRESS_PTR expected)
{
	HOLDS(found != NULL);
	EQUAL(found->sa_family, expected->sa_family);
	HOLDS(!memcmp(ip_of(found), ip_of(expected), expected->sa_family == AF_INET6 ? 16 : 4));
}

TEST("CONN-31", a_connected_ep_tells_its_peer)
{
	struct end a = AN_END(), b = AN_END();
	struct listener listener = a_listener();

	dial(a.ep, listener.qual);
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_address(ep_param(a.ep).remote_ia_address_ptr, address());
	EQUAL(ep_param(a.ep).remote_port_qual, listener.qual);
	expect_address(ep_param(b.ep).remote_ia_address_ptr, ia_attr()->ia_address_ptr);
	HOLDS(ep_param(b.ep).remote_port_qual != 0);
}

TEST("CONN-32", an_ep_of_a_service_point_does_not_disconnect)
{
	struct end a = AN_END(), b = AN_END();
	struct reservation r = a_reservation(b.ep);

	FAILS(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_RESERVED);
	dial(a.ep, r.qual);
	DAT_CR_HANDLE cr = request_on(r.evd);
	STATE(b.ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	FAILS(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_PASSCONNPENDING);
	OK(dat_cr_reject(cr, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	if (provider_attr()->ep_creator == DAT_PSP_CREATES_EP_NEVER)
		return;
	struct listener listener = a_listener_on(ia(), an_evd(DAT_EVD_CR_FLAG), DAT_PSP_PROVIDER_FLAG);
	OK(dat_ep_reset(a.ep));
	dial(a.ep, listener.qual);
	DAT_EP_HANDLE made = cr_param(request_on(listener.evd)).local_ep_handle;
	STATE(made, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	FAILS(dat_ep_disconnect(made, DAT_CLOSE_ABRUPT_FLAG),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_TENTCONNPENDING);
}

/* --- with another process ------------------------------------------------------------------ */

/* Connects to the qualifier that the test sends, and lives until it is killed. */
static void call_and_stay(struct peer *self, void *arg __attribute__((unused)))
{
	struct end end = AN_END();
	DAT_CONN_QUAL qual;

	for (int i = 0; i < 8; i++)
		post_recv(&end, i * 64, 64, i);
	hear(self, &qual, sizeof(qual));
	dial(end.ep, qual);
	for (;;)
		pause();
}

/* Starts a peer that connects, and stops it so that it does not answer. Returns its request, too. */
static struct peer a_stopped_caller(struct listener *listener, DAT_CR_HANDLE *cr)
{
	struct peer peer = a_peer(call_and_stay, NULL);

	*listener = a_listener();
	tell(&peer, &listener->qual, sizeof(listener->qual));
	*cr = request_on(listener->evd);
	kill_peer(&peer, SIGSTOP);
	return peer;
}

TEST("CONN-33", an_acceptance_not_yet_completed_is_disconnected)
{
	struct listener listener;
	DAT_CR_HANDLE cr;
	struct peer peer = a_stopped_caller(&listener, &cr);
	struct end b = AN_END();

	post_recv(&b, 0, 64, 1);
	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	if (state_of(b.ep) != DAT_EP_STATE_COMPLETION_PENDING)
		skip("an acceptance completes without the peer on this device");
	hang_up(&b);
	DAT_EVENT event = next_event(b.conn);
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)	/* in between */
		skip("an acceptance completes without the peer on this device");
	EQUAL(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	STATE(b.ep, DAT_EP_STATE_DISCONNECTED);
	COMPLETES(b.recv, 1, DAT_DTO_ERR_FLUSHED);
	kill_peer(&peer, SIGKILL);
	NO_EVENT(b.conn);
}

TEST("CONN-34", a_marker_comes_out_after_all_that_was_posted)
{
	struct pair p = CONNECTED_PAIR();

	for (int i = 0; i < 4; i++)
		post_recv(&p.a, i * 64, 64, i);
	hang_up(&p.a);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	post_recv(&p.a, 0, 64, 99);
	for (int i = 0; i < 4; i++)
		COMPLETES(p.a.recv, i, DAT_DTO_ERR_FLUSHED);
	COMPLETES(p.a.recv, 99, DAT_DTO_ERR_FLUSHED);
	OK(dat_ep_reset(p.a.ep));
}

static void call_and_close(struct peer *self, void *arg __attribute__((unused)))
{
	struct end end = AN_END();
	DAT_CONN_QUAL qual;
	char go;

	hear(self, &qual, sizeof(qual));
	dial(end.ep, qual);
	EVENT(end.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	hear(self, &go, 1);
	OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
}

TEST("CONN-35", a_peer_that_closes_its_ia_is_told_of)
{
	struct peer peer = a_peer(call_and_close, NULL);
	struct end b = AN_END();
	struct listener listener = a_listener();

	post_recv(&b, 0, 64, 1);
	tell(&peer, &listener.qual, sizeof(listener.qual));
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	tell(&peer, "g", 1);
	ENDS(b.conn);
	COMPLETES(b.recv, 1, DAT_DTO_ERR_FLUSHED);
	expect_peer_done(&peer);
	NO_EVENT(b.conn);
}

/* Expects all completions up to the last. Where the peer had ended before, any status but success is right.
 * */
static void reap(DAT_EVD_HANDLE evd, int first, int last)
{
	for (int i = first; i <= last; i++) {
		DAT_EVENT event = EVENT(evd, DAT_DTO_COMPLETION_EVENT);
		EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
	}
}

TEST("CONN-36", a_peer_that_is_killed_is_told_of)
{
	struct peer peer = a_peer(call_and_stay, NULL);
	struct end b = AN_END();
	struct listener listener = a_listener();

	for (int i = 0; i < 4; i++)
		post_recv(&b, i * 64, 64, i);
	tell(&peer, &listener.qual, sizeof(listener.qual));
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (int i = 0; i < 8; i++)	/* what the peer has receives for */
		post_send(&b, 1024, 64, 100 + i);
	kill_peer(&peer, SIGKILL);
	ENDS(b.conn);
	reap(b.recv, 0, 3);
	reap(b.request, 100, 107);
	NO_EVENT(b.conn);
	STATE(b.ep, DAT_EP_STATE_DISCONNECTED);
}
