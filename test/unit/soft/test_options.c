/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_options.c - where the options of an entry's ia_params begin, and which ones are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "dapl/soft/options.h"

static void options_are_behind_name_and_port(void **state)
{
	static const struct {
		const char *params;
		size_t offset;
	} cases[] = {
		{ "", 0 }, { "eth0", 4 }, { "eth0 0", 6 }, { "eth0 0 x", 7 }, { "  eth0 \t 0\n x y", 12 },
		{ "fe80::1%eth0  17  ", 18 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(soft_options_offset(cases[i].params), cases[i].offset);
}

static void known_options_are_read(void **state)
{
	static const struct {
		const char *params;
		bool bypass;
	} cases[] = {
		{ "eth0 0", false }, { "eth0 0 eth_qdisc=default", false }, { "eth0 0 eth_qdisc=bypass", true },
		{ "eth0 0  eth_qdisc=bypass \t", true }, { "eth0 0 eth_qdisc=bypass eth_qdisc=default", false },
		{ "eth0 0 eth_qdisc=default eth_qdisc=bypass", true },	/* the last one counts */
		{ "eth_qdisc=bypass 0", false },			/* a name */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct soft_options options = { .eth_bypass = true };

		assert_null(soft_options_read(&options, cases[i].params));
		assert_true(options.eth_bypass == cases[i].bypass);
	}
}

static void wrong_option_is_returned(void **state)
{
	static const char *const cases[] = {
		"eth0 0 !eth_qdisc=bypas", "eth0 0 !eth_qdisc=bypassed", "eth0 0 !eth_qdisc",
		"eth0 0 eth_qdisc=bypass !x", "eth0 0 !x eth_qdisc=bypass", "eth0 0 !ETH_QDISC=bypass",
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *mark = strchr(cases[i], '!');
		size_t at = (size_t)(mark - cases[i]);
		struct soft_options options;
		char params[64] = "";

		memcpy(params, cases[i], at);
		strcpy(params + at, mark + 1);
		assert_ptr_equal(soft_options_read(&options, params), params + at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_behind_name_and_port),
		cmocka_unit_test(known_options_are_read),
		cmocka_unit_test(wrong_option_is_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
