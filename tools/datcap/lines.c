/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lines.c - see lines.h. dissect.c says what the frame is. */
#include "lines.h"
#include <stdio.h>
#include <string.h>
#include "dissect.h"
#include "print.h"
#include "vlan.h"

/* Puts the tag that the device has stripped before those of the frame. */
static void add_tag(struct dissection *is, const DAT_ETH_FRAME *f)
{
	char rest[sizeof is->tags];

	if (!vlan_tag_size(f))
		return;
	snprintf(rest, sizeof rest, "%s", is->tags);
	snprintf(is->tags, sizeof is->tags, "vlan %u%s%.20s", f->vlan_tci & 0xfff, *rest ? " " : "", rest);
}

static bool print_object(const DAT_ETH_FRAME *f, const struct dissection *is, const char *device, unsigned bytes)
{
	json_t *object = json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:i}", "time", (json_int_t)f->time, "direction",
				   f->flags & DAT_ETH_FRAME_OUTGOING ? "out" : "in", "from", is->from, "to", is->to,
				   "protocol", is->protocol, "detail", is->detail, "bytes", (int)bytes);

	if (object && device)
		json_object_set_new(object, "device", json_string(device));
	if (object && *is->tags)
		json_object_set_new(object, "tags", json_string(is->tags));
	if (object && f->lost)
		json_object_set_new(object, "lost", json_integer(f->lost));
	return print_json(object);
}

bool lines_print(const DAT_ETH_FRAME *f, const char *device, bool json)
{
	const unsigned bytes = f->wire_length + vlan_tag_size(f);
	struct dissection is;

	dissect_frame(f->data, f->length, f->wire_length, &is);
	add_tag(&is, f);
	if (json)
		return print_object(f, &is, device, bytes);
	if (f->lost)
		print("%s frames lost here\n", grouped(f->lost));
	return print("%s %s%s%s %s%s%s > %s %s%s%s [%u]\n", time_text(f->time), device ? device : "", device ? " " : "",
		     f->flags & DAT_ETH_FRAME_OUTGOING ? "out" : "in ", is.tags, *is.tags ? " " : "", is.from, is.to,
		     is.protocol, *is.detail ? " " : "", is.detail, bytes);
}
