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
	uint64_t first, before;		/* times of the first and of the previous frame; ns since 1970 */
};

/* Returns the offset of the TCP payload in a frame, and stores that of the IP header in *l3. Returns 0 if
 * the frame is not TCP over IP, ends within its headers, or is a fragment. */
static uint32_t find_tcp_payload(const uint8_t *frame, uint32_t length, uint32_t *l3)
{
	uint32_t at = 12, l4;

	while (at + 4 <= length && (!memcmp(frame + at, "\x81\x00", 2) || !memcmp(frame + at, "\x88\xa8", 2)))
		at += 4;
	*l3 = at + 2;
	if (*l3 + 40 > length)
		return 0;
	if (!memcmp(frame + at, "\x08\x00", 2) && frame[*l3 + 9] == 6 && !(frame[*l3 + 6] & 0x3f) && !frame[*l3 + 7])
		l4 = *l3 + 4u * (frame[*l3] & 15);
	else if (!memcmp(frame + at, "\x86\xdd", 2) && frame[*l3 + 6] == 6)
		l4 = *l3 + 40;
	else
		return 0;
	if (l4 + 20 > length || l4 + 4u * (frame[l4 + 12] >> 4) > length)
		return 0;
	return l4 + 4u * (frame[l4 + 12] >> 4);
}

/* Has the device make TCP segments of the frame that was added last, which is too long to be sent. */
static void segment(struct replay *r, const uint8_t *frame, uint32_t length)
{
	const DAT_ETH_ATTR *attr = sender_attr(r->sender);
	uint32_t l3, payload = find_tcp_payload(frame, length, &l3);

	if (!(attr->caps & DAT_ETH_CAP_TSO))
		fail("%s cannot make TCP segments (--cut)", r->o->interface);
	if (!payload || payload - l3 >= attr->mtu || payload > attr->max_tso_header)
		fail("%s: frame %zu has %u bytes, and is no TCP over IP that %s could cut (--cut)", r->o->file,
		     r->count, length, r->o->interface);
	if (length > attr->max_tso)
		fail("%s: frame %zu has %u bytes, %s makes segments of at most %u (--cut)", r->o->file, r->count,
		     length, r->o->interface, attr->max_tso);
	sender_segment(r->sender, (uint16_t)payload, (uint16_t)(attr->mtu - (payload - l3)));
}

static void keep(struct replay *r, const struct pcap_pkthdr *header, const uint8_t *data)
{
	uint64_t time = (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
	uint32_t length = header->caplen, most = sender_attr(r->sender)->max_frame;
	uint8_t *to;

	if (!r->count++)
		r->first = r->before = time;
	if (length < 14)
		fail("%s: frame %zu has %u bytes; a frame has at least 14", r->o->file, r->count, length);
	if (length > most && !r->o->cut && !r->o->tso)
		fail("%s: frame %zu has %u bytes, %s sends at most %u (--cut, --tso)", r->o->file, r->count, length,
		     r->o->interface, most);
	if (length > most && r->o->cut)
		length = most;
	if (r->o->speed > 0 && time < r->before)
		fail("%s: the time of frame %zu is before that of the frame before it", r->o->file, r->count);
	r->before = time;
	to = sender_add(r->sender, length, time - r->first);
	memcpy(to, data, length);
	if (length > most)
		segment(r, data, length);
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

	if (!file && !strncmp(error, r->o->file, strlen(r->o->file)) && error[strlen(r->o->file)] == ':')
		fail("%s", error);	/* libpcap's text has the name only if it cannot open the file */
	if (!file)
		fail("%s: %s", r->o->file, error);
	if (pcap_datalink(file) != DLT_EN10MB)
		fail("%s: its frames are not Ethernet", r->o->file);
	while ((got = pcap_next_ex(file, &header, &data)) == 1)
		keep(r, header, data);
	if (got == PCAP_ERROR && strstr(pcap_geterr(file), "truncated") && r->count)
		cli_warn("%s ends within a frame: the %zu before it are sent", r->o->file, r->count);
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
