/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.c - what a process sees of a peer that is killed, is stopped, or exits without disconnecting. */
#include "actors.h"
#include "pair.h"
#include <signal.h>
#include <unistd.h>

struct invitation {
	DAT_CONN_QUAL qual;
	struct region mem;	/* of the inviting process */
};

/* Connects, and then reads and writes the other's memory and sends to it, without end. */
static void call_and_toil(struct peer *self, void *arg __attribute__((unused)))
{
	struct end end = AN_END();
	struct invitation to;
	DAT_EVENT event;

	for (int i = 0; i < 16; i++)
		post_recv(&end, i * 64, 64, i);
	hear(self, &to, sizeof(to));
	dial(end.ep, to.qual);
	EVENT(end.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	tell(self, &end.mem, sizeof(end.mem));
	for (uint64_t i = 0;; i++) {
		post_write(&end, 4096, 2000, &to.mem, 0, i);
		post_read(&end, 8192, 2000, &to.mem, 0, i);
		for (int done = 0; done < 2;)
			done += dat_evd_dequeue(end.request, &event) == DAT_SUCCESS;
		while (dat_evd_dequeue(end.recv, &event) == DAT_SUCCESS)
			post_recv(&end, 0, 64, 1);
	}
}

/* A peer at work, connected to b. */
static struct peer a_toiler(struct end *b, struct region *its)
{
	struct peer peer = a_peer(call_and_toil, NULL);
	struct listener listener = a_listener();

	*b = AN_END();
	for (int i = 0; i < 8; i++)
		post_recv(b, 16384 + i * 64, 64, i);
	struct invitation invitation = { listener.qual, b->mem };
	tell(&peer, &invitation, sizeof(invitation));
	OK(dat_cr_accept(request_on(listener.evd), b->ep, 0, NULL));
	EVENT(b->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	hear(&peer, its, sizeof(*its));
	OK(dat_psp_free(listener.psp));
	return peer;
}

static void survive(void)
{
	struct region its;
	struct end b;
	struct peer peer = a_toiler(&b, &its);
	uint64_t posted = 0, done = 0, moment = 1 + chance(100);
	int sent = 0;	/* no more than it has receives: a message that finds none may end all */
	DAT_EVENT event;

	/* This end posts requests, too, until the moment comes. */
	while (done < moment) {
		if (posted - done < 8) {
			switch (chance(sent < 16 ? 3 : 2)) {
			case 0: post_write(&b, 32768, 1000, &its, 32768, posted++); break;
			case 1: post_read(&b, 36864, 1000, &its, 32768, posted++); break;
			default: post_send(&b, 40960, 64, posted++); sent++; break;
			}
		}
		if (dat_evd_dequeue(b.request, &event) == DAT_SUCCESS) {
			EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, done++);
			EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		}
	}
	kill_peer(&peer, SIGKILL);
	/* Posts succeed until the end is detected, and after it. */
	for (int i = 0; i < 2 && posted - done < 10; i++)
		post_write(&b, 32768, 1000, &its, 32768, posted++);
	ENDS(b.conn);
	STATE(b.ep, DAT_EP_STATE_DISCONNECTED);
	while (done < posted) {
		event = EVENT(b.request, DAT_DTO_COMPLETION_EVENT);
		EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, done++);
	}
	for (int i = 0; i < 8; i++)
		COMPLETES(b.recv, i, DAT_DTO_ERR_FLUSHED);
	NO_EVENT(b.conn);
	NO_EVENT(b.request);
	NO_EVENT(b.recv);
	OK(dat_ep_reset(b.ep));
}

/* Several rounds, each with another moment. The peer is forked before the IA is opened, so each round is a
 * process of its own. */
static void one_life(struct peer *self __attribute__((unused)), void *round)
{
	for (int i = 0; i <= *(int *)round; i++)
		chance(1000);	/* another place in the sequence */
	survive();
	OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
}

TEST("PEER-1", a_peer_killed_at_any_moment_leaves_one_end_and_no_request_behind)
{
	for (int round = 0; round < 8; round++) {
		struct peer life = a_peer(one_life, &round);
		expect_peer_done(&life);
	}
}

TEST("PEER-2", after_the_death_of_a_peer_an_ep_connects_again)
{
	struct region its;
	struct end b;
	struct peer peer = a_toiler(&b, &its);

	kill_peer(&peer, SIGKILL);
	ENDS(b.conn);
	OK(dat_ep_reset(b.ep));
	struct end a = AN_END();
	connect_ends(&a, &b);
	WORKS(a, b);
}

static void call_and_exit(struct peer *self, void *arg __attribute__((unused)))
{
	struct end end = AN_END();
	struct invitation to;
	char go;

	hear(self, &to, sizeof(to));
	dial(end.ep, to.qual);
	EVENT(end.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	hear(self, &go, 1);
	_exit(0);	/* nothing is closed, nothing is freed */
}

TEST("PEER-3", a_peer_that_exits_without_a_word_is_told_of)
{
	struct peer peer = a_peer(call_and_exit, NULL);
	struct listener listener = a_listener();
	struct end b = AN_END();
	struct invitation invitation = { .qual = listener.qual };

	tell(&peer, &invitation, sizeof(invitation));
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	tell(&peer, "g", 1);
	expect_peer_done(&peer);
	ENDS(b.conn);
	NO_EVENT(b.conn);
}

/* A listener that dies before it answers. */
static void listen_and_stay(struct peer *self, void *arg __attribute__((unused)))
{
	struct listener listener = a_listener();
	char arrived = 1;

	tell(self, &listener.qual, sizeof(listener.qual));
	request_on(listener.evd);
	tell(self, &arrived, 1);
	for (;;)
		pause();
}

TEST("PEER-4", a_listener_that_dies_before_it_answers_is_told_of)
{
	struct peer peer = a_peer(listen_and_stay, NULL);
	DAT_CONN_QUAL qual;
	char arrived;
	struct end a = AN_END();

	post_recv(&a, 0, 64, 1);
	hear(&peer, &qual, sizeof(qual));
	dial(a.ep, qual);
	hear(&peer, &arrived, 1);
	kill_peer(&peer, SIGKILL);
	DAT_EVENT event = next_event(a.conn);
	if (event.event_number != DAT_CONNECTION_EVENT_NON_PEER_REJECTED &&
	    event.event_number != DAT_CONNECTION_EVENT_UNREACHABLE &&
	    event.event_number != DAT_CONNECTION_EVENT_TIMED_OUT)
		fail("expected a failed connection, found %s", event_name(event.event_number));
	STATE(a.ep, DAT_EP_STATE_DISCONNECTED);
	COMPLETES(a.recv, 1, DAT_DTO_ERR_FLUSHED);
	NO_EVENT(a.conn);
}

static void exchange(struct peer *self, void *arg __attribute__((unused)))
{
	struct end end = AN_END();
	struct invitation to;

	post_recv(&end, 0, 4096, 1);
	hear(self, &to, sizeof(to));
	dial(end.ep, to.qual);
	EVENT(end.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	fill(end.mem.at + 4096, 4096, 4);
	post_write(&end, 4096, 4096, &to.mem, 8192, 2);
	post_send(&end, 4096, 8, 3);
	COMPLETES(end.request, 2, DAT_DTO_SUCCESS);
	COMPLETES(end.request, 3, DAT_DTO_SUCCESS);
	COMPLETES(end.recv, 1, DAT_DTO_SUCCESS);
	HOLDS(is_filled(end.mem.at, 4096, 3));
	EVENT(end.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
}

/* The initiator sends first: a siw that reads the reply together with a message may lose the connection
 * (doc/design/kernel-devices.md). */
TEST("PEER-5", two_processes_exchange_messages_and_memory)
{
	struct peer peer = a_peer(exchange, NULL);
	struct listener listener = a_listener();
	struct end b = AN_END();
	struct invitation invitation = { listener.qual, b.mem };

	post_recv(&b, 0, 64, 1);
	tell(&peer, &invitation, sizeof(invitation));
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	COMPLETES(b.recv, 1, DAT_DTO_SUCCESS);
	HOLDS(is_filled(b.mem.at + 8192, 4096, 4));
	fill(b.mem.at + 4096, 4096, 3);
	post_send(&b, 4096, 4096, 2);
	COMPLETES(b.request, 2, DAT_DTO_SUCCESS);
	OK(dat_ep_disconnect(b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	EVENT(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_peer_done(&peer);
}
