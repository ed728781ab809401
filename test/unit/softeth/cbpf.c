/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cbpf.c - see cbpf.h. */
#include "dapl/softeth/filter.h"
#include "test/unit/softeth/cbpf.h"
#include "test/unit/unit.h"

struct machine {
	const uint8_t *frame;
	size_t length;
	uint8_t type;
	uint32_t a, x, memory[BPF_MEMWORDS];
};

void cbpf_assert_accepted(const struct sock_filter *code, unsigned n)
{
	assert_in_range(n, 1, ETH_FILTER_MAX);
	assert_int_equal(BPF_CLASS(code[n - 1].code), BPF_RET);
	for (unsigned i = 0; i < n; i++) {
		if (BPF_CLASS(code[i].code) != BPF_JMP)
			continue;
		if (BPF_OP(code[i].code) == BPF_JA)
			assert_in_range(code[i].k, 0, n - i - 2);
		else
			assert_in_range(code[i].jt > code[i].jf ? code[i].jt : code[i].jf, 0, n - i - 2);
	}
}

static uint32_t read_frame(const struct machine *m, uint16_t size, uint32_t at)
{
	unsigned bytes = size == BPF_W ? 4 : size == BPF_H ? 2 : 1;
	uint32_t value = 0;

	if (at == (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE) && size == BPF_B)
		return m->type;
	assert_true(at + (uint64_t)bytes <= m->length);
	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | m->frame[at + i];
	return value;
}

static uint32_t load(const struct machine *m, const struct sock_filter *f)
{
	switch (BPF_MODE(f->code)) {
	case BPF_IMM: return f->k;
	case BPF_LEN: return (uint32_t)m->length;
	case BPF_ABS: return read_frame(m, BPF_SIZE(f->code), f->k);
	case BPF_IND: return read_frame(m, BPF_SIZE(f->code), m->x + f->k);
	case BPF_MEM: return m->memory[f->k % BPF_MEMWORDS];
	case BPF_MSH: return 4 * (read_frame(m, BPF_B, f->k) & 15);
	default: fail_msg("no such load: 0x%x", f->code); return 0;
	}
}

static uint32_t compute(const struct machine *m, const struct sock_filter *f)
{
	uint32_t by = BPF_SRC(f->code) == BPF_X ? m->x : f->k;

	switch (BPF_OP(f->code)) {
	case BPF_SUB: return m->a - by;
	case BPF_MUL: return m->a * by;
	case BPF_AND: return m->a & by;
	case BPF_XOR: return m->a ^ by;
	case BPF_RSH: assert_in_range(by, 0, 31); return m->a >> by;
	default: fail_msg("no such operation: 0x%x", f->code); return 0;
	}
}

/* Instructions to leave out. */
static uint32_t jump(const struct machine *m, const struct sock_filter *f)
{
	uint32_t with = BPF_SRC(f->code) == BPF_X ? m->x : f->k;

	switch (BPF_OP(f->code)) {
	case BPF_JA: return f->k;
	case BPF_JEQ: return m->a == with ? f->jt : f->jf;
	case BPF_JGE: return m->a >= with ? f->jt : f->jf;
	case BPF_JSET: return m->a & with ? f->jt : f->jf;
	default: fail_msg("no such jump: 0x%x", f->code); return 0;
	}
}

uint32_t cbpf_run(const struct sock_filter *code, unsigned n, const uint8_t *frame, size_t length, uint8_t type)
{
	struct machine m = { .frame = frame, .length = length, .type = type };

	memset(m.memory, 0xa5, sizeof m.memory);	/* the kernel clears none of it */
	for (uint32_t i = 0; i < n; i++) {
		const struct sock_filter *f = &code[i];

		switch (BPF_CLASS(f->code)) {
		case BPF_LD: m.a = load(&m, f); break;
		case BPF_LDX: m.x = load(&m, f); break;
		case BPF_ST: m.memory[f->k % BPF_MEMWORDS] = m.a; break;
		case BPF_ALU: m.a = compute(&m, f); break;
		case BPF_JMP: i += jump(&m, f); break;
		case BPF_RET: return f->k;
		default:
			if (BPF_MISCOP(f->code) == BPF_TAX)
				m.x = m.a;
			else
				m.a = m.x;
		}
	}
	fail_msg("the program has no end");
	return 0;
}
