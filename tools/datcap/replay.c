/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c - `datcap replay`: reads the frames of a file, and checks them before the first is sent. */
#include <pcap/pcap.h>
#include <string.h>
#include "datcap.h"
#include "send.h"
#include "tools/cli.h"

struct replay {
	const struct options *o;
	struct sender *sender;
	size_t count;
	uint64_t first, before;		/* time of the first frame, of the one before; ns since 1970 */
};

static void keep(struct replay *r, const struct pcap_pkthdr *header, const uint8_t *data)
{
	uint64_t time = (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
	uint32_t length = header->caplen, most = sender_attr(r->sender)->max_frame;
	uint8_t *to;

	if (!r->count++)
		r->first = r->before = time;
	if (length < 14)
		fail("%s: frame %zu has %u bytes; a frame has at least 14", r->o->file, r->count, length);
	if (length > most && !r->o->cut)
		fail("%s: frame %zu has %u bytes, %s sends at most %u (--cut)", r->o->file, r->count, length,
		     r->o->interface, most);
	if (length > most)
		length = most;
	if (r->o->speed > 0 && time < r->before)
		fail("%s: the time of frame %zu is before that of the frame before it", r->o->file, r->count);
	r->before = time;
	to = sender_add(r->sender, length, time - r->first);
	memcpy(to, data, length);
	if (r->o->set_dst)
		memcpy(to, r->o->dst, 6);
	if (r->o->set_src)
		memcpy(to + 6, r->o->src, 6);
}

static void read_file(struct replay *r)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline_with_tstamp_precision(r->o->file, PCAP_TSTAMP_PRECISION_NANO, error);
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int got;

	if (!file)
		fail("%s", error);	/* libpcap names the file */
	if (pcap_datalink(file) != DLT_EN10MB)
		fail("%s: its frames are not Ethernet", r->o->file);
	while ((got = pcap_next_ex(file, &header, &data)) == 1)
		keep(r, header, data);
	if (got == PCAP_ERROR && strstr(pcap_geterr(file), "truncated") && r->count)
		fprintf(stderr, "datcap: %s ends within a frame: the %zu before it are sent\n", r->o->file, r->count);
	else if (got == PCAP_ERROR)
		fail("%s: %s", r->o->file, pcap_geterr(file));
	if (!r->count)
		fail("%s: there is no frame in it", r->o->file);
	pcap_close(file);
}

int replay_run(const struct options *o)
{
	struct replay r = { .o = o, .sender = sender_open(o) };

	read_file(&r);
	return sender_run(r.sender);
}
