/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* match.c - rules against frames, without a network: that the kernel's filter lets every frame through that a rule
 * matches, and none of other members of a group, and that the programs for TAKE and DROP decide as the parser and the
 * rules do. The filter runs in the kernel, on a socket pair; the programs by BPF_PROG_TEST_RUN, for which root is
 * needed. What the parser finds is tested by test/unit/softeth/test_match.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "dapl/softeth/filter.h"
#include "dapl/softeth/match.h"
#include "dapl/softeth/steer.h"
#include "test/unit/softeth/frames.h"
#include "test/variables.h"

static unsigned checks, failures;

static void check(bool good, const char *what)
{
	checks++;
	if (good)
		return;
	failures++;
	printf("FAIL %s\n", what);
}

/* --- frames ------------------------------------------------------------------------------- */

static struct eth_headers parsed(const struct frame *f)
{
	struct eth_headers h;

	eth_match_parse(f->bytes, f->length, (struct eth_tag){ 0, 0 }, &h);
	return h;
}

/* --- the filter ---------------------------------------------------------------------------- */

static uint32_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

/* Makes a frame with headers that rules match, changes some of its bytes, and may cut it off. */
static struct frame random_frame(void)
{
	static const uint16_t types[] = { ETH_P_IP, ETH_P_IPV6, ETH_P_8021Q, ETH_P_8021AD, ETH_P_MPLS_UC, 0x1234 };
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_GRE, IPPROTO_HOPOPTS, IPPROTO_FRAGMENT };
	static const uint16_t ports[] = { 53, 4789, 6081, 1, 65535 };
	unsigned kind = random_below(6);
	struct frame f = { .length = 0 };

	frame_put_ethernet(&f, types[kind]);
	if (kind == 2 || kind == 3)
		FRAME_PUT(&f, "\x00\x05\x08\x00");
	if (kind == 1)
		frame_put_ipv6(&f, protocols[random_below(5)]);
	else
		frame_put_ipv4(&f, protocols[random_below(5)]);
	frame_put_udp(&f, ports[random_below(5)]);
	FRAME_PUT(&f, "\x08\x00\x00\x00\x01\x02\x03\x00");
	frame_put_ethernet(&f, ETH_P_IP);
	frame_put_ipv4(&f, IPPROTO_UDP);
	frame_put_udp(&f, 53);
	for (unsigned n = random_below(3); n; n--)
		f.bytes[random_below((uint32_t)f.length)] = (uint8_t)random_below(256);
	if (!random_below(4))
		f.length = random_below((uint32_t)f.length);
	return f;
}

/* Makes a rule match a field of the frame, under a random mask. */
static void take_field(struct dapl_eth_rule *rule, const struct dapl_eth_key *from, size_t offset, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		uint8_t mask = random_below(3) ? 255 : (uint8_t)random_below(256);

		((uint8_t *)&rule->mask)[offset + i] = mask;
		((uint8_t *)&rule->key)[offset + i] = ((const uint8_t *)from)[offset + i] & mask;
	}
}

static struct dapl_eth_rule random_rule(void)
{
	static const struct { size_t offset, size; } fields[] = {
#define FIELD(name) { offsetof(struct dapl_eth_key, name), sizeof(((struct dapl_eth_key *)0)->name) }
		FIELD(dst), FIELD(src), FIELD(ether_type), FIELD(vlan_tci), FIELD(protocol), FIELD(tos),
		FIELD(fragment), FIELD(flow_label), FIELD(ip_src), FIELD(ip_dst), FIELD(port_src),
		FIELD(port_dst), FIELD(tunnel_id), FIELD(tunnel),
#undef FIELD
	};
	struct dapl_eth_rule rule = { .mode = ETH_COPY, .flags = random_below(4) };
	struct frame like = random_frame();
	struct eth_headers h = parsed(&like);

	for (unsigned n = random_below(4); n; n--) {
		unsigned i = random_below(sizeof fields / sizeof *fields);

		take_field(&rule, &h.outer, fields[i].offset, fields[i].size);
	}
	if (random_below(3)) {
		rule.mask.ip_version = 255;
		rule.key.ip_version = h.outer.ip_version;
	}
	return rule;
}

static bool kernel_passes(int to, int from, const struct frame *f)
{
	uint8_t got[sizeof f->bytes];

	if (send(to, f->bytes, f->length, 0) != (ssize_t)f->length)
		return false;
	return recv(from, got, sizeof got, MSG_DONTWAIT) >= 0;
}

static int attach(int fd, const struct dapl_eth_rule *const *rules, unsigned n)
{
	static struct sock_filter code[ETH_FILTER_MAX];
	struct sock_fprog program = { .filter = code };

	program.len = (unsigned short)eth_filter_make(code, rules, n, 0x40000);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static bool exceeds(const void *key, const void *mask)
{
	const uint8_t *k = key, *m = mask;

	for (size_t i = 0; i < sizeof(struct dapl_eth_key); i++)
		if (k[i] & ~m[i])
			return true;
	return false;
}

/* Returns whether a value has bits outside of its mask, in either header. */
static bool key_exceeds_mask(const struct dapl_eth_rule *rule)
{
	return exceeds(&rule->key, &rule->mask) || exceeds(&rule->inner_key, &rule->inner_mask);
}

/* The filter must pass what eth_match_rule() matches. `wanted` and `kept` count frames, which shows that both
 * kinds occur. */
static void filter_agrees(int to, int from, unsigned *wanted, unsigned *kept)
{
	struct dapl_eth_rule rules[3];
	const struct dapl_eth_rule *list[3];
	unsigned n = 1 + random_below(3);

	for (unsigned i = 0; i < n; i++) {
		rules[i] = random_rule();
		list[i] = &rules[i];
		check(!key_exceeds_mask(&rules[i]), "the key lies within its mask");
	}
	check(!attach(from, list, n), "the kernel takes the filter");
	for (int j = 0; j < 50; j++) {
		struct frame f = random_frame();
		struct eth_headers h = parsed(&f);
		bool matches = false, passes;

		if (!f.length)
			continue;
		for (unsigned i = 0; i < n; i++)
			matches |= eth_match_rule(&rules[i], &h);
		passes = kernel_passes(to, from, &f);
		if (matches)
			check(passes, "the filter rejects a frame that a rule matches");
		*wanted += matches;
		*kept += !passes;
	}
}

/* --- the filter of a group's member -------------------------------------------------------- */

/* Returns whether the filter leaves the hash of the frame to the library. */
static bool is_hard(const struct frame *f, const struct eth_headers *h, bool inner)
{
	bool tagged = f->length >= 14 && f->bytes[12] != 0x08 && f->bytes[12] != 0x86 && f->bytes[12] != 0x12;

	return f->length < 58 || tagged || (h->outer.ip_version == 4 && f->bytes[14] != 0x45) ||
		(h->outer.ip_version == 6 && f->bytes[20] != IPPROTO_TCP && f->bytes[20] != IPPROTO_UDP &&
		 f->bytes[20] != IPPROTO_GRE) || !h->outer.ip_version ||
		(inner && (h->outer.protocol == IPPROTO_GRE || h->outer.tunnel ||
			   h->outer.port_dst == htons(4789) || h->outer.port_dst == htons(6081)));
}

static struct eth_spread *random_spread(uint8_t key[40], uint16_t *table)
{
	struct dapl_eth_rss rss = { .size = 1u << random_below(11), .table = table };

	for (int i = 0; i < 40; i++)
		key[i] = (uint8_t)random_below(256);
	for (uint32_t i = 0; i < rss.size; i++)
		table[i] = (uint16_t)random_below(3);
	rss.hash.rx_hash_key = key;
	rss.hash.rx_hash_fields_mask = (random_below(2) ? IBV_RX_HASH_SRC_PORT_TCP : 0) |
		(random_below(2) ? IBV_RX_HASH_INNER : 0);
	return spread_new(&rss);
}

static int attach_member(int fd, const struct eth_spread *spread, uint16_t member)
{
	static struct sock_filter code[ETH_FILTER_MAX];
	struct dapl_eth_rule rules[2] = { { .flags = ETH_ALL | ETH_EGRESS }, { .mask.tos = 1, .key.tos = 1 } };
	const struct dapl_eth_rule *list[2] = { &rules[1], &rules[0] };
	struct filter_part part = { .rules = list, .n = 2, .key = spread->key, .ports = spread->ports,
		.inner = spread->inner, .size = spread->size };
	struct sock_fprog program = { .filter = code };
	struct eth_filter filter;

	spread_bits(spread, member, 0, part.bits);
	eth_filter_begin(&filter, code, 0x40000);
	eth_filter_add(&filter, &part);
	program.len = (unsigned short)eth_filter_end(&filter);
	check(program.len > 1, "the filter of a group has room");
	/* Before Linux 6.9 there is no memory for two: dapl/softeth/port_filter.c. Fails if there is no old one. */
	setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &program, sizeof program);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/* The filter must pass the frames of the member, and no other frames of which it computes the hash. */
static void member_agrees(int to, int from, unsigned *own, unsigned *others)
{
	static uint16_t table[SPREAD_TABLE_MAX];
	uint8_t key[40];
	struct eth_spread *spread = random_spread(key, table);

	check(!attach_member(from, spread, 1), "the kernel takes the filter of a group");
	for (int j = 0; j < 100; j++) {
		struct frame f = random_frame();
		struct eth_headers h;
		bool is_own, passes;

		if (!f.length)
			continue;
		for (unsigned i = 22; i < 62 && i < f.length; i++)	/* addresses */
			if (i >= 26 && random_below(2))
				f.bytes[i] = (uint8_t)random_below(256);
		h = parsed(&f);
		is_own = spread_owner(spread, spread_hash(spread, &h), 1) == 1;
		passes = kernel_passes(to, from, &f);
		if (is_own)
			check(passes, "the filter rejects a frame of its member");
		else if (!is_hard(&f, &h, spread->inner))
			check(!passes, "the filter lets a frame of another member through");
		*own += is_own;
		*others += !is_own && !passes;
	}
	spread_put(spread);
}

static void test_members(int to, int from)
{
	unsigned own = 0, others = 0;

	for (int i = 0; i < 200; i++)
		member_agrees(to, from, &own, &others);
	check(own > 2000, "random tables give frames to a member");
	check(others > 2000, "random tables give frames to others");
}

/* --- the program ---------------------------------------------------------------------------- */

/* Runs the program on a frame that comes in by "lo", whose address is 0. Returns its result, or -100 -
 * errno. */
static int run_program(int program, const struct frame *f)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.test.prog_fd = (uint32_t)program;
	attr.test.data_in = (uintptr_t)f->bytes;
	attr.test.data_size_in = (uint32_t)f->length;
	if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof attr))
		return -100 - errno;
	return (int)attr.test.retval;
}

static bool is_for_other_host(const struct frame *f)
{
	static const uint8_t zero[6];

	return !(f->bytes[0] & 1) && memcmp(f->bytes, zero, 6);
}

/* Finds the rule that decides: the first that matches, unless a group copies the frame and another place has
 * a rule, too. */
static const struct dapl_eth_rule *oracle(const struct steer_rule *rules, unsigned n, const struct frame *f)
{
	static const uint8_t none[6];
	struct eth_headers h = parsed(f);
	unsigned copied = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct dapl_eth_rule *r = rules[i].rule;

		if (copied && rules[i].group == copied)
			continue;
		if (is_for_other_host(f) && !(r->flags & ETH_ALL) && !memcmp(r->mask.dst, none, 6))
			continue;
		if (!eth_match_rule(r, &h))
			continue;
		if (!rules[i].group || r->mode != ETH_COPY)
			return r;
		copied = rules[i].group;
	}
	return NULL;
}

/* Headers within a tunnel under random masks, too. */
static struct dapl_eth_rule random_mode(void)
{
	struct dapl_eth_rule rule = random_rule();
	struct frame like = random_frame();
	struct eth_headers h = parsed(&like);

	rule.mode = 1 + random_below(3);
	if (!random_below(3)) {
		take_field(&rule, &h.outer, offsetof(struct dapl_eth_key, tunnel), 4);
		memset(&rule.inner_mask, 0, sizeof rule.inner_mask);
		rule.inner_key = rule.inner_mask;
		rule.inner_mask.port_dst = 0xffff;
		rule.inner_key.port_dst = h.inner.port_dst;
	}
	return rule;
}

static int make_program(const struct steer_rule *rules, unsigned n, int counters)
{
	struct bpf_code code;
	int program = -ENOMEM;

	if (!bpf_code_begin(&code) && !(program = -steer_make(&code, rules, n, counters)))
		program = bpf_load_program(BPF_PROG_TYPE_SCHED_CLS, code.insns, code.n);
	bpf_code_end(&code);
	return program;
}

static void program_agrees(int counters, unsigned *taken, unsigned *passed)
{
	struct dapl_eth_rule rules[4];
	struct steer_rule list[4];
	uint64_t dropped[4][2] = { { 0 } }, counted[2];
	unsigned n = 1 + random_below(4), group = 0;
	int program;

	for (unsigned i = 0; i < n; i++) {
		rules[i] = random_mode();
		group += !random_below(3);
		list[i] = (struct steer_rule){ &rules[i], i, group };
		bpf_clear_counters(counters, i);
	}
	program = make_program(list, n, counters);
	if (program < 0) {
		printf("program: %s\n", strerror(-program));
		check(false, "the kernel takes the program");
		return;
	}
	for (int j = 0; j < 50; j++) {
		struct frame f = random_frame();
		const struct dapl_eth_rule *first;
		int verdict;

		verdict = run_program(program, &f);
		if (verdict == -100 - EINVAL)		/* the kernel does not run it for less than an IP header */
			continue;
		first = oracle(list, n, &f);
		check(verdict == (first && first->mode != ETH_COPY ? TCX_DROP_FRAME : TCX_NEXT_PROGRAM),
		      "the program decides as the rules do");
		*taken += verdict == TCX_DROP_FRAME;
		*passed += verdict == TCX_NEXT_PROGRAM;
		if (first && first->mode == ETH_DROP) {
			dropped[first - rules][0]++;
			dropped[first - rules][1] += f.length;
		}
	}
	for (unsigned i = 0; i < n; i++)
		check(!bpf_read_counters(counters, i, counted) && counted[0] == dropped[i][0] &&
		      counted[1] == dropped[i][1], "frames that a rule drops are counted");
	close(program);
}

/* As many rules as a port may have, with every field. */
static void largest_program_is_taken(int counters)
{
	enum { MANY = 64 };
	struct dapl_eth_rule rules[MANY];
	struct steer_rule list[MANY];
	int program;

	for (unsigned i = 0; i < MANY; i++) {
		rules[i] = (struct dapl_eth_rule){ .mode = ETH_DROP, .priority = i };
		memset(&rules[i].mask, 255, sizeof rules[i].mask);
		memset(&rules[i].inner_mask, 255, sizeof rules[i].inner_mask);
		list[i] = (struct steer_rule){ &rules[i], i, i };
	}
	program = make_program(list, MANY, counters);
	if (program < 0)
		printf("64 rules: %s\n", strerror(-program));
	check(program >= 0, "the kernel takes a program of 64 rules");
	close(program);
}

/* --- the XDP program ------------------------------------------------------------------------ */

enum { LO = 1 };			/* the index of "lo", on which the kernel runs the program */

static int make_xdp(const struct steer_rule *rules, unsigned n, int counters, int sockets)
{
	const struct steer_xdp xdp = { .sockets = sockets, .index = LO };
	struct bpf_code code;
	int program = -ENOMEM;

	if (!bpf_code_begin(&code) && !(program = -steer_make_xdp(&code, rules, n, counters, &xdp)))
		program = bpf_load_program(BPF_PROG_TYPE_XDP, code.insns, code.n);
	bpf_code_end(&code);
	return program;
}

/* Returns the program's result, or -100 - errno. *mark: what it wrote in front of the frame, or 0. */
static int run_xdp(int program, const struct frame *f, struct steer_mark *mark)
{
	uint8_t out[sizeof *mark + sizeof f->bytes];
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	memset(mark, 0, sizeof *mark);
	attr.test.prog_fd = (uint32_t)program;
	attr.test.data_in = (uintptr_t)f->bytes;
	attr.test.data_size_in = (uint32_t)f->length;
	attr.test.data_out = (uintptr_t)out;
	attr.test.data_size_out = sizeof out;
	if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof attr))
		return -100 - errno;
	check(attr.test.data_size_out == f->length || attr.test.data_size_out == f->length + sizeof *mark,
	      "the frame stays as long as it is, but for a mark");
	if (attr.test.data_size_out > f->length)
		memcpy(mark, out, sizeof *mark);
	return (int)attr.test.retval;
}

/* There is no socket, so the kernel would get a frame that is taken: its mark shows the difference. */
static void xdp_agrees(int counters, int sockets, unsigned *taken, unsigned *passed)
{
	struct dapl_eth_rule rules[4];
	struct steer_rule list[4];
	uint64_t dropped[4] = { 0 }, counted[2];
	unsigned n = random_below(5);
	int program;

	for (unsigned i = 0; i < n; i++) {
		rules[i] = random_mode();
		if (rules[i].mode == ETH_COPY)
			rules[i].mode = ETH_TAKE;
		list[i] = (struct steer_rule){ &rules[i], rules[i].mode == ETH_DROP ? i : 1000 + i, 0 };
		bpf_clear_counters(counters, i);
	}
	program = make_xdp(list, n, counters, sockets);
	if (program < 0)
		printf("XDP program: %s\n", strerror(-program));
	check(program >= 0, "the kernel takes the XDP program");
	for (int j = 0; program >= 0 && j < 50; j++) {
		struct frame f = random_frame();
		const struct dapl_eth_rule *first = oracle(list, n, &f);
		struct steer_mark mark;
		int verdict = run_xdp(program, &f, &mark);

		if (verdict == -100 - EINVAL)		/* the frame is shorter than an Ethernet header */
			continue;
		check(verdict == (first && first->mode == ETH_DROP ? XDP_DROP : XDP_PASS) &&
		      mark.rule == (first && first->mode == ETH_TAKE ? 1000 + first - rules : 0),
		      "the XDP program decides as the rules do");
		check(!mark.rule == !mark.time, "a mark has a time");
		*taken += mark.rule != 0;
		*passed += !first;
		if (first && first->mode == ETH_DROP)
			dropped[first - rules]++;
	}
	for (unsigned i = 0; i < n; i++)
		check(!bpf_read_counters(counters, i, counted) && counted[0] == dropped[i], "XDP counts what it drops");
	close(program);
}

static void largest_xdp_is_taken(int counters, int sockets)
{
	enum { MANY = 64 };
	struct dapl_eth_rule rules[MANY];
	struct steer_rule list[MANY];
	int program;

	for (unsigned i = 0; i < MANY; i++) {
		rules[i] = (struct dapl_eth_rule){ .mode = i % 2 ? ETH_DROP : ETH_TAKE, .priority = i };
		memset(&rules[i].mask, 255, sizeof rules[i].mask);
		memset(&rules[i].inner_mask, 255, sizeof rules[i].inner_mask);
		memset(&rules[i].key, (int)i * 4, sizeof rules[i].key);
		list[i] = (struct steer_rule){ &rules[i], i + 1, 0 };
	}
	program = make_xdp(list, MANY, counters, sockets);
	if (program < 0)
		printf("64 rules: %s\n", strerror(-program));
	check(program >= 0, "the kernel takes an XDP program of 64 rules");
	close(program);
}

static void test_xdp(int counters)
{
	unsigned taken = 0, passed = 0;
	int sockets = bpf_create_sockets(1);

	if (sockets < 0) {
		printf("skip: no map of AF_XDP sockets: %s\n", strerror(-sockets));
		return;
	}
	for (int i = 0; i < 200; i++)
		xdp_agrees(counters, sockets, &taken, &passed);
	largest_xdp_is_taken(counters, sockets);
	check(taken > 300, "XDP takes some frames");
	check(passed > 300, "XDP leaves some frames");
	close(sockets);
}

static void test_program(void)
{
	unsigned taken = 0, passed = 0;
	int counters;

	if (geteuid() || (counters = bpf_create_counters(64)) < 0) {
		printf("skip: the program for TAKE and DROP needs root\n");
		return;
	}
	for (int i = 0; i < 200; i++)
		program_agrees(counters, &taken, &passed);
	largest_program_is_taken(counters);
	check(taken > 300, "random rules take some frames");
	check(passed > 300, "random rules leave some frames");
	test_xdp(counters);
	close(counters);
}

/* Has rules with a mask of 32 bits for the flow label, which has 20. */
enum { WIDE_LABEL_SEED = 1803108032 };

int main(void)
{
	uint32_t seed = variable_seed("ETH_SEED");
	unsigned wanted = 0, rejected = 0;
	int pair[2];

	printf("ETH_SEED=%u\n", seed);
	random_state = seed;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return 1;
	for (int i = 0; i < 200; i++)
		filter_agrees(pair[0], pair[1], &wanted, &rejected);
	test_members(pair[0], pair[1]);
	random_state = WIDE_LABEL_SEED;
	for (int i = 0; i < 200; i++)
		filter_agrees(pair[0], pair[1], &wanted, &rejected);
	test_program();
	check(wanted > 500, "random rules match some frames");
	check(rejected > 500, "the filter rejects some frames");
	printf("%u frames matched, %u rejected by the filter\n%u passed, %u failed\n", wanted, rejected,
	       checks - failures, failures);
	return failures != 0;
}
