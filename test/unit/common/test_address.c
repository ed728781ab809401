/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_address.c - length, port, text, GID, copy and comparison of IP socket addresses. */
#include "common/address.h"
#include "test/unit/unit.h"
#include <sys/un.h>

/* Returns the address of `text`, with a scope for IPv6, in static memory. */
static struct sockaddr *address(const char *text, uint32_t scope)
{
	static struct sockaddr_storage all[8];
	static unsigned next;
	struct sockaddr_storage *a = &all[next++ % 8];
	struct sockaddr_in *in4 = (struct sockaddr_in *)a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)a;

	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, text, &in4->sin_addr) == 1) {
		a->ss_family = AF_INET;
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		a->ss_family = AF_INET6;
		in6->sin6_scope_id = scope;
	}
	return (struct sockaddr *)a;
}

UNIT_TEST(length_and_port_fit_the_family)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX };

	assert_int_equal(address_length(address("192.0.2.1", 0)), sizeof(struct sockaddr_in));
	assert_int_equal(address_length(address("2001:db8::1", 0)), sizeof(struct sockaddr_in6));
	assert_int_equal(address_length((struct sockaddr *)&local), 0);
	assert_int_equal(address_port((struct sockaddr *)&local), 0);
}

UNIT_TEST(port_is_in_network_byte_order)
{
	static const char *const texts[] = { "192.0.2.1", "2001:db8::1" };

	for (int i = 0; i < 2; i++) {
		struct sockaddr *a = address(texts[i], 0);

		address_set_port(a, 0x1234);
		assert_int_equal(address_port(a), 0x1234);
		/* bytes 2 and 3 in both families */
		assert_memory_equal((char *)a + 2, "\x12\x34", 2);
	}
}

UNIT_TEST(host_is_the_address_without_its_port)
{
	static const char *const texts[] = { "192.0.2.1", "2001:db8::1" };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	char text[INET6_ADDRSTRLEN];

	for (int i = 0; i < 2; i++) {
		struct sockaddr *a = address(texts[i], 0);

		address_set_port(a, 7);
		assert_ptr_equal(address_host(a, text), text);
		assert_string_equal(text, texts[i]);
	}
	assert_null(address_host((struct sockaddr *)&local, text));
}

UNIT_TEST(address_comes_back_from_its_gid)
{
	static const char *const hosts[] = { "192.0.2.1", "2001:db8::1", "fe80::2", "::" };
	struct sockaddr_storage back;
	uint8_t gid[16];

	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		memset(&back, 0xee, sizeof back);
		address_gid(address(hosts[i], 0), gid);
		address_of_gid(&back, gid);
		assert_true(address_same_host((struct sockaddr *)&back, address(hosts[i], 0)));
		assert_int_equal(address_port((struct sockaddr *)&back), 0);
	}
}

UNIT_TEST(gid_is_that_of_roce)
{
	static const struct {
		const char *address, *gid;
	} cases[] = { { "192.0.2.1", "::ffff:192.0.2.1" }, { "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6" } };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	static const uint8_t none[16];
	uint8_t gid[16], expected[16];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		memset(gid, 0xee, sizeof gid);
		address_gid(address(cases[i].address, 0), gid);
		assert_int_equal(inet_pton(AF_INET6, cases[i].gid, expected), 1);
		assert_memory_equal(gid, expected, sizeof gid);
	}
	address_gid((struct sockaddr *)&local, gid);
	assert_memory_equal(gid, none, sizeof gid);
}

UNIT_TEST(copy_zeroes_the_rest)
{
	struct sockaddr_storage to;
	struct sockaddr *from = address("192.0.2.1", 0);

	address_set_port(from, 7);
	memset(&to, 0xff, sizeof to);
	address_copy(&to, from);
	assert_memory_equal(&to, from, sizeof(struct sockaddr_in));
	for (size_t i = sizeof(struct sockaddr_in); i < sizeof to; i++)
		assert_int_equal(((unsigned char *)&to)[i], 0);
}

UNIT_TEST(hosts_are_equal_or_not)
{
	static const struct { const char *a, *b; uint32_t a_scope, b_scope; bool same; } cases[] = {
		{ "192.0.2.1", "192.0.2.1", 0, 0, true },
		{ "192.0.2.1", "192.0.2.2", 0, 0, false },
		{ "192.0.2.1", "::ffff:192.0.2.1", 0, 0, false },
		{ "2001:db8::1", "2001:db8::1", 0, 0, true },
		{ "2001:db8::1", "2001:db8::2", 0, 0, false },
		{ "2001:db8::1", "2001:db8::1", 1, 2, true },	/* only link-local has a scope */
		{ "fe80::1", "fe80::1", 1, 1, true },
		{ "fe80::1", "fe80::1", 1, 2, false },
		{ "fe80::1", "fe80::1", 0, 2, true },	/* the scope is unknown */
		{ "fe80::1", "fe80::1", 1, 0, true },
		{ "fe80::1", "fe80::2", 1, 1, false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sockaddr *a = address(cases[i].a, cases[i].a_scope);
		struct sockaddr *b = address(cases[i].b, cases[i].b_scope);

		address_set_port(a, 1);		/* ports do not count */
		if (address_same_host(a, b) != cases[i].same)
			fail_msg("%s scope %u and %s scope %u: expected %s", cases[i].a,
				 cases[i].a_scope, cases[i].b, cases[i].b_scope,
				 cases[i].same ? "the same host" : "different hosts");
		assert_int_equal(address_same_host(b, a), cases[i].same);
	}
}

UNIT_MAIN(NULL, NULL)
