/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.c - opens the links of a process and runs their threads (group.h). */
#include "group.h"
#include "../cli.h"
#include <dat/dat_dm_extensions.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

void group_open(struct group *g, const char *ia, enum memory_kind memory, bool srq)
{
	memset(g, 0, sizeof *g);
	adapter_open(&g->adapter, ia);
	if (srq && !g->adapter.max_srqs)
		fail("--srq: %s has no SRQs (attribute max_srqs)", ia);
	if (memory == MEMORY_DEVICE && !g->adapter.dm_size)
		fail("--dm: %s has no device memory (attribute " DAT_DM_ATTR_SIZE ")", ia);
	g->memory = memory;
	g->srq = srq;
	g->block = LINK_BLOCK;
	g->most = LINK_DEPTH;
	link_open(&g->links[0], &g->adapter, 0, memory, g->block);
	g->opened = 1;
}

static void close_links(struct group *g)
{
	while (g->opened)
		link_close(&g->links[--g->opened]);
}

void group_shape(struct group *g, size_t block, unsigned most)
{
	g->most = most;
	if (block == g->block)
		return;
	close_links(g);
	g->block = block;
}

void group_close(struct group *g)
{
	close_links(g);
	adapter_close(&g->adapter);
}

/* Returns whether an adapter has so few endpoints because the process may have no more descriptors (RLIMIT_NOFILE). */
static bool descriptors_limit(DAT_COUNT max_endpoints)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)max_endpoints >= limit.rlim_cur;
}

const char *group_limit(const struct group *g, unsigned threads, unsigned endpoints)
{
	const struct adapter *a = &g->adapter;
	static char text[DAT_NAME_MAX_LENGTH + 128];

	/* each thread has one endpoint more, for timed connections */
	if ((long long)threads * (endpoints + 1) > a->max_endpoints)
		snprintf(text, sizeof text, "%s has no more than %d endpoints (attribute max_eps)%s", a->name,
			 a->max_endpoints, descriptors_limit(a->max_endpoints) ? ": raise \"ulimit -n\"" : "");
	else if (a->max_dtos < (DAT_COUNT)g->most)
		snprintf(text, sizeof text,
			 "%s has endpoints for no more than %d operations, and %u are needed (attribute "
			 "max_dto_per_ep)", a->name, a->max_dtos, g->most);
	else if (2 * (long long)g->most * endpoints > a->max_events)
		snprintf(text, sizeof text,
			 "%s has EVDs for no more than %d endpoints (attribute max_evd_qlen)",
			 a->name, a->max_events / (2 * (int)g->most));
	else if (g->srq && (long)g->most * (long)endpoints > a->max_srq_receives)
		snprintf(text, sizeof text,
			 "%s has SRQs for no more than %d endpoints (attribute max_recv_per_srq)",
			 a->name, a->max_srq_receives / (int)g->most);
	else if (g->srq && (long)threads > a->max_srqs)
		snprintf(text, sizeof text, "%s has no more than %d SRQs (attribute max_srqs)",
			 a->name, a->max_srqs);
	else if (g->memory == MEMORY_DEVICE && threads > target_device_threads(a))
		snprintf(text, sizeof text, "%s has device memory for no more than %llu threads (attribute %s)",
			 a->name, target_device_threads(a), DAT_DM_ATTR_SIZE);
	else
		return NULL;
	return text;
}

void group_create_endpoints(struct group *g, unsigned threads, unsigned endpoints)
{
	for (; g->opened < threads; g->opened++)
		link_open(&g->links[g->opened], &g->adapter, g->opened, g->memory, g->block);
	g->threads = threads;
	g->endpoints = endpoints;
	for (unsigned i = 0; i < threads; i++)
		link_create_endpoints(&g->links[i], threads, endpoints, g->most, g->srq);
}

void group_free_endpoints(struct group *g)
{
	for (unsigned i = 0; i < g->threads; i++)
		link_free_endpoints(&g->links[i]);
	g->threads = g->endpoints = 0;
}

/* --- threads ----------------------------------------------------------------- */

struct worker {
	struct group *group;
	struct link *link;
	void (*work)(struct link *l, void *arg);
	void *arg;
	pthread_t thread;
	bool failed;
};

/* Holds back the threads until the last one is created. They do not begin if that fails. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum { GATE_CLOSED, GATE_OPEN, GATE_CANCELLED } state;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void set_gate(int state)
{
	pthread_mutex_lock(&gate.lock);
	gate.state = state;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static bool pass_gate(void)
{
	bool open;

	pthread_mutex_lock(&gate.lock);
	while (gate.state == GATE_CLOSED)
		pthread_cond_wait(&gate.changed, &gate.lock);
	open = gate.state == GATE_OPEN;
	pthread_mutex_unlock(&gate.lock);
	return open;
}

static bool threads_run;
static unsigned failures; /* of the threads that run */

bool group_has_failed(void)
{
	return threads_run && __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) > 0;
}

/* Breaks the connections of all threads, which ends the waits of the other threads. */
static void break_connections(struct group *g)
{
	for (unsigned i = 0; i < g->threads; i++)
		for (unsigned e = 0; e < g->links[i].count; e++)
			(void)dat_ep_disconnect(g->links[i].endpoints[e].ep, DAT_CLOSE_ABRUPT_FLAG);
}

static void do_work(void *arg)
{
	struct worker *w = arg;

	w->work(w->link, w->arg);
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	if (!pass_gate())
		return NULL;
	w->failed = !cli_attempt(do_work, w);
	if (w->failed)
		break_connections(w->group);
	return NULL;
}

/* Creates the threads. Returns 0 or an errno value. */
static int start_workers(struct worker *workers, unsigned count, unsigned *started)
{
	int err = 0;

	gate.state = GATE_CLOSED;
	for (*started = 0; *started < count; ++*started) {
		struct worker *w = &workers[*started];

		err = pthread_create(&w->thread, NULL, run_worker, w);
		if (err)
			break;
	}
	set_gate(err ? GATE_CANCELLED : GATE_OPEN);
	return err;
}

static void run_threads(struct group *g, void (*work)(struct link *l, void *arg), void *arg)
{
	struct worker workers[GROUP_THREADS];
	unsigned started;
	bool failed = false;
	int err;

	for (unsigned i = 0; i < g->threads; i++)
		workers[i] = (struct worker){
			.group = g, .link = &g->links[i], .work = work, .arg = arg
		};
	failures = 0;
	threads_run = true;
	err = start_workers(workers, g->threads, &started);
	for (unsigned i = 0; i < started; i++) {
		pthread_join(workers[i].thread, NULL);
		failed |= workers[i].failed;
	}
	threads_run = false;
	if (err)
		fail("thread %u of %u: %s", started + 1, g->threads, strerror(err));
	if (failed)
		fail_reported();
}

void group_run(struct group *g, void (*work)(struct link *l, void *arg), void *arg)
{
	if (g->threads > 1)
		run_threads(g, work, arg);
	else
		work(&g->links[0], arg);
}
