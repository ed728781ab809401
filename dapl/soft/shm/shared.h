/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared.h - the words that processes share, all of them: the layout of the three kinds of shared
 * memory, and for each word which side writes it, which side reads it, and what orders it against
 * other words. Both processes must agree on this file; the greeting in attach_message.c is its version.
 *
 *   struct ring_memory   one for each connection; both sides map it and may write to all of it
 *   struct shm_mr_dir    one for each device; its owner writes, peers map it read-only
 *   struct shm_pending   one for each device; its owner and all its peers write
 *
 * A side trusts no word that the other can write: it loads it once, with READ_ONCE or an atomic, and
 * checks the copy. "Release" and "acquire" name the store and the load that order a word; "fence" is a
 * full one (__ATOMIC_SEQ_CST) that each side makes between its own store and its load of the other's
 * word, so that at least one of them sees the other. Words without a note are ordered by the word that
 * their structure names. */
#ifndef SOFT_SHARED_H
#define SOFT_SHARED_H
#include <stdint.h>
#include "dapl/soft/tunables.h"

/* --- rings (ring.h) ------------------------------------------------------------------------------ */

enum {
	RING_SLOTS = 128,
	RING_SPARE = 2,			/* slots reserved for close notification and Terminate */
	RING_INLINE = 96,		/* bytes of payload in the slot itself; 32 of them in its
					 * first line */
	RING_CHUNK = 16 << 10,		/* most bytes of payload of a message in the ring */
	RING_RNDV_MAX = 1 << 20,	/* most bytes of payload of a rendezvous message */
	RING_BULK = 256 << 10,
	RING_LINE = 64,
	RING_ACK_SLOTS = RING_SLOTS / RING_ACK_FRACTION,
	RING_ACK_BULK = RING_BULK / RING_ACK_FRACTION,
};

/* Writer: the producer of the direction. Reader: its consumer. All words, and the bulk that they
 * name, are ordered by seq. The producer uses a slot again after it has seen ring_ack.head. */
struct ring_slot {
	uint32_t seq;			/* number of the message, and 1; release, acquire */
	uint8_t op;
	uint8_t flags;			/* RING_IS_* */
	uint16_t zero;
	uint32_t length;		/* of the payload; more than RING_INLINE: in bulk, or a
					 * rendezvous */
	uint32_t word;
	uint32_t delivered, consumed;	/* piggybacked acknowledgement */
	uint64_t to;
	union {
		uint8_t data[RING_INLINE];
		uint32_t at;		/* offset in bulk */
		uint64_t address;	/* rendezvous: of the payload, in the producer */
	};
} __attribute__((aligned(128)));

enum { RING_IS_LAST = 1, RING_IS_RNDV = 2 };

/* Writer: the consumer of the direction. Reader: its producer. */
struct ring_ack {
	uint32_t count;			/* changes with every acknowledgement, and orders the words
					 * below; release, acquire */
	uint32_t head;			/* slots that the consumer is done with; release, acquire:
					 * the producer then uses the slots and their bulk again */
	uint32_t delivered, consumed;
	/* Fallback of a rendezvous. The consumer cannot copy the payload of the message at `head`
	 * from byte fallback_at on: it requests it from the producer by incrementing
	 * fallback_request.
	 * The producer of that message has put the bytes into the fallback buffer when
	 * fallback_done, in the ring_ack of the other direction, has the same value. */
	uint32_t fallback_at, fallback_request, fallback_done;
} __attribute__((aligned(128)));

/* Writer: the consumer of the direction, seldom. Reader: its producer. */
struct ring_grant {
	uint64_t pd;			/* protection domain whose regions the producer may access
					 * (mr_dir.h); 0: none. Release, acquire; after a store of 0 a
					 * fence, which meets ring_writer.within */
	uint32_t rndv_enabled;		/* payloads that the consumer itself sends by rendezvous are
					 * still there to be copied. After a store of 0, and before
					 * the load that follows a copy, a fence */
	uint32_t pending_nr;		/* number of the ring in the pending bitmap (pending.h), and
					 * 1; 0: do not mark. The producer loads it after a fence
					 * that follows its store of seq or count */
} __attribute__((aligned(64)));

/* Writer: a producer that accesses the consumer's memory itself. Reader: the consumer (revoke.h). */
struct ring_writer {
	uint32_t maps;			/* it maps regions and stores into them; 0: it has not begun
					 * to. A fence follows the store */
	uint32_t within;		/* it is within a write: the target waits until this is 0
					 * before it reuses the memory. 1: a fence follows, of the
					 * producer, or of the consumer by membarrier(2), which
					 * meets ring_grant.pd and mr_dir_entry.version. 0: release,
					 * acquire */
} __attribute__((aligned(128)));	/* lines are fetched in pairs */

/* Both directions, as they lie in the segment: 0 is from the initiator. Pages are used
 * from the front, and bulk only for what does not fit a slot. */
struct ring_memory {
	struct ring_ack ack[2];
	struct ring_grant grant[2];
	struct ring_writer writer[2];
	uint8_t pad[4096 - 2 * sizeof(struct ring_ack) - 2 * sizeof(struct ring_grant) -
		    2 * sizeof(struct ring_writer)];
	struct ring_slot slot[2][RING_SLOTS];
	uint8_t bulk[2][RING_BULK];
	uint8_t fallback[2][RING_CHUNK];	/* buffers for payloads that a peer could not copy */
};

/* --- the MR directory (mr_dir.h) -------------------------------------------------------------------- */

enum {
	MR_DIR_SETS = 256, MR_DIR_WAYS = 4,	/* regions of a process; a region that finds no free
						 * entry is left out */
};

/* A memory region. Writer: the owner, with stags_lock held. Readers: peers. */
struct mr_dir_entry {
	uint32_t version;		/* changes first and last; odd: the entry is valid. Release,
					 * acquire; after the change that makes it invalid a fence,
					 * which meets ring_writer.within. A reader of the memory
					 * loads it again after the copy (fence) */
	uint32_t stag, access;		/* IBV_ACCESS_* */
	int32_t file;			/* file descriptor, in the owner, of the file that the
					 * region maps; or -1 */
	uint64_t pd, first, length, base;
	uint64_t offset;		/* of the region in that file */
} __attribute__((aligned(64)));

/* Writer: the owner. Readers: peers. */
struct shm_mr_dir {
	uint32_t sleep_count;		/* odd: no thread polls, signal the eventfd; even: a thread
					 * polls. A fence follows each change, and precedes each
					 * load by a producer that has stored a message */
	uint32_t pid;			/* of the owner; 0: its memory may not be accessed. Stored
					 * last (release, acquire); then the words up to `window`
					 * are constant */
	uint64_t id, self;		/* id of the process, and address of this structure in its
					 * memory */
	int32_t fd;			/* file descriptor, in the owner, of the window file
					 * (revoke.c) */
	uint32_t fences;		/* the owner fences peers that write to mapped regions */
	uint64_t window __attribute__((aligned(64)));	/* offset of the open window; 0: none.
					 * Sequentially consistent store before the file is
					 * truncated; acquire before the permission is loaded */
	uint32_t polls __attribute__((aligned(128)));	/* counts the polls of the owner; advice, not
					 * ordered */
	struct mr_dir_entry entry[MR_DIR_SETS][MR_DIR_WAYS] __attribute__((aligned(4096)));
};

/* --- the pending bitmap (pending.h) --------------------------------------------------------------- */

enum { PENDING_WORDS = 64, PENDING_MAX = PENDING_WORDS * 64 };

/* Writers: peers set bits, the owner takes them; all by sequentially consistent read-modify-writes. A
 * peer sets the bit of a ring, then that of its word in `any`; the owner clears in the opposite
 * order. */
struct shm_pending {
	uint64_t any;				/* a bit for a word */
	uint64_t word[PENDING_WORDS] __attribute__((aligned(64)));
} __attribute__((aligned(4096)));

/* --- the window file (mr_dir.c, revoke.c) -------------------------------------------------------------------- */

/* Writer: the owner, which truncates it. A peer maps the open window privately. The file consists of
 * windows, of which the last is open. */
#define WINDOW_SIZE (64ull << 10)	/* bytes; at least a page, on any machine */

#endif
