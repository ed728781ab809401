/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpdump.c - raw Ethernet endpoints beside tcpdump, or dumpcap of Wireshark, on the same device: both see the same
 * frames, in the same order, byte for byte. Tags that the kernel has stripped are put back, as libpcap does. */
#include "wire.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	FRAMES = 120,
	MTU = 9100,
	ROOM = MTU,		/* bytes; more than any frame here */
	PCAP_HEADER = 24, RECORD_HEADER = 16,
};

#define LIMIT "300"	/* seconds */

static struct wire w;

/* --- the other program ------------------------------------------------------------------------ */

struct capture {
	pid_t pid;
	int file, output;	/* memory files with what the program writes: frames, and lines about itself */
	uint8_t *bytes;		/* of the file, as far as it was written */
	size_t size;
};

static bool has_program(const char *name)
{
	char command[64];

	snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
	return !system(command);
}

static int make_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0)
		fail("memfd_create");
	return fd;
}

/* Executes the program. It ends with the case, and after LIMIT seconds. timeout(1) passes SIGINT on. */
static void execute(const struct capture *c)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(c->file, 1) < 0 || dup2(c->output, 2) < 0)
		_exit(126);
	if (has_program("tcpdump"))	/* its ring has slots of 64 to 256 KiB: -B gives it one for each frame */
		execlp("timeout", "timeout", LIMIT, "tcpdump", "-i", "eth0", "-U", "--immediate-mode", "-B", "32768",
		       "-Z", "root", "-w", "-", (char *)NULL);
	else
		execlp("timeout", "timeout", LIMIT, "dumpcap", "-q", "-P", "-i", "eth0", "-w", "-", (char *)NULL);
	_exit(127);
}

static void end_capture(struct capture *c)
{
	kill(c->pid, SIGINT);
	waitpid(c->pid, NULL, 0);
	close(c->file);
	close(c->output);
	free(c->bytes);
}

/* tcpdump prints that it listens on the device, dumpcap that it writes the file. */
static bool has_begun(const struct capture *c)
{
	char text[1000];
	ssize_t n = pread(c->output, text, sizeof text - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "tcpdump: listening") || strstr(text, "File:");
}

static void begin_capture(struct capture *c)
{
	double end = life_now() + 30 * SLOWER;

	*c = (struct capture){ .file = make_file("frames"), .output = make_file("lines") };
	c->pid = fork();
	if (!c->pid)
		execute(c);
	while (!has_begun(c)) {
		if (waitpid(c->pid, NULL, WNOHANG) == c->pid)
			skip("tcpdump or dumpcap does not capture here");
		if (life_now() > end)
			fail("tcpdump or dumpcap does not begin");
		usleep(10000);
	}
}

static void read_file(struct capture *c)
{
	struct stat st;
	ssize_t n;

	if (fstat(c->file, &st))
		fail("what the other program writes cannot be read");
	c->bytes = realloc(c->bytes, (size_t)st.st_size + 1);
	n = pread(c->file, c->bytes, (size_t)st.st_size, 0);
	c->size = n > 0 ? (size_t)n : 0;
}

/* Finds the frame behind *at. Numbers of the file are in the byte order of this host. Returns its length, or
 * 0 if there is none yet. */
static size_t next_record(const struct capture *c, size_t *at, const uint8_t **frame)
{
	uint32_t header[4];	/* seconds, fraction, bytes here, bytes of the frame */

	if (!*at)
		*at = PCAP_HEADER;
	if (c->size < *at + RECORD_HEADER)
		return 0;
	memcpy(header, c->bytes + *at, sizeof header);
	EXPECT(header[2] == header[3]);
	if (c->size < *at + RECORD_HEADER + header[2])
		return 0;
	*frame = c->bytes + *at + RECORD_HEADER;
	*at += RECORD_HEADER + header[2];
	return header[2];
}

static unsigned count_records(struct capture *c)
{
	const uint8_t *frame;
	unsigned n = 0;
	size_t at = 0;

	for (read_file(c); next_record(c, &at, &frame); n++)
		;
	return n;
}

/* Waits until all frames are in the file. There must be no other. */
static void await_records(struct capture *c, unsigned frames)
{
	double end = life_now() + 30 * SLOWER;
	unsigned n;

	while ((n = count_records(c)) < frames) {
		if (life_now() > end)
			fail("the other program has %u frames of %u", n, frames);
		usleep(10000);
	}
	kill(c->pid, SIGINT);
	waitpid(c->pid, NULL, 0);
	n = count_records(c);
	if (n != frames)
		fail("the other program has %u frames, the endpoint %u", n, frames);
}

/* --- frames -------------------------------------------------------------------------------------- */

static void tag(uint8_t *frame, uint16_t type, uint16_t tci)
{
	const uint8_t bytes[4] = { (uint8_t)(type >> 8), (uint8_t)type, (uint8_t)(tci >> 8), (uint8_t)tci };

	memcpy(frame + 12, bytes, sizeof bytes);
}

/* Frame n: runts down to the header alone, the lengths around the least one, jumbo frames; without tag, with one, two;
 * to this station, to all, to a group, to another station. The kernel drops a tag without two bytes behind its type. */
static size_t make_frame(uint8_t *frame, unsigned n)
{
	static const uint16_t lengths[] = { 14, 15, 33, 59, 60, 61, 64, 1514, 1515, 9014 };
	static const uint8_t others[3][6] = { { 255, 255, 255, 255, 255, 255 }, { 1, 0, 0x5e, 1, 2, 3 },
		{ 2, 0, 0, 0, 0, 9 } };
	size_t tags = n / 10 % 3 * 4, length = lengths[n % 10] + (tags ? 2u : 0);

	wire_frame(&w, frame, length + tags, n);
	if (n % 4)
		memcpy(frame, others[n % 4 - 1], 6);
	if (!tags)
		return length;
	tag(frame, n % 2 ? 0x8100 : 0x88a8, (uint16_t)(n << 9 | n));
	tag(frame + tags - 4, 0x8100, (uint16_t)(n / 30 << 13 | 5));
	if (tags == 8)
		tag(frame, 0x88a8, (uint16_t)n);
	memcpy(frame + 12 + tags, "\x88\xb5", 2);
	return length + tags;
}

/* A frame of the endpoint, with its tag put back, must be the next one of the other program. */
static void compare(const struct capture *c, size_t *at, const DAT_ETH_FRAME *got, const uint8_t *data)
{
	static uint8_t whole[ROOM + 4];
	const uint8_t *frame = NULL;
	size_t length = next_record(c, at, &frame), mine = got->length;

	EXPECT(got->length == got->wire_length && mine <= ROOM && !got->lost);
	memcpy(whole, data, mine);
	if (got->flags & DAT_ETH_FRAME_VLAN) {
		memmove(whole + 16, data + 12, mine - 12);
		tag(whole, got->vlan_type, got->vlan_tci);
		mine += 4;
	}
	if (mine != length || memcmp(whole, frame, length))
		fail("a frame of %zu bytes, the other program has %zu, or other bytes", mine, length);
}

static void open_both(struct capture *c, bool ring)
{
	DAT_ETH_RULE all = { .mode = DAT_ETH_COPY, .flags = DAT_ETH_ALL };

	wire_network(&w);
	wire_command("ip link set eth0 mtu 9100 && ip link set peer mtu 9100");
	wire_ia(&w);
	wire_endpoint(&w, ring ? "256" : "", NULL);
	wire_rule(&w, &all);
	begin_capture(c);
}

/* --- cases ----------------------------------------------------------------------------------------- */

static void send_frames(void)
{
	static uint8_t frame[ROOM];

	for (unsigned n = 0; n < FRAMES; n++)
		wire_send(&w, frame, make_frame(frame, n));
}

/* Times must not go back, and must lie between the begin of the sends and now. */
static void check_time(const DAT_ETH_FRAME *frame, DAT_UINT64 *last)
{
	EXPECT(frame->time >= *last && frame->time <= wire_now());
	*last = frame->time;
}

static void ETH_15_a_ring_has_what_tcpdump_has(void)
{
	DAT_ETH_FRAME frames[FRAMES];
	unsigned stripped = 0;
	DAT_UINT64 last = wire_now();
	struct capture c;
	size_t at = 0;

	open_both(&c, true);
	send_frames();
	for (DAT_COUNT got = 0; got < FRAMES;)
		got += wire_poll(&w, frames + got, FRAMES - got);
	await_records(&c, FRAMES);
	for (unsigned n = 0; n < FRAMES; n++) {
		compare(&c, &at, &frames[n], frames[n].data);
		check_time(&frames[n], &last);
		stripped += !!(frames[n].flags & DAT_ETH_FRAME_VLAN);
	}
	end_capture(&c);
	wire_close(&w);
	EXPECT(stripped == FRAMES * 2 / 3);		/* the outer tag of each tagged frame */
}

static void ETH_8_posted_receives_have_what_tcpdump_has(void)
{
	static uint8_t copy[FRAMES][ROOM];
	DAT_ETH_FRAME frames[FRAMES];
	DAT_UINT64 last = wire_now();
	struct capture c;
	size_t at = 0;

	open_both(&c, false);
	send_frames();
	for (unsigned n = 0; n < FRAMES; n++) {
		DAT_EVENT event;

		wire_post(&w, 0, ROOM, n);
		event = wire_event(w.recv, DAT_ETH_DTO_EVENT);
		EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == n);
		memcpy(&frames[n], event.event_extension_data, sizeof frames[n]);
		memcpy(copy[n], w.memory, ROOM);
	}
	await_records(&c, FRAMES);
	for (unsigned n = 0; n < FRAMES; n++) {
		compare(&c, &at, &frames[n], copy[n]);
		check_time(&frames[n], &last);
	}
	end_capture(&c);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_15_a_ring_has_what_tcpdump_has),
		CASE(ETH_8_posted_receives_have_what_tcpdump_has),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	if (!has_program("tcpdump") && !has_program("dumpcap")) {
		printf("skip: neither tcpdump nor dumpcap (of tshark) here\n");
		return WIRE_SKIPPED;
	}
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
