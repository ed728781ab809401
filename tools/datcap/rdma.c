/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma.c - `datcap rdma`: the RDMA messages of DAT programs, as lines, or as frames in a capture file. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "datcap.h"
#include "flow.h"
#include "iwarp.h"
#include "output.h"
#include "print.h"
#include "roce.h"
#include "stop.h"
#include "taps.h"
#include "tools/cli.h"

enum {
	SNAP = 256,			/* bytes of payload unless -s says otherwise */
	SORT_NS = 5000000,		/* ns that a message waits for older messages of other programs */
	FIND_NS = OUTPUT_FLUSH_NS,	/* ns between searches for new programs */
	PAUSE_NS = 1000000,		/* a ring of 8 MiB takes 30 ms to fill at 5 million messages/s */
	TAKE_MAX = 4096,		/* messages taken between looks at the clocks and at stop_requested */
	UNWRITTEN_MAX = 1 << 14,	/* messages, more than the buffer of output.c holds */
};

static struct {
	const struct options *o;
	uint64_t first, begin;		/* ns at the start: CLOCK_REALTIME, monotonic */
	uint64_t messages, bytes;
	uint64_t lost;			/* messages whose loss the file has reported */
	uint64_t frames;		/* of all messages */
	uint64_t frames_upto[UNWRITTEN_MAX];	/* frames of messages 1 to n, at n % UNWRITTEN_MAX */
	uint64_t lost_here;		/* messages taken, or waiting in a ring, that are not in the file */
	bool like_rpc;			/* a message in the file has a payload that analysers take for RPC over RDMA */
	bool output_ended;
	bool terminal;			/* shows the number of messages there */
} run;

struct frame_of {
	const struct taps_message *message;
	char comment[96];		/* as output_commented() takes it */
};

/* Returns the name of the carrier, as used in a comment of the file, or in a line. */
static const char *carrier_of(const struct tap_record *r, bool in_comment)
{
	if (r->flags & TAP_MEMORY)
		return "memory";
	if (r->flags & TAP_ROCE)
		return in_comment ? "RDMA" : "rdma";
	return in_comment ? "TCP" : "tcp";
}

/* --- a file ------------------------------------------------------------------------------------------ */

static bool write_frame(void *arg, const struct flow_frame *frame)
{
	const struct frame_of *is = arg;
	uint64_t lost = taps_lost();
	DAT_ETH_FRAME f = { .data = frame->bytes, .length = frame->captured, .wire_length = frame->length,
		.time = is->message->record->time, .lost = (DAT_UINT32)(lost - run.lost),
		.flags = is->message->record->kind == TAP_POSTED ? DAT_ETH_FRAME_OUTGOING : 0 };

	const uint64_t files = output_files();
	bool more;

	run.lost = lost;
	run.frames++;
	more = output_commented(&f, is->comment, frame->joined);
	if (output_files() != files)
		iwarp_begin_file();
	return more;
}

/* Returns whether the first words of the payload of a send look like a header of RPC over RDMA (RFC 8166): xid,
 * version 1, credits, and one of five types. Wireshark then shows it as such, and often as malformed. */
static bool is_like_rpc(const struct taps_message *m)
{
	uint32_t word[4];

	if (m->record->op != TAP_SEND || m->record->captured < sizeof word)
		return false;
	memcpy(word, m->payload, sizeof word);
	return ntohl(word[1]) == 1 && ntohl(word[3]) < 5;
}

static void write_message(const struct taps_message *m)
{
	struct frame_of is = { .message = m };
	const struct tap_record *r = m->record;
	bool roce = r->flags & TAP_ROCE;
	int n;

	n = snprintf(is.comment, sizeof is.comment, "process %ld, QP 0x%x, %s, %u bytes, as posted", (long)m->pid,
		     r->qpn, carrier_of(r, true), r->length);
	if (roce)
		snprintf(is.comment + n, sizeof is.comment - (size_t)n, ", not as sent");
	else
		snprintf(is.comment + n, sizeof is.comment - (size_t)n, ", ports %u > %u",
			 r->kind == TAP_POSTED ? r->ends.local.port : r->ends.remote.port,
			 r->kind == TAP_POSTED ? r->ends.remote.port : r->ends.local.port);
	run.like_rpc |= is_like_rpc(m);
	run.output_ended |= !(roce ? roce_frames : iwarp_frames)(r, m->payload, write_frame, &is);
	run.frames_upto[run.messages % UNWRITTEN_MAX] = run.frames;
}

/* --- lines -------------------------------------------------------------------------------------------- */

static const char *operation(const struct tap_record *r)
{
	const bool answer = r->kind == TAP_ANSWERED;

	switch (r->op) {
	case TAP_SEND: return answer ? "?" : "send";
	case TAP_WRITE: return answer ? "?" : "write";
	case TAP_READ: return answer ? "read answer" : "read";
	case TAP_CMP_SWAP: return answer ? "atomic answer" : "compare-and-swap";
	case TAP_FETCH_ADD: return answer ? "atomic answer" : "fetch-and-add";
	default: return "?";
	}
}

static void put_address(char *to, size_t size, const struct tap_address *a)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(a->family == 6 ? AF_INET6 : AF_INET, a->ip, text, sizeof text);
	snprintf(to, size, a->family == 6 ? "[%s]:%u" : "%s:%u", text, a->port);
}

static void print_message(const struct taps_message *m)
{
	const struct tap_record *r = m->record;
	bool posted = r->kind == TAP_POSTED;
	const char *carrier = carrier_of(r, false);
	char from[64], to[64];

	put_address(from, sizeof from, posted ? &r->ends.local : &r->ends.remote);
	put_address(to, sizeof to, posted ? &r->ends.remote : &r->ends.local);
	if (run.o->json) {
		run.output_ended |= !print_json(
			json_pack("{s:I, s:i, s:i, s:s, s:s, s:s, s:i, s:s}", "time", (json_int_t)r->time, "pid",
				  (int)m->pid, "qp", (int)r->qpn, "from", from, "to", to, "operation", operation(r),
				  "bytes", (int)r->length, "carrier", carrier));
		return;
	}
	run.output_ended |= !print("%s %ld %s > %s %s, %s %u bytes\n", time_text(r->time), (long)m->pid, from, to,
				   carrier, operation(r), r->length);
}

/* --- lines about the capture --------------------------------------------------------------------------- */

/* Returns whether these lines are JSON: not if standard output has the messages or frames. */
static bool prints_json(void)
{
	return run.o->json && run.o->file && strcmp(run.o->file, "-") != 0;
}

static void print_stats(void)
{
	if (prints_json()) {
		print_json(json_pack("{s:I, s:i, s:I}", "messages", (json_int_t)run.messages, "programs",
				     (int)taps_count(), "lost", (json_int_t)taps_lost()));
		run.output_ended |= !print_flush();
	} else {
		fprintf(stderr, "%s of %u program%s, %s lost\n", counted(run.messages, "message"), taps_count(),
			taps_count() == 1 ? "" : "s", grouped(taps_lost()));
	}
}

static void print_summary(double seconds)
{
	if (prints_json())
		print_json(json_pack("{s:I, s:I, s:f, s:I, s:I}", "messages", (json_int_t)run.messages, "bytes",
				     (json_int_t)run.bytes, "seconds", seconds, "lost", (json_int_t)taps_lost(),
				     "lost_here", (json_int_t)run.lost_here));
	else
		fprintf(stderr, "%s, %s in %.1f s; lost %s in the rings of the programs, %s here%s\n",
			counted(run.messages, "message"), size_text(run.bytes), seconds, grouped(taps_lost()),
			grouped(run.lost_here), run.like_rpc ? "; tshark needs --disable-protocol rpcordma" : "");
}

/* --- the loop ------------------------------------------------------------------------------------------ */

static bool is_enough(void)
{
	return run.output_ended || (run.o->count && run.messages >= run.o->count) ||
	       (run.o->size && output_size() >= run.o->size);
}

static bool is_over(void)
{
	return run.o->duration > 0 && (double)(clock_now_ns() - run.begin) >= run.o->duration;
}

/* Takes messages from before `until`, at most `most`. Returns whether there are no more of them. */
static bool take_messages(uint64_t until, uint64_t most)
{
	struct taps_message m;
	bool more = true;

	for (; most && !is_enough() && (more = taps_next(until, &m)); most--) {
		if (flow_is_duplicate(m.record))
			continue;
		run.messages++;
		run.bytes += m.record->length;
		if (run.o->file)
			write_message(&m);
		else
			print_message(&m);
	}
	if (!run.o->file)
		run.output_ended |= !print_flush();
	return !more;
}

/* Called after output_close(). Counts messages as lost "here": the last messages, if the file does not have
 * all of their frames, and the messages that are still in the rings because the file took no more. */
static void count_lost(void)
{
	const uint64_t written = run.frames - output_unwritten();
	struct taps_message m;

	while (run.messages && run.frames_upto[run.messages % UNWRITTEN_MAX] > written) {
		run.messages--;
		run.lost_here++;
	}
	while ((!run.o->count || run.messages + run.lost_here < run.o->count) && taps_next(~(uint64_t)0, &m))
		run.lost_here += !flow_is_duplicate(m.record);
}

/* The time is read again after TAKE_MAX messages: once CLOCK_REALTIME has been set back, all messages that the
 * programs send are from before a time that was read earlier. */
static void loop(void)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t next = clock_now_ns() + 1000000000, next_find = 0;
	bool all;

	while (!stop_requested && !is_enough() && !(run.o->pid && !taps_count()) && !is_over()) {
		all = take_messages(clock_read_ns(CLOCK_REALTIME) - SORT_NS, TAKE_MAX);
		if (clock_now_ns() >= next_find) {
			taps_find();
			if (run.o->file)
				run.output_ended |= !output_flush();
			next_find = clock_now_ns() + FIND_NS;
		}
		if (clock_now_ns() >= next) {
			taps_renew();
			next = clock_now_ns() + 1000000000;
			if (run.o->stats)
				print_stats();
			else if (run.terminal)
				fprintf(stderr, "\r%s ", counted(run.messages, "message"));
		}
		if (all)
			nanosleep(&pause, NULL);
	}
}

/* Completes the statistics of messages. */
static void complete_statistics(struct pcapng_statistics *s)
{
	s->start = run.first;
	s->received = run.messages + taps_lost();
	s->dropped_by_interface = ~(uint64_t)0;
	s->accepted = s->delivered = run.messages;
	s->dropped_by_kernel = taps_lost();
}

int rdma_run(const struct options *o)
{
	const char *device = o->ia ? o->ia : "rdma";
	struct output_options output = { .path = o->file, .pcap = o->pcap, .ring_files = o->ring_files,
		.ring_size = o->ring_size, .devices = &device, .device_count = 1, .filter = "",
		.statistics = complete_statistics };
	struct pcapng_statistics statistics;

	run.o = o;
	run.begin = clock_now_ns();
	run.first = clock_read_ns(CLOCK_REALTIME);
	taps_start(o->pid, o->ia, o->snap ? o->snap : SNAP);
	if (o->file)
		output_open(&output);
	run.terminal = o->file && !o->stats && isatty(STDERR_FILENO);
	loop();
	if (run.terminal)
		fprintf(stderr, "\r");
	taps_end();
	take_messages(~(uint64_t)0, UINT64_MAX);
	statistics = (struct pcapng_statistics){ .time = clock_read_ns(CLOCK_REALTIME) };
	complete_statistics(&statistics);
	if (o->file) {
		output_close(&statistics);
		count_lost();
	}
	print_summary((double)(clock_now_ns() - run.begin) / 1e9);
	taps_free();
	if (o->file)
		output_check();
	return o->strict && (statistics.dropped_by_kernel || run.lost_here) ? STATUS_LOST : 0;
}
