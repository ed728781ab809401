/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pdata_fuzz.c - any bytes as what rdma_cm hands up, and as a consumer's private data: what
 * comes out lies within what went in, and what was packed comes back exactly. The first
 * byte says which wire and which message. */
#include "dapl/verbs/pdata.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "pdata_fuzz: %s\n", what);
	abort();
}

static void check_unpacked(const struct hw_pdata *p, const uint8_t *in, size_t size)
{
	demand(p->len <= size, "longer than what came");
	demand(!p->len || (p->data >= in && p->data + p->len <= in + size),
	       "outside of what came");
	demand(p->mtu <= 5, "an MTU that verbs do not know");
	demand(!p->has_self || p->self.qpn < 1 << 24, "a queue pair number of more than 24 bits");
}

static void check_exact(enum hw_wire wire, enum hw_message message, const uint8_t *data,
			size_t size, uint8_t kind)
{
	struct hw_ud_self self = { .qpn = kind * 0x10101u & 0xffffff, .qkey = 0x80010000u + kind,
		.lid = kind };
	bool refused = kind & 0x80 && message == HW_REJECT;
	uint8_t mtu = kind % 6, packed[256];
	struct hw_pdata p;
	int n;

	memset(self.gid, kind, sizeof self.gid);
	n = hw_pdata_pack(packed, wire, message, data, size, mtu, refused, &self);
	demand((n < 0) == (size > hw_pdata_room(wire, message)), "room is not what is told");
	if (n < 0)
		return;
	demand(n <= 255, "more than fits");
	hw_pdata_unpack(&p, wire, message, packed, n);
	demand(p.exact && p.len == size && (!size || !memcmp(p.data, data, size)),
	       "it does not come back as it was");
	demand(p.refused == refused, "a refusal is forgotten");
	demand(p.has_self == (wire == HW_WIRE_UD && message == HW_REQUEST), "where from?");
	demand(!p.has_self || (p.self.qpn == self.qpn && p.self.qkey == self.qkey &&
			       p.self.lid == self.lid && !memcmp(p.self.gid, self.gid, 16)),
	       "it says wrongly where it's from");
	demand(message == HW_REJECT || wire == HW_WIRE_IWARP || p.mtu == mtu,
	       "the MTU does not come back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum hw_wire wire;
	enum hw_message message;
	struct hw_pdata p;

	if (!size || size > 300)
		return 0;
	wire = data[0] % 3;
	message = data[0] / 3 % 3;
	check_exact(wire, message, data + 1, size - 1, data[0]);
	if (size > 256)
		return 0;
	hw_pdata_unpack(&p, wire, message, size > 1 ? data + 1 : NULL, size - 1);
	check_unpacked(&p, data + 1, size - 1);
	return 0;
}
