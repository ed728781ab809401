/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interfaces.c - see interfaces.h. */
#include "test/unit/interfaces.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct ifaddrs interfaces[INTERFACES];
struct sockaddr_storage addresses[INTERFACES];
unsigned n_interfaces, lists_freed;
int list_error;

#pragma GCC visibility push(default)	/* the sanitizers' libraries call them, too */
int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);
int __wrap_gethostname(char *name, size_t size);
#pragma GCC visibility pop

int __wrap_getifaddrs(struct ifaddrs **list)
{
	errno = list_error;
	*list = n_interfaces ? interfaces : NULL;
	return list_error ? -1 : 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
	assert_ptr_equal(list, n_interfaces ? interfaces : NULL);
	lists_freed++;
}

int __wrap_gethostname(char *name, size_t size)
{
	snprintf(name, size, "thishost");
	return 0;
}

void clear_interfaces(void)
{
	n_interfaces = lists_freed = 0;
	list_error = 0;
}

void keep_interfaces(unsigned n)
{
	n_interfaces = n;
	interfaces[n - 1].ifa_next = NULL;
}

void add_interface(const char *netdev, unsigned flags, const char *address)
{
	struct ifaddrs *one = &interfaces[n_interfaces];
	struct sockaddr_storage *to = &addresses[n_interfaces];

	assert_in_range(n_interfaces, 0, INTERFACES - 1);
	if (n_interfaces)
		one[-1].ifa_next = one;
	*one = (struct ifaddrs){ .ifa_name = (char *)netdev, .ifa_flags = flags,
				 .ifa_addr = address ? (struct sockaddr *)to : NULL };
	memset(to, 0, sizeof *to);
	if (address && strchr(address, ':')) {
		to->ss_family = AF_INET6;
		assert_int_equal(inet_pton(AF_INET6, address, &((struct sockaddr_in6 *)to)->sin6_addr), 1);
	} else if (address) {
		to->ss_family = AF_INET;
		assert_int_equal(inet_pton(AF_INET, address, &((struct sockaddr_in *)to)->sin_addr), 1);
	}
	n_interfaces++;
}
