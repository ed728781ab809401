/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_address.c - ia_params as text, and the small address functions. */
#include "dapl/verbs/address.h"
#include "test/unit/reported.h"
#include "test/unit/unit.h"

UNIT_TEST(absent_device_is_one_line)
{
	static const char *const absent[] = { "eth77 0", "mlx9_9 1", "192.0.2.1 0",
		"2001:db8::1 0", "lo 0", "127.0.0.1 0", "::1 0", "0.0.0.0 0" };
	struct hw_places places;
	struct ia_params p;

	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
		reported.lines = 0;
		assert_null(ia_params_read(&p, absent[i]));
		assert_int_equal(hw_address_find_places(&places, &p, absent[i]), ENODEV);
		assert_int_equal(reported.lines, 1);
	}
}

UNIT_TEST(a_device_needs_a_name)
{
	struct hw_places places;
	struct ia_params p;

	reported.lines = 0;
	assert_null(ia_params_read(&p, " "));
	assert_int_equal(hw_address_find_places(&places, &p, " "), EINVAL);
	assert_int_equal(reported.lines, 1);
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
	address_set_port((struct sockaddr *)&a, port);
	return a;
}

#define SA(a) ((struct sockaddr *)&(a))

UNIT_TEST(addresses_are_compared_and_given_ports)
{
	struct sockaddr_storage a = ip("10.0.0.1", 4000), b = ip("10.0.0.1", 0), c = ip("10.0.0.2", 4000),
				d = ip("fe80::1", 7), e = ip("fe80::1", 8), to;
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	uint8_t gid[16];
	char text[64];

	assert_true(address_same_host(SA(a), SA(b)));
	assert_false(address_same_host(SA(a), SA(c)));
	assert_false(address_same_host(SA(a), SA(d)));
	assert_true(address_same_host(SA(d), SA(e)));
	((struct sockaddr_in6 *)&d)->sin6_scope_id = 2;
	assert_true(address_same_host(SA(d), SA(e)));
	((struct sockaddr_in6 *)&e)->sin6_scope_id = 3;
	assert_false(address_same_host(SA(d), SA(e)));
	((struct sockaddr_in6 *)&e)->sin6_scope_id = 0;
	hw_address_fill_scope(SA(e), SA(d));
	assert_int_equal(((struct sockaddr_in6 *)&e)->sin6_scope_id, 2);
	assert_int_equal(address_port(SA(a)), 4000);
	assert_string_equal(hw_address_text(SA(a), text, sizeof(text)), "10.0.0.1 port 4000");
	assert_string_equal(hw_address_text(SA(b), text, sizeof(text)), "10.0.0.1");
	address_gid(SA(a), gid);
	assert_memory_equal(gid, mapped, 16);
	a.ss_family = AF_UNIX;
	assert_int_equal(address_length(SA(a)), 0);
	address_copy(&to, SA(a));
	assert_int_equal(to.ss_family, 0);
}

UNIT_MAIN(NULL, NULL)
