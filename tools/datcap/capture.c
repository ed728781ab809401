/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture.c - `datcap capture` and `datcap stat`: reads the rings of the devices, filters and counts frames, and prints
 * them, or writes them to a file in the thread of writer.c. While a write blocks, frames wait in the rings; those that
 * do not fit are counted as lost "here". What it tells the user is in capture_report.c. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/once.h"
#include "capture_report.h"
#include "capture_types.h"
#include "datcap.h"
#include "device.h"
#include "filter_rules.h"
#include "frame_filter.h"
#include "lines.h"
#include "output.h"
#include "print.h"
#include "rule.h"
#include "stop.h"
#include "vlan.h"
#include "writer.h"
#include "tools/cli.h"

enum {
	LOOK_MS = 200,			/* ms between looks at the thread that writes, and at the clock */
	RING_BYTES = 64 << 20,
	XDP_FRAMES = 8192,		/* of a receive queue: 16 MiB with the usual MTU, which stay in memory */
	FRAME_OVERHEAD = 128,		/* bytes of the ring for each frame, in addition to its own */
	NAP_MIN_NS = 1000000, NAP_MAX_NS = 20000000,	/* ns of one sleep */
	LONG_NAP_NS = 40000000,		/* ns of one sleep while few frames come */
	FEW = 16,			/* few frames fill this part of a ring within a sleep */
	DRAIN_NS = 500000000,		/* ns; see drain() */
	NAPS_NS = 80000000,		/* ns of sleeps after the last frame; then it waits for an event */
	WAIT_US = 100000,		/* us of one wait, after which a signal is noticed */
	RULES_SNAP_MIN = 128,		/* bytes that have all headers which the filter's rules compare */
};

/* --- the loop ----------------------------------------------------------------------------- */

/* Returns whether the filter keeps the frame, and counts it then. */
static bool take(struct capture *c, struct source *s, DAT_ETH_FRAME *f)
{
	s->lost += f->lost;
	WRITE_ONCE(c->told, c->told + f->lost);
	if (!frame_filter_passes(&c->filter, f))
		return false;
	f->lost = (DAT_UINT32)s->lost;	/* includes losses before rejected frames */
	s->lost = 0;
	s->kept++;
	WRITE_ONCE(c->kept, c->kept + 1);
	if (c->o->size)
		c->file_bytes += output_frame_size(f);
	c->hardware = f->flags & DAT_ETH_FRAME_HW_TIME;
	WRITE_ONCE(c->bytes, c->bytes + f->wire_length + vlan_tag_size(f));
	return true;
}

/* Returns whether no option can reject a frame, or end the capture at one. */
static bool keeps_all(const struct capture *c)
{
	return frame_filter_is_open(&c->filter) && !c->o->size && (!c->o->count || c->mode == STATS);
}

/* HOT: take() of all frames of a batch, if keeps_all(): then no losses wait for the next frame that is kept. */
static void take_all(struct capture *c, struct source *s, struct batch *b)
{
	const DAT_ETH_FRAME *last = &b->frames[b->taken - 1];
	uint64_t bytes = 0, lost = 0;

	for (DAT_COUNT i = 0; i < b->taken; i++) {
		bytes += b->frames[i].wire_length + vlan_tag_size(&b->frames[i]);
		lost += b->frames[i].lost;
	}
	b->kept = b->taken;
	s->kept += (uint64_t)b->kept;
	WRITE_ONCE(c->told, c->told + lost);
	WRITE_ONCE(c->bytes, c->bytes + bytes);
	WRITE_ONCE(c->kept, c->kept + (uint64_t)b->kept);
	c->hardware = last->flags & DAT_ETH_FRAME_HW_TIME;
}

static bool enough(const struct capture *c)
{
	if (c->o->size && c->file_bytes >= c->o->size)
		return true;
	return c->o->count && (c->mode == STATS ? c->seconds_printed : c->kept) >= c->o->count;
}

static bool is_over(const struct capture *c)
{
	return c->o->duration > 0 && (double)(clock_now_ns() - c->begin) >= c->o->duration;
}

static void look_for_devices(struct capture *c)
{
	for (unsigned i = 0; i < c->count; i++)
		if (device_is_gone(&c->sources[i].device))
			c->gone = &c->sources[i];
}

/* Waits for frames, at most for a moment. While frames keep coming, sleeps instead of waiting for an event:
 * an event costs two switches of threads, and one long sleep is cheaper than several short ones, which find the caches
 * cold each time. With several devices it always sleeps: an EVD has the events of one. */
static void wait_for_frames(struct capture *c)
{
	const struct timespec nap = { .tv_nsec = c->taken <= c->few ? c->long_nap : c->nap };
	DAT_EVENT event;
	DAT_COUNT more;

	c->taken = 0;
	if (c->naps_left > 0) {
		c->naps_left -= nap.tv_nsec;
		nanosleep(&nap, NULL);
		return;
	}

	if (c->count > 1)
		nanosleep(&nap, NULL);
	else if (dat_eth_arm(c->sources[0].device.ep) == DAT_SUCCESS &&
		 dat_evd_wait(c->sources[0].device.recv, WAIT_US, 1, &event, &more) == DAT_SUCCESS)
		return;
	look_for_devices(c);
}

/* Fills a batch from the ring of a source. Returns false if there is no frame, or if the ring cannot be read any
 * more. */
static bool poll_batch(struct capture *c, struct source *s)
{
	struct batch *b = &c->batch;
	DAT_RETURN ret = dat_eth_poll(s->device.ep, b->frames, BATCH, &b->taken);

	if (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY)
		return false;
	if (ret != DAT_SUCCESS) {
		c->broken = s;
		return false;
	}
	b->kept = 0;
	c->taken += (uint64_t)b->taken;
	if (keeps_all(c)) {
		take_all(c, s, b);
		return true;
	}
	for (DAT_COUNT i = 0; i < b->taken && (c->mode == STATS || !enough(c)); i++) {
		if (!take(c, s, &b->frames[i]))
			continue;
		if (b->kept != i)
			b->frames[b->kept] = b->frames[i];
		b->kept++;
	}
	return true;
}

/* Takes a batch of frames of each device and releases it; prints the frames if it is to. Returns false if there is no
 * frame. */
static bool count_some(struct capture *c)
{
	const struct batch *b = &c->batch;
	bool any = false;

	for (unsigned i = 0; i < c->count; i++) {
		struct source *s = &c->sources[i];

		if (!poll_batch(c, s))
			continue;
		for (DAT_COUNT n = 0; n < b->kept && c->mode == LINES && !c->output_ended; n++)
			c->output_ended |= !lines_print(&b->frames[n], c->count > 1 ? s->device.name : NULL,
							c->o->json);
		dat_eth_release(s->device.ep, b->taken);
		any = true;
	}
	if (c->mode == LINES)
		c->output_ended |= !print_flush();
	return any;
}

/* --- the thread that writes --------------------------------------------------------------- */

static void begin_output(struct capture *c)
{
	WRITE_ONCE(c->in_output, clock_now_ns());
}

static void end_output(struct capture *c)
{
	capture_report_look(c);
	WRITE_ONCE(c->in_output, 0);
}

/* Takes a batch of frames of each device, appends it to the output and releases it. Returns false if there is no
 * frame. */
static bool write_some(struct capture *c)
{
	const struct batch *b = &c->batch;
	bool any = false;

	for (unsigned i = 0; i < c->count; i++) {
		if (!poll_batch(c, &c->sources[i]))
			continue;
		begin_output(c);
		WRITE_ONCE(c->unwritten, c->unwritten + (uint64_t)(b->kept - output_frames(b->frames, b->kept, i)));
		end_output(c);
		dat_eth_release(c->sources[i].device.ep, b->taken);
		any = true;
	}
	return any;
}

/* Writes the buffer of output.c even if it is not full, since few frames would not fill it before the end. */
static void flush_if_due(struct capture *c)
{
	const uint64_t now = clock_now_ns();

	if (now < c->next_flush)
		return;
	begin_output(c);
	output_flush();
	end_output(c);
	c->next_flush = now + OUTPUT_FLUSH_NS;
}

static bool goes_on(const struct capture *c)
{
	return !c->gone && !c->broken && !enough(c) && (c->mode == FILES ? output_is_open() : !c->output_ended);
}

/* Takes the frames that had arrived before the end of the capture. They are in the ring, or the device delivers them
 * within the first nap. Frames that arrive meanwhile are taken, too, for at most DRAIN_NS. If the output has ended, the
 * frames are counted as lost. */
static void drain(struct capture *c)
{
	struct timespec nap = { .tv_nsec = NAP_MAX_NS };
	uint64_t until, kept;

	if (c->gone || c->broken)
		return;
	while (nanosleep(&nap, &nap) && errno == EINTR)	/* a signal repeats the request for the end */
		;
	until = clock_now_ns() + DRAIN_NS;
	while (goes_on(c) && clock_now_ns() < until && (c->mode == FILES ? write_some(c) : count_some(c)))
		;
	if (c->mode != FILES || output_is_open())
		return;
	kept = c->kept;
	until = clock_now_ns() + DRAIN_NS;
	while (!enough(c) && clock_now_ns() < until && count_some(c))
		;
	c->unwritten += c->kept - kept;
}

/* Takes frames until the main thread ends it, in the thread of writer.c. */
static void write_all(void *capture)
{
	struct capture *c = capture;

	while (!READ_ONCE(c->ending) && !stop_requested && goes_on(c)) {
		if (write_some(c))
			c->naps_left = NAPS_NS;
		else
			wait_for_frames(c);
		flush_if_due(c);
	}
	drain(c);
}

/* --- the main thread ---------------------------------------------------------------------- */

/* Prints what is due. */
static void print_progress(struct capture *c)
{
	if (clock_now_ns() < c->next_line)
		return;
	if (c->mode == STATS || c->o->stats)
		capture_report_second(c);
	else if (c->terminal)
		capture_report_count(c);
}

static void loop(struct capture *c)
{
	while (!stop_requested && goes_on(c) && !is_over(c)) {
		if (count_some(c))
			c->naps_left = NAPS_NS;
		else
			wait_for_frames(c);
		print_progress(c);
	}
	if (c->mode == LINES)
		drain(c);
}

/* Returns how long the main thread waits: up to the next line, and to the end of the capture. */
static int wait_ms(const struct capture *c)
{
	const uint64_t now = clock_now_ns();
	uint64_t until = now + LOOK_MS * (uint64_t)1000000;

	if ((c->o->stats || c->terminal) && c->next_line < until)
		until = c->next_line;
	if (c->o->duration > 0 && c->begin + (uint64_t)c->o->duration < until)
		until = c->begin + (uint64_t)c->o->duration;
	return until <= now ? 0 : (int)((until - now) / 1000000) + 1;
}

/* loop() of a capture into a file. */
static void watch_writer(struct capture *c)
{
	writer_start(write_all, c);
	while (!stop_requested && !c->output_ended && !is_over(c) && !writer_wait(wait_ms(c)))
		print_progress(c);
	WRITE_ONCE(c->ending, true);
	writer_finish();
	if (c->terminal)
		fprintf(stderr, "\r");
}

/* Checks that the device can do what --take and --time need. */
static void check_device(const struct capture *c, const char *name, const DAT_ETH_ATTR *attr)
{
	if (c->o->xdp && !(attr->caps & DAT_ETH_CAP_XDP))
		fail("%s: --xdp: the device has no AF_XDP sockets", name);
	if (c->o->take && !c->o->xdp && !(attr->caps & DAT_ETH_CAP_TAKE))
		fail("%s: --take: the device cannot keep frames from the kernel", name);
	if (c->o->direction == OUTGOING && !(attr->caps & DAT_ETH_CAP_EGRESS))
		fail("%s: --direction out: the device does not show frames that this host sends", name);
	if (c->o->hardware_time && attr->clock != DAT_ETH_CLOCK_HARDWARE)
		fail("%s: --time hw: the device gives no hardware time stamps to raw endpoints", name);
	if (c->o->software_time && attr->clock != DAT_ETH_CLOCK_SOFTWARE)
		fail("%s: --time sw: the device gives no software time stamps to raw endpoints", name);
}

/* `a` is 0 if nothing was set before. */
static long least(long a, long b)
{
	return a && a < b ? a : b;
}

/* Creates the ring. Sets the length of sleeps so that 10 Gb/s (1.25 bytes/ns) fill at most half of it, or three
 * quarters if they follow few frames. */
static void open_ring(struct capture *c, struct source *s, const DAT_ETH_ATTR *attr)
{
	long nap;

	unsigned snap = c->o->snap;
	unsigned frame = FRAME_OVERHEAD + (snap && snap < attr->max_frame ? snap : attr->max_frame);
	unsigned frames = c->o->frames ? c->o->frames : c->o->xdp ? XDP_FRAMES : RING_BYTES / frame;
	double ns = (double)frames * frame / 1.25 / 2;

	nap = ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : (long)ns;
	c->nap = least(c->nap, nap);
	c->long_nap = least(c->long_nap, nap < NAP_MAX_NS ? nap : least(LONG_NAP_NS, (long)(ns * 1.5)));
	c->few = (uint64_t)least((long)c->few, frames / FEW);
	device_receive(&s->device, c->o->xdp, frames, snap);
}

/* If the losses of the device are not known, they count as none. */
static bool has_losses(const struct capture *c, const DAT_ETH_STATS *s)
{
	return s->lost || c->unwritten || (s->lost_device && s->lost_device != ~(uint64_t)0);
}

/* Returns the exit status after the capture. The received frames are written. */
static int status_of(const struct capture *c, const DAT_ETH_STATS *s)
{
	if (c->gone)
		fail("%s: the device is gone", c->gone->device.name);
	if (c->broken)
		fail("%s: the device cannot be read any more", c->broken->device.name);
	return c->o->strict && has_losses(c, s) ? STATUS_LOST : 0;
}

static void tell_rules(const char *name, const struct filter_rules *made)
{
	if (*made->expressed)
		fprintf(stderr, "%s: a rule of the endpoint: \"%s\"\n", name, made->expressed);
	if (*made->left)
		fprintf(stderr, "%s: a filter in the program: \"%s\"\n", name, made->left);
}

/* Adds the rules of the user. If there are none, adds rules that express the filter, so that other frames
 * are not even copied; except on RDMA devices, whose flows compare bytes instead of parsed headers, and
 * except if --snap may cut headers, since rules compare what is left of them. */
static void add_rules(struct capture *c, struct source *s, const char *carrier)
{
	const struct options *o = c->o;
	const bool all = o->rule_count == 1 && !rule_has_condition(&o->rules[0]);
	struct filter_rules made = { .n = 0 };

	snprintf(made.left, sizeof made.left, "%s", o->filter);
	if (c->filter.has_program && all && !strncmp(carrier, "PACKET", 6) && (!o->snap || o->snap >= RULES_SNAP_MIN))
		filter_rules_make(&made, o->filter, o->promiscuous);
	if (o->verbose && c->filter.has_program)
		tell_rules(s->device.name, &made);
	for (unsigned i = 0; i < made.n; i++) {
		DAT_ETH_RULE rule = made.rules[i];

		rule.mode = o->rules[0].mode;
		rule.flags = o->rules[0].flags;
		rule.priority = rule.tag = i;
		device_add_rule(&s->device, &rule);
	}
	for (unsigned i = 0; !made.n && i < o->rule_count; i++)
		device_add_rule(&s->device, &o->rules[i]);
}

static void tell_xdp(struct source *source)
{
	DAT_ETH_STATS s;

	device_stats(&source->device, &s);
	fprintf(stderr, "%s: AF_XDP, %s\n", source->device.name, s.flags & DAT_ETH_STATS_ZERO_COPY ? "with zero copy" :
		"and the kernel copies: the driver has no zero copy");
}

static void start_source(struct capture *c, const char *name)
{
	struct source *s = &c->sources[c->count++];
	size_t used = strlen(c->names);
	const char *carrier;
	DAT_ETH_ATTR attr;

	snprintf(c->names + used, sizeof c->names - used, "%s%s", used ? "," : "", name);
	device_open(&s->device, name);
	device_capabilities(&s->device, &attr, &carrier);
	check_device(c, name, &attr);
	open_ring(c, s, &attr);
	if (c->o->verbose && c->o->xdp)
		tell_xdp(s);
	add_rules(c, s, carrier);
	device_warn_if_down(&s->device);
}

static void start(struct capture *c, const struct options *o, enum mode mode)
{
	unsigned network_devices = 0;

	*c = (struct capture){ .o = o, .mode = mode, .lock = PTHREAD_MUTEX_INITIALIZER };
	frame_filter_open(&c->filter, o->filter, o->direction);
	for (unsigned i = 0; i < o->interface_count; i++)
		network_devices += device_make_up(o->interfaces[i], "");
	if (network_devices && network_devices < o->interface_count)
		fail("some of the devices are no network devices; an IA of dat.conf is captured beside other IAs only");
	for (unsigned i = 0; i < o->interface_count; i++)
		start_source(c, o->interfaces[i]);
	if (o->user)
		device_drop_privileges(o->user);
	c->begin = clock_now_ns();
	c->next_line = c->begin + 1000000000;
	c->first_time = clock_read_ns(CLOCK_REALTIME);
}

static void end(struct capture *c)
{
	for (unsigned i = 0; i < c->count; i++)
		device_close(&c->sources[i].device);
	frame_filter_close(&c->filter);
}

static struct capture capturing;

/* Completes the statistics of a device. Called by the thread that writes, too, so it reads nothing that changes. */
static void complete_statistics(struct pcapng_statistics *statistics)
{
	DAT_ETH_STATS s;

	device_stats(&capturing.sources[statistics->interface].device, &s);
	statistics->start = capturing.first_time;
	statistics->received = s.received + s.lost;
	statistics->dropped_by_interface = s.lost_device;
	statistics->dropped_by_kernel = s.lost;
}

static void close_output(struct capture *c)
{
	const uint64_t now = clock_read_ns(CLOCK_REALTIME);
	struct pcapng_statistics statistics[MAX_DEVICES];

	for (unsigned i = 0; i < c->count; i++) {
		statistics[i] = (struct pcapng_statistics){ .interface = i, .time = now,
			.accepted = c->sources[i].kept, .delivered = c->sources[i].kept };
		complete_statistics(&statistics[i]);
	}
	output_close(statistics);
	c->unwritten += output_unwritten();
}

int capture_run(const struct options *o)
{
	struct output_options output = { .path = o->file, .pcap = o->pcap, .ring_files = o->ring_files,
		.ring_size = o->ring_size, .devices = o->interfaces, .device_count = o->interface_count,
		.filter = o->filter, .snap = o->snap,
		.statistics = complete_statistics };
	struct capture *c = &capturing;
	DAT_ETH_STATS s;

	start(c, o, o->file ? FILES : LINES);
	if (o->file)
		output_open(&output);
	c->terminal = o->file && !o->stats && isatty(STDERR_FILENO);
	if (c->terminal)
		fprintf(stderr, "capturing on %s; Ctrl-C ends\n", c->names);
	if (o->file) {
		watch_writer(c);
		close_output(c);
	} else {
		loop(c);
	}
	capture_report_read(c, &s);
	capture_report_end(c, &s);
	end(c);
	if (o->file)
		output_check();
	return status_of(c, &s);
}

int stat_run(const struct options *o)
{
	struct capture *c = &capturing;
	DAT_ETH_STATS s;

	start(c, o, STATS);
	loop(c);
	capture_report_read(c, &s);
	end(c);
	return status_of(c, &s);
}
