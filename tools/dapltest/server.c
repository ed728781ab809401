/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* server.c - see server.h. A job is the test of one client. If a job fails, the server prints one line and
 * continues. */
#include "server.h"
#include "control.h"
#include "performance.h"
#include "transaction.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_QUALIFIER = 1024, LAST_QUALIFIER = 65535 };	/* of the ports that jobs may use */

struct server {
	const struct options *o;
	struct adapter adapter;
	struct control control;
	unsigned next;			/* qualifier to try for the next job */
	pthread_mutex_t lock;		/* guards jobs */
	pthread_cond_t idle;
	unsigned jobs;			/* running */
};

struct job {
	struct server *server;
	enum test test;
	struct transaction transaction;
	struct runner *runners;		/* transaction.threads of them */
	struct performer performer;
	pthread_t thread;
};

static void free_job(struct job *j)
{
	for (unsigned i = 0; j->runners && i < j->transaction.threads; i++)
		runner_free(&j->runners[i]);
	free(j->runners);
	j->runners = NULL;
	performer_free(&j->performer);
}

/* --- preparing ---------------------------------------------------------------- */

static bool prepare_transaction(struct job *j, unsigned qualifier, bool *taken)
{
	struct transaction *t = &j->transaction;

	j->runners = calloc(t->threads, sizeof *j->runners);
	if (!j->runners)
		return complain("no memory for %u threads", t->threads);
	for (unsigned i = 0; i < t->threads; i++) {
		j->runners[i] = (struct runner){ .adapter = &j->server->adapter, .t = t,
						 .qualifier = qualifier + i * t->eps };
		if (!runner_prepare(&j->runners[i], taken))
			return false;
	}
	return true;
}

static bool prepare_performance(struct job *j, unsigned qualifier, bool *taken)
{
	j->performer.adapter = &j->server->adapter;
	j->performer.qualifier = qualifier;
	return performer_prepare(&j->performer, taken);
}

/* Prepares a job. Its qualifiers must be consecutive numbers, as its client expects, so this tries rows of
 * numbers until one is free. */
static bool prepare(struct job *j, unsigned *qualifier)
{
	unsigned count = j->test == TEST_TRANSACTION ? j->transaction.threads * j->transaction.eps : 1;
	struct server *s = j->server;
	bool taken = false;

	for (int tries = 0; tries < 1000; tries++) {
		if (s->next < FIRST_QUALIFIER || s->next + count > LAST_QUALIFIER)
			s->next = FIRST_QUALIFIER;
		*qualifier = s->next;
		s->next += count;
		if (j->test == TEST_TRANSACTION ? prepare_transaction(j, *qualifier, &taken) :
						  prepare_performance(j, *qualifier, &taken))
			return true;
		free_job(j);
		if (!taken)
			return false;
	}
	return complain("no %u connection qualifiers in a row that are free", count);
}

/* --- running ------------------------------------------------------------------ */

static bool run_transaction(struct job *j)
{
	unsigned started = 0;
	bool good = true;

	while (started < j->transaction.threads &&
	       !pthread_create(&j->runners[started].thread, NULL, runner_run, &j->runners[started]))
		started++;
	if (started < j->transaction.threads)
		good = complain("no more threads than %u", started);
	for (unsigned i = 0; i < started; i++) {
		pthread_join(j->runners[i].thread, NULL);
		good = good && j->runners[i].good;
	}
	return good;
}

static void *run_job(void *job)
{
	struct job *j = job;
	struct server *s = j->server;
	bool good;

	if (j->test == TEST_TRANSACTION)
		good = run_transaction(j);
	else
		good = (performer_run(&j->performer), j->performer.good);
	free_job(j);
	printf("Server: %s Test %s for this client\n", j->test == TEST_TRANSACTION ? "Transaction" : "Performance",
	       good ? "Finished" : "Failed");
	fflush(stdout);
	free(j);
	pthread_mutex_lock(&s->lock);
	if (!--s->jobs)
		pthread_cond_signal(&s->idle);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static bool start(struct job *j)
{
	struct server *s = j->server;

	pthread_mutex_lock(&s->lock);
	s->jobs++;
	pthread_mutex_unlock(&s->lock);
	if (!pthread_create(&j->thread, NULL, run_job, j)) {
		pthread_detach(j->thread);
		return true;
	}
	pthread_mutex_lock(&s->lock);
	s->jobs--;
	pthread_mutex_unlock(&s->lock);
	return complain("no thread for a test");
}

static void wait_for_jobs(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->jobs)
		pthread_cond_wait(&s->idle, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* --- clients ------------------------------------------------------------------ */

static bool read_command(struct job *j)
{
	const char *command = j->server->control.messages.start + CONTROL_COMMAND;

	if (j->test == TEST_TRANSACTION)
		return wire_get_transaction(command, &j->transaction);
	return wire_get_performance(command, &j->performer.p);
}

static void serve_test(struct server *s, enum test test)
{
	struct job *j = calloc(1, sizeof *j);
	unsigned qualifier;

	if (!j) {
		complain("no memory for a test");
		return;
	}
	j->server = s;
	j->test = test;
	if (!read_command(j) || !prepare(j, &qualifier)) {
		free(j);
		return;
	}
	if (!control_answer(&s->control, qualifier) || !start(j)) {
		free_job(j);
		free(j);
	}
}

/* Serves one client. Returns false if the client has sent Quit, or if the control connection cannot be used
 * again. */
static bool serve_one(struct server *s, bool *quit)
{
	struct request request;

	if (control_serve(&s->control, &request)) {
		*quit = request.test == TEST_QUIT;
		if (*quit)
			control_answer(&s->control, s->next);
		else
			serve_test(s, request.test);
	}
	if (*quit)
		channel_disconnect(&s->control.channel, DAT_CLOSE_GRACEFUL_FLAG);
	return !*quit && control_next(&s->control);
}

static bool open_server(struct server *s)
{
	bool taken = false;

	if (!adapter_open(&s->adapter, s->o->device) || !control_open(&s->control, &s->adapter, s->o->qos))
		return false;
	if (!channel_listen(&s->control.channel, s->o->qualifier, false, &taken))
		return taken ? complain("connection qualifier %u is in use: another server? \"datinfo --ports\" shows "
					"the program; -n N takes another qualifier", s->o->qualifier) : false;
	return true;
}

int server_run(const struct options *o)
{
	struct server s = { .o = o, .next = o->qualifier + 1, .lock = PTHREAD_MUTEX_INITIALIZER,
			    .idle = PTHREAD_COND_INITIALIZER };
	bool quit = false;

	if (open_server(&s)) {
		do {
			printf("Dapltest: Service Point Ready - %s\n", o->device);
			fflush(stdout);
		} while (serve_one(&s, &quit));
		wait_for_jobs(&s);
	}
	control_close(&s.control);
	adapter_close(&s.adapter);
	if (quit)
		printf("DT_cs_Server (%s):  Exiting.\n", o->device);
	return quit ? 0 : 1;
}
