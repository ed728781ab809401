/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* locate.h - finds the adapters of another host that are on the interface of an address, which is not itself that
 * of an adapter: a secondary address, or one of IPv6. Their services tell each other by datagrams of UDP.
 * Connections whose addresses are those of adapters need none.
 *
 * A datagram proves nothing. One that was forged can only lead a question elsewhere, and the key of the connection
 * is in the segments of TCP that the same network has carried. */
#ifndef SOCK_LOCATE_H
#define SOCK_LOCATE_H
#include <stdbool.h>
#include <stdint.h>
#include "tools/sock/paths.h"

/* Serves questions at that port of UDP. Returns 0 or an errno; then none are asked or answered. */
int locate_open(uint16_t port);
/* Asks for the adapters at the remote address of the connection; paths_locate() is told them. Returns whether it
 * does: not before a time has passed since the last question there, which grows from 1 s to 64 s. */
bool locate_ask(const struct paths_of *of);
void locate_close(void);

#endif
