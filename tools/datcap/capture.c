/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture.c - `datcap capture` and `datcap stat`: reads the ring, filters and counts frames, and hands them
 * to the thread of writer.c. While that thread is behind, frames wait in the ring; those that do not fit are
 * counted as lost "here". */
#include <jansson.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "datcap.h"
#include "device.h"
#include "filter_rules.h"
#include "output.h"
#include "print.h"
#include "rule.h"
#include "stop.h"
#include "vlan.h"
#include "writer.h"
#include "tools/cli.h"

enum {
	RING_BYTES = 64 << 20,
	XDP_FRAMES = 8192,		/* of a receive queue: 16 MiB with the usual MTU, which stay in memory */
	FRAME_OVERHEAD = 128,		/* bytes of the ring for each frame, in addition to its own */
	NAP_MIN_NS = 1000000, NAP_MAX_NS = 20000000,	/* ns of one sleep */
	DRAIN_NS = 500000000,		/* ns; see drain() */
	NAPS_NS = 40000000,		/* ns of sleeps after the last frame; then it waits for an event */
	WAIT_US = 100000,		/* us of one wait, after which a signal is noticed */
	FILTER_MAX = 1 << 16,		/* bytes of a tagged frame that the filter reads */
	RULES_SNAP_MIN = 128,		/* bytes that have all headers which the filter's rules compare */
};

struct losses {			/* lost frames, by the place of the loss */
	uint64_t device;		/* ~0: not known */
	uint64_t ring, here;
};

struct capture {
	const struct options *o;
	struct device device;
	struct bpf_program filter;
	bool filtered, output_ended, gone, broken, hardware;
	bool terminal;			/* shows the number of frames there */
	long nap, naps_left;		/* ns: of one sleep; of sleeps left before it waits for an event */
	uint64_t kept, bytes;		/* frames that passed the filter */
	uint64_t lost;			/* frames lost since the last frame that passed the filter */
	uint64_t unwritten;		/* frames that were taken and not written */
	uint64_t progress;		/* of the writer, at the last call of look_at_writer() */
	bool stuck;			/* between the last two calls it wrote none of the waiting batches */
	uint64_t settled, lost_stuck;	/* losses in the ring up to the last settle(); those with `stuck` */
	uint64_t begin, next_line;	/* ns, monotonic */
	uint64_t seconds_printed;
	uint64_t kept_before, bytes_before;	/* at the last line */
	struct losses lost_before;
	uint64_t first_time;		/* CLOCK_REALTIME, ns, at the start */
};

static void compile_filter(struct capture *c)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, FILTER_MAX);

	c->filtered = *c->o->filter;
	if (c->filtered && (!dead || pcap_compile(dead, &c->filter, c->o->filter, 1, PCAP_NETMASK_UNKNOWN)))
		usage_error("--filter \"%s\": %s", c->o->filter, dead ? pcap_geterr(dead) : "no memory");
	if (dead)
		pcap_close(dead);
}

/* Applies the filter to the frame with its VLAN tag, which the device has stripped. */
static bool passes(struct capture *c, const DAT_ETH_FRAME *f)
{
	static uint8_t tagged[FILTER_MAX + VLAN_TAG];
	struct pcap_pkthdr header = { .caplen = f->length, .len = f->wire_length + vlan_tag_size(f) };
	const uint8_t *data = f->data;

	if (!c->filtered)
		return true;
	if (vlan_tag_size(f) && f->length >= VLAN_OFFSET) {
		uint32_t rest = (f->length < FILTER_MAX ? f->length : FILTER_MAX) - VLAN_OFFSET;

		memcpy(tagged, data, VLAN_OFFSET);
		vlan_put_tag(f, tagged + VLAN_OFFSET);
		memcpy(tagged + VLAN_OFFSET + VLAN_TAG, data + VLAN_OFFSET, rest);
		header.caplen = VLAN_OFFSET + VLAN_TAG + rest;
		data = tagged;
	}
	return pcap_offline_filter(&c->filter, &header, data);
}

/* --- output to the user -------------------------------------------------------------------- */

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
static bool prints_json(const struct options *o)
{
	return o->json && !(o->file && !strcmp(o->file, "-"));
}

/* Reads the statistics. Attributes the losses in the ring since the last call to the program if the writer
 * was stuck. */
static void settle(struct capture *c, DAT_ETH_STATS *s)
{
	device_stats(&c->device, s);
	if (c->stuck)
		c->lost_stuck += s->lost - c->settled;
	c->settled = s->lost;
}

/* "Here" are frames that the program took and did not write, and frames that did not fit into the ring
 * because the writer was stuck. */
static struct losses losses_of(const struct capture *c, const DAT_ETH_STATS *s)
{
	return (struct losses){ s->lost_device, s->lost - c->lost_stuck, c->unwritten + c->lost_stuck };
}

static void summary(struct capture *c, const DAT_ETH_STATS *s)
{
	double seconds = (double)(clock_now_ns() - c->begin) / 1e9;
	const char *time = c->hardware ? "hardware" : "software";
	uint64_t written = c->kept - c->unwritten;
	const struct losses lost = losses_of(c, s);
	char text[100];

	put_losses(text, sizeof text, &lost);
	if (prints_json(c->o))
		print_json(json_pack("{s:s, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:s}", "device", c->o->interface,
				     "received", number(s->received), "frames", number(written),
				     "bytes", number(c->bytes), "seconds", seconds,
				     "lost_device", number(lost.device), "lost_ring", number(lost.ring),
				     "lost_here", number(lost.here), "time", time));
	else
		fprintf(stderr, "%s: %s, %s in %.1f s; %s; time: %s\n", c->o->interface, counted(written, "frame"),
			size_text(c->bytes), seconds, text, time);
}

/* Joined segments (BIG TCP) may be longer than a block of the ring. */
static void tell_cut(const struct options *o, const DAT_ETH_STATS *s)
{
	if (s->cut)
		cli_warn("%s: %s frames are without their end: longer than the 128 KiB that the ring has for one; "
			 "\"ip link set %s gro_max_size 65536 gso_max_size 65536\" makes them shorter", o->interface,
			 grouped(s->cut), o->interface);
}

/* Returns how much a count has grown, or ~0 if one of its values is ~0, not known. */
static uint64_t difference(uint64_t before, uint64_t now)
{
	return before == ~(uint64_t)0 || now == ~(uint64_t)0 ? ~(uint64_t)0 : now - before;
}

/* Prints the line for the second that has passed. */
static void line(struct capture *c, bool to_stdout)
{
	DAT_ETH_STATS s;
	uint64_t frames = c->kept - c->kept_before, bytes = c->bytes - c->bytes_before;
	struct losses now, lost;
	char text[100];

	settle(c, &s);
	now = losses_of(c, &s);
	lost = (struct losses){ difference(c->lost_before.device, now.device), now.ring - c->lost_before.ring,
		now.here - c->lost_before.here };
	put_losses(text, sizeof text, &lost);
	if (prints_json(c->o))
		print_json(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "device", c->o->interface, "frames",
				     number(frames), "bits", number(bytes * 8), "lost_device", number(lost.device),
				     "lost_ring", number(lost.ring), "lost_here", number(lost.here)));
	else if (to_stdout)
		print("%s: %s frames/s, %.3f Mb/s; %s\n", c->o->interface, grouped(frames), (double)bytes * 8 / 1e6,
		      text);
	else
		fprintf(stderr, "%s: %s frames/s, %.3f Mb/s; %s\n", c->o->interface, grouped(frames),
			(double)bytes * 8 / 1e6, text);
	if (to_stdout || prints_json(c->o))
		c->output_ended |= !print_flush();
	c->kept_before = c->kept;
	c->bytes_before = c->bytes;
	c->lost_before = now;
	c->seconds_printed++;
	c->next_line += 1000000000;
}

/* Shows the number of frames on a terminal, over the number of the last second. */
static void show_count(struct capture *c)
{
	fprintf(stderr, "\r%s ", counted(c->kept, "frame"));
	c->next_line += 1000000000;
}

/* --- the loop ----------------------------------------------------------------------------- */

/* Returns whether the filter keeps the frame, and counts it then. */
static bool take(struct capture *c, DAT_ETH_FRAME *f)
{
	c->lost += f->lost;
	if (!passes(c, f))
		return false;
	f->lost = (DAT_UINT32)c->lost;	/* includes losses before rejected frames */
	c->lost = 0;
	c->kept++;
	c->hardware = f->flags & DAT_ETH_FRAME_HW_TIME;
	c->bytes += f->wire_length + vlan_tag_size(f);
	return true;
}

static bool enough(const struct capture *c, bool write)
{
	return write ? c->o->count && c->kept >= c->o->count : c->o->count && c->seconds_printed >= c->o->count;
}

/* Waits for frames, at most for a moment. While frames keep coming, sleeps instead of waiting for an event:
 * an event costs two switches of threads, and one long sleep is cheaper than several short ones. */
static void wait_for_frames(struct capture *c)
{
	const struct timespec nap = { .tv_nsec = c->nap };
	DAT_EVENT event;
	DAT_COUNT more;

	if (c->naps_left > 0) {
		c->naps_left -= c->nap;
		nanosleep(&nap, NULL);
		return;
	}

	if (dat_eth_arm(c->device.ep) == DAT_SUCCESS)
		dat_evd_wait(c->device.recv, WAIT_US, 1, &event, &more);
	c->gone = device_is_gone(&c->device);
}

/* Updates c->stuck. Called when the ring is empty, or when all batches wait for the writer. */
static void look_at_writer(struct capture *c)
{
	bool behind, stuck;
	uint64_t progress = writer_progress(&behind);
	DAT_ETH_STATS s;

	stuck = behind && progress == c->progress;
	if (stuck != c->stuck)
		settle(c, &s);
	c->stuck = stuck;
	c->progress = progress;
}

/* Fills a batch from the ring. Returns false if there is no frame, or if the ring cannot be read any
 * more. */
static bool poll_batch(struct capture *c, struct writer_batch *b, bool write)
{
	DAT_RETURN ret = dat_eth_poll(c->device.ep, b->frames, WRITER_BATCH, &b->taken);

	if (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY)
		return false;
	if (ret != DAT_SUCCESS) {
		c->broken = true;
		return false;
	}
	b->kept = 0;
	for (DAT_COUNT i = 0; i < b->taken && !(write && enough(c, write)); i++) {
		if (!take(c, &b->frames[i]))
			continue;
		if (b->kept != i)
			b->frames[b->kept] = b->frames[i];
		b->kept++;
	}
	return true;
}

/* Takes a batch of frames and releases it, without a writer. Returns false if there is no frame. */
static bool count_some(struct capture *c)
{
	struct writer_batch batch;

	if (!poll_batch(c, &batch, false))
		return false;
	dat_eth_release(c->device.ep, batch.taken);
	return true;
}

/* Takes a batch of frames and hands it to the writer. Returns false if there is no frame; true if there may
 * be frames, but all batches wait for the writer. */
static bool take_some(struct capture *c)
{
	struct writer_batch *b = writer_batch();

	if (b && poll_batch(c, b, true)) {
		writer_put();
		return true;
	}
	look_at_writer(c);
	return !b;
}

/* Takes the frames that had arrived before a signal. They are in the ring, or the device delivers them
 * within the first nap. Frames that arrive meanwhile are taken, too, for at most DRAIN_NS. If the writer has
 * stopped, the frames are counted as lost. */
static void drain(struct capture *c)
{
	const struct timespec nap = { .tv_nsec = NAP_MAX_NS };
	uint64_t until = clock_now_ns() + DRAIN_NS, kept;

	nanosleep(&nap, NULL);
	while (!enough(c, true) && clock_now_ns() < until && take_some(c))
		;
	c->unwritten = writer_finish();
	kept = c->kept;
	until = clock_now_ns() + DRAIN_NS;
	while (writer_has_ended() && !enough(c, true) && clock_now_ns() < until && count_some(c))
		;
	c->unwritten += c->kept - kept;
}

static void loop(struct capture *c, bool write)
{
	DAT_ETH_STATS s;

	while (!stop_requested && !c->output_ended && !c->gone && !c->broken && !enough(c, write)) {
		if (write ? take_some(c) : count_some(c))
			c->naps_left = NAPS_NS;
		else
			wait_for_frames(c);
		if ((!write || c->o->stats) && clock_now_ns() >= c->next_line)
			line(c, !write);
		else if (c->terminal && clock_now_ns() >= c->next_line)
			show_count(c);
		c->output_ended |= write && writer_has_ended();
	}
	if (!write)
		return;
	if (c->terminal)
		fprintf(stderr, "\r");
	if (c->gone || c->broken)
		c->unwritten = writer_finish();
	else
		drain(c);
	settle(c, &s);
}

/* Checks that the device can do what --take and --time need. */
static void check_device(struct capture *c, const DAT_ETH_ATTR *attr)
{
	if (c->o->xdp && !(attr->caps & DAT_ETH_CAP_XDP))
		fail("%s: --xdp: the device has no AF_XDP sockets", c->o->interface);
	if (c->o->take && !c->o->xdp && !(attr->caps & DAT_ETH_CAP_TAKE))
		fail("%s: --take: the device cannot keep frames from the kernel", c->o->interface);
	if (c->o->hardware_time && attr->clock != DAT_ETH_CLOCK_HARDWARE)
		fail("%s: --time hw: the device gives no hardware time stamps to raw endpoints", c->o->interface);
	if (c->o->software_time && attr->clock != DAT_ETH_CLOCK_SOFTWARE)
		fail("%s: --time sw: the device gives no software time stamps to raw endpoints", c->o->interface);
}

/* Creates the ring. Sets the length of sleeps so that 10 Gb/s (1.25 bytes/ns) fill at most half of it. */
static void open_ring(struct capture *c, const DAT_ETH_ATTR *attr)
{
	unsigned snap = c->o->snap;
	unsigned frame = FRAME_OVERHEAD + (snap && snap < attr->max_frame ? snap : attr->max_frame);
	unsigned frames = c->o->frames ? c->o->frames : c->o->xdp ? XDP_FRAMES : RING_BYTES / frame;
	double ns = (double)frames * frame / 1.25 / 2;

	c->nap = ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : (long)ns;
	device_receive(&c->device, c->o->xdp, frames, snap);
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
		fail("%s: the device is gone", c->o->interface);
	if (c->broken)
		fail("%s: the device cannot be read any more", c->o->interface);
	return c->o->strict && has_losses(c, s) ? STATUS_LOST : 0;
}

static void tell_rules(const struct options *o, const struct filter_rules *made)
{
	if (*made->expressed)
		fprintf(stderr, "%s: a rule of the endpoint: \"%s\"\n", o->interface, made->expressed);
	if (*made->left)
		fprintf(stderr, "%s: a filter in the program: \"%s\"\n", o->interface, made->left);
}

/* Adds the rules of the user. If there are none, adds rules that express the filter, so that other frames
 * are not even copied; except on RDMA devices, whose flows compare bytes instead of parsed headers, and
 * except if --snap may cut headers, since rules compare what is left of them. */
static void add_rules(struct capture *c, const char *carrier)
{
	const struct options *o = c->o;
	const bool all = o->rule_count == 1 && !rule_has_condition(&o->rules[0]);
	struct filter_rules made = { .n = 0 };

	snprintf(made.left, sizeof made.left, "%s", o->filter);
	if (c->filtered && all && !strncmp(carrier, "PACKET", 6) && (!o->snap || o->snap >= RULES_SNAP_MIN))
		filter_rules_make(&made, o->filter, o->promiscuous);
	if (o->verbose && c->filtered)
		tell_rules(o, &made);
	for (unsigned i = 0; i < made.n; i++) {
		DAT_ETH_RULE rule = made.rules[i];

		rule.mode = o->rules[0].mode;
		rule.flags = o->rules[0].flags;
		rule.priority = rule.tag = i;
		device_add_rule(&c->device, &rule);
	}
	for (unsigned i = 0; !made.n && i < o->rule_count; i++)
		device_add_rule(&c->device, &o->rules[i]);
}

static void tell_xdp(struct capture *c)
{
	DAT_ETH_STATS s;

	device_stats(&c->device, &s);
	fprintf(stderr, "%s: AF_XDP, %s\n", c->o->interface, s.flags & DAT_ETH_STATS_ZERO_COPY ? "with zero copy" :
		"and the kernel copies: the driver has no zero copy");
}

static void start(struct capture *c, const struct options *o)
{
	const char *carrier;
	DAT_ETH_ATTR attr;

	*c = (struct capture){ .o = o };
	compile_filter(c);
	device_open(&c->device, o->interface, "");
	device_capabilities(&c->device, &attr, &carrier);
	check_device(c, &attr);
	open_ring(c, &attr);
	if (o->verbose && o->xdp)
		tell_xdp(c);
	add_rules(c, carrier);
	device_warn_if_down(&c->device);
	if (o->user)
		device_drop_privileges(o->user);
	c->begin = clock_now_ns();
	c->next_line = c->begin + 1000000000;
	c->first_time = clock_read_ns(CLOCK_REALTIME);
}

static void end(struct capture *c)
{
	device_close(&c->device);
	pcap_freecode(&c->filter);
}

static struct capture capturing;	/* of capture_run() */

/* Completes the statistics of a file of a ring. Called by the thread that writes, so it reads nothing that changes. */
static void complete_statistics(struct pcapng_statistics *statistics)
{
	DAT_ETH_STATS s;

	device_stats(&capturing.device, &s);
	statistics->start = capturing.first_time;
	statistics->received = s.received + s.lost;
	statistics->dropped_by_interface = s.lost_device;
	statistics->dropped_by_kernel = s.lost;
}

int capture_run(const struct options *o)
{
	struct output_options output = { .path = o->file, .pcap = o->pcap, .ring_files = o->ring_files,
		.ring_size = o->ring_size, .device = o->interface, .filter = o->filter, .snap = o->snap,
		.statistics = complete_statistics };
	struct pcapng_statistics statistics;
	struct capture *c = &capturing;
	DAT_ETH_STATS s;

	start(c, o);
	output_open(&output);
	c->terminal = !o->stats && isatty(STDERR_FILENO);
	if (c->terminal)
		fprintf(stderr, "capturing on %s; Ctrl-C ends\n", o->interface);
	writer_start(c->device.ep);
	loop(c, true);
	statistics = (struct pcapng_statistics){ .time = clock_read_ns(CLOCK_REALTIME), .accepted = c->kept,
		.delivered = c->kept };
	complete_statistics(&statistics);
	output_close(&statistics);
	c->unwritten += output_unwritten();
	device_stats(&c->device, &s);
	summary(c, &s);
	tell_cut(o, &s);
	end(c);
	output_check();
	return status_of(c, &s);
}

int stat_run(const struct options *o)
{
	struct capture c;
	DAT_ETH_STATS s;

	start(&c, o);
	loop(&c, false);
	device_stats(&c.device, &s);
	end(&c);
	return status_of(&c, &s);
}
