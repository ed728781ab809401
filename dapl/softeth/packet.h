/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.h - a port as the files of this folder know it. */
#ifndef SOFTETH_PACKET_H
#define SOFTETH_PACKET_H
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/lock.h"
#include "dapl/softeth/match.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/port.h"

enum {
	ETH_MAX_RULES = 64,		/* of a port; their filter has room in the kernel's limit */
	ETH_ALL_BYTES = 0x40000,	/* a snap length that no frame exceeds */
	ETH_MAX_GROUP = 64,		/* ports of a group */
	ETH_MAX_PAST = 1024,		/* times that a rule has left a port and come back, within a second */
};

/* Frames that a rule has given to the program. Shared by a rule that was moved and what is left of it. */
struct rule_counts {
	unsigned refs;			/* atomic, all */
	uint64_t frames, bytes;
};

/* The time stamps of the frames that a rule matches: [from_ns, until_ns). Shared by the ports of a group. A rule that was
 * moved stays at its old ports for frames that are on their way. */
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
	unsigned memberships;		/* of those it wants, the first so many have been added */
	uint32_t counter;		/* DROP: its number in the program's counters */
	struct rule_counts *counts;
	bool needs_headers;		/* else it matches every frame */
	struct rule_times *times;
	bool moved;			/* it is only there for frames that came before */
	struct eth_rule *past;		/* what was left of it when it came back to this port, newest first */
	struct eth_spread *spread;	/* of a group; NULL: the port's own rule */
	uint16_t member;		/* the port's number in the group */
};

struct ring_block {
	uint32_t out;			/* frames that are polled and not released */
};

/* Ring receive: blocks of TPACKET_V3. [tail, head) are the program's, counted without end. */
struct eth_ring {
	uint8_t *map;
	uint32_t block_size, blocks;
	uint64_t head, tail;		/* 64 bits: a count that wraps would skip blocks */
	struct ring_block *use;
	const uint8_t *block;		/* block `head`, if entered */
	size_t next;			/* offset of its next frame */
	uint32_t frames_left;		/* of it */
	bool entered;
};

struct eth_port {
	int fd, index;			/* packet socket, interface */
	char netdev[IF_NAMESIZE];
	void (*want_purge)(void *context);	/* as port.h says */
	void *context;
	uint32_t snap, mtu;
	bool verify;			/* checksums of TCP and UDP that the kernel has not verified */
	struct eth_ring ring;		/* map NULL: posted receives */
	struct dapl_mutex lock;		/* guards what follows, and the ring */
	struct eth_rule *rules;
	unsigned rule_count, steering;	/* steering: of them that are not COPY, and not moved away */
	int counters, link;		/* of the program on the device's ingress, or -1 */
	uint64_t counters_used;		/* bit mask */
	bool stamping;			/* atomic: the socket tells when frames left */
	bool bypass;			/* the socket has PACKET_QDISC_BYPASS; only its sender reads it */
	struct eth_batch *batch;	/* send.c; not guarded by the lock: one thread sends batches at a time */
	bool old_tables;		/* the filter lets through what former tables of groups gave to this port */
	uint64_t last_time;
	uint32_t lost_pending;		/* told with the next frame */
	uint32_t overflow_seen;		/* SO_RXQ_OVFL of the last frame */
	uint64_t lost_device_before;
	struct dapl_eth_stats stats;
};

/* The functions from here on are called with port->lock held. */
/* The rule that wants the frame; NULL: none does. It is counted unless the frame is only looked at. */
void eth_rule_count_frames(struct eth_rule *rule, uint64_t frames, uint64_t bytes);
struct eth_rule *eth_rule_find(struct eth_port *port, const uint8_t *frame, uint32_t captured,
			       struct eth_tag tag, uint64_t time, bool outgoing, bool other_host, uint32_t *hash);
void eth_rules_free(struct eth_port *port);
/* Reads the kernel's counter of drops, which restarts; returns what was new. */
uint32_t eth_read_drops(struct eth_port *port);
/* Fills in time and losses, and counts the frame as received. Its flags are complete. */
void eth_account(struct eth_port *port, struct dapl_eth_frame *frame, uint64_t time);

int eth_ring_open(struct eth_port *port, uint32_t frames, uint32_t max_frame);
void eth_ring_close(struct eth_port *port);
int eth_ring_poll(struct eth_port *port, struct dapl_eth_frame *frames, int max);
int eth_ring_release(struct eth_port *port, uint32_t oldest);

/* ingress.c: the program on the device's ingress becomes that of the rules; without TAKE and DROP it goes. */
int eth_steer_renew(struct eth_port *port);
int eth_steer_count(const struct eth_port *port, const struct eth_rule *rule, uint64_t *frames, uint64_t *bytes);
int eth_steer_get_counter(struct eth_port *port, struct eth_rule *rule);
void eth_steer_put_counter(struct eth_port *port, struct eth_rule *rule);

/* rules.c. What the rules of one object have in common, at one port or at those of a group. */
struct rule_part {
	struct dapl_eth_rule rule;
	struct rule_counts *counts;
	struct rule_times *times;
	struct eth_spread *spread;	/* NULL: the port's own rule */
};
/* These take the lock. A rule takes frames from the kernel once it is steered. */
int eth_rule_attach(struct eth_port *port, const struct rule_part *part, uint16_t member, struct eth_rule **added);
int eth_rule_steer(struct eth_port *port);
/* It no longer takes frames from the kernel; `purged`: it is left for frames on their way, then it goes. */
void eth_rule_unsteer(struct eth_port *port, const struct rule_times *times, bool purged);
void eth_rule_detach(struct eth_port *port, const struct rule_times *times);
bool eth_rule_has(struct eth_port *port, const struct eth_rule *rule);
int eth_filter_renew(struct eth_port *port);
bool eth_rule_purge(struct eth_port *port);
int eth_filter_none(int fd);
struct rule_counts *rule_counts_new(void);
struct rule_times *rule_times_new(uint64_t from_ns);
void rule_counts_put(struct rule_counts *counts);
void rule_times_put(struct rule_times *times);

/* group.c; they take locks. */
int eth_group_create(struct eth_port *const *ports, uint32_t n, const struct dapl_eth_rss *rss,
		     struct eth_group **group);
int eth_group_set(struct eth_group *group, const uint16_t *table);
void eth_group_free(struct eth_group *group);
/* place.c */
int eth_place_add(struct eth_place at, const struct dapl_eth_rule *rule, void **added);
void eth_place_free(struct eth_place at, void *rule);
int eth_place_move(struct eth_place from, void *rule, struct eth_place to, void **moved);
void eth_place_count(struct eth_place at, const void *rule, uint64_t *frames, uint64_t *bytes);
void eth_rule_free_all(struct eth_port *port);
/* send.c */
int eth_send(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how,
	     const char **wrong);
int eth_send_batch(struct eth_port *port, const struct eth_out *frames, int n, int *sent, const char **wrong);
/* When the frame left that was last sent with ETH_SEND_STAMP. EAGAIN: not known yet. */
int eth_send_stamp(struct eth_port *port, uint64_t *time);
const char *eth_send_check(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how);
/* validate.c: fills in flags about checksums, and segments. `vnet` as the kernel wrote it; the frame->length
 * bytes that are here are in `iov`, and the first `parsed` of them at `head`. No lock is needed. */
void eth_validate(const struct eth_port *port, struct dapl_eth_frame *frame, const struct virtio_net_hdr *vnet,
		  const uint8_t *head, uint32_t parsed, const struct iovec *iov, int n);

#endif
