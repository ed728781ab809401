/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - the ring through which a capturing program reads the RDMA messages of this process
 * (common/tap.h): its memory and its entries. The device decides which messages become records. ia/tap.c
 * begins and ends a capture. */
#ifndef DAPL_CORE_TAP_H
#define DAPL_CORE_TAP_H
#include <stdbool.h>
#include <stdint.h>
#include "common/clock.h"
#include "common/compiler.h"
#include "common/lock.h"
#include "common/once.h"
#include "common/tap.h"
#include "common/ticks.h"

/* Called before any other function of this header. */
void dapl_tap_init(void);
/* Begins a capture with an empty ring. Records have at most `snap` bytes of payload. The memory is
 * allocated at the first capture and stays until dapl_tap_fini(), because threads may be about to write to
 * it. Returns the descriptor of the file, or a negative errno. *began is the time in ns that identifies the
 * capture. */
int dapl_tap_begin(uint32_t snap, uint64_t *began);
/* Ends recording. The client can still read the records. */
void dapl_tap_end(void);
/* Called when the client has read the records. Gives the memory of the entries back to the system. */
void dapl_tap_release(void);
/* Called when the library is unloaded: no thread can be in a call. */
void dapl_tap_fini(void);

/* The number of no capture. 0 is that of connections which no capture has shown. */
#define DAPL_TAP_NOT_PLAIN UINT32_MAX

/* The program's half of the ring. Its position is private: a client that writes anything into the head of the ring
 * only makes records get lost. */
struct dapl_tap {
	uint32_t capture;		/* atomic: number of the capture, from 1 on. A new one when it ends, too */
	uint32_t plain;			/* atomic: the same while entries have ticks, and a line of payload; else
					 * DAPL_TAP_NOT_PLAIN */
	uint32_t snap;			/* atomic: bytes of payload in a record */
	uint32_t clock;			/* atomic: enum tap_clock */
	struct dapl_spin lock;		/* guards what follows */
	bool active;
	uint64_t head;			/* ring->head is a copy for the client */
	uint64_t limit;			/* entries that end up to here neither wrap nor overwrite what is unread */
	struct tap_ring *ring;		/* NULL: there is none */
};
extern struct dapl_tap dapl_tap;

/* Returns how many bytes of payload a record has at most. */
static inline uint32_t dapl_tap_snap(void)
{
	return READ_ONCE(dapl_tap.snap);
}

/* The time of an entry that is made now. */
static inline uint64_t dapl_tap_now(void)
{
	return likely(READ_ONCE(dapl_tap.clock) == TAP_TICKS) ? ticks_now() : clock_read_ns(CLOCK_REALTIME);
}

/* The same for an entry about something that was found. */
static inline uint64_t dapl_tap_found(void)
{
	return likely(READ_ONCE(dapl_tap.clock) == TAP_TICKS) ? ticks_after_loads() : clock_read_ns(CLOCK_REALTIME);
}

/* Returns false if `shown` is not this capture: then dapl_tap_show() comes before the first entry of the connection. */
static inline bool dapl_tap_is_shown(uint32_t shown)
{
	return likely(shown == READ_ONCE(dapl_tap.capture));
}

/* Adds the ends of a connection and its flags, and sets *shown, which belongs to the connection, to this capture.
 * Returns false if no capture runs, or if there is no room: the connection's message is lost, which is counted. Any
 * locks may be held. */
bool dapl_tap_show(uint32_t qpn, uint8_t flags, const struct tap_ends *ends, uint32_t *shown);

/* Where an entry is: its position, and the capture. */
struct tap_place {
	uint64_t at;
	uint32_t capture;
};

/* Makes room without a wrap, with the lock held. Counts a loss and returns false if there is none. */
bool dapl_tap_make_room(uint32_t size);

/* Called with the lock held. Returns true if there is room without a look at the client. */
static ALWAYS_INLINE bool dapl_tap_has_room(uint32_t size)
{
	return likely(dapl_tap.head + size <= dapl_tap.limit);
}

/* Called with the lock held. There is a ring. */
static ALWAYS_INLINE struct tap_entry *dapl_tap_at(uint64_t position)
{
	return (struct tap_entry *)((char *)dapl_tap.ring + TAP_HEAD + position % TAP_SIZE);
}

/* Takes the lock and returns an entry with `size` bytes, which the caller fills and publishes. Returns NULL without the
 * lock if the capture `shown` does not run, or if there is no room, which is counted. Any locks may be held. */
static ALWAYS_INLINE struct tap_entry *dapl_tap_reserve(uint32_t size, uint32_t shown)
{
	dapl_spin_lock(&dapl_tap.lock);
	if (likely(dapl_tap_is_shown(shown)) && (dapl_tap_has_room(size) || dapl_tap_make_room(size)))
		return dapl_tap_at(dapl_tap.head);
	dapl_spin_unlock(&dapl_tap.lock);
	return NULL;
}

/* HOT: takes the lock. Returns true if the next entry, of one line, can be filled and published: with ticks, and up to
 * TAP_INLINE bytes of payload. Else returns false without the lock, and counts nothing: the caller tries
 * dapl_tap_reserve(). Any locks may be held. */
static ALWAYS_INLINE bool dapl_tap_reserve_line(uint32_t shown)
{
	dapl_spin_lock(&dapl_tap.lock);
	if (likely(shown == READ_ONCE(dapl_tap.plain)) && dapl_tap_has_room(TAP_LINE))
		return true;
	dapl_spin_unlock(&dapl_tap.lock);
	return false;
}

/* Publishes the entry, and releases the lock. */
static ALWAYS_INLINE struct tap_place dapl_tap_publish(uint32_t size)
{
	struct tap_place place = { dapl_tap.head, dapl_tap.capture };

	dapl_tap.head += size;
	__atomic_store_n(&dapl_tap.ring->head, dapl_tap.head, __ATOMIC_RELEASE);
	dapl_spin_unlock(&dapl_tap.lock);
	return place;
}

/* Called when the message of the entry was refused: the client skips it. */
void dapl_tap_cancel(const struct tap_place *place);

#endif
