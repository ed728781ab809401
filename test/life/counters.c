/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.c - the counters of IA, endpoint and EVD after a known exchange. */
#include "life.h"
#include <netinet/in.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dat/dat_ib_extensions.h>

static uint64_t read_counter(DAT_HANDLE handle, int counter)
{
	DAT_UINT64 value = 12345;

	OK(dat_ib_query_counters(handle, counter, &value, 0));
	return value;
}

static void expect_counter(int line, const char *name, DAT_HANDLE handle, int counter, uint64_t expected)
{
	uint64_t found = read_counter(handle, counter);

	if (found != expected)
		fail("line %d: %s is %llu, expected %llu", line, name, (unsigned long long)found,
		     (unsigned long long)expected);
}
#define IS(handle, counter, expected) expect_counter(__LINE__, #counter, (DAT_HANDLE)(handle), counter, expected)

static void counters_count_a_known_exchange(void)
{
	struct session *s = malloc(sizeof *s);

	OK(session_open(s, MOMENT));
	IS(s->ia, DCNT_IA_PZ_CREATE, 2);
	IS(s->ia, DCNT_IA_LMR_CREATE, 2);
	IS(s->ia, DCNT_IA_EP_CREATE, 2);
	IS(s->ia, DCNT_IA_PSP_CREATE_ANY, 1);
	IS(s->ia, DCNT_IA_SP_CR, 1);
	IS(s->ia, DCNT_IA_SP_CR_ACCEPTED, 1);
	IS(s->ia, DCNT_IA_SP_CR_REJECTED, 0);
	IS(s->ia, DCNT_IA_CM_REQ_TX, 1);
	IS(s->ia, DCNT_IA_CM_REP_TX, 1);
	IS(s->ia, DCNT_IA_CM_ACTIVE_EST, 1);
	IS(s->ia, DCNT_IA_CM_PASSIVE_EST, 1);
	IS(s->ia, DCNT_IA_ASYNC_ERROR, 0);
	IS(s->a.ep, DCNT_EP_CONNECT, 1);
	IS(s->b.ep, DCNT_EP_CONNECT, 0);
	for (unsigned i = 0; i < 7; i++)
		EXPECT(session_exchange(s, i));
	for (struct end *side = &s->a; side; side = side == &s->a ? &s->b : NULL) {
		IS(side->ep, DCNT_EP_POST_SEND, 7);
		IS(side->ep, DCNT_EP_POST_SEND_DATA, 7 * 256);
		IS(side->ep, DCNT_EP_POST_WRITE, 7);
		IS(side->ep, DCNT_EP_POST_WRITE_DATA, 7 * 256);
		IS(side->ep, DCNT_EP_POST_RECV, 7);
		IS(side->ep, DCNT_EP_POST_RECV_DATA, 7 * 256);
		IS(side->ep, DCNT_EP_RECV, 7);
		IS(side->ep, DCNT_EP_RECV_DATA, 7 * 256);
		IS(side->ep, DCNT_EP_POST_READ, 0);
		IS(side->recv, DCNT_EVD_WAIT, 7);
		IS(side->request, DCNT_EVD_WAIT, 14);
		IS(side->recv, DCNT_EVD_DEQUEUE, 0);
	}
	OK(session_close(s));
	free(s);
}

static void dequeues_are_counted(void)
{
	struct session *s = malloc(sizeof *s);
	DAT_EVD_HANDLE evd;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	OK(session_open(s, MOMENT));
	OK(dat_evd_create(s->ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_post_se(evd, &event));
	OK(dat_evd_dequeue(evd, &event));
	EXPECT(dat_evd_dequeue(evd, &event) != DAT_SUCCESS);
	EXPECT(dat_evd_dequeue(evd, &event) != DAT_SUCCESS);
	IS(evd, DCNT_EVD_DEQUEUE, 3);
	IS(evd, DCNT_EVD_DEQUEUE_FOUND, 1);
	IS(evd, DCNT_EVD_DEQUEUE_NOT_FOUND, 2);
	OK(session_close(s));
	free(s);
}

static void message_to_b(struct session *s)
{
	DAT_LMR_TRIPLET to = { .lmr_context = s->b.local, .segment_length = 8,
		.virtual_address = (uintptr_t)s->b.memory };
	DAT_LMR_TRIPLET from = { .lmr_context = s->a.local, .segment_length = 8,
		.virtual_address = (uintptr_t)s->a.memory };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_EVENT event;

	OK(dat_ep_post_recv(s->b.ep, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_send(s->a.ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	OK(await(s->a.request, DAT_DTO_COMPLETION_EVENT, MOMENT, &event));
}

static void *await_receive(void *evd)
{
	DAT_EVENT event;

	OK(await(evd, DAT_DTO_COMPLETION_EVENT, MOMENT, &event));
	return NULL;
}

static void wake_a_waiter(struct session *s)
{
	uint64_t blocked = read_counter((DAT_HANDLE)s->b.recv, DCNT_EVD_WAIT_BLOCKED);
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, await_receive, s->b.recv));
	while (read_counter((DAT_HANDLE)s->b.recv, DCNT_EVD_WAIT_BLOCKED) == blocked)
		usleep(1000);
	usleep(10000);
	message_to_b(s);
	pthread_join(thread, NULL);
}

/* The woken thread must not ask for another notification. The next message, for which no thread waits, would
 * leave one, and that would wake the waiter for the message after it without an event. */
static void no_thread_is_woken_without_an_event(void)
{
	struct session *s = malloc(sizeof *s);

	OK(session_open(s, MOMENT));
	wake_a_waiter(s);
	message_to_b(s);
	await_receive(s->b.recv);
	wake_a_waiter(s);
	IS(s->b.recv, DCNT_EVD_WAIT_BLOCKED, 2);
	IS(s->b.recv, DCNT_EVD_WAIT_NOTIFY, 2);
	OK(session_close(s));
	free(s);
}

static void all_counters_are_read_and_reset_in_one_call(void)
{
	DAT_UINT64 all[DCNT_EP_ALL_COUNTERS + 1], value;
	struct session *s = malloc(sizeof *s);

	OK(session_open(s, MOMENT));
	EXPECT(session_exchange(s, 1));
	all[DCNT_EP_ALL_COUNTERS] = 4711;
	OK(dat_ib_query_counters((DAT_HANDLE)s->a.ep, DCNT_EP_ALL_COUNTERS, all, 1));
	EXPECT(all[DCNT_EP_POST_SEND] == 1 && all[DCNT_EP_RECV] == 1);
	EXPECT(all[DCNT_EP_ALL_COUNTERS] == 4711);
	IS(s->a.ep, DCNT_EP_POST_SEND, 0);
	IS(s->b.ep, DCNT_EP_POST_SEND, 1);
	EXPECT(DAT_GET_TYPE(dat_ib_query_counters((DAT_HANDLE)s->a.ep, DCNT_EP_ALL_COUNTERS + 1, all, 0)) ==
	       DAT_INVALID_PARAMETER);
	EXPECT(DAT_GET_TYPE(dat_ib_query_counters((DAT_HANDLE)s->a.ep, -1, all, 0)) == DAT_INVALID_PARAMETER);
	EXPECT(dat_ib_query_counters((DAT_HANDLE)s->a.pz, 0, &value, 0) != DAT_SUCCESS);
	OK(session_close(s));
	free(s);
}

static void print_them(const void *arg)
{
	struct session *s = malloc(sizeof *s);

	(void)arg;
	OK(session_open(s, MOMENT));
	EXPECT(session_exchange(s, 1));
	OK(dat_ib_print_counters((DAT_HANDLE)s->a.ep, DCNT_EP_POST_SEND, 0));
	OK(session_close(s));
	free(s);
}

static void a_counter_is_printed_in_a_line(void)
{
	struct child_result result = run(print_them, NULL);

	EXPECT(!result.status && result.lines == 1);
	EXPECT(strstr(result.text, "dapl: ep 0x") && strstr(result.text, " POST_SEND 1\n"));
}

static const struct life_case cases[] = {
	CASE(counters_count_a_known_exchange),
	CASE(dequeues_are_counted),
	CASE(no_thread_is_woken_without_an_event),
	CASE(all_counters_are_read_and_reset_in_one_call),
	CASE(a_counter_is_printed_in_a_line),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
