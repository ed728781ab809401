/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_settings.c - where the options of an entry's ia_params begin, and which ones are known. */
#include "dapl/soft/settings.h"
#include "test/unit/unit.h"

UNIT_TEST(options_are_behind_name_and_port)
{
	static const struct { const char *params; size_t offset; } cases[] = {
		{ "", 0 }, { "eth0", 4 }, { "eth0 0", 6 }, { "eth0 0 x", 7 }, { "  eth0 \t 0\n x y", 12 },
		{ "fe80::1%eth0  17  ", 18 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(soft_settings_options_offset(cases[i].params), cases[i].offset);
}

UNIT_TEST(known_options_are_read)
{
	static const struct { const char *params; bool bypass; } cases[] = {
		{ "eth0 0", false }, { "eth0 0 eth_qdisc=default", false }, { "eth0 0 eth_qdisc=bypass", true },
		{ "eth0 0  eth_qdisc=bypass \t", true }, { "eth0 0 eth_qdisc=bypass eth_qdisc=default", false },
		{ "eth0 0 eth_qdisc=default eth_qdisc=bypass", true },	/* the last one counts */
		{ "eth_qdisc=bypass 0", false },			/* a name */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct soft_options options = { .eth_bypass = true };

		assert_null(soft_settings_read_options(&options, cases[i].params));
		assert_true(options.eth_bypass == cases[i].bypass);
	}
}

UNIT_TEST(wrong_option_is_returned)
{
	static const char *const cases[] = {
		"eth0 0 !eth_qdisc=bypas", "eth0 0 !eth_qdisc=bypassed", "eth0 0 !eth_qdisc",
		"eth0 0 eth_qdisc=bypass !x", "eth0 0 !x eth_qdisc=bypass", "eth0 0 !ETH_QDISC=bypass",
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *mark = strchr(cases[i], '!');
		size_t at = (size_t)(mark - cases[i]);
		struct soft_options options;
		char params[64] = "";

		memcpy(params, cases[i], at);
		strcpy(params + at, mark + 1);
		assert_ptr_equal(soft_settings_read_options(&options, params), params + at);
	}
}

UNIT_MAIN(NULL, NULL)
