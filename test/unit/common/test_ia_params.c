/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_params: good and bad texts, and their form in messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "common/ia_params.h"

static void ia_params_are_parsed_or_refused(void **state)
{
	static const struct { const char *text, *name; unsigned port; } good[] = {
		{ "eth0 0", "eth0", 0 }, { "eth0", "eth0", 0 }, { "mlx4_0 1", "mlx4_0", 1 },
		{ " \t ib0   2 \n", "ib0", 2 }, { "10.0.0.1 0", "10.0.0.1", 0 },
		{ "fe80::1%eth0 0", "fe80::1%eth0", 0 }, { "host-1.example 0", "host-1.example", 0 },
		{ "bond0.12 255", "bond0.12", 255 }, { "", "", 0 }, { " \t\n", "", 0 },
	};
	static const char *const bad[] = {
		"eth0 -1", "eth0 x", "eth0 1x", "eth0 256", "eth0 0 0",
		"eth0 99999999999999999999999", "a/b 0", "a\"b", "a\\b", "\x01 0", "\xc3\xa9th0 0",
	};
	struct ia_params p;
	char huge[5000];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_null(ia_params_read(&p, good[i].text));
		assert_string_equal(p.name, good[i].name);
		assert_int_equal(p.port, good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_non_null(ia_params_read(&p, bad[i]));
	memset(huge, 'a', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = 0;
	assert_non_null(ia_params_read(&p, huge));
}

static void words_may_follow_the_port(void **state)
{
	struct ia_params p;
	const char *rest;

	(void)state;
	assert_null(ia_params_read_first(&p, "eth0 1 \t a=b c ", &rest));
	assert_string_equal(p.name, "eth0");
	assert_int_equal(p.port, 1);
	assert_string_equal(rest, "a=b c ");
	assert_null(ia_params_read_first(&p, "eth0 1 ", &rest));
	assert_string_equal(rest, "");
	assert_null(ia_params_read_first(&p, "eth0", &rest));
	assert_string_equal(rest, "");
	assert_non_null(ia_params_read_first(&p, "eth0 1a=b", &rest));
	assert_non_null(ia_params_read_first(&p, "eth0 a=b", &rest));
}

static void unprintable_characters_are_replaced_in_messages(void **state)
{
	char buf[12];

	(void)state;
	assert_string_equal(ia_params_printable("a\x01\xff", buf, sizeof(buf)), "a??");
	assert_string_equal(ia_params_printable("0123456789abcdef", buf, sizeof(buf)), "01234567...");
	assert_string_equal(ia_params_printable("01234567", buf, sizeof(buf)), "01234567");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_params_are_parsed_or_refused),
		cmocka_unit_test(words_may_follow_the_port),
		cmocka_unit_test(unprintable_characters_are_replaced_in_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
