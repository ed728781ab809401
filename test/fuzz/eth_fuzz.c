/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_fuzz.c - any bytes as a frame, and any rule: the parser reads nothing behind the frame, says the same of the same
 * bytes, and every frame matches the rule that is made of its own headers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/softeth/filter.h"
#include "common/frame_layout.h"
#include "dapl/softeth/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "eth_fuzz: %s\n", what);
	abort();
}

/* The headers lie within the frame, and a checksum that is filled in is found right. */
static void check_headers(uint8_t *frame, size_t length, const struct eth_layout *l)
{
	struct iovec iov = { frame, length };
	uint16_t sum, at;

	demand(l->l3 < l->l4 && l->l4 <= length && l->payload <= length && l->end >= l->l4, "headers beyond the frame");
	if (!l->payload || l->end > length)
		return;
	at = (uint16_t)(l->l4 + eth_checksum_offset(l));
	frame[at] = frame[at + 1] = 0;
	sum = (uint16_t)~eth_sum_fold(eth_sum_pieces(&iov, 1, l->l4, l->end - l->l4, eth_sum_pseudo(frame, l)));
	frame[at] = (uint8_t)(sum >> 8);
	frame[at + 1] = (uint8_t)sum;
	demand(eth_sum_fold(eth_sum_pieces(&iov, 1, l->l4, l->end - l->l4, eth_sum_pseudo(frame, l))) == 0xffff,
	       "a checksum that is filled in is wrong");
}

/* The inner headers first, as for a send: the outer checksum covers them. */
static void check_layout(uint8_t *frame, size_t length)
{
	struct eth_layout outer, inner;

	if (!eth_layout_read(frame, length, &outer))
		return;
	if (eth_layout_inner(frame, length, &outer, &inner))
		check_headers(frame, length, &inner);
	check_headers(frame, length, &outer);
}

static void check_jumps(const struct sock_filter *code, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		demand(BPF_CLASS(code[i].code) != BPF_JMP || (i + 1 + code[i].jt < n && i + 1 + code[i].jf < n),
		       "a jump behind the end");
		demand(code[i].code != (BPF_JMP | BPF_JA) || i + 1 + code[i].k < n, "a long jump behind the end");
	}
}

/* The filter of a group's member, and the hash of the frame, which differs from that of another frame of its flow by
 * nothing. */
static void check_group(struct eth_headers *headers, const struct dapl_eth_rule *const *rules, uint8_t choice)
{
	static struct sock_filter code[ETH_FILTER_MAX];
	static uint8_t key[TOEPLITZ_KEY] = { 0x6d, 0x5a, 0x56, 0xda, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct eth_spread spread = { .ports = choice & 2, .inner = choice & 4, .size = 1u << (choice >> 3 & 7) };
	struct filter_part part = { .rules = rules, .n = 1, .key = key, .ports = spread.ports, .inner = spread.inner,
		.size = spread.size };
	struct eth_filter filter;
	uint32_t hash;
	unsigned n;

	memcpy(spread.key, key, sizeof key);
	hash = spread_hash(&spread, headers);
	headers->outer.tos ^= 1;
	demand(spread_hash(&spread, headers) == hash, "the hash depends on more than addresses and ports");
	eth_filter_begin(&filter, code, 64);
	eth_filter_add(&filter, &part);
	n = eth_filter_end(&filter);
	demand(n > 0 && n <= ETH_FILTER_MAX && BPF_CLASS(code[n - 1].code) == BPF_RET, "no filter of a group");
	check_jumps(code, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sock_filter code[ETH_FILTER_MAX];
	struct eth_headers headers, again;
	struct dapl_eth_rule rule = { .mode = ETH_COPY };
	const struct dapl_eth_rule *list[1] = { &rule };
	struct eth_tag tag = { 0, 0 };
	uint8_t *exact;
	unsigned n;

	if (!size || size > 4096)
		return 0;
	if (data[0] & 1)
		tag = (struct eth_tag){ 0x8100, data[0] };
	exact = malloc(size - 1 ? size - 1 : 1);	/* so that a sanitizer sees every byte behind it */
	memcpy(exact, data + 1, size - 1);
	eth_match_parse(exact, size - 1, tag, &headers);
	eth_match_parse(exact, size - 1, tag, &again);
	demand(!memcmp(&headers, &again, sizeof headers), "the same frame has other headers");
	rule.key = headers.outer;
	memset(&rule.mask, 0xff, sizeof rule.mask);
	rule.inner_key = headers.inner;
	memset(&rule.inner_mask, 0xff, sizeof rule.inner_mask);
	demand(eth_match_rule(&rule, &headers), "a frame does not match its own headers");
	rule.key.protocol ^= 1;
	demand(!eth_match_rule(&rule, &headers), "a frame matches another protocol");
	n = eth_filter_make(code, list, 1, 64);
	demand(n > 0 && n <= ETH_FILTER_MAX && BPF_CLASS(code[n - 1].code) == BPF_RET, "no filter");
	check_jumps(code, n);
	check_group(&headers, list, data[0]);
	check_layout(exact, size - 1);
	free(exact);
	return 0;
}
