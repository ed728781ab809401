/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h - UDP datagrams to this host, which its sockets get unless a rule takes them (host.c). */
#ifndef TEST_ETH_HOST_H
#define TEST_ETH_HOST_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "wire.h"

enum { HOST_NUMBER = 42, HOST_PAYLOAD = 32 };	/* bytes: the offset of the number in a frame; the payload */

/* Writes a frame with a datagram that has this number. Returns its length. */
size_t host_frame(const struct wire *w, uint8_t *frame, const char *to, uint16_t port, uint32_t number);
uint32_t host_number(const uint8_t *frame);
int host_socket(uint16_t port);		/* a socket of the host that is bound to this port */
/* Returns the number of the socket's next datagram, or -1 if none comes. */
int host_next(int fd, int milliseconds);

/* A rule for UDP datagrams to this port over IPv4. */
DAT_ETH_RULE host_rule(DAT_UINT32 mode, uint16_t port);
/* Starts a child that calls `take` and sleeps until it is killed. If `take` skips its case, the caller's case is
 * skipped, too. */
pid_t host_taker(void (*take)(void));
void host_keep_net_raw_alone(void);	/* of the capabilities of this process */

#endif
