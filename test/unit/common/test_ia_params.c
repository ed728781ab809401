/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_params: good and bad texts, and their form in messages. */
#include "common/ia_params.h"
#include "test/unit/unit.h"

UNIT_TEST(ia_params_are_parsed_or_refused)
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

UNIT_TEST(words_may_follow_the_port)
{
	struct ia_params p;
	const char *rest;

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

UNIT_TEST(unprintable_characters_are_replaced_in_messages)
{
	char buf[12];

	assert_string_equal(ia_params_printable("a\x01\xff", buf, sizeof(buf)), "a??");
	assert_string_equal(ia_params_printable("0123456789abcdef", buf, sizeof(buf)), "01234567...");
	assert_string_equal(ia_params_printable("01234567", buf, sizeof(buf)), "01234567");
}

UNIT_MAIN(NULL, NULL)
