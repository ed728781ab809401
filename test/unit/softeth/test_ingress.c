/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ingress.c - the life of the program on a device's ingress, and the counters of its rules. bpf(2) is
 * replaced and recorded here; what the program does is steer.c's matter. */
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include "common/interface.h"
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/steer.h"
#include "dapl/softeth/xdp.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

/* Descriptors that the process does not have. */
enum { PROGRAM = 1000, LINK, COUNTERS, SOCKETS, INDEX = 5, RULES = 4 };

static struct eth_port port;
static struct eth_rule rules[RULES];
static struct steer_rule made_of[ETH_MAX_RULES];	/* the rules of the last program */
static unsigned made;
static bool no_memory;
static uint32_t cleared, read_entry;	/* entries of the counters */
static uint64_t counted[2];

/* --- functions of other files --------------------------------------------------------------------------------- */

REPLACE(steer_make, steer_make_xdp, interface_request_index, eth_xdp_sockets, syscall)
EXTEND(close)

int __wrap_steer_make(struct bpf_code *code, const struct steer_rule *of, unsigned n, int counters)
{
	assert_int_equal(counters, COUNTERS);
	assert_in_range(n, 0, ETH_MAX_RULES);
	memcpy(made_of, of, n * sizeof *of);
	made = n;
	bpf_emit(code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return step("make") ? E2BIG : 0;
}

int __wrap_steer_make_xdp(struct bpf_code *code, const struct steer_rule *of, unsigned n, int counters,
			  const struct steer_xdp *xdp)
{
	assert_int_equal(xdp->sockets, SOCKETS);
	assert_int_equal(xdp->index, INDEX);
	assert_memory_equal(xdp->address, "\2\0\0\0\0\7", 6);
	return __wrap_steer_make(code, of, n, counters);
}

int __wrap_interface_request_index(int index, unsigned long request, struct ifreq *ifr)
{
	assert_int_equal(index, INDEX);
	assert_int_equal(request, SIOCGIFHWADDR);
	memcpy(ifr->ifr_hwaddr.sa_data, "\2\0\0\0\0\7", 6);
	return step("address") ? ENODEV : 0;
}

int __wrap_eth_xdp_sockets(const struct eth_xdp *xdp)
{
	assert_ptr_equal(xdp, port.xdp);
	return SOCKETS;
}

static int load(const union bpf_attr *attr)
{
	assert_int_equal(attr->prog_type, port.xdp ? BPF_PROG_TYPE_XDP : BPF_PROG_TYPE_SCHED_CLS);
	assert_int_equal(attr->insn_cnt, 1);
	assert_int_equal(((const struct bpf_insn *)(uintptr_t)attr->insns)->code, BPF_JMP | BPF_EXIT);
	return step("load") ? -1 : PROGRAM;
}

static int attach(const union bpf_attr *attr)
{
	bool xdp = attr->link_create.attach_type == BPF_XDP;

	assert_int_equal(attr->link_create.prog_fd, PROGRAM);
	assert_int_equal(attr->link_create.target_ifindex, INDEX);
	assert_int_equal(xdp, port.xdp != NULL);
	return step(xdp ? "xdp" : "attach") ? -1 : LINK;
}

static int replace(const union bpf_attr *attr)
{
	assert_int_equal(attr->link_update.link_fd, LINK);
	assert_int_equal(attr->link_update.new_prog_fd, PROGRAM);
	return step("replace");
}

static int access_counters(const union bpf_attr *attr, bool reads)
{
	uint64_t *entry = (uint64_t *)(uintptr_t)attr->value;

	assert_int_equal(attr->map_fd, COUNTERS);
	*(reads ? &read_entry : &cleared) = *(const uint32_t *)(uintptr_t)attr->key;
	if (reads)
		memcpy(entry, counted, sizeof counted);
	else
		assert_true(!entry[0] && !entry[1]);
	return step(reads ? "read" : "clear");
}

/* bpf(2) */
long __wrap_syscall(long number, ...)
{
	const union bpf_attr *attr;
	va_list args;
	int command;

	va_start(args, number);
	command = va_arg(args, int);
	attr = va_arg(args, const union bpf_attr *);
	va_end(args);
	assert_int_equal(number, SYS_bpf);
	switch (command) {
	case BPF_MAP_CREATE:
		assert_int_equal(attr->max_entries, ETH_MAX_RULES);
		return step("counters") ? -1 : COUNTERS;
	case BPF_PROG_LOAD:
		return load(attr);
	case BPF_LINK_CREATE:
		return attach(attr);
	case BPF_LINK_UPDATE:
		return replace(attr);
	default:
		return access_counters(attr, command == BPF_MAP_LOOKUP_ELEM);
	}
}

int __wrap_close(int fd)
{
	if (fd < PROGRAM)
		return __real_close(fd);
	assert_in_range(fd, PROGRAM, LINK);
	return step(fd == PROGRAM ? "unload" : "unlink");
}

UNIT_FAIL_CALLOC(no_memory && n == BPF_LONGEST)

/* --- a case ---------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	forget_steps();
	port = (struct eth_port){ .fd = -1, .index = INDEX, .counters = -1, .link = -1 };
	memset(rules, 0, sizeof rules);
	made = 0;
	no_memory = false;
	cleared = read_entry = UINT32_MAX;
}

/* The first `n` rules are the port's, and take frames. */
static void steer_rules(unsigned n)
{
	port.rules = n ? rules : NULL;
	port.steering = n;
	for (unsigned i = 0; i < n; i++) {
		rules[i].rule.mode = ETH_TAKE;
		rules[i].next = i + 1 < n ? &rules[i + 1] : NULL;
	}
}

static void assert_steps(const char *expected)
{
	assert_string_equal(steps, expected);
	forget_steps();
}

static void renewal_takes(const char *expected)
{
	assert_int_equal(eth_steer_renew(&port), 0);
	assert_steps(expected);
}

static void attach_program(void)
{
	steer_rules(1);
	assert_int_equal(eth_steer_renew(&port), 0);
	forget_steps();
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

/* --- the program ------------------------------------------------------------------------------------------------- */

/* Frames meet the old program or the new one; the counters stay. */
TEST(program_is_replaced_while_it_is_attached)
{
	attach_program();
	steer_rules(2);
	renewal_takes("make load replace unload");
	assert_int_equal(port.link, LINK);
}

TEST(program_goes_with_the_last_rule_that_steers)
{
	attach_program();
	port.steering = 0;		/* a rule that copies remains */
	renewal_takes("unlink");
	assert_int_equal(port.link, -1);
	renewal_takes("");
	assert_int_equal(port.counters, COUNTERS);	/* a rule that was moved away is read later */
	steer_rules(1);
	renewal_takes("make load attach unload");
}

/* Rules that copy are in it, too: the first rule that matches decides. */
TEST(program_has_the_rules_in_their_order)
{
	struct eth_spread spread = { .id = 7 };

	steer_rules(4);
	rules[0].rule.mode = ETH_COPY;
	rules[1].moved = true;
	rules[2].rule.mode = ETH_DROP;
	rules[2].counter = 3;
	rules[3].spread = &spread;
	assert_int_equal(eth_steer_renew(&port), 0);
	assert_int_equal(made, 3);
	assert_ptr_equal(made_of[0].rule, &rules[0].rule);
	assert_int_equal(made_of[0].group, 0);
	assert_ptr_equal(made_of[1].rule, &rules[2].rule);
	assert_int_equal(made_of[1].number, 3);
	assert_ptr_equal(made_of[2].rule, &rules[3].rule);
	assert_int_equal(made_of[2].group, 7);
}

/* ETH-40. Without a rule it passes everything; it goes when its port is closed. */
TEST(xdp_program_stays_without_rules)
{
	port.xdp = (struct eth_xdp *)&port;	/* it is not looked at */
	renewal_takes("counters address make load xdp unload");
	assert_int_equal(made, 0);
	steer_rules(2);
	rules[0].id = 11;
	rules[0].counter = 3;
	rules[1].rule.mode = ETH_DROP;
	rules[1].id = 12;
	rules[1].counter = 2;
	renewal_takes("address make load replace unload");
	assert_int_equal(made_of[0].number, 11);
	assert_int_equal(made_of[1].number, 2);
	steer_rules(0);
	failing = "address";
	assert_int_equal(eth_steer_renew(&port), ENODEV);
	assert_steps("address");
	renewal_takes("address make load replace unload");
	eth_steer_detach(&port);
	assert_steps("unlink");
	assert_int_equal(port.link, -1);
}

/* --- errors ---------------------------------------------------------------------------------------------------- */

TEST(program_that_cannot_be_attached_is_unloaded)
{
	static const struct {
		const char *step, *steps;
		int err;
	} rows[] = { { "counters", "counters", ENOBUFS }, { "make", "counters make", E2BIG },
		{ "load", "counters make load", ENOBUFS }, { "attach", "counters make load attach unload", ENOBUFS } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		steer_rules(1);
		failing = rows[i].step;
		assert_int_equal(eth_steer_renew(&port), rows[i].err);
		assert_steps(rows[i].steps);
		assert_true(port.link < 0);
		assert_int_equal(port.counters, i ? COUNTERS : -1);
		port.steering = 0;	/* the rule is refused */
		renewal_takes("");
		steer_rules(1);
		assert_int_equal(eth_steer_renew(&port), 0);
		assert_int_equal(port.link, LINK);
		assert_int_equal(port.counters, COUNTERS);
	}
}

TEST(failed_renewal_leaves_the_program_that_is_attached)
{
	static const struct {
		const char *step, *steps;
		int err;
	} rows[] = { { "make", "make", E2BIG }, { "load", "make load", ENOBUFS },
		{ "replace", "make load replace unload", ENOBUFS } };

	attach_program();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		failing = rows[i].step;
		assert_int_equal(eth_steer_renew(&port), rows[i].err);
		assert_steps(rows[i].steps);
		assert_int_equal(port.link, LINK);
	}
}

TEST(program_needs_memory)
{
	steer_rules(1);
	no_memory = true;
	assert_int_equal(eth_steer_renew(&port), ENOMEM);
	assert_steps("counters");
	assert_int_equal(port.link, -1);
}

/* --- counters of rules ------------------------------------------------------------------------------------------- */

TEST(each_rule_has_a_counter_of_its_own)
{
	struct eth_rule *all = calloc(ETH_MAX_RULES + 1, sizeof *all), *again = all + ETH_MAX_RULES;
	uint64_t seen = 0;

	assert_non_null(all);
	for (unsigned i = 0; i < ETH_MAX_RULES; i++) {
		assert_int_equal(eth_steer_get_counter(&port, &all[i]), 0);
		assert_in_range(all[i].counter, 0, ETH_MAX_RULES - 1);
		seen |= (uint64_t)1 << all[i].counter;
	}
	assert_true(seen == UINT64_MAX);
	eth_steer_put_counter(&port, &all[50]);
	assert_int_equal(eth_steer_get_counter(&port, again), 0);
	assert_int_equal(again->counter, all[50].counter);
	free(all);
}

/* It may have been another rule's. Before there is a program nothing has been counted. */
TEST(counter_of_a_new_rule_is_cleared)
{
	assert_int_equal(eth_steer_get_counter(&port, &rules[0]), 0);
	assert_steps("");
	port.counters = COUNTERS;
	assert_int_equal(eth_steer_get_counter(&port, &rules[1]), 0);
	assert_steps("clear");
	assert_int_equal(cleared, rules[1].counter);
	failing = "clear";
	assert_int_equal(eth_steer_get_counter(&port, &rules[2]), ENOBUFS);
	eth_steer_put_counter(&port, &rules[2]);	/* as rules.c does for the rule that it refuses */
	failing = NULL;
	assert_int_equal(eth_steer_get_counter(&port, &rules[3]), 0);
	assert_int_equal(rules[3].counter, rules[2].counter);
}

TEST(counts_are_read_at_the_rules_counter)
{
	uint64_t frames = 1, bytes = 2;

	port.counters = COUNTERS;
	rules[1].counter = 9;
	counted[0] = 33;
	counted[1] = 4400;
	failing = "read";
	assert_int_equal(eth_steer_count(&port, &rules[1], &frames, &bytes), ENOBUFS);
	assert_int_equal(frames, 1);
	assert_int_equal(bytes, 2);
	failing = NULL;
	assert_int_equal(eth_steer_count(&port, &rules[1], &frames, &bytes), 0);
	assert_int_equal(read_entry, 9);
	assert_int_equal(frames, 33);
	assert_int_equal(bytes, 4400);
}

UNIT_MAIN(NULL, NULL)
