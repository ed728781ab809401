/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c - `datcap replay`: sends the frames of a file, at their own times, at a rate, or as fast as it goes. The
 * file is read and checked before the first frame is sent. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "datcap.h"
#include "device.h"
#include "tools/cli.h"

enum {
	QUEUE = 1024,			/* sends that are not dequeued */
	SPIN_NS = 60000,		/* the end of a wait is spun: a sleep ends some 50 us late */
	LATE_BUCKETS = 100000,		/* deviations are counted by the 100 ns, up to 10 ms */
	BUCKET_NS = 100,
};

struct packet {
	uint64_t at;			/* ns from the first */
	size_t offset;			/* in memory */
	uint32_t length;
};

struct replay {
	const struct options *o;
	struct device device;
	DAT_ETH_ATTR attr;
	struct packet *packets;
	size_t count, room;
	uint8_t *memory;
	size_t used, size;
	DAT_LMR_CONTEXT context;
	unsigned outstanding;
	uint64_t sent, bytes, failed;
	uint32_t late[LATE_BUCKETS];
};

/* --- the file ----------------------------------------------------------------------------- */

static void *grown(void *at, size_t bytes)
{
	void *new = realloc(at, bytes);

	if (!new)
		fail("no memory for %zu bytes", bytes);
	return new;
}

static void keep(struct replay *r, const struct pcap_pkthdr *header, const uint8_t *data, uint64_t first)
{
	uint64_t time = (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
	uint32_t length = header->caplen;

	if (length < 14)
		fail("%s: frame %zu has %u bytes; a frame has at least 14", r->o->file, r->count + 1, length);
	if (length > r->attr.max_frame && !r->o->cut)
		fail("%s: frame %zu has %u bytes, %s sends at most %u (--cut)", r->o->file, r->count + 1, length,
		     r->o->interface, r->attr.max_frame);
	if (length > r->attr.max_frame)
		length = r->attr.max_frame;
	if (r->o->speed > 0 && r->count && time - first < r->packets[r->count - 1].at)
		fail("%s: the time of frame %zu is before that of the frame before it", r->o->file, r->count + 1);
	if (r->count == r->room)
		r->packets = grown(r->packets, (r->room = r->room ? 2 * r->room : 1024) * sizeof *r->packets);
	if (r->used + length > r->size)
		r->memory = grown(r->memory, r->size = 2 * (r->size + length) + (1 << 20));
	memcpy(r->memory + r->used, data, length);
	if (r->o->set_dst)
		memcpy(r->memory + r->used, r->o->dst, 6);
	if (r->o->set_src)
		memcpy(r->memory + r->used + 6, r->o->src, 6);
	r->packets[r->count++] = (struct packet){ time - first, r->used, length };
	r->used += length;
}

static void read_file(struct replay *r)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline_with_tstamp_precision(r->o->file, PCAP_TSTAMP_PRECISION_NANO, error);
	struct pcap_pkthdr *header;
	const uint8_t *data;
	uint64_t first = 0;
	int got;

	if (!file)
		fail("%s", error);	/* libpcap names the file */
	if (pcap_datalink(file) != DLT_EN10MB)
		fail("%s: its frames are not Ethernet", r->o->file);
	while ((got = pcap_next_ex(file, &header, &data)) == 1) {
		if (!r->count)
			first = (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
		keep(r, header, data, first);
	}
	if (got == PCAP_ERROR)
		fail("%s: %s", r->o->file, pcap_geterr(file));
	if (!r->count)
		fail("%s: there is no frame in it", r->o->file);
	pcap_close(file);
}

/* Sending on this device can disturb more than a test. */
static bool has_default_route(const char *device)
{
	char name[64], line[300];
	FILE *file = fopen("/proc/net/route", "re");
	unsigned destination, mask;
	bool found = false;

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "%63s %x %*x %*x %*d %*d %*d %x", name, &destination, &mask) == 3)
			found |= !strcmp(name, device) && !destination && !mask;
	if (file)
		fclose(file);
	return found;
}

/* --- sending ------------------------------------------------------------------------------ */

static void reap(struct replay *r)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(r->device.request, &event) == DAT_SUCCESS) {
		r->outstanding--;
		if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS && !r->failed++)
			fail("%s: a frame could not be sent: the link is down, or the device is gone",
			     r->o->interface);
	}
}

static void send_one(struct replay *r, const struct packet *p)
{
	DAT_LMR_TRIPLET iov = { .lmr_context = r->context, .segment_length = p->length,
		.virtual_address = (uintptr_t)r->memory + p->offset };
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	DAT_RETURN ret;

	if (r->outstanding > QUEUE / 2)
		reap(r);
	while ((ret = dat_ep_post_send(r->device.ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			fail("%s: dat_ep_post_send failed", r->o->interface);
		reap(r);	/* the device's queue is full */
		if (stop_requested)
			return;
	}
	r->outstanding++;
	r->sent++;
	r->bytes += p->length;
}

static void wait_until(uint64_t when)
{
	uint64_t now = now_ns();

	if (now + 2 * SPIN_NS < when) {
		struct timespec t = { .tv_sec = (time_t)((when - SPIN_NS) / 1000000000),
			.tv_nsec = (long)((when - SPIN_NS) % 1000000000) };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
	while (now_ns() < when && !stop_requested)
		;
}

static void send_timed(struct replay *r, const struct packet *p, uint64_t when)
{
	uint64_t late;

	wait_until(when);
	late = (now_ns() - when) / BUCKET_NS;
	r->late[late < LATE_BUCKETS ? late : LATE_BUCKETS - 1]++;
	send_one(r, p);
}

static uint64_t length_of_round(const struct replay *r)
{
	return r->o->speed > 0 ? (uint64_t)((double)r->packets[r->count - 1].at / r->o->speed) : 0;
}

static void send_all(struct replay *r)
{
	uint64_t begin = now_ns(), number = 0;

	for (unsigned loop = 0; loop < r->o->loops && !stop_requested; loop++) {
		for (size_t i = 0; i < r->count && !stop_requested; i++, number++) {
			const struct packet *p = &r->packets[i];

			if (r->o->rate > 0)
				send_timed(r, p, begin + (uint64_t)((double)number * 1e9 / r->o->rate));
			else if (r->o->speed > 0)
				send_timed(r, p, begin + (uint64_t)((double)p->at / r->o->speed));
			else
				send_one(r, p);
			if (r->o->count && r->sent == r->o->count)
				return;
		}
		begin += length_of_round(r);
	}
	reap(r);
}

/* So late were `share` of the frames at most, in us. */
static double quantile(const struct replay *r, double share)
{
	uint64_t upto = (uint64_t)((double)r->sent * share), seen = 0;
	unsigned i = 0;

	while (i < LATE_BUCKETS - 1 && (seen += r->late[i]) <= upto)
		i++;
	return i * (double)BUCKET_NS / 1e3;
}

static void summary(const struct replay *r, double seconds)
{
	if (r->o->json)
		printf("{\"device\": \"%s\", \"frames\": %llu, \"bytes\": %llu, \"seconds\": %.6f}\n", r->o->interface,
		       (unsigned long long)r->sent, (unsigned long long)r->bytes, seconds);
	else
		fprintf(stderr, "%s: %s frames, %.1f MB in %.3f s: %s frames/s, %.1f Mb/s\n", r->o->interface,
			grouped(r->sent), (double)r->bytes / 1e6, seconds,
			grouped((uint64_t)((double)r->sent / seconds)), (double)r->bytes * 8 / seconds / 1e6);
	if (!r->o->json && (r->o->rate > 0 || r->o->speed > 0))
		fprintf(stderr, "handed to the kernel after the time asked for: p50 %.1f us, p99 %.1f us, max %.1f us\n",
			quantile(r, 0.5), quantile(r, 0.99), quantile(r, 1));
}

int replay_run(const struct options *o)
{
	struct replay *r = calloc(1, sizeof *r);
	const char *carrier;
	uint64_t begin;

	if (!r)
		fail("no memory");
	r->o = o;
	if (has_default_route(o->interface) && !o->yes)
		fail("%s carries the default route: --yes sends there all the same", o->interface);
	device_open(&r->device, o->interface);
	device_capabilities(&r->device, &r->attr, &carrier);
	read_file(r);
	device_send(&r->device, r->memory, r->used, &r->context, QUEUE);
	if (o->user)
		device_drop_privileges(o->user);
	begin = now_ns();
	send_all(r);
	summary(r, (double)(now_ns() - begin + 1) / 1e9);
	device_close(&r->device);
	free(r->packets);
	free(r->memory);
	free(r);
	return 0;
}
