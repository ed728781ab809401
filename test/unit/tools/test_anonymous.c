/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_anonymous.c - which parts of a text are replaced, and that a value keeps its word. */
#include "tools/info/anonymous.h"
#include "test/unit/unit.h"

static void becomes(const char *text, const char *expected)
{
	size_t length;
	char *written = NULL;
	FILE *out = open_memstream(&written, &length);

	assert_non_null(out);
	anonymous_write(out, text);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(written, expected);
	free(written);
}

/* The numbers go on from test to test. */
UNIT_TEST(same_address_gets_the_same_word)
{
	becomes("10.1.2.3 to 10.1.2.4, 10.1.2.3.\n", "ip4-1 to ip4-2, ip4-1.\n");
	becomes("inet 10.1.2.3/24 brd 10.1.2.255", "inet ip4-1/24 brd ip4-3");
	becomes("10.1.2.4:45290 [fd00::1]:80", "ip4-2:45290 [ip6-1]:80");
	becomes("FD00::1 fd00::1", "ip6-1 ip6-1");
}

UNIT_TEST(addresses_of_links_and_devices_are_replaced)
{
	becomes("link/ether 02:a1:b2:c3:d4:e5 brd ff:ff:ff:ff:ff:ff", "link/ether link-1 brd link-2");
	becomes("node_guid: 0002:c903:0010:2f7e", "node_guid: link-3");
	becomes("GID[0] fe80:0000:0000:0000:0202:c9ff:fe10:2f7e", "GID[0] ip6-2");
}

UNIT_TEST(names_are_replaced_as_words)
{
	anonymous_name("host", "ernie");
	anonymous_name("user", "bert");
	becomes("Linux ernie 6.1 (bert, albert) ernie:22", "Linux host-1 6.1 (user-1, albert) host-1:22");
}

UNIT_TEST(other_texts_stay)
{
	static const char *const texts[] = {
		"127.0.0.1", "0.0.0.0/0", "255.255.255.0", "::1", "::", "6.1.0-57-amd64", "12:34:56",
		"2026-11-29 16:45", "", "version 3.0.0", "0x7ffc:12", "a:b:c", "00:00:00:00:00:00", "1.2.3",
		"libdat2.so.2.0.0", "host.example:1",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		becomes(texts[i], texts[i]);
}

UNIT_MAIN(NULL, NULL)
