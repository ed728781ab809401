/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture.c - `datcap capture` and `datcap stat`: reads the rings of the devices, filters and counts frames, and prints
 * them or hands them to the thread of writer.c. While that thread is behind, frames wait in the rings; those that do
 * not fit are counted as lost "here". */
#include <jansson.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
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
	RING_BYTES = 64 << 20,
	XDP_FRAMES = 8192,		/* of a receive queue: 16 MiB with the usual MTU, which stay in memory */
	FRAME_OVERHEAD = 128,		/* bytes of the ring for each frame, in addition to its own */
	NAP_MIN_NS = 1000000, NAP_MAX_NS = 20000000,	/* ns of one sleep */
	DRAIN_NS = 500000000,		/* ns; see drain() */
	NAPS_NS = 40000000,		/* ns of sleeps after the last frame; then it waits for an event */
	WAIT_US = 100000,		/* us of one wait, after which a signal is noticed */
	RULES_SNAP_MIN = 128,		/* bytes that have all headers which the filter's rules compare */
};

struct losses {			/* lost frames, by the place of the loss */
	uint64_t device;		/* ~0: not known */
	uint64_t ring, here;
};

struct source {			/* a device that is captured */
	struct device device;
	uint64_t kept;			/* frames of it that passed the filter */
	uint64_t lost;			/* frames lost since the last frame that passed the filter */
};

enum mode { STATS, LINES, FILES };	/* counts frames, prints them, writes them to a file */

struct capture {
	const struct options *o;
	enum mode mode;
	struct source sources[MAX_DEVICES];
	unsigned count;
	char names[MAX_DEVICES * IF_NAMESIZE];	/* of the devices, for a line */
	struct frame_filter filter;
	bool output_ended, hardware;
	const struct source *gone, *broken;	/* one whose device was removed, or whose ring cannot be read */
	bool terminal;			/* shows the number of frames there */
	long nap, naps_left;		/* ns: of one sleep; of sleeps left before it waits for an event */
	uint64_t kept, bytes;		/* frames that passed the filter */
	uint64_t file_bytes;		/* of these frames in the file */
	uint64_t unwritten;		/* frames that were taken and not written */
	uint64_t progress;		/* of the writer, at the last call of look_at_writer() */
	bool behind;			/* at that call batches waited for it */
	bool stuck;			/* between the last two calls it wrote none of the waiting batches */
	uint64_t settled, lost_stuck;	/* losses in the ring up to the last settle(); those with `stuck` */
	uint64_t begin, next_line;	/* ns, monotonic */
	uint64_t seconds_printed;
	uint64_t kept_before, bytes_before;	/* at the last line */
	struct losses lost_before;
	uint64_t first_time;		/* CLOCK_REALTIME, ns, at the start */
};

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
static bool prints_json(const struct capture *c)
{
	return c->o->json && (c->mode == STATS || (c->mode == FILES && strcmp(c->o->file, "-") != 0));
}

/* Adds up the statistics of all devices. */
static void read_stats(struct capture *c, DAT_ETH_STATS *sum)
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

/* Reads the statistics. Attributes the losses in the rings since the last call to the program if the writer
 * was stuck. */
static void settle(struct capture *c, DAT_ETH_STATS *s)
{
	read_stats(c, s);
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
static void tell_cut(struct capture *c)
{
	for (unsigned i = 0; i < c->count; i++) {
		const char *name = c->sources[i].device.name;
		DAT_ETH_STATS s;

		device_stats(&c->sources[i].device, &s);
		if (s.cut)
			cli_warn("%s: %s frames are without their end: longer than the 128 KiB that the ring has for "
				 "one; \"ip link set %s gro_max_size 65536 gso_max_size 65536\" makes them shorter",
				 name, grouped(s.cut), name);
	}
}

/* Without a driver's own XDP the kernel joins segments before the program of AF_XDP sees them, and drops what is longer
 * than a frame of AF_XDP. Its counter does not tell them from frames that found no room. */
static void tell_joined(struct capture *c)
{
	for (unsigned i = 0; c->o->xdp && i < c->count; i++) {
		const char *name = c->sources[i].device.name;
		DAT_ETH_STATS s;

		device_stats(&c->sources[i].device, &s);
		if (s.lost && !(s.flags & DAT_ETH_STATS_ZERO_COPY))
			cli_warn("%s: the frames lost in the ring found no room there, or are longer than 3840 bytes "
				 "because the kernel has joined them: turn that off by \"ethtool -K %s gro off\", "
				 "and tso and gso where programs of this host send", name, name);
	}
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
static bool take(struct capture *c, struct source *s, DAT_ETH_FRAME *f)
{
	s->lost += f->lost;
	if (!frame_filter_passes(&c->filter, f))
		return false;
	f->lost = (DAT_UINT32)s->lost;	/* includes losses before rejected frames */
	s->lost = 0;
	s->kept++;
	c->kept++;
	if (c->o->size)
		c->file_bytes += output_frame_size(f);
	c->hardware = f->flags & DAT_ETH_FRAME_HW_TIME;
	c->bytes += f->wire_length + vlan_tag_size(f);
	return true;
}

/* Returns whether no option can reject a frame, or end the capture at one. */
static bool keeps_all(const struct capture *c)
{
	return frame_filter_is_open(&c->filter) && !c->o->size && (!c->o->count || c->mode == STATS);
}

/* HOT: take() of all frames of a batch, if keeps_all(): then no losses wait for the next frame that is kept. */
static void take_all(struct capture *c, struct source *s, struct writer_batch *b)
{
	const DAT_ETH_FRAME *last = &b->frames[b->taken - 1];

	for (DAT_COUNT i = 0; i < b->taken; i++)
		c->bytes += b->frames[i].wire_length + vlan_tag_size(&b->frames[i]);
	b->kept = b->taken;
	s->kept += (uint64_t)b->kept;
	c->kept += (uint64_t)b->kept;
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
 * an event costs two switches of threads, and one long sleep is cheaper than several short ones. With several devices
 * it always sleeps: an EVD has the events of one. */
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

	if (c->count > 1)
		nanosleep(&nap, NULL);
	else if (dat_eth_arm(c->sources[0].device.ep) == DAT_SUCCESS &&
		 dat_evd_wait(c->sources[0].device.recv, WAIT_US, 1, &event, &more) == DAT_SUCCESS)
		return;
	look_for_devices(c);
}

/* Updates c->stuck. Called when the rings are empty, or when all batches wait for the writer. */
static void look_at_writer(struct capture *c)
{
	bool behind, stuck;
	uint64_t progress = writer_progress(&behind);
	DAT_ETH_STATS s;

	stuck = behind && c->behind && progress == c->progress;
	if (stuck != c->stuck)
		settle(c, &s);
	c->stuck = stuck;
	c->behind = behind;
	c->progress = progress;
}

/* Fills a batch from the ring of a source. Returns false if there is no frame, or if the ring cannot be read any
 * more. */
static bool poll_batch(struct capture *c, struct source *s, struct writer_batch *b)
{
	DAT_RETURN ret = dat_eth_poll(s->device.ep, b->frames, WRITER_BATCH, &b->taken);

	if (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY)
		return false;
	if (ret != DAT_SUCCESS) {
		c->broken = s;
		return false;
	}
	b->ep = s->device.ep;
	b->device = (unsigned)(s - c->sources);
	b->kept = 0;
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

/* Takes a batch of frames of each device and releases it, without a writer; prints the frames if it is to. Returns
 * false if there is no frame. */
static bool count_some(struct capture *c)
{
	struct writer_batch batch;
	bool any = false;

	for (unsigned i = 0; i < c->count; i++) {
		struct source *s = &c->sources[i];

		if (!poll_batch(c, s, &batch))
			continue;
		for (DAT_COUNT n = 0; n < batch.kept && c->mode == LINES && !c->output_ended; n++)
			c->output_ended |= !lines_print(&batch.frames[n], c->count > 1 ? s->device.name : NULL,
							c->o->json);
		dat_eth_release(s->device.ep, batch.taken);
		any = true;
	}
	if (c->mode == LINES)
		c->output_ended |= !print_flush();
	return any;
}

/* Takes a batch of frames of each device and hands it to the writer. Returns false if there is no frame; true if there
 * may be frames, but all batches wait for the writer. */
static bool take_some(struct capture *c)
{
	struct writer_batch *b = NULL;
	bool any = false;

	for (unsigned i = 0; i < c->count && (b = writer_batch()); i++)
		if (poll_batch(c, &c->sources[i], b)) {
			writer_put();
			any = true;
		}
	if (!any) {
		writer_wake();
		look_at_writer(c);
	}
	return any || !b;
}

/* Takes the frames that had arrived before the end of the capture. They are in the ring, or the device delivers them
 * within the first nap. Frames that arrive meanwhile are taken, too, for at most DRAIN_NS. If the writer has
 * stopped, the frames are counted as lost. */
static void drain(struct capture *c)
{
	const struct timespec nap = { .tv_nsec = NAP_MAX_NS };
	uint64_t until = clock_now_ns() + DRAIN_NS, kept;

	nanosleep(&nap, NULL);
	if (c->mode == LINES) {
		while (!c->output_ended && !enough(c) && clock_now_ns() < until && count_some(c))
			;
		return;
	}
	while (!enough(c) && clock_now_ns() < until && take_some(c))
		;
	c->unwritten = writer_finish();
	kept = c->kept;
	until = clock_now_ns() + DRAIN_NS;
	while (writer_has_ended() && !enough(c) && clock_now_ns() < until && count_some(c))
		;
	c->unwritten += c->kept - kept;
}

static void loop(struct capture *c)
{
	const bool write = c->mode == FILES, stat = c->mode == STATS;
	DAT_ETH_STATS s;

	while (!stop_requested && !c->output_ended && !c->gone && !c->broken && !enough(c) && !is_over(c)) {
		if (write ? take_some(c) : count_some(c))
			c->naps_left = NAPS_NS;
		else
			wait_for_frames(c);
		if ((stat || c->o->stats) && clock_now_ns() >= c->next_line)
			line(c, stat);
		else if (c->terminal && clock_now_ns() >= c->next_line)
			show_count(c);
		c->output_ended |= write && writer_has_ended();
	}
	if (stat)
		return;
	if (c->terminal)
		fprintf(stderr, "\r");
	if (!c->gone && !c->broken)
		drain(c);
	else if (write)
		c->unwritten = writer_finish();
	settle(c, &s);
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

/* Creates the ring. Sets the length of sleeps so that 10 Gb/s (1.25 bytes/ns) fill at most half of it. */
static void open_ring(struct capture *c, struct source *s, const DAT_ETH_ATTR *attr)
{
	long nap;

	unsigned snap = c->o->snap;
	unsigned frame = FRAME_OVERHEAD + (snap && snap < attr->max_frame ? snap : attr->max_frame);
	unsigned frames = c->o->frames ? c->o->frames : c->o->xdp ? XDP_FRAMES : RING_BYTES / frame;
	double ns = (double)frames * frame / 1.25 / 2;

	nap = ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : (long)ns;
	c->nap = c->nap && c->nap < nap ? c->nap : nap;
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

	*c = (struct capture){ .o = o, .mode = mode };
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

static struct capture capturing;	/* of capture_run() */

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
	if (o->file)
		writer_start();
	loop(c);
	if (o->file)
		close_output(c);
	read_stats(c, &s);
	summary(c, &s);
	tell_cut(c);
	tell_joined(c);
	end(c);
	if (o->file)
		output_check();
	return status_of(c, &s);
}

int stat_run(const struct options *o)
{
	struct capture c;
	DAT_ETH_STATS s;

	start(&c, o, STATS);
	loop(&c);
	read_stats(&c, &s);
	end(&c);
	return status_of(&c, &s);
}
