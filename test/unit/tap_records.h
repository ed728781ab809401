/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_records.h - the records of a capture, read from the ring of core (dapl/core/base/tap.h) as a client reads them.
 * For unit programs of a device. */
#ifndef TEST_UNIT_TAP_RECORDS_H
#define TEST_UNIT_TAP_RECORDS_H
#include <stdbool.h>
#include <stdint.h>
#include "common/tap.h"

/* The record that was read last. */
struct tap_seen {
	struct tap_entry entry;		/* with the flags of its connection */
	bool first;			/* the ends of its connection came just before it */
	struct tap_ends ends;		/* the last ones that came */
	char payload[8192];
};
extern struct tap_seen seen;

/* Begins a capture: the next record is its first. The caller then calls the device. */
void tap_records_begin(uint32_t snap);
/* Frees the ring after dapl_tap_end(). */
void tap_records_release(void);
/* Reads the next record. Returns false if there is none. Skips records of refused requests. */
bool next_record(void);
void is_recorded(enum tap_kind kind, enum tap_op op, uint32_t length, const char *payload);

#endif
