/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.c - see client.h. */
#include "client.h"
#include "../call.h"
#include "control.h"
#include "performance.h"
#include "transaction.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct client {
	struct options *o;
	struct adapter adapter;
	struct control control;
	struct sockaddr_storage to;
	uint32_t qualifier;		/* of the test's first endpoint */
};

/* --- the transaction test ----------------------------------------------------- */

static const char *const transfer_names[] = { "RDMA_READ", "RDMA_WRITE", "SEND_RECV" };

static void print_ops(const struct transaction *t)
{
	for (unsigned i = 0; i < t->ops; i++)
		printf("op[%u] %s (%s): %u segments of %u bytes%s\n", i, transfer_names[t->op[i].transfer],
		       t->op[i].by_server ? "server" : "client", t->op[i].segments, t->op[i].size,
		       t->op[i].reap_on_receive ? ", reap send on recv" : "");
}

static void print_row(const char *name, double bytes, double seconds)
{
	double megabytes = bytes / 1000000;

	printf("%-17s:  %9.2f MB -  %9.2f MB/Sec\n", name, megabytes, seconds > 0 ? megabytes / seconds : 0);
}

/* Prints sums over all threads and endpoints. `seconds` is the time of the slowest thread. */
static void print_stats(const struct transaction *t, double seconds)
{
	double times = (double)t->iterations * t->threads * t->eps, bytes[4] = { 0 };
	unsigned user_ops = t->validate ? t->ops - TRANSACTION_SYNC_OPS : t->ops;

	for (unsigned i = 0; i < user_ops; i++) {
		const struct op *op = &t->op[i];
		int row = op->transfer == TRANSFER_READ ? 2 : op->transfer == TRANSFER_WRITE ? 3 : op->by_server;

		bytes[row] += times * op->size * op->segments;
	}
	printf("----- Stats ---- : %u threads, %u EPs\n", t->threads, t->eps);
	printf("Total WQE        :  %9.2f WQE/Sec\n", seconds > 0 ? times * t->ops / seconds : 0);
	printf("Total Time       :  %9.2f sec\n", seconds);
	print_row("Total Send", bytes[0], seconds);
	print_row("Total Recv", bytes[1], seconds);
	print_row("Total RDMA Read ", bytes[2], seconds);
	print_row("Total RDMA Write", bytes[3], seconds);
}

/* Prepares all threads before it starts the first one. */
static bool run_threads(struct client *c, struct runner *runners)
{
	struct transaction *t = &c->o->transaction;
	double seconds = 0;
	unsigned started = 0;
	bool good = true, taken;

	for (unsigned i = 0; i < t->threads; i++) {
		runners[i] = (struct runner){ .adapter = &c->adapter, .t = t, .client = true, .cno = c->o->cno,
					      .to = c->to, .qualifier = c->qualifier + i * t->eps };
		if (!runner_prepare(&runners[i], &taken))
			return false;
	}
	while (started < t->threads && !pthread_create(&runners[started].thread, NULL, runner_run, &runners[started]))
		started++;
	if (started < t->threads)
		good = complain("no more threads than %u", started);
	for (unsigned i = 0; i < started; i++) {
		pthread_join(runners[i].thread, NULL);
		good = good && runners[i].good;
		seconds = runners[i].seconds > seconds ? runners[i].seconds : seconds;
	}
	if (good)
		print_stats(t, seconds);
	return good;
}

static bool run_transaction(struct client *c)
{
	struct runner *runners = calloc(c->o->transaction.threads, sizeof *runners);
	bool good;

	if (!runners)
		return complain("no memory for %u threads", c->o->transaction.threads);
	good = run_threads(c, runners);
	for (unsigned i = 0; i < c->o->transaction.threads; i++)
		runner_free(&runners[i]);
	free(runners);
	return good;
}

static bool begin_transaction(struct client *c, struct request *request)
{
	struct transaction *t = &c->o->transaction;

	request->connections = t->threads * t->eps;
	if (t->validate && !transaction_append_sync(t))
		return complain("operations: with -V at most %d expected", WIRE_OPS - TRANSACTION_SYNC_OPS);
	snprintf(t->server, sizeof t->server, "%s", c->o->server);
	snprintf(t->device, sizeof t->device, "%s", c->o->device);
	if (c->o->debug)
		print_ops(t);
	wire_put_transaction(c->control.messages.start + CONTROL_COMMAND, t);
	return true;
}

/* --- the performance test ----------------------------------------------------- */

static bool run_performance(struct client *c)
{
	struct performer p = { .adapter = &c->adapter, .p = c->o->performance, .client = true, .to = c->to,
			       .qualifier = c->qualifier };
	bool taken;

	if (performer_prepare(&p, &taken))
		performer_run(&p);
	performer_free(&p);
	return p.good;
}

static bool begin_performance(struct client *c, struct request *request)
{
	struct performance *p = &c->o->performance;

	request->connections = 1;
	snprintf(p->server, sizeof p->server, "%s", c->o->server);
	snprintf(p->device, sizeof p->device, "%s", c->o->device);
	wire_put_performance(c->control.messages.start + CONTROL_COMMAND, p);
	return true;
}

/* --- quit --------------------------------------------------------------------- */

static bool begin_quit(struct client *c, struct request *request)
{
	request->connections = 0;
	wire_put_quit(c->control.messages.start + CONTROL_COMMAND, c->o->server, c->o->device);
	return true;
}

static bool run_nothing(struct client *c)
{
	(void)c;
	return true;
}

static const struct {
	char mode;
	enum test test;
	bool (*begin)(struct client *c, struct request *request);
	bool (*run)(struct client *c);
} tests[] = {
	{ 'T', TEST_TRANSACTION, begin_transaction, run_transaction },
	{ 'P', TEST_PERFORMANCE, begin_performance, run_performance },
	{ 'Q', TEST_QUIT, begin_quit, run_nothing },
};

static bool run(struct client *c)
{
	struct request request;
	size_t i = 0;

	while (tests[i].mode != c->o->mode)
		i++;
	request.test = tests[i].test;
	if (!adapter_open(&c->adapter, c->o->device))
		return false;
	resolve_for(c->adapter.ia, c->o->server, &c->to);
	if (!control_open(&c->control, &c->adapter, c->o->qos) || !tests[i].begin(c, &request))
		return false;
	printf("DT_cs_Client: Starting Test ...\n");
	fflush(stdout);
	return control_ask(&c->control, (struct sockaddr *)&c->to, c->o->qualifier, &request, &c->qualifier) &&
	       tests[i].run(c) && channel_disconnect(&c->control.channel, DAT_CLOSE_DEFAULT);
}

int client_run(struct options *o)
{
	struct client c = { .o = o };
	bool good;

	good = run(&c);
	control_close(&c.control);
	adapter_close(&c.adapter);
	if (good)
		printf("DT_cs_Client: ========== End of Work -- Client Exiting\n");
	return good ? 0 : 1;
}
