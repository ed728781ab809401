/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* performance.c - see performance.h. */
#include "performance.h"
#include "../call.h"
#include "op.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { WANTED_PIPELINE = 255 };	/* requests in flight: the default, and the maximum */

struct times {
	double sum, min, max;
	unsigned count;
};

struct result {
	double seconds, cpu_percent;
	unsigned pipeline;
	struct times post, reap, latency;
};

static unsigned pipeline_of(const struct performer *p)
{
	unsigned most = (unsigned)p->adapter->attr.max_dto_per_ep, n = p->p.pipeline;

	if (most > WANTED_PIPELINE)
		most = WANTED_PIPELINE;
	if (n > most)
		n = most;
	return n ? n : 1;
}

bool performer_prepare(struct performer *p, bool *taken)
{
	struct channel_options o = {
		.receives = 2, .requests = (DAT_COUNT)pipeline_of(p) + 1,
		.segments = p->p.op.segments < 4 ? 4 : (DAT_COUNT)p->p.op.segments,
		.qos = (DAT_QOS)p->p.qos,
		.wait = p->p.poll && p->client ? WAIT_POLL : WAIT_BLOCK,
	};
	struct layout l = op_layout(&p->p.op);

	*taken = false;
	return channel_open(&p->channel, p->adapter, &o) &&
	       region_create(&p->place, p->adapter, (size_t)2 * WIRE_PLACE) &&
	       region_create(&p->buffer, p->adapter, l.stride * p->p.op.segments) &&
	       channel_post_receive(&p->channel, &p->place, WIRE_PLACE, (struct layout){ 1, WIRE_PLACE, WIRE_PLACE }) &&
	       (p->client || channel_listen(&p->channel, p->qualifier, false, taken));
}

void performer_free(struct performer *p)
{
	channel_close(&p->channel);
	region_free(&p->place);
	region_free(&p->buffer);
}

/* --- the client's measurement ------------------------------------------------- */

static void add(struct times *t, double seconds)
{
	if (!t->count || seconds < t->min)
		t->min = seconds;
	if (!t->count || seconds > t->max)
		t->max = seconds;
	t->sum += seconds;
	t->count++;
}

static double mean(const struct times *t)
{
	return t->count ? t->sum / t->count * 1e6 : 0;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static bool post(struct performer *p, const DAT_RMR_TRIPLET *remote, struct result *r)
{
	double start = now();
	bool posted = channel_post_rdma(&p->channel, &p->buffer, op_layout(&p->p.op),
					p->p.op.transfer == TRANSFER_WRITE, remote);

	add(&r->post, now() - start);
	return posted;
}

static bool reap(struct performer *p, struct result *r)
{
	double start = now();
	bool reaped = channel_wait(&p->channel, p->channel.request, op_total(&p->p.op), "an RDMA operation");

	add(&r->reap, now() - start);
	return reaped;
}

/* Measures the rate, with the pipeline full. */
static bool measure_rate(struct performer *p, const DAT_RMR_TRIPLET *remote, struct result *r)
{
	double start = now(), cpu = cpu_seconds();
	unsigned posted = 0, reaped = 0;

	while (reaped < p->p.iterations) {
		if (posted < p->p.iterations && posted - reaped < r->pipeline) {
			if (!post(p, remote, r))
				return false;
			posted++;
			continue;
		}
		if (!reap(p, r))
			return false;
		reaped++;
	}
	r->seconds = now() - start;
	r->cpu_percent = r->seconds > 0 ? (cpu_seconds() - cpu) / r->seconds * 100 : 0;
	return true;
}

/* Measures the latency, with one operation at a time. */
static bool measure_latency(struct performer *p, const DAT_RMR_TRIPLET *remote, struct result *r)
{
	struct result unused = { 0 };

	for (unsigned i = 0; i < p->p.iterations; i++) {
		double start = now();

		if (!post(p, remote, &unused) || !reap(p, &unused))
			return false;
		add(&r->latency, now() - start);
	}
	return true;
}

static void print_times(const char *title, const struct times *t)
{
	printf("\n%s\n    Arithmetic mean      : %.2f us\n    maximum              : %.1f us\n"
	       "    minimum              : %.1f us\n", title, mean(t), t->max * 1e6, t->min * 1e6);
}

static void print_result(const struct performer *p, const struct result *r)
{
	const struct op *op = &p->p.op;
	const char *name = op->transfer == TRANSFER_WRITE ? "RW" : "RR";
	double megabytes = (double)op_total(op) * p->p.iterations / (1 << 20);
	double rate = r->seconds > 0 ? p->p.iterations / r->seconds : 0;
	double bandwidth = r->seconds > 0 ? megabytes / r->seconds : 0;

	printf("------------------------- Statistics -------------------------\n"
	       "    Mode                 : %s\n    Operation Type       : %s\n    Number of Operations : %u\n"
	       "    Segment Size         : %u\n    Number of Segments   : %u\n    Pipeline Length      : %u\n\n",
	       p->p.poll ? "polling" : "blocking", name, p->p.iterations, op->size, op->segments, r->pipeline);
	printf("    Total Time           : %.2f sec\n    Total Data Exchanged : %.2f MB\n"
	       "    CPU Utilization      : %.1f\n    Operation Throughput : %.2f ops/sec\n"
	       "    Bandwidth            : %.2f MB/sec\n", r->seconds, megabytes, r->cpu_percent, rate, bandwidth);
	print_times("Latency", &r->latency);
	print_times("Time Per Post", &r->post);
	print_times("Time Per Reap", &r->reap);
	printf("\nNOTE: 1 MB = 1024 KB = 1048576 B\n");
	printf("raw: %s, %u, %u, %u, %u, %.1f, %.2f, %.2f, %.2f, %.2f, %.2f\n", name, p->p.iterations, op->size,
	       op->segments, r->pipeline, r->cpu_percent, rate, bandwidth, mean(&r->latency), mean(&r->post),
	       mean(&r->reap));
}

/* --- both sides --------------------------------------------------------------- */

static bool run_client(struct performer *p)
{
	struct result r = { .pipeline = pipeline_of(p) };
	DAT_RMR_TRIPLET remote = { .segment_length = op_total(&p->p.op) };
	struct place place;

	if (!channel_connect(&p->channel, (const struct sockaddr *)&p->to, p->qualifier, NULL, 0) ||
	    !channel_receive(&p->channel, WIRE_PLACE, "the place of the server's buffer"))
		return false;
	place = wire_get_place(p->place.start + WIRE_PLACE);
	remote.virtual_address = place.address;
	remote.rmr_context = place.context;
	if (!measure_rate(p, &remote, &r) || !measure_latency(p, &remote, &r))
		return false;
	memset(p->place.start, 0, WIRE_PLACE);
	if (!channel_send(&p->channel, &p->place, 0, WIRE_PLACE))
		return false;
	print_result(p, &r);
	return channel_disconnect(&p->channel, DAT_CLOSE_DEFAULT);
}

/* Waits without limit for the message at the end, which the client sends when its measurement is
 * complete. */
static bool run_server(struct performer *p)
{
	struct place place = { p->buffer.remote, (DAT_VADDR)(uintptr_t)p->buffer.start };

	if (!channel_accept(&p->channel, NULL, 0, PATIENCE * 1000000))
		return false;
	wire_put_place(p->place.start, &place);
	p->channel.patience = 0;
	return channel_send(&p->channel, &p->place, 0, WIRE_PLACE) &&
	       channel_receive(&p->channel, WIRE_PLACE, "the end of the measurement") &&
	       channel_disconnect(&p->channel, DAT_CLOSE_DEFAULT);
}

void *performer_run(void *performer)
{
	struct performer *p = performer;

	p->good = p->client ? run_client(p) : run_server(p);
	if (!p->good && p->channel.connected)
		dat_ep_disconnect(p->channel.ep, DAT_CLOSE_ABRUPT_FLAG);
	return NULL;
}
