/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lease.h - renews the captures of programs while the main thread does not: it may be blocked in a write for longer than
 * TAP_LEASE_MS, after which a program ends its capture. The answers are of no interest here: taps.c asks again. */
#ifndef DATCAP_LEASE_H
#define DATCAP_LEASE_H
#include <jansson.h>
#include <stddef.h>
#include "tools/control/client.h"

/* Starts the thread. It sends `request`, and takes over the reference. */
void lease_start(json_t *request);
/* The main thread has just renewed the captures of these programs. If it does not do so again within LEASE_LATE_NS, the thread
 * renews them each second. */
void lease_renewed(const struct control_socket *sockets, size_t count);
/* Ends the thread. After it has returned, no request of the thread is on its way. Does nothing without a thread. */
void lease_stop(void);

#endif
