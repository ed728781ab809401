/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ips.c - see ips.h. */
#include "net/netlink.h"
#include "test/unit/net/ips.h"
#include "test/unit/unit.h"

struct sockaddr_storage ip(const char *text)
{
	struct sockaddr_storage to = { .ss_family = AF_INET6 };

	if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&to)->sin6_addr) == 1)
		return to;
	to.ss_family = AF_INET;
	assert_int_equal(inet_pton(AF_INET, text, &((struct sockaddr_in *)&to)->sin_addr), 1);
	return to;
}

void assert_ip(const struct sockaddr_storage *found, const char *text)
{
	struct sockaddr_storage expected = { .ss_family = 0 };
	const uint8_t *left, *right;
	size_t n, m;

	if (text)
		expected = ip(text);
	assert_int_equal(found->ss_family, expected.ss_family);
	left = net_bytes((const struct sockaddr *)found, &n);
	right = net_bytes((struct sockaddr *)&expected, &m);
	assert_int_equal(n, m);
	if (n)
		assert_memory_equal(left, right, n);
}
