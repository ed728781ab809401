/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_sge_list.c - lists of segments: empty ones left out, cut at a length, summed. */
#include "dapl/core/ep/sge_list.h"
#include "test/unit/unit.h"

enum { MOST = 4, WHOLE = 1 << 30 };

static const struct {
	const char *what;
	uint32_t lengths[MOST];
	int n;
	uint32_t cut;			/* WHOLE: all of it */
	uint32_t expected[MOST];
	int expected_n;
	uint64_t total;
	bool empty;
} cases[] = {
	{ "no segment", { 0 }, 0, WHOLE, { 0 }, 0, 0, false },
	{ "one", { 8 }, 1, WHOLE, { 8 }, 1, 8, false },
	{ "empty ones go", { 0, 8, 0, 4 }, 4, WHOLE, { 8, 4 }, 2, 12, true },
	{ "all empty", { 0, 0 }, 2, WHOLE, { 0 }, 0, 0, true },
	{ "cut within the second", { 8, 8, 8 }, 3, 10, { 8, 2 }, 2, 24, false },
	{ "cut between two", { 8, 8 }, 2, 8, { 8 }, 1, 16, false },
	{ "cut to nothing", { 8 }, 1, 0, { 0 }, 0, 8, false },
	{ "more than 4 GiB in sum", { UINT32_MAX, UINT32_MAX }, 2, WHOLE, { UINT32_MAX, UINT32_MAX },
	  2, 2ull * UINT32_MAX, false },
};

UNIT_TEST(lists_are_copied_cut_and_summed)
{
	struct ibv_sge to[DAPL_SGE_MAX];
	DAT_LMR_TRIPLET iov[MOST];
	uint64_t total;

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		int n = cases[c].n;

		for (int i = 0; i < n; i++)
			iov[i] = (DAT_LMR_TRIPLET){ .virtual_address = 0x1000u * (i + 1),
				.segment_length = cases[c].lengths[i], .lmr_context = 7 };
		if (dapl_sge_sum(iov, n, &total) != cases[c].empty || total != cases[c].total)
			fail_msg("%s: sum %llu", cases[c].what, (unsigned long long)total);
		assert_ptr_equal(cases[c].cut == WHOLE ? dapl_sge_nonempty(iov, &n, to) :
				 dapl_sge_cut(iov, &n, cases[c].cut, to), to);
		if (n != cases[c].expected_n)
			fail_msg("%s: %d segments", cases[c].what, n);
		for (int i = 0; i < n; i++) {
			assert_int_equal(to[i].length, cases[c].expected[i]);
			assert_int_equal(to[i].lkey, 7);
			assert_int_equal(to[i].addr & 0xfff, 0);
		}
	}
}

UNIT_MAIN(NULL, NULL)
