/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* posters.c - threads post on one endpoint all at once, while another thread takes the completions: each RDMA write
 * completes once, and those of a thread complete in the order of its posts. Prints how often a post waited for
 * another thread's, and how often it slept meanwhile (common/post_lock.h). --rounds sets the writes of each thread. */
#include "soak.h"
#include "test/life/control_client.h"
#include "test/own_network.h"
#include "common/control.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	POSTERS = 4,
	STALL = 60,       /* s without a completion: something is lost */
	BYTES = 512,      /* of each write */
};

static struct session *s;
static unsigned writes; /* of each thread */

/* Threads write into parts of their own, and a thread's part is written in the order of its posts. */
static void *post_all(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	DAT_LMR_TRIPLET from = end_segment(&s->a, s->a.memory + me * BYTES, BYTES);
	DAT_RMR_TRIPLET to = { .rmr_context = s->b.remote, .segment_length = BYTES,
		.virtual_address = (uintptr_t)s->b.memory + me * BYTES };
	DAT_DTO_COOKIE cookie;
	DAT_RETURN ret;

	for (unsigned i = 0; i < writes; i++) {
		cookie.as_64 = (uint64_t)me << 32 | i;
		while (DAT_GET_TYPE(ret = dat_ep_post_rdma_write(s->a.ep, 1, &from, cookie, &to,
								 DAT_COMPLETION_DEFAULT_FLAG)) ==
		       DAT_INSUFFICIENT_RESOURCES)
			sched_yield();
		OK(ret);
	}
	return NULL;
}

static void take_all(void)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	uint64_t next[POSTERS] = { 0 };
	double last = life_now();
	DAT_EVENT event;
	unsigned poster;

	for (uint64_t n = 0; n < (uint64_t)POSTERS * writes;) {
		if (dat_evd_dequeue(s->a.request, &event) != DAT_SUCCESS) {
			if (life_now() - last > STALL)
				fail("%llu completions of %llu, then none", (unsigned long long)n,
				     (unsigned long long)POSTERS * writes);
			sched_yield();
			continue;
		}
		dto = &event.event_data.dto_completion_event_data;
		poster = (unsigned)(dto->user_cookie.as_64 >> 32);
		EXPECT(event.event_number == DAT_DTO_COMPLETION_EVENT && dto->status == DAT_DTO_SUCCESS);
		EXPECT(poster < POSTERS && (uint32_t)dto->user_cookie.as_64 == next[poster]);
		next[poster]++;
		last = life_now();
		n++;
	}
}

static unsigned long long answered(const char *key)
{
	const char *at = strstr(answer.text, key);
	unsigned long long value = 0;

	if (at)
		sscanf(at + strlen(key), "%llu", &value);
	return value;	/* a counter that is 0 is left out */
}

static void post_from_threads(const char *carrier)
{
	pthread_t threads[POSTERS];

	own_network();
	s = session_opened();
	writes = soak_rounds(20000);
	for (uintptr_t i = 0; i < POSTERS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, post_all, (void *)i));
	take_all();
	for (int i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
	ask(CONTROL_COUNTERS, "");
	soak_figure("%s: %u posts of %u threads, %llu waits for another thread, of which %llu slept", carrier,
		    POSTERS * writes, POSTERS, answered("\"post_waits\":"), answered("\"post_sleeps\":"));
	OK(session_close(s));
	free(s);
}

static void threads_post_on_one_endpoint(void)
{
	post_from_threads("shared memory");
}

static void threads_post_on_one_endpoint_over_tcp(void)
{
	setenv("DAPL_SOFT_SHM", "0", 1);
	post_from_threads("TCP");
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(threads_post_on_one_endpoint),
		CASE(threads_post_on_one_endpoint_over_tcp),
	};

	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
