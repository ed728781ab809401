/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* taps.h - the RDMA messages of running programs, merged by time: asks their control sockets for the rings of
 * common/tap.h and reads them. What the messages are shown as is rdma.c's job. */
#ifndef DATCAP_TAPS_H
#define DATCAP_TAPS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/tap.h"

struct tap_message {
	const struct tap_record *record;
	const uint8_t *payload;
	pid_t pid;
};

/* Programs to capture: with a pid that one, which must be possible; with `ia` those that have this IA open. `snap`
 * is in bytes of payload. */
void taps_start(pid_t pid, const char *ia, uint32_t snap);
/* Captures programs that have begun since. */
void taps_find(void);
/* Keeps the captures alive. Call it each second; while the caller cannot, a thread does (lease.h). */
void taps_renew(void);
/* The next message, of those before `until` (ns since 1970), valid until the next call. False: there is none
 * yet. Messages from before CLOCK_REALTIME was set back come at once. */
bool taps_next(uint64_t until, struct tap_message *message);
/* Programs that are captured, now; messages lost in all rings so far. */
unsigned taps_count(void);
uint64_t taps_lost(void);
/* Ends the captures; what is in the rings can be read still. */
void taps_end(void);
void taps_free(void);

#endif
