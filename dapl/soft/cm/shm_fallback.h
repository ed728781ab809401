/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_fallback.h - reports connections within this host whose data goes over TCP because shared
 * memory failed: once for each cause and peer process. */
#ifndef DAPL_SOFT_SHM_FALLBACK_H
#define DAPL_SOFT_SHM_FALLBACK_H
#include <stdint.h>

struct dapl_conn;

/* `err` is an errno value; 0: memory was not wanted, so there is nothing to report. `peer` is the
 * random number by which the peer process is known; 0: the cause is this process alone. Called with
 * the progress lock held. errno survives. */
void shm_fallback_report(const struct dapl_conn *conn, uint64_t peer, int err);

#endif
