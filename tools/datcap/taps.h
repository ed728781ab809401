/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* taps.h - the RDMA messages of running programs, merged by time. Requests the rings of common/tap.h from
 * the control sockets of the programs, and reads them. rdma.c shows the messages. */
#ifndef DATCAP_TAPS_H
#define DATCAP_TAPS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "tap_record.h"

struct taps_message {
	const struct tap_record *record;
	const uint8_t *payload;
	pid_t pid;
};

/* Selects the programs to capture, and starts. With a pid captures that program, and ends the tool if it
 * cannot; with `ia`, the programs of this user that have this IA open; otherwise, all programs of this user.
 * `snap` is in bytes of payload. */
void taps_start(pid_t pid, const char *ia, uint32_t snap);
/* Starts to capture programs that have started since the last call. */
void taps_find(void);
/* Renews the captures. Call it each second; while the caller is blocked, a thread does it (lease.h). */
void taps_renew(void);
/* Stores the oldest message from before `until` (ns since 1970), which is valid until the next call. Returns
 * false if there is none yet. Messages with a time in the future, since CLOCK_REALTIME was set back, are
 * returned at once. */
bool taps_next(uint64_t until, struct taps_message *message);
/* Returns the number of programs that are captured now. */
unsigned taps_count(void);
/* Returns the number of messages lost in all rings so far. */
uint64_t taps_lost(void);
/* Ends the captures. The messages in the rings can still be read. */
void taps_end(void);
void taps_free(void);

#endif
