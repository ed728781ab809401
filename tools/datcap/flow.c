/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flow.c - see flow.h. */
#include "flow.h"
#include "common/bytes.h"
#include "sum16.h"
#include <stdlib.h>
#include <string.h>
#include "tools/cli.h"

enum { BUCKETS = 4096, IPV4 = 20, IPV6 = 40 };

static struct flow *buckets[BUCKETS];

/* --- connections ---------------------------------------------------------------------------------- */

static uint32_t hash_of(const struct tap_address *a)
{
	uint32_t hash = a->port;

	for (int i = 0; i < 16; i++)
		hash = hash * 31 + a->ip[i];
	return hash;
}

static bool is_between(const struct flow *flow, unsigned side, const struct tap_record *r)
{
	return flow->roce == !!(r->flags & TAP_ROCE) &&
	       !memcmp(&flow->ends[side], &r->ends.local, sizeof r->ends.local) &&
	       !memcmp(&flow->ends[!side], &r->ends.remote, sizeof r->ends.remote);
}

struct flow *flow_of(const struct tap_record *r, unsigned *side)
{
	unsigned bucket = (hash_of(&r->ends.local) + hash_of(&r->ends.remote)) % BUCKETS;
	struct flow *flow;

	for (flow = buckets[bucket]; flow; flow = flow->next)
		for (*side = 0; *side < 2; ++*side)
			if (is_between(flow, *side, r))
				return flow;
	flow = calloc(1, sizeof *flow);
	if (!flow)
		fail("no memory");
	*side = !(r->flags & TAP_ACTIVE);
	flow->ends[*side] = r->ends.local;
	flow->ends[!*side] = r->ends.remote;
	flow->roce = r->flags & TAP_ROCE;
	flow->next = buckets[bucket];
	buckets[bucket] = flow;
	return flow;
}

unsigned flow_sender(const struct tap_record *record, unsigned side)
{
	return record->kind == TAP_POSTED ? side : !side;
}

void *flow_state(struct flow *flow, size_t size)
{
	if (!flow->state)
		flow->state = calloc(1, size);
	if (!flow->state)
		fail("no memory");
	return flow->state;
}

bool flow_is_duplicate(const struct tap_record *record)
{
	unsigned side;
	struct flow *flow = flow_of(record, &side);

	if (record->kind == TAP_RECEIVED)
		return flow->posted[!side];
	flow->posted[side] |= record->kind == TAP_POSTED;
	return false;
}

/* --- headers ---------------------------------------------------------------------------------------- */

static bool is_ipv6(const struct flow *flow)
{
	return flow->ends[0].family == 6;
}

static uint8_t *put_ethernet(const struct flow *flow, unsigned from, uint8_t *to)
{
	for (unsigned i = 0; i < 2; i++) {	/* destination, source */
		memcpy(to, (uint8_t []){ 2, 0, 0, 0, 0, (uint8_t)(1 + (i ? from : !from)) }, 6);
		to += 6;
	}
	return put_be16(to, is_ipv6(flow) ? 0x86dd : 0x0800);
}

static uint8_t *put_ip(const struct flow *flow, unsigned from, uint8_t protocol, uint32_t length, uint8_t *to)
{
	const struct tap_address *source = &flow->ends[from], *destination = &flow->ends[!from];
	uint8_t *begin = to;
	bool six = is_ipv6(flow);
	unsigned bytes = six ? 16 : 4;

	if (six) {
		to = put_be32(to, 6u << 28);
		to = put_be16(to, length);
		*to++ = protocol;
		*to++ = 64;		/* hop limit */
	} else {
		to = put_be16(to, 0x4500);
		to = put_be16(to, IPV4 + length);
		to = put_be32(to, 0x4000);	/* not to be fragmented */
		*to++ = 64;
		*to++ = protocol;
		to = put_be16(to, 0);
	}
	memcpy(to, source->ip, bytes);
	memcpy(to + bytes, destination->ip, bytes);
	to += 2 * bytes;
	if (!six)
		put_be16(begin + 10, ~sum16(begin, IPV4, 0));
	return to;
}

uint8_t *flow_put_headers(const struct flow *flow, unsigned from, uint8_t protocol, uint32_t length, uint8_t *to)
{
	return put_ip(flow, from, protocol, length, put_ethernet(flow, from, to));
}

uint32_t flow_headers_size(const struct flow *flow)
{
	return FLOW_ETHERNET + (is_ipv6(flow) ? IPV6 : IPV4);
}

uint32_t flow_pseudo_header(const struct flow *flow, uint8_t protocol, uint32_t length)
{
	unsigned bytes = is_ipv6(flow) ? 16 : 4;

	return sum16(flow->ends[0].ip, bytes, sum16(flow->ends[1].ip, bytes, protocol + length));
}
