/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* output.c - writes capture files, in pieces of 128 KiB. A file always ends with a whole block or
 * record, except when the process is killed within a write. */
#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "config.h"
#include "common/clock.h"
#include "datcap.h"
#include "print.h"
#include "stop.h"
#include "vlan.h"
#include "tools/cli.h"

enum {
	BUFFER = 1 << 17,		/* bytes of one write: they are in the second-level cache still */
	FRAME_MAX = 1 << 18,		/* bytes of a frame and the additions of its block, at most */
	PCAP_HEADER = 24, PCAP_RECORD = 16,	/* bytes before the first frame, before each frame */
	STUCK_MS = 1000,		/* ms; a reader of a pipe that is busy for longer is stuck */
};

static struct output_options options;
static uint8_t *buffer;			/* BUFFER bytes, and room for a block more */
static size_t used;			/* bytes of `buffer`; whole blocks */
static uint64_t written;		/* bytes of the current file */
static unsigned file_number;
static uint64_t files_begun;		/* of the ring */
static int fd = -1;
static bool output_ended;		/* write no more: no reader, a stuck reader, or a failed write */
static uint64_t appended[MAX_DEVICES];	/* frames of each device, of all files */
static uint64_t unwritten;		/* frames */
/* Why the file cannot be written. output_check() reports it, in the thread that ends the program. */
static char failure[PATH_MAX + 100];

static const char *path_of(unsigned number)
{
	static char path[4096];

	if (!options.ring_files)
		return options.path;
	snprintf(path, sizeof path, "%s.%u", options.path, number);
	return path;
}

static void give_up(const char *why)
{
	if (!*failure)
		snprintf(failure, sizeof failure, "%s: %s", path_of(file_number), why);
	output_ended = true;
}

/* Returns the length of the block, record or file header at this offset of the buffer. */
static size_t block_length(size_t at)
{
	uint32_t length;

	if (options.pcap && !written && !at)
		return PCAP_HEADER;
	memcpy(&length, buffer + at + (options.pcap ? 8 : 4), sizeof length);
	return options.pcap ? (size_t)length + PCAP_RECORD : length;
}

/* Returns the number of frames in the buffer that do not end within its first `put` bytes. */
static uint64_t frames_behind(size_t put)
{
	uint64_t frames = 0;

	for (size_t at = 0, next; at < used; at = next) {
		const bool is_frame = options.pcap ? written || at : pcapng_is_packet(buffer + at);

		next = at + block_length(at);
		frames += is_frame && next > put;
	}
	return frames;
}

/* Cuts an incomplete block off the end of the file. The first `put` bytes of the buffer were written. */
static void drop_partial(size_t put)
{
	size_t whole = 0, next = 0;

	while (next <= put) {
		whole = next;
		next = whole + block_length(whole);
	}
	if (ftruncate(fd, (off_t)(written + whole)))
		return;			/* a pipe */
}

/* Returns whether a write of PIPE_BUF bytes would block for longer than STUCK_MS. A signal does not end the
 * wait, since signals that end the capture are repeated. */
static bool is_stuck(void)
{
	struct pollfd is = { .fd = fd, .events = POLLOUT };
	const uint64_t until = clock_now_ns() + STUCK_MS * (uint64_t)1000000;
	uint64_t now;
	int ready = 0;

	while ((now = clock_now_ns()) < until &&
	       (ready = poll(&is, 1, (int)((until - now) / 1000000) + 1)) < 0 && errno == EINTR)
		;
	return ready <= 0;
}

/* Returns the maximum size of the next write. After a signal this is a size that does not block, or 0 if the
 * reader of the pipe is stuck. */
static size_t write_limit(size_t left)
{
	if (!stop_requested)
		return left;
	if (is_stuck())
		return 0;
	return left < PIPE_BUF ? left : PIPE_BUF;	/* does not block, since poll() reported POLLOUT */
}

static void flush(void)
{
	size_t put = 0, most;

	while (put < used && !output_ended) {
		ssize_t n;

		if (!(most = write_limit(used - put))) {
			cli_warn("the reader of %s does not read: the last %zu bytes are not written",
				 path_of(file_number), used - put);
			output_ended = true;
			break;
		}
		n = write(fd, buffer + put, most);

		if (n >= 0) {
			put += (size_t)n;
		} else if (errno == EPIPE) {
			output_ended = true;
		} else if (errno != EINTR) {
			int err = errno;

			drop_partial(put);
			give_up(cli_write_error(err));
		}
	}
	if (put < used)
		unwritten += frames_behind(put);
	written += used;
	used = 0;
}

/* --- pcap, with nanoseconds ------------------------------------------------------------- */

static void append32(uint32_t value)
{
	memcpy(buffer + used, &value, sizeof value);
	used += sizeof value;
}

static void pcap_header(void)
{
	append32(0xa1b23c4d);
	append32(2 | 4 << 16);		/* version 2.4, as two numbers of 16 bits */
	append32(0);
	append32(0);
	append32(options.snap ? options.snap : FRAME_MAX);
	append32(1);			/* Ethernet */
}

static void pcap_record(const struct pcapng_packet *p)
{
	append32((uint32_t)(p->time / 1000000000));
	append32((uint32_t)(p->time % 1000000000));
	append32(p->captured);
	append32(p->wire_length);
	for (int i = 0; i < 3; i++) {
		if (p->lengths[i])
			memcpy(buffer + used, p->pieces[i], p->lengths[i]);
		used += p->lengths[i];
	}
}

/* --- files -------------------------------------------------------------------------------- */

/* Does not read sysfs, which may show the devices of another network namespace. */
uint64_t output_link_speed(const char *device)
{
	struct ethtool_cmd command = { .cmd = ETHTOOL_GSET };
	struct ifreq request = { .ifr_data = (void *)&command };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t megabits = 0;

	snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
	if (s >= 0 && !ioctl(s, SIOCETHTOOL, &request))
		megabits = ethtool_cmd_speed(&command);
	if (s >= 0)
		close(s);
	return megabits == (uint32_t)SPEED_UNKNOWN ? 0 : megabits * (uint64_t)1000000;
}

static void head(void)
{
	struct utsname system;
	char os[200], place[PCAPNG_COMMENT_MAX + 1] = "";

	files_begun++;
	if (options.pcap) {
		pcap_header();
		return;
	}
	uname(&system);
	snprintf(os, sizeof os, "%.64s %.64s", system.sysname, system.release);
	if (options.ring_files)		/* shows the order of the files, even if the clock is set */
		snprintf(place, sizeof place, "file %llu of a ring of %u", (unsigned long long)files_begun,
			 options.ring_files);
	used += pcapng_section(buffer + used, os, "datcap " PACKAGE_VERSION, place);
	for (unsigned i = 0; i < options.device_count; i++)
		used += pcapng_interface(buffer + used, options.devices[i], options.filter, options.snap,
					 output_link_speed(options.devices[i]));
}

static void open_file(void)
{
	if (!strcmp(options.path, "-"))
		fd = STDOUT_FILENO;
	else
		fd = open(path_of(file_number), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		give_up(strerror(errno));
	written = 0;
	head();
}

void output_open(const struct output_options *wanted)
{
	options = *wanted;
	buffer = malloc(BUFFER + FRAME_MAX + (MAX_DEVICES + 1) * PCAPNG_HEAD_MAX);
	if (!buffer)
		fail("no memory");
	open_file();
	output_check();
	flush();	/* a reader can read the file header at once */
}

static void close_file(void)
{
	flush();
	if (fd >= 0 && fd != STDOUT_FILENO && close(fd))
		give_up(strerror(errno));
}

/* Each file of a ring has the statistics up to its end. */
static void next_file(void)
{
	const uint64_t now = clock_read_ns(CLOCK_REALTIME);

	for (unsigned i = 0; i < options.device_count && !options.pcap; i++) {
		struct pcapng_statistics statistics = { .interface = i, .time = now, .accepted = appended[i],
			.delivered = appended[i] };

		options.statistics(&statistics);
		used += pcapng_interface_statistics(buffer + used, &statistics);
	}
	close_file();
	if (output_ended)
		return;
	file_number = (file_number + 1) % options.ring_files;
	open_file();
}

static uint32_t direction_of(const DAT_ETH_FRAME *f)
{
	return f->flags & DAT_ETH_FRAME_OUTGOING ? PCAPNG_OUTBOUND : PCAPNG_INBOUND;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Returns the frame in three pieces: the second is the VLAN tag, if the device has stripped it. Readers refuse a
 * packet that is longer than the snap length of the file, so the tag counts, too. */
static struct pcapng_packet packet_of(const DAT_ETH_FRAME *f, uint8_t tag[VLAN_TAG])
{
	const uint32_t snap = options.snap ? options.snap : UINT32_MAX, tag_size = vlan_tag_size(f);
	struct pcapng_packet p = { .time = f->time, .wire_length = f->wire_length + tag_size,
		.flags = direction_of(f), .dropped = f->lost };
	uint32_t left;

	p.captured = left = smaller(f->length, snap);
	p.pieces[0] = f->data;
	p.lengths[0] = left;
	if (!tag_size || f->length < VLAN_OFFSET)
		return p;
	p.captured = left = smaller(f->length + VLAN_TAG, snap);
	vlan_put_tag(f, tag);
	p.pieces[1] = tag;
	p.pieces[2] = f->data + VLAN_OFFSET;
	p.lengths[0] = smaller(left, VLAN_OFFSET);
	p.lengths[1] = smaller(left -= p.lengths[0], VLAN_TAG);
	p.lengths[2] = left - p.lengths[1];
	return p;
}

/* Called after each frame. Writes the buffer if it is full, and starts the next file of a ring if this file
 * has reached its size and the next frame may be in another. Returns output_is_open(). */
static bool end_frame(unsigned device, bool joined)
{
	appended[device]++;
	if (options.ring_files && !joined && written + used >= options.ring_size)
		next_file();
	else if (used >= BUFFER)
		flush();
	return !output_ended;
}

bool output_flush(void)
{
	if (used)
		flush();
	else
		output_ended |= pipe_has_no_reader(fd);
	return !output_ended;
}

static bool fits(uint32_t captured)
{
	if (captured <= FRAME_MAX - PCAPNG_PACKET_EXTRA)
		return true;
	give_up("a frame is longer than a device can give");
	unwritten++;
	return false;
}

static bool append(const DAT_ETH_FRAME *frame, unsigned device, const char *comment, bool joined)
{
	uint8_t tag[VLAN_TAG];
	struct pcapng_packet p = packet_of(frame, tag);

	p.interface = device;
	p.comment = comment;
	if (!fits(p.captured))
		return false;
	if (options.pcap)
		pcap_record(&p);
	else
		used += pcapng_packet(buffer + used, &p);
	return end_frame(device, joined);
}

bool output_commented(const DAT_ETH_FRAME *frame, const char *comment, bool joined)
{
	return append(frame, 0, comment, joined);
}

static inline bool is_plain(const DAT_ETH_FRAME *f)
{
	return !(f->lost | vlan_tag_size(f)) && f->length <= FRAME_MAX - PCAPNG_PACKET_EXTRA;
}

/* HOT: appends frames up to the first that is not plain, or up to the end of the buffer. Returns their number. */
static DAT_COUNT append_plain(const DAT_ETH_FRAME *frames, DAT_COUNT n, unsigned device)
{
	uint8_t *to = buffer + used;
	const uint8_t *const end = buffer + BUFFER;
	DAT_COUNT i;

	for (i = 0; i < n && to < end && is_plain(&frames[i]); i++)
		to += pcapng_plain_packet(to, device, frames[i].time, frames[i].data, frames[i].length,
					  frames[i].wire_length, direction_of(&frames[i]));
	used = (size_t)(to - buffer);
	appended[device] += (uint64_t)i;
	return i;
}

DAT_COUNT output_frames(const DAT_ETH_FRAME *frames, DAT_COUNT n, unsigned device)
{
	const bool plain = !options.pcap && !options.ring_files;
	DAT_COUNT i = 0;

	while (i < n && !output_ended) {
		const DAT_COUNT some = plain ? append_plain(frames + i, n - i, device) : 0;

		i += some;
		if (!some)
			append(&frames[i++], device, "", false);
		else if (used >= BUFFER)
			flush();
	}
	return i;
}

bool output_is_open(void)
{
	return !output_ended;
}

bool output_close(const struct pcapng_statistics *statistics)
{
	for (unsigned i = 0; i < options.device_count && !options.pcap; i++)
		used += pcapng_interface_statistics(buffer + used, &statistics[i]);
	close_file();
	return !output_ended;
}

void output_check(void)
{
	if (*failure)
		fail("%s", failure);
}

uint64_t output_frame_size(const DAT_ETH_FRAME *f)
{
	const uint32_t whole = f->length + vlan_tag_size(f);
	const uint32_t captured = options.snap ? smaller(whole, options.snap) : whole;

	return options.pcap ? PCAP_RECORD + captured : pcapng_packet_size(captured, f->lost);
}

uint64_t output_size(void)
{
	return written + used;
}

uint64_t output_files(void)
{
	return files_begun;
}

uint64_t output_unwritten(void)
{
	return unwritten;
}
