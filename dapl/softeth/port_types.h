/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port_types.h - the structures of a port, its ring and its rules, which the files of this folder share.
 * Types only; each file declares its functions in a header of its own. */
#ifndef SOFTETH_PORT_TYPES_H
#define SOFTETH_PORT_TYPES_H
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/lock.h"
#include "dapl/core/eth_device.h"

enum {
	ETH_MAX_RULES = 64,		/* of a port; their filter has room in the kernel's limit */
	ETH_ALL_BYTES = 0x100000,	/* a snap length that no frame exceeds; joined ones have up to 512 KiB */
	ETH_MAX_GROUP = 64,		/* ports of a group */
	ETH_MAX_PAST = 1024,		/* times that a rule has left a port and come back, within a second */
	ETH_MAX_PIECES = 64,		/* segments of a frame that is sent or received: stack for their iovecs */
	ETH_VLAN_HLEN = 4,		/* bytes of a VLAN tag */
	RULE_LEFT_NS = 900000000,	/* then no frame is on its way to a socket; less than the second of port.h */
};

/* Frames that a rule has given to the program. A rule that was moved shares them with what is left of it at
 * its old place. */
struct rule_counts {
	unsigned refs;			/* atomic, all */
	uint64_t frames, bytes;
};

/* The time stamps of the frames that a rule matches: [from_ns, until_ns). Shared by the ports of a group. A rule that
 * was moved stays at its old ports for frames that are on their way. */
struct rule_times {
	unsigned refs;			/* atomic, all */
	uint64_t from_ns;		/* UINT64_MAX: not yet */
	uint64_t until_ns;		/* 0: no end */
};

/* A rule of a port. The rule of a group is one at each of its ports. */
struct eth_rule {
	struct dapl_eth_rule rule;
	struct eth_rule *next;		/* the port's own first, then group by group; by priority, then by age */
	int joined;			/* the socket that has joined a multicast group, or -1 */
	unsigned memberships;		/* how many of the memberships that it needs have been added */
	uint32_t counter;		/* DROP: its number in the program's counters */
	uint32_t id;			/* of the port's rules, from 1; none comes again */
	struct rule_counts *counts;
	bool needs_headers;		/* else it matches every frame */
	struct rule_times *times;
	bool moved;			/* it is left for frames that came before it was moved */
	struct eth_rule *past;		/* what was left of it when it came back to this port, newest first */
	struct eth_spread *spread;	/* of a group; NULL: the port's own rule */
	uint16_t member;		/* the port's number in the group */
};

struct ring_block {
	uint32_t out;			/* frames that are polled and not released */
};

/* Ring receive: blocks of TPACKET_V3. The program has the blocks [tail, head), which are counted without
 * end. */
struct eth_ring {
	uint8_t *map;
	uint32_t block_size, blocks;
	uint64_t head, tail;		/* 64 bits: a count that wraps would skip blocks */
	struct ring_block *use;
	uint64_t out;			/* frames of all blocks that are polled and not released */
	const uint8_t *block;		/* block `head`, if entered */
	size_t next;			/* offset of its next frame */
	uint32_t frames_left;		/* of it */
	bool entered;
};

/* Frames that the network device has lost since the port was opened. */
struct eth_device_counts {
	uint32_t missed, fifo;		/* the device's counters, as read last */
	uint64_t lost;
	bool unknown;			/* they could not be read when the port was opened */
};

struct eth_port {
	int fd, index;			/* packet socket; interface, whose name may change */
	void (*want_purge)(void *context);	/* as port.h says */
	void *context;
	uint32_t snap, mtu, queues;	/* queues: of the device, for receiving, when the port was opened */
	bool verify;			/* checksums of TCP and UDP that the kernel has not verified */
	struct eth_ring ring;		/* map NULL: posted receives, or xdp */
	struct eth_xdp *xdp;		/* xdp.c; NULL: the packet socket receives */
	struct dapl_mutex lock;		/* guards what follows, and the ring */
	struct eth_rule *rules;
	uint32_t last_id;
	unsigned rule_count, steering;	/* steering: of them that are not COPY, and not moved away */
	int counters, link;		/* of the program on the device's ingress, or of the XDP program; or -1 */
	uint64_t counters_used;		/* bit mask */
	bool stamping;			/* atomic: the socket tells when frames left */
	bool bypass;			/* the socket has PACKET_QDISC_BYPASS; only its sender reads it */
	struct eth_batch *batch;	/* send.c; not guarded by the lock: one thread sends batches at a time */
	bool old_tables;		/* the filter lets through what former tables of groups gave to this port */
	uint64_t last_time;
	uint32_t lost_pending;		/* reported with the next frame */
	uint32_t overflow_seen;		/* SO_RXQ_OVFL of the last frame */
	struct eth_device_counts device;
	struct dapl_eth_stats stats;
};

/* What the rules of one object have in common, at one port or at those of a group. */
struct rule_part {
	struct dapl_eth_rule rule;
	struct rule_counts *counts;
	struct rule_times *times;
	struct eth_spread *spread;	/* NULL: the port's own rule */
};

#endif
