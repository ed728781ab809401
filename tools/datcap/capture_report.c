/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture_report.c - see capture_report.h. */
#include "capture_report.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "common/clock.h"
#include "common/once.h"
#include "capture_types.h"
#include "print.h"
#include "tools/cli.h"

enum { STUCK_NS = 10000000 };	/* ns: a call of output.c that takes longer was blocked */

static void put_losses(char *text, size_t size, const struct losses *lost)
{
	snprintf(text, size, "lost %s in the device, %s in the ring, %s here",
		 lost->device == ~(uint64_t)0 ? "unknown" : grouped(lost->device), grouped(lost->ring),
		 grouped(lost->here));
}

static json_t *number(uint64_t n)
{
	return n == ~(uint64_t)0 ? json_null() : json_integer((json_int_t)n);
}

/* Returns whether the summary and the lines of --stats are JSON: not if standard output has the frames. */
static bool prints_json(const struct capture *c)
{
	return c->o->json && (c->mode == STATS || (c->mode == FILES && strcmp(c->o->file, "-") != 0));
}

void capture_report_read(struct capture *c, DAT_ETH_STATS *sum)
{
	*sum = (DAT_ETH_STATS){ .size = sizeof *sum };
	for (unsigned i = 0; i < c->count; i++) {
		DAT_ETH_STATS s;

		device_stats(&c->sources[i].device, &s);
		sum->received += s.received;
		sum->lost += s.lost;
		sum->cut += s.cut;
		if (s.lost_device == ~(uint64_t)0 || sum->lost_device == ~(uint64_t)0)
			sum->lost_device = ~(uint64_t)0;
		else
			sum->lost_device += s.lost_device;
	}
}

/* Attributes to the program the losses in the rings during a call of output.c. Those that came with frames were before
 * it. */
static void settle(struct capture *c)
{
	const uint64_t told = READ_ONCE(c->told);
	DAT_ETH_STATS s;

	capture_report_read(c, &s);
	pthread_mutex_lock(&c->lock);
	if (told > c->settled)
		c->settled = told;
	if (s.lost > c->settled) {
		c->lost_stuck += s.lost - c->settled;
		c->settled = s.lost;
	}
	pthread_mutex_unlock(&c->lock);
}

void capture_report_look(struct capture *c)
{
	const uint64_t began = READ_ONCE(c->in_output);

	if (began && clock_now_ns() - began >= STUCK_NS)
		settle(c);
}

/* "Here" are frames that the program took and did not write, and frames that did not fit into the ring while the output
 * was blocked. Those are in `s`. */
static struct losses losses_of(struct capture *c, const DAT_ETH_STATS *s)
{
	uint64_t stuck;

	pthread_mutex_lock(&c->lock);
	stuck = c->lost_stuck;
	pthread_mutex_unlock(&c->lock);
	return (struct losses){ s->lost_device, s->lost - stuck, READ_ONCE(c->unwritten) + stuck };
}

static void summary(struct capture *c, const DAT_ETH_STATS *s)
{
	double seconds = (double)(clock_now_ns() - c->begin) / 1e9;
	const char *time = c->hardware ? "hardware" : "software";
	uint64_t written = c->kept - c->unwritten;
	const struct losses lost = losses_of(c, s);
	char text[100];

	put_losses(text, sizeof text, &lost);
	if (prints_json(c))
		print_json(json_pack("{s:s, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:s}", "device", c->names,
				     "received", number(s->received), "frames", number(written),
				     "bytes", number(c->bytes), "seconds", seconds,
				     "lost_device", number(lost.device), "lost_ring", number(lost.ring),
				     "lost_here", number(lost.here), "time", time));
	else
		fprintf(stderr, "%s: %s, %s in %.1f s; %s; time: %s\n", c->names, counted(written, "frame"),
			size_text(c->bytes), seconds, text, time);
}

/* Joined segments (BIG TCP) may be longer than a block of the ring. */
static void tell_cut(const char *name, const DAT_ETH_STATS *s)
{
	if (s->cut)
		cli_warn("%s: %s frames are without their end: longer than the 128 KiB that the ring has for "
			 "one; \"ip link set %s gro_max_size 65536 gso_max_size 65536\" makes them shorter",
			 name, grouped(s->cut), name);
}

/* Without a driver's own XDP the kernel joins segments before the program of AF_XDP sees them, and drops what is longer
 * than a frame of AF_XDP. Its counter does not tell them from frames that found no room. */
static void tell_joined(const char *name, const DAT_ETH_STATS *s)
{
	if (s->lost && !(s->flags & DAT_ETH_STATS_ZERO_COPY))
		cli_warn("%s: the frames lost in the ring found no room there, or are longer than 3840 bytes "
			 "because the kernel has joined them: turn that off by \"ethtool -K %s gro off\", "
			 "and tso and gso where programs of this host send", name, name);
}

void capture_report_end(struct capture *c, const DAT_ETH_STATS *sum)
{
	summary(c, sum);
	for (unsigned i = 0; i < c->count; i++) {
		struct device *device = &c->sources[i].device;
		DAT_ETH_STATS s;

		device_stats(device, &s);
		tell_cut(device->name, &s);
		if (c->o->xdp)
			tell_joined(device->name, &s);
	}
}

/* Returns how much a count has grown, or ~0 if one of its values is ~0, not known. */
static uint64_t difference(uint64_t before, uint64_t now)
{
	return before == ~(uint64_t)0 || now == ~(uint64_t)0 ? ~(uint64_t)0 : now - before;
}

void capture_report_second(struct capture *c)
{
	const bool to_stdout = c->mode == STATS;
	DAT_ETH_STATS s;
	const uint64_t kept = READ_ONCE(c->kept), all_bytes = READ_ONCE(c->bytes);
	uint64_t frames = kept - c->kept_before, bytes = all_bytes - c->bytes_before;
	struct losses now, lost;
	char text[100];

	capture_report_look(c);
	capture_report_read(c, &s);
	now = losses_of(c, &s);
	lost = (struct losses){ difference(c->lost_before.device, now.device), now.ring - c->lost_before.ring,
		now.here - c->lost_before.here };
	put_losses(text, sizeof text, &lost);
	if (prints_json(c))
		print_json(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "device", c->names, "frames",
				     number(frames), "bits", number(bytes * 8), "lost_device", number(lost.device),
				     "lost_ring", number(lost.ring), "lost_here", number(lost.here)));
	else if (to_stdout)
		print("%s: %s frames/s, %.3f Mb/s; %s\n", c->names, grouped(frames), (double)bytes * 8 / 1e6,
		      text);
	else
		fprintf(stderr, "%s: %s frames/s, %.3f Mb/s; %s\n", c->names, grouped(frames),
			(double)bytes * 8 / 1e6, text);
	if (to_stdout || prints_json(c))
		c->output_ended |= !print_flush();
	c->kept_before = kept;
	c->bytes_before = all_bytes;
	c->lost_before = now;
	c->seconds_printed++;
	c->next_line += 1000000000;
}

void capture_report_count(struct capture *c)
{
	fprintf(stderr, "\r%s ", counted(READ_ONCE(c->kept), "frame"));
	c->next_line += 1000000000;
}
