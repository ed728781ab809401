/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ebpf.c - see ebpf.h. A pointer is a number: its upper half says what it points to. */
#include "test/unit/softeth/ebpf.h"
#include "test/unit/unit.h"

enum { STACK = 512, REGISTERS = 11, FP = 10 };

#define TO_CONTEXT ((uint64_t)1 << 32)
#define TO_STACK ((uint64_t)2 << 32)		/* its lowest byte */
#define TO_COUNTERS ((uint64_t)3 << 32)
#define TO_MAP ((uint64_t)4 << 32)

struct machine {
	const struct ebpf_frame *frame;
	uint64_t (*counters)[2];
	uint64_t registers[REGISTERS];
	bool is_set[REGISTERS];
	uint8_t stack[STACK];
	bool is_written[STACK];
};

static uint64_t get(const struct machine *m, unsigned number)
{
	assert_in_range(number, 0, REGISTERS - 1);
	assert_true(m->is_set[number]);
	return m->registers[number];
}

static void set(struct machine *m, unsigned number, uint64_t value)
{
	assert_in_range(number, 0, FP - 1);
	m->registers[number] = value;
	m->is_set[number] = true;
}

/* --- memory ------------------------------------------------------------------------------------------ */

static size_t size_of(uint8_t op)
{
	switch (BPF_SIZE(op)) {
	case BPF_B: return 1;
	case BPF_H: return 2;
	case BPF_W: return 4;
	default: return 8;
	}
}

/* The offset in the stack of `size` bytes. */
static size_t on_stack(uint64_t address, size_t size)
{
	uint64_t at = address - TO_STACK;

	assert_in_range(at, 0, STACK - size);
	assert_int_equal(at % (size <= 8 ? size : 1), 0);	/* aligned, if it is a number */
	return (size_t)at;
}

static void write_stack(struct machine *m, size_t at, const void *from, size_t size)
{
	memcpy(m->stack + at, from, size);
	memset(m->is_written + at, true, size);
}

static uint64_t load_context(const struct machine *m, size_t offset)
{
	switch (offset) {
	case offsetof(struct __sk_buff, len): return m->frame->length;
	case offsetof(struct __sk_buff, pkt_type): return m->frame->type;
	case offsetof(struct __sk_buff, vlan_present): return m->frame->tagged;
	case offsetof(struct __sk_buff, vlan_tci): return m->frame->tci;
	default: fail_msg("field %zu of the context is not known", offset); return 0;
	}
}

static uint64_t load(const struct machine *m, uint64_t address, uint8_t op)
{
	size_t size = size_of(op), at;
	union {
		uint8_t b;
		uint16_t h;
		uint32_t w;
		uint64_t d;
	} value;

	if (address >> 32 == TO_CONTEXT >> 32) {
		assert_int_equal(size, 4);
		return load_context(m, (size_t)(address - TO_CONTEXT));
	}
	at = on_stack(address, size);
	for (size_t i = 0; i < size; i++)
		assert_true(m->is_written[at + i]);
	memcpy(&value, m->stack + at, size);
	return size == 1 ? value.b : size == 2 ? value.h : size == 4 ? value.w : value.d;
}

static void store(struct machine *m, uint64_t address, uint8_t op, uint64_t value)
{
	const uint8_t b = (uint8_t)value;
	const uint16_t h = (uint16_t)value;
	const uint32_t w = (uint32_t)value;
	size_t size = size_of(op);

	write_stack(m, on_stack(address, size),
		    size == 1 ? (const void *)&b : size == 2 ? (const void *)&h : size == 4 ? (const void *)&w : &value,
		    size);
}

static void add_to_counter(struct machine *m, uint64_t address, uint64_t value)
{
	uint64_t at = address - TO_COUNTERS;

	assert_in_range(at, 0, EBPF_COUNTERS * 16 - 8);
	m->counters[at / 16][at % 16 / 8] += value;
}

/* --- instructions ----------------------------------------------------------------------------------------- */

/* Bytes that are not there are written as 0. */
static uint64_t load_bytes(struct machine *m)
{
	uint32_t offset = (uint32_t)get(m, 2), n = (uint32_t)get(m, 4);
	size_t to = (size_t)(get(m, 3) - TO_STACK);
	uint8_t bytes[STACK] = { 0 };
	bool is_there = offset <= INT32_MAX && (uint64_t)offset + n <= m->frame->length;

	assert_int_equal(get(m, 1), TO_CONTEXT);
	assert_in_range(n, 1, STACK);
	assert_in_range(to, 0, STACK - n);
	if (is_there)
		memcpy(bytes, m->frame->bytes + offset, n);
	write_stack(m, to, bytes, n);
	return is_there ? 0 : (uint64_t)-EFAULT;
}

static uint64_t look_up(struct machine *m)
{
	uint64_t entry = load(m, get(m, 2), BPF_W);

	assert_int_equal(get(m, 1), TO_MAP);
	return entry < EBPF_COUNTERS ? TO_COUNTERS + entry * 16 : 0;
}

static void call(struct machine *m, int32_t helper)
{
	uint64_t result = 0;

	if (helper == BPF_FUNC_skb_load_bytes)
		result = load_bytes(m);
	else if (helper == BPF_FUNC_map_lookup_elem)
		result = look_up(m);
	else
		fail_msg("helper %d is not known", helper);
	memset(m->is_set + 1, false, 5);
	set(m, 0, result);
}

static uint64_t compute(uint8_t op, uint64_t a, uint64_t b)
{
	switch (BPF_OP(op)) {
	case BPF_MOV: return b;
	case BPF_ADD: return a + b;
	case BPF_SUB: return a - b;
	case BPF_AND: return a & b;
	case BPF_OR: return a | b;
	case BPF_XOR: return a ^ b;
	case BPF_LSH: return a << (b & 63);
	case BPF_RSH: return a >> (b & 63);
	default: fail_msg("operation %#x is not known", op); return 0;
	}
}

static void run_alu(struct machine *m, const struct bpf_insn *i)
{
	uint64_t b = BPF_SRC(i->code) == BPF_X ? get(m, i->src_reg) : (uint64_t)(int64_t)i->imm;
	uint64_t a = BPF_OP(i->code) == BPF_MOV ? 0 : get(m, i->dst_reg);

	set(m, i->dst_reg, compute(i->code, a, b));
}

static void run_alu32(struct machine *m, const struct bpf_insn *i)
{
	uint64_t a = get(m, i->dst_reg);

	if (i->code == (BPF_ALU | BPF_END | BPF_TO_BE)) {
		set(m, i->dst_reg, i->imm == 16 ? htons((uint16_t)a) : htonl((uint32_t)a));
		return;
	}
	assert_int_equal(BPF_SRC(i->code), BPF_K);
	set(m, i->dst_reg, (uint32_t)compute(i->code, a, (uint32_t)i->imm));
}

static bool holds(const struct machine *m, const struct bpf_insn *i)
{
	uint64_t a = get(m, i->dst_reg), b = (uint64_t)(int64_t)i->imm;

	if (BPF_CLASS(i->code) == BPF_JMP32) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	assert_int_equal(BPF_SRC(i->code), BPF_K);
	switch (BPF_OP(i->code)) {
	case BPF_JEQ: return a == b;
	case BPF_JNE: return a != b;
	case BPF_JLT: return a < b;
	case BPF_JSLT: return (int32_t)a < (int32_t)b;
	default: fail_msg("comparison %#x is not known", i->code); return false;
	}
}

static bool is_jump(const struct bpf_insn *i)
{
	bool other = BPF_OP(i->code) == BPF_CALL || BPF_OP(i->code) == BPF_EXIT;

	return BPF_CLASS(i->code) == BPF_JMP32 || (BPF_CLASS(i->code) == BPF_JMP && !other);
}

static void run_one(struct machine *m, const struct bpf_insn *i)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_ALU64:
		run_alu(m, i);
		break;
	case BPF_ALU:
		run_alu32(m, i);
		break;
	case BPF_LDX:
		set(m, i->dst_reg, load(m, get(m, i->src_reg) + (uint64_t)i->off, i->code));
		break;
	case BPF_ST:
		store(m, get(m, i->dst_reg) + (uint64_t)i->off, i->code, (uint64_t)(int64_t)i->imm);
		break;
	case BPF_STX:
		if (i->code == (BPF_STX | BPF_XADD | BPF_DW))
			add_to_counter(m, get(m, i->dst_reg) + (uint64_t)i->off, get(m, i->src_reg));
		else
			store(m, get(m, i->dst_reg) + (uint64_t)i->off, i->code, get(m, i->src_reg));
		break;
	case BPF_LD:
		if (!i->src_reg) {	/* a number of 64 bits */
			set(m, i->dst_reg, (uint32_t)i[0].imm | (uint64_t)(uint32_t)i[1].imm << 32);
			break;
		}
		assert_int_equal(i->src_reg, BPF_PSEUDO_MAP_FD);
		assert_int_equal(i->imm, EBPF_MAP);
		set(m, i->dst_reg, TO_MAP);
		break;
	default:
		assert_int_equal(i->code, BPF_JMP | BPF_CALL);
		call(m, i->imm);
	}
}

int ebpf_run(const struct bpf_code *code, const struct ebpf_frame *frame, uint64_t counters[EBPF_COUNTERS][2])
{
	struct machine m = { .frame = frame, .counters = counters };
	int at = 0;

	m.registers[1] = TO_CONTEXT;
	m.registers[FP] = TO_STACK + STACK;
	m.is_set[1] = m.is_set[FP] = true;
	for (;;) {
		const struct bpf_insn *i = &code->insns[at++];

		assert_in_range(at, 1, code->n);
		if (i->code == (BPF_JMP | BPF_EXIT))
			return (int)get(&m, 0);
		if (!is_jump(i))
			run_one(&m, i);
		else if (BPF_OP(i->code) == BPF_JA || holds(&m, i))
			at += i->off;
		at += BPF_CLASS(i->code) == BPF_LD;	/* the second half of a long number */
	}
}

void ebpf_assert_accepted(const struct bpf_code *code)
{
	bool *reached = calloc((size_t)code->n + 1, sizeof *reached);

	assert_non_null(reached);
	reached[0] = true;
	for (int at = 0; at < code->n; at++) {
		const struct bpf_insn *i = &code->insns[at];

		assert_true(reached[at]);
		if (is_jump(i)) {
			assert_in_range(i->off, 0, code->n - at - 2);
			reached[at + 1 + i->off] = true;
		}
		if (i->code != (BPF_JMP | BPF_EXIT) && i->code != (BPF_JMP | BPF_JA))
			reached[at + 1] = true;
	}
	assert_false(reached[code->n]);
	free(reached);
}
