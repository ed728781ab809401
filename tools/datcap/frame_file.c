/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_file.c - see frame_file.h. libpcap reads pcap files, pcapng_read.c the others. */
#include "frame_file.h"
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pcapng_read.h"
#include "tools/cli.h"

enum {
	FCS = 4,			/* bytes; that of Ethernet has no other length, whatever unit a file uses */
	LINKTYPE_RAW = 101,		/* the only common link type whose number in libpcap differs, DLT_RAW */
	PCAPNG_FIRST = 0x0a,		/* first byte in either byte order; no pcap file begins with it */
};

struct frame_file {
	const char *path;
	FILE *stream;
	pcap_t *pcap;			/* NULL: pcapng */
	struct pcapng_reader *pcapng;
	bool has_fcs;			/* pcap: each frame */
	bool cut;
	size_t count;
	uint64_t time;			/* of the last frame */
};

static void check_link_type(const struct frame_file *f, int type, const char *of)
{
	int known = type == LINKTYPE_RAW ? DLT_RAW : type;
	const char *name = pcap_datalink_val_to_description(known);

	if (type == DLT_EN10MB)
		return;
	if (name)
		fail("%s: %s %s (link type %d) found, expected Ethernet", f->path, of, name, type);
	fail("%s: %s link type %d found, expected Ethernet (%d)", f->path, of, type, DLT_EN10MB);
}

static void open_pcap(struct frame_file *f)
{
	char error[PCAP_ERRBUF_SIZE];
	uint32_t more;
	int type;

	f->pcap = pcap_fopen_offline_with_tstamp_precision(f->stream, PCAP_TSTAMP_PRECISION_NANO, error);
	if (!f->pcap && (strstr(error, "unknown file format") || strstr(error, "truncated")))
		fail("%s: found no header of a capture, expected a pcap or pcapng file", f->path);
	if (!f->pcap)
		fail("%s: %s", f->path, error);
	type = pcap_datalink(f->pcap);
	check_link_type(f, type == DLT_RAW ? LINKTYPE_RAW : type, "frames of");
	more = (uint32_t)pcap_datalink_ext(f->pcap);
	f->has_fcs = LT_FCS_LENGTH_PRESENT(more) && LT_FCS_LENGTH(more);
}

struct frame_file *frame_file_open(const char *path)
{
	struct frame_file *f = calloc(1, sizeof *f);
	int first;

	if (!f)
		fail("no memory");
	f->path = path;
	f->stream = strcmp(path, "-") ? fopen(path, "re") : stdin;
	if (!f->stream)
		fail("%s: %m", path);
	first = getc(f->stream);
	if (first == EOF && ferror(f->stream))
		fail("%s: %m", path);
	if (first == EOF)
		fail("%s: the file is empty, expected a pcap or pcapng file", path);
	ungetc(first, f->stream);
	if (first != PCAPNG_FIRST)
		open_pcap(f);
	else if (!(f->pcapng = pcapng_reader_open(f->stream)))
		fail("no memory");
	return f;
}

static bool next_pcap(struct frame_file *f, struct file_frame *frame)
{
	struct pcap_pkthdr *header;
	int got = pcap_next_ex(f->pcap, &header, &frame->data);

	if (got == PCAP_ERROR && strstr(pcap_geterr(f->pcap), "truncated") && f->count)
		f->cut = true;
	else if (got == PCAP_ERROR)
		fail("%s: %s", f->path, pcap_geterr(f->pcap));
	if (got != 1)
		return false;
	frame->captured = header->caplen;
	frame->length = header->len;
	frame->time = (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
	frame->had_fcs = f->has_fcs;
	return true;
}

static bool next_pcapng(struct frame_file *f, struct file_frame *frame)
{
	struct pcapng_read packet;
	const char *wrong;
	char of[64];
	enum pcapng_result result = pcapng_reader_next(f->pcapng, &packet, &wrong);

	if (result == PCAPNG_WRONG)
		fail("%s: behind frame %zu: %s", f->path, f->count, wrong);
	if (result == PCAPNG_CUT && !f->count)
		fail("%s: the file ends before its first frame", f->path);
	f->cut = result == PCAPNG_CUT;
	if (result != PCAPNG_PACKET)
		return false;
	snprintf(of, sizeof of, "frame %zu, of interface %u:", f->count + 1, packet.interface);
	check_link_type(f, packet.link_type, of);
	*frame = (struct file_frame){ .data = packet.data, .captured = packet.captured, .length = packet.length,
		.time = packet.has_time ? packet.time : f->time, .had_fcs = packet.has_fcs };
	return true;
}

/* Leaves out the FCS, or what the snap length has left of it. */
static void remove_fcs(struct file_frame *frame)
{
	frame->length -= frame->length < FCS ? frame->length : FCS;
	if (frame->captured > frame->length)
		frame->captured = frame->length;
	else
		frame->had_fcs = false;
}

bool frame_file_next(struct frame_file *f, struct file_frame *frame)
{
	if (f->pcap ? !next_pcap(f, frame) : !next_pcapng(f, frame))
		return false;
	if (frame->length < frame->captured)
		frame->length = frame->captured;
	if (frame->had_fcs)
		remove_fcs(frame);
	f->time = frame->time;
	f->count++;
	return true;
}

bool frame_file_is_cut(const struct frame_file *f)
{
	return f->cut;
}

void frame_file_close(struct frame_file *f)
{
	if (f->pcap)
		pcap_close(f->pcap);	/* closes the stream, too */
	else
		fclose(f->stream);
	if (f->pcapng)
		pcapng_reader_close(f->pcapng);
	free(f);
}

bool frame_file_is_capture(const char *path)
{
	static const uint8_t begins[][4] = { { 0x0a, 0x0d, 0x0d, 0x0a }, { 0xa1, 0xb2, 0xc3, 0xd4 },
		{ 0xd4, 0xc3, 0xb2, 0xa1 }, { 0xa1, 0xb2, 0x3c, 0x4d }, { 0x4d, 0x3c, 0xb2, 0xa1 } };
	uint8_t head[4];
	FILE *file = fopen(path, "re");
	bool is = false;

	if (!file)
		return false;
	if (fread(head, 1, sizeof head, file) == sizeof head)
		for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
			is |= !memcmp(head, begins[i], sizeof head);
	fclose(file);
	return is;
}
