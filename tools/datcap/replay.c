/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c - `datcap replay`: reads the frames of a file, and checks them before the first is sent. */
#include <string.h>
#include "datcap.h"
#include "frame_file.h"
#include "send.h"
#include "tools/cli.h"

struct replay {
	const struct options *o;
	struct sender *sender;
	size_t count;
	size_t incomplete, shortened, fcs;	/* frames whose end is not in the file; whose end --cut left out; whose
						 * FCS was in the file */
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
	if (length > attr->max_tso + (sender_most(r->sender, frame, length) - attr->max_frame))
		fail("%s: frame %zu has %u bytes, %s makes segments of at most %u (--cut)", r->o->file, r->count,
		     length, r->o->interface, attr->max_tso);
	if (!payload || payload - l3 >= attr->mtu || payload > attr->max_tso_header)
		fail("%s: frame %zu has %u bytes, and is no TCP over IP that %s could cut (--cut)", r->o->file,
		     r->count, length, r->o->interface);
	sender_segment(r->sender, (uint16_t)payload, (uint16_t)(attr->mtu - (payload - l3)));
}

static void check(const struct replay *r, const struct file_frame *frame, uint32_t most)
{
	const struct options *o = r->o;

	if (frame->captured < 14)
		fail("%s: frame %zu has %u bytes; a frame has at least 14", o->file, r->count, frame->captured);
	if (frame->captured > most && !o->cut && !o->tso)
		fail("%s: frame %zu has %u bytes, %s sends at most %u (--cut, --tso)", o->file, r->count,
		     frame->captured, o->interface, most);
	if (o->speed > 0 && frame->time < r->before)
		fail("%s: the time of frame %zu is before that of the frame before it", o->file, r->count);
}

static void keep(struct replay *r, const struct file_frame *frame)
{
	uint32_t length = frame->captured, most = sender_most(r->sender, frame->data, length);
	uint8_t *to;

	if (!r->count++)
		r->first = r->before = frame->time;
	check(r, frame, most);
	r->before = frame->time;
	r->incomplete += frame->captured < frame->length;
	r->fcs += frame->had_fcs;
	if (length > most && r->o->cut) {
		length = most;
		r->shortened++;
	}
	to = sender_add(r->sender, length, frame->time - r->first);
	memcpy(to, frame->data, length);
	if (length > most)
		segment(r, frame->data, length);
	if (r->o->set_dst)
		memcpy(to, r->o->dst, 6);
	if (r->o->set_src)
		memcpy(to + 6, r->o->src, 6);
}

static void read_file(struct replay *r)
{
	struct frame_file *file = frame_file_open(r->o->file);
	struct file_frame frame;
	bool cut;

	while (frame_file_next(file, &frame))
		keep(r, &frame);
	cut = frame_file_is_cut(file);
	frame_file_close(file);
	if (!r->count)
		fail("%s: there is no frame in it", r->o->file);
	if (cut)
		cli_warn("%s ends within a frame: the %zu before it are sent", r->o->file, r->count);
	if (r->incomplete)
		cli_warn("%s has only the beginning of %zu of %zu frames (snap length): they are sent short",
			 r->o->file, r->incomplete, r->count);
	if (r->fcs)
		cli_warn("%s has the FCS of %zu of %zu frames: it is left out, the device adds its own", r->o->file,
			 r->fcs, r->count);
	if (r->shortened)
		cli_warn("%zu of %zu frames are cut to the length that %s sends", r->shortened, r->count,
			 r->o->interface);
	if (cut || r->incomplete)
		sender_mark_incomplete(r->sender);
}

int replay_run(const struct options *o)
{
	struct replay r = { .o = o, .sender = sender_open(o) };

	read_file(&r);
	return sender_run(r.sender);
}
