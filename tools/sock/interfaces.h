/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interfaces.h - which addresses of this host are of one network interface. All addresses are as those of an
 * adapter: IPv4 as a mapped address of IPv6. What the kernel has told is used for a second. */
#ifndef SOCK_INTERFACES_H
#define SOCK_INTERFACES_H
#include <stdbool.h>
#include <stdint.h>

/* Whether an interface has both addresses. */
bool interfaces_join(const uint8_t a[16], const uint8_t b[16]);
/* The index of an interface that has the address, 0: none. */
unsigned interfaces_index(const uint8_t address[16]);

#endif
