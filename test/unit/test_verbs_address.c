/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_verbs_address.c - ia_params as text, and the small address functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <cmocka.h>
#include "dapl/verbs/address.h"
#include "common/log.h"

unsigned log_mask = 3;
static int lines;

void log_line(unsigned bits, const char *fmt, ...)
{
	(void)bits;
	(void)fmt;
	lines++;
}

static void params_are_read(void **state)
{
	static const struct { const char *text, *name; unsigned port; } good[] = {
		{ "eth0 0", "eth0", 0 }, { "eth0", "eth0", 0 }, { "mlx4_0 1", "mlx4_0", 1 },
		{ " \t ib0   2 \n", "ib0", 2 }, { "10.0.0.1 0", "10.0.0.1", 0 },
		{ "fe80::1%eth0 0", "fe80::1%eth0", 0 }, { "host-1.example 0", "host-1.example", 0 },
		{ "bond0.12 255", "bond0.12", 255 },
	};
	static const char *const bad[] = {
		"", " \t\n", "eth0 -1", "eth0 x", "eth0 1x", "eth0 256", "eth0 0 0",
		"eth0 99999999999999999999999", "a/b 0", "\x01 0", "\xc3\xa9th0 0",
	};
	struct hw_params p;
	char huge[5000];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_null(hw_params_read(&p, good[i].text));
		assert_string_equal(p.name, good[i].name);
		assert_int_equal(p.port, good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_non_null(hw_params_read(&p, bad[i]));
	memset(huge, 'a', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = 0;
	assert_non_null(hw_params_read(&p, huge));
}

static void an_absent_device_gets_one_line(void **state)
{
	static const char *const absent[] = { "eth77 0", "mlx9_9 1", "192.0.2.1 0",
		"2001:db8::1 0", "lo 0", "127.0.0.1 0", "::1 0", "0.0.0.0 0" };
	struct hw_places places;
	struct hw_params p;

	(void)state;
	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
		lines = 0;
		assert_null(hw_params_read(&p, absent[i]));
		assert_int_equal(hw_places_find(&places, &p, absent[i]), ENODEV);
		assert_int_equal(lines, 1);
	}
}

static struct sockaddr_storage ip(const char *text, uint16_t port)
{
	struct sockaddr_storage a = { 0 };

	if (strchr(text, ':')) {
		a.ss_family = AF_INET6;
		inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&a)->sin6_addr);
	} else {
		a.ss_family = AF_INET;
		inet_pton(AF_INET, text, &((struct sockaddr_in *)&a)->sin_addr);
	}
	hw_address_set_port((struct sockaddr *)&a, port);
	return a;
}

#define SA(a) ((struct sockaddr *)&(a))

static void addresses(void **state)
{
	struct sockaddr_storage a = ip("10.0.0.1", 4000), b = ip("10.0.0.1", 0),
		c = ip("10.0.0.2", 4000), d = ip("fe80::1", 7), e = ip("fe80::1", 8), to;
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	uint8_t gid[16];
	char text[64];

	(void)state;
	assert_true(hw_same_address(SA(a), SA(b)));
	assert_false(hw_same_address(SA(a), SA(c)));
	assert_false(hw_same_address(SA(a), SA(d)));
	assert_true(hw_same_address(SA(d), SA(e)));
	((struct sockaddr_in6 *)&d)->sin6_scope_id = 2;
	assert_true(hw_same_address(SA(d), SA(e)));
	((struct sockaddr_in6 *)&e)->sin6_scope_id = 3;
	assert_false(hw_same_address(SA(d), SA(e)));
	((struct sockaddr_in6 *)&e)->sin6_scope_id = 0;
	hw_address_fill_scope(SA(e), SA(d));
	assert_int_equal(((struct sockaddr_in6 *)&e)->sin6_scope_id, 2);
	assert_int_equal(hw_address_port(SA(a)), 4000);
	assert_string_equal(hw_address_text(SA(a), text, sizeof(text)), "10.0.0.1 port 4000");
	assert_string_equal(hw_address_text(SA(b), text, sizeof(text)), "10.0.0.1");
	hw_address_gid(SA(a), gid);
	assert_memory_equal(gid, mapped, 16);
	a.ss_family = AF_UNIX;
	assert_int_equal(hw_address_size(SA(a)), 0);
	hw_address_copy(&to, SA(a));
	assert_int_equal(to.ss_family, 0);
}

static void printable(void **state)
{
	char buf[12];

	(void)state;
	assert_string_equal(hw_printable("a\x01\xff", buf, sizeof(buf)), "a??");
	assert_string_equal(hw_printable("0123456789abcdef", buf, sizeof(buf)), "01234567...");
	assert_string_equal(hw_printable("01234567", buf, sizeof(buf)), "01234567");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(params_are_read),
		cmocka_unit_test(an_absent_device_gets_one_line),
		cmocka_unit_test(addresses),
		cmocka_unit_test(printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
