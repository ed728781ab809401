/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_bpf_code.c - the assembler of eBPF programs. What programs do is a matter of those that make them. */
#include <stdlib.h>
#include "common/bpf_code.h"
#include "test/unit/unit.h"

static struct bpf_code code;
static unsigned allocations, fails;	/* which one of them, counted from 1; 0: none */

EXTEND(calloc)

void *__wrap_calloc(size_t n, size_t size)
{
	return n == BPF_LONGEST && ++allocations == fails ? NULL : __real_calloc(n, size);
}

static int set_up(void **state)
{
	allocations = fails = 0;
	return bpf_code_begin(&code);
}

UNIT_FIXTURE(tear_down)
{
	bpf_code_end(&code);
}

static void emit(int n)
{
	for (int i = 0; i < n; i++)
		bpf_emit(&code, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, i);
}

static void assert_insn(int at, uint8_t op, int dst, int src, int off, int32_t imm)
{
	const struct bpf_insn *i = &code.insns[at];

	assert_in_range(at, 0, code.n - 1);
	assert_int_equal(i->code, op);
	assert_int_equal(i->dst_reg, dst);
	assert_int_equal(i->src_reg, src);
	assert_int_equal(i->off, off);
	assert_int_equal(i->imm, imm);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

TEST(program_has_a_longest_length)
{
	int end = bpf_label(&code);

	bpf_jump(&code, end);
	emit(BPF_LONGEST - 2);
	bpf_here(&code, end);
	emit(1);
	assert_int_equal(code.n, BPF_LONGEST);
	assert_int_equal(bpf_resolve(&code), 0);
	assert_insn(0, BPF_JMP | BPF_JA, 0, 0, BPF_LONGEST - 2, 0);
	bpf_jump(&code, end);		/* they write nothing behind the end: a sanitizer would see it */
	bpf_jump_if(&code, BPF_JEQ, 0, 0, end);
	assert_int_equal(code.n, BPF_LONGEST);
	assert_int_equal(bpf_resolve(&code), E2BIG);
}

/* The last one that was given out is of use, so the caller need not check each. */
TEST(program_has_a_limit_of_labels)
{
	for (int i = 0; i < BPF_LABELS; i++)
		assert_int_equal(bpf_label(&code), i);
	assert_int_equal(bpf_resolve(&code), 0);
	assert_in_range(bpf_label(&code), 0, BPF_LABELS - 1);
	assert_int_equal(bpf_resolve(&code), E2BIG);
}

TEST(assembler_needs_memory)
{
	struct bpf_code other;

	for (fails = 1; fails <= 2; fails++) {
		allocations = 0;
		assert_int_equal(bpf_code_begin(&other), ENOMEM);
		bpf_code_end(&other);
	}
}

UNIT_MAIN(NULL, NULL)
