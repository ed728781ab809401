/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* phases.c - see phases.h. Both sides keep to this order, which is also that of the dtest of older
 * distributions: notes with the address of the buffer; then either only a ping-pong of writes, or a burst
 * of writes and a note, reads and a note, and a ping-pong of messages. The client sends first. */
#include "phases.h"
#include "../call.h"
#include "../cli.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READS = 4,
	MIN_WRITES = 1000,	/* of the ping-pong of writes, for each size */
	PATTERNS = 5,		/* zeros, ones, two of alternating bits, random */
};
static const char client_write[] = "client RDMA write data...", server_write[] = "server RDMA write data...";
static const char client_read[] = "client RDMA read data...", server_read[] = "server RDMA read data...";

static bool is_client(const struct tester *t)
{
	return t->o->host;
}

static void put_text(char *to, size_t room, const char *text)
{
	memcpy(to, text, strlen(text) < room ? strlen(text) + 1 : room);
}

/* The last byte of the buffer is not compared: a peer that writes with immediate data counts there. */
static void expect_text(const char *found, size_t room, const char *text, const char *where)
{
	size_t length = strlen(text) < room ? strlen(text) : room - 1;

	if (memcmp(found, text, length))
		fail("%s: \"%.*s\" found, \"%.*s\" expected", where, (int)length, found, (int)length, text);
}

static void say(const char *phase)
{
	printf("\n %ld %s\n", (long)getpid(), phase);
	fflush(stdout);
}

static double per_second(double bytes, double seconds)
{
	return seconds > 0 ? bytes / seconds / 1e6 : 0;
}

/* --- bursts of RDMA writes ---------------------------------------------------- */

static void write_burst(struct tester *t, bool immediate)
{
	const struct dtest_options *o = t->o;

	for (unsigned i = 1; i <= o->burst; i++) {
		bool signaled = i == o->burst || i % o->signal_rate == 0;

		if (immediate && i == o->burst)
			tester_write_immediate(t, o->length);
		else
			tester_write(t, o->length, signaled);
		if (signaled)
			tester_wait(t, t->request, "RDMA write");
	}
}

static void print_burst(const struct tester *t, double seconds)
{
	const struct dtest_options *o = t->o;
	double count = (double)o->burst * (o->one_way ? 1 : 2);

	printf("%ld: RDMA write (%s-direction): Total=%.2f usec, itime=%.2f us, poll=%lu, %.0f x %zu, %.2f MB/sec\n",
	       (long)getpid(), o->one_way ? "uni" : "bi", seconds * 1e6, seconds * 1e6 / count, t->empty_polls,
	       count, o->length, per_second(count * (double)o->length, seconds));
}

static void write_phase(struct tester *t)
{
	const struct dtest_options *o = t->o;
	bool immediate = o->write_only && t->immediate, writes = is_client(t) || !o->one_way;
	double start = now(), seconds;

	say(immediate ? "RDMA WRITE IMM DATA with SEND MSG" : "RDMA WRITE DATA with SEND MSG");
	put_text(t->out, o->length, is_client(t) ? client_write : server_write);
	if (writes)
		write_burst(t, immediate);
	if (immediate && (!is_client(t) || !o->one_way))
		tester_wait(t, t->recv, "immediate data of the peer");
	if (is_client(t)) {
		tester_send_note(t, true);
		tester_receive_note(t);
	} else {
		tester_receive_note(t);
		tester_send_note(t, true);
	}
	seconds = now() - start;
	if (!is_client(t) || !o->one_way)
		expect_text((char *)t->in, o->length, is_client(t) ? server_write : client_write,
			    "what the peer wrote");
	print_burst(t, seconds);
}

/* --- RDMA reads --------------------------------------------------------------- */

/* The first reads are only timed, since the peer may not have stored its text yet. It has done so when its
 * note arrives, and the read that follows is checked. */
static void read_phase(struct tester *t)
{
	double times[READS], start;

	say("RDMA READ DATA with SEND MSG");
	put_text((char *)t->in, t->o->length, is_client(t) ? client_read : server_read);
	for (int i = 0; i < READS; i++) {
		start = now();
		tester_read(t, t->o->length);
		tester_wait(t, t->request, "RDMA read");
		times[i] = now() - start;
	}
	tester_send_note(t, true);
	tester_receive_note(t);
	memset(t->out, 'b', t->o->length);
	tester_read(t, t->o->length);
	tester_wait(t, t->request, "RDMA read");
	expect_text(t->out, t->o->length, is_client(t) ? server_read : client_read, "what was read of the peer");
	for (int i = 0; i < READS && t->o->times; i++)
		printf("%ld: RDMA read: itime=%.2f usec\n", (long)getpid(), times[i] * 1e6);
}

/* --- messages to and fro ------------------------------------------------------ */

static void message_phase(struct tester *t)
{
	const struct dtest_options *o = t->o;
	char ours = is_client(t) ? 0x55 : (char)0xaa, theirs = (char)~ours;
	double start, seconds;

	say("PING DATA with SEND MSG");
	memset(t->out, ours, o->length);
	start = now();
	for (int i = 0; i < DTEST_MESSAGES; i++) {
		if (is_client(t))
			tester_send(t, o->length);
		tester_wait(t, t->recv, "receiving a message");
		if (t->in[0] != theirs)
			fail("message %d begins with 0x%02x, 0x%02x expected", i, (unsigned char)t->in[0],
			     (unsigned char)theirs);
		if (!is_client(t))
			tester_send(t, o->length);
		tester_wait(t, t->request, "sending a message");
	}
	seconds = now() - start;
	printf("%ld: Message PingPong: (%d x %zu) Total %.2f us: latency %.2f us, BW %.2f MB/s\n", (long)getpid(),
	       DTEST_MESSAGES, o->length, seconds * 1e6, seconds * 1e6 / DTEST_MESSAGES / 2,
	       per_second(2.0 * DTEST_MESSAGES * (double)o->length, seconds));
}

/* --- RDMA writes to and fro --------------------------------------------------- */

/* Spins until the last byte of a write of `size` bytes is `value`. Also polls the queue, which drives
 * progress and detects that the peer has ended. */
static void wait_written(struct tester *t, size_t size, char value)
{
	double deadline = now() + DTEST_PATIENCE;

	for (unsigned long i = 1; __atomic_load_n(&t->in[size - 1], __ATOMIC_ACQUIRE) != value; i++) {
		tester_poll(t, t->recv, "waiting for an RDMA write");
		if (i % 1024)
			continue;
		if (now() > deadline)
			fail("no RDMA write of the peer within %d s", DTEST_PATIENCE);
		sched_yield();
	}
}

static void fill_pattern(char *to, size_t length, unsigned iteration)
{
	static const unsigned char fixed[PATTERNS - 1] = { 0x00, 0xff, 0x55, 0xaa };
	unsigned which = (iteration - 1) % PATTERNS;

	if (which < PATTERNS - 1)
		memset(to, fixed[which], length);
	for (size_t i = 0; which == PATTERNS - 1 && i < length; i++)
		to[i] = (char)random();
}

/* The client chooses the pattern, and the server writes back what it received. */
static void check_echo(const struct tester *t, size_t size, unsigned iteration)
{
	for (size_t i = 0; i < size; i++)
		if (t->in[i] != t->out[i])
			fail("write %u of %zu bytes: byte %zu is 0x%02x, 0x%02x expected", iteration, size, i,
			     (unsigned char)t->in[i], (unsigned char)t->out[i]);
}

static void write_once(struct tester *t, size_t size, unsigned iteration)
{
	bool client = is_client(t), validate = t->o->validate;

	if (client && validate)
		fill_pattern(t->out, size, iteration);
	if (!client)
		wait_written(t, size, (char)iteration);
	if (!client && validate)
		memcpy(t->out, (const char *)t->in, size);
	t->out[size - 1] = (char)iteration;
	tester_write(t, size, true);
	tester_wait(t, t->request, "RDMA write");
	if (client)
		wait_written(t, size, (char)iteration);
	if (client && validate)
		check_echo(t, size, iteration);
}

static void write_pingpong(struct tester *t, size_t size)
{
	unsigned count = t->o->burst < MIN_WRITES ? MIN_WRITES : t->o->burst;
	double start = now(), seconds;

	for (unsigned i = 1; i <= count; i++)
		write_once(t, size, i);
	seconds = now() - start;
	printf("%ld: RDMA write PingPong: (%u x %zu) Total %.2f us: latency %.2f us, BW %.2f MB/s\n",
	       (long)getpid(), count, size, seconds * 1e6, seconds * 1e6 / count / 2,
	       per_second(2.0 * count * (double)size, seconds));
	fflush(stdout);
}

/* Sizes ascend, so that writes of the previous sizes have not changed the last byte, for which
 * wait_written() waits. */
static void write_pingpong_around(struct tester *t, size_t center, size_t *last)
{
	for (size_t size = center > 1 ? center - 1 : 1; size <= center + 1 && size <= t->o->length; size++) {
		if (size <= *last)
			continue;
		write_pingpong(t, size);
		*last = size;
	}
}

static void write_pingpong_phase(struct tester *t)
{
	const struct dtest_options *o = t->o;
	size_t last = 0;

	say(o->validate ? "RDMA WRITE PINGPONG with DATA CHECK" : "RDMA WRITE PINGPONG without DATA CHECK");
	if (!o->all_sizes)
		write_pingpong(t, o->length);
	for (size_t size = o->step ? o->step : 1; o->all_sizes && size - 1 <= o->length;
	     size = o->step ? size + o->step : 2 * size)
		write_pingpong_around(t, size, &last);
}

void phases_run(struct tester *t)
{
	tester_send_note(t, true);
	tester_receive_note(t);
	if (t->o->write_pingpong) {
		write_pingpong_phase(t);
		return;
	}
	write_phase(t);
	if (t->o->write_only)
		return;
	/* The peer may be a phase ahead: a message without a receive ends an iWARP connection. */
	for (int i = 0; i < DTEST_MESSAGES; i++)
		tester_post_receive(t);
	read_phase(t);
	message_phase(t);
}
