/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lease.h - a thread that renews the captures of programs while the main thread does not. The main thread
 * may be blocked in a write for longer than TAP_LEASE_MS, the time after which a program ends its capture.
 * The thread ignores the answers: taps.c repeats the requests, and handles the answers then. */
#ifndef DATCAP_LEASE_H
#define DATCAP_LEASE_H
#include <jansson.h>
#include <stddef.h>
#include "tools/control/client.h"

/* Starts the thread, which sends `request`. Takes over the reference to it. */
void lease_start(json_t *request);
/* Sets the programs whose captures the thread renews. Takes over `sockets`, which free() can free. */
void lease_keep(struct control_socket *sockets, size_t count);
/* The main thread calls this when it has renewed all captures. If it does not call it again within
 * LEASE_LATE_NS, the thread renews them each second. */
void lease_renewed(void);
/* Ends the thread. On return, the thread has no request in flight. Does nothing if there is no thread. */
void lease_stop(void);

#endif
