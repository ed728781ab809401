/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_option.c - the hash that the programs of option.c compute, without a kernel, beside numbers of the authors of
 * SipHash; and that the programs can be made. What they do in the kernel is the matter of test/sock/rendezvous. */
#include "tools/sock/option.h"
#include "test/unit/softeth/ebpf.h"
#include "test/unit/unit.h"

enum { KEY = -16, MESSAGE = -64, WORDS = 6, R0 = 0, R1 = 1, KEYS = 8, FP = 10 };

static struct bpf_code code;

static int set_up(void **state)
{
	return bpf_code_begin(&code);
}

static int tear_down(void **state)
{
	bpf_code_end(&code);
	return 0;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

/* Stores bytes that count from 0. */
static void store_bytes(int offset, int count)
{
	for (int i = 0; i < count; i++)
		bpf_emit(&code, BPF_ST | BPF_B | BPF_MEM, FP, 0, offset + i, i);
}

/* Half of the hash of so many words, under the key 00 01 ... 0f; the result of a program has 32 bits. */
static uint32_t hash(int words, bool upper)
{
	const struct ebpf_frame none = { 0 };
	uint64_t counters[EBPF_COUNTERS][2];

	code.n = 0;
	store_bytes(KEY, 16);
	store_bytes(MESSAGE, words * 8);
	bpf_emit(&code, BPF_ALU64 | BPF_MOV | BPF_X, KEYS, FP, 0, 0);
	bpf_emit(&code, BPF_ALU64 | BPF_ADD | BPF_K, KEYS, 0, 0, KEY);
	option_emit_hash(&code, MESSAGE, words);
	if (upper)
		bpf_emit(&code, BPF_ALU64 | BPF_RSH | BPF_K, R0, 0, 0, 32);
	bpf_emit(&code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	assert_int_equal(bpf_resolve(&code), 0);
	return (uint32_t)ebpf_run(&code, &none, counters);
}

TEST(hash_is_siphash)
{
	static const struct {
		int words;
		uint64_t hash;
	} known[] = { { 0, 0x726fdb47dd0e0e31 }, { 1, 0x93f5f5799a932462 }, { WORDS, 0xe612a3cb9ecba951 } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		assert_int_equal(hash(known[i].words, false), (uint32_t)known[i].hash);
		assert_int_equal(hash(known[i].words, true), known[i].hash >> 32);
	}
}

static int exits(void)
{
	int n = 0;

	for (int i = 0; i < code.n; i++)
		n += code.insns[i].code == (BPF_JMP | BPF_EXIT);
	return n;
}

TEST(programs_are_made_within_the_limits)
{
	const struct option_maps maps = { 10, 11, 12 };

	assert_int_equal(option_make_handshake(&code, &maps), 0);
	assert_true(exits() >= 6);
	/* A kernel before 5.3 takes 4096 instructions; the limit of later ones is out of sight. */
	assert_in_range(code.n, 100, 4096);
	bpf_code_end(&code);
	assert_int_equal(bpf_code_begin(&code), 0);
	assert_int_equal(option_make_mark(&code, &maps, 4096), 0);
	assert_in_range(code.n, 10, 100);
}

UNIT_MAIN(NULL, NULL)
