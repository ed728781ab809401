/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pdata.c - private data as it goes over the wire, and back (format: pdata.h). Received bytes
 * are untrusted and checked in full. */
#include "pdata.h"
#include "common/bytes.h"
#include <string.h>

#define MAGIC_0 0xda
#define MAGIC_1 0x92
#define FLAG_REFUSED 0x80
#define FLAGS_MTU 0x07
#define MARK 4			/* bytes of the trailer, or of a rejection's header */
#define SELF 28			/* bytes of a struct hw_ud_self, and two that are 0 */

/* Bytes that rdma_cm carries. iWARP: siw counts them in one byte, and adds four of its own. */
static const uint8_t area[3][3] = {
	[HW_WIRE_IB]    = { [HW_REQUEST] = 56,  [HW_ACCEPT] = 196, [HW_REJECT] = 148 },
	[HW_WIRE_IWARP] = { [HW_REQUEST] = 251, [HW_ACCEPT] = 251, [HW_REJECT] = 251 },
	[HW_WIRE_UD]    = { [HW_REQUEST] = 180, [HW_ACCEPT] = 136, [HW_REJECT] = 136 },
};

static bool has_trailer(enum hw_wire wire, enum hw_message message)
{
	return wire != HW_WIRE_IWARP && message != HW_REJECT;
}

static bool has_self(enum hw_wire wire, enum hw_message message)
{
	return wire == HW_WIRE_UD && message == HW_REQUEST;
}

size_t hw_pdata_room(enum hw_wire wire, enum hw_message message)
{
	size_t room = area[wire][message];

	if (has_trailer(wire, message) || message == HW_REJECT)
		room -= MARK;
	if (has_self(wire, message))
		room -= SELF;
	return room;
}

static void put_mark(uint8_t *p, uint8_t flags, size_t len)
{
	p[0] = MAGIC_0;
	p[1] = MAGIC_1;
	p[2] = flags;
	p[3] = len;
}

int hw_pdata_pack(uint8_t out[256], enum hw_wire wire, enum hw_message message,
		  const void *data, size_t len, uint8_t mtu, bool refused,
		  const struct hw_ud_self *self)
{
	size_t size = area[wire][message];

	if (len > hw_pdata_room(wire, message))
		return -1;
	memset(out, 0, 256);
	if (message == HW_REJECT) {
		put_mark(out, refused ? FLAG_REFUSED : 0, len);
		if (len)
			memcpy(out + MARK, data, len);
		return MARK + len;
	}
	if (len)
		memcpy(out, data, len);
	if (!has_trailer(wire, message))
		return len;
	put_mark(out + size - MARK, mtu & FLAGS_MTU, len);
	if (has_self(wire, message)) {
		uint8_t *p = out + size - MARK - SELF;

		memcpy(p, self->gid, 16);
		put_be32(p + 16, self->qpn);
		put_be32(p + 20, self->qkey);
		p[24] = self->lid >> 8;
		p[25] = self->lid;
	}
	return size;
}

static void unpack_reject(struct hw_pdata *p, const uint8_t *in, size_t len)
{
	if (len >= MARK && in[0] == MAGIC_0 && in[1] == MAGIC_1 && in[3] <= len - MARK &&
	    bytes_are_zero(in + MARK + in[3], len - MARK - in[3])) {
		p->exact = true;
		p->refused = in[2] & FLAG_REFUSED;
		p->data = in + MARK;
		p->len = in[3];
	} else if (len >= MARK && ((in[0] == 2 && in[1] == 0) || (in[0] == 1 && in[1] <= 2))) {
		p->data = in + MARK;	/* OFA's: its DAT version 2.0, or 1.x */
		p->len = len - MARK;
	} else if (bytes_are_zero(in, len)) {
		p->refused = true;	/* the kernel's own, for a process that went away */
		p->len = 0;
	}
}

void hw_pdata_unpack(struct hw_pdata *p, enum hw_wire wire, enum hw_message message,
		     const uint8_t *in, size_t len)
{
	const uint8_t *mark;
	size_t room;

	*p = (struct hw_pdata){ .data = in, .len = len };
	if (message == HW_REJECT) {
		unpack_reject(p, in, len);
		return;
	}
	if (wire == HW_WIRE_IWARP) {
		p->exact = true;
		return;
	}
	if (len != area[wire][message])
		return;
	mark = in + len - MARK;
	room = hw_pdata_room(wire, message);
	/* Two magic bytes could be data of another implementation; the padding must be right as
	 * well. */
	if (mark[0] != MAGIC_0 || mark[1] != MAGIC_1 || mark[2] & ~FLAGS_MTU ||
	    mark[3] > room || !bytes_are_zero(in + mark[3], room - mark[3]))
		return;
	p->exact = true;
	p->len = mark[3];
	p->mtu = mark[2] <= 5 ? mark[2] : 0;
	if (has_self(wire, message)) {
		const uint8_t *s = mark - SELF;

		p->has_self = true;
		memcpy(p->self.gid, s, 16);
		p->self.qpn = get_be32(s + 16) & 0xffffff;
		p->self.qkey = get_be32(s + 20);
		p->self.lid = s[24] << 8 | s[25];
	}
}
