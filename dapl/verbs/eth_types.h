/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_types.h - the structures of raw Ethernet QPs, which the files eth*.c share. Types only; each file
 * declares its functions in a header of its own.
 *
 * Core has a QP that this provider makes, with an ibv_context of its own, whose operations post to the
 * device's QP. hw_eth_begin() makes the latter. Frames complete on a CQ of the QP's own, with time stamps
 * and flow tags, which is polled together with the EVD's (eth_cq.c). */
#ifndef VERBS_ETH_TYPES_H
#define VERBS_ETH_TYPES_H
#include "common/container_of.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/core/eth_device.h"

/* Traces why a call is refused. `object`: the QP, or NULL. A format and its arguments follow. */
#define hw_eth_trace(object, ...) trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "qp", object, NULL, __VA_ARGS__)

enum {
	HW_ETH_MAX_RULES = 64,		/* of a QP */
	HW_ETH_HEADERS = 128,		/* bytes of headers of a message that is segmented: IPv6 and TCP with options */
	HW_ETH_MAX_SGE = 64,		/* more than NICs have */
	HW_ETH_TAGS = 8,		/* bytes of two VLAN tags: max_frame is without them */
	HW_ETH_FCS = 4,			/* bytes of a frame check sequence: max_frame is without it */
	HW_ETH_MAX_GROUP = 256,		/* QPs of a group: more than a host has processors for */
	HW_ETH_HASH_KEY = 40,		/* bytes: addresses and ports of IPv6, and one word */
};

/* What probing a device has found. */
struct hw_eth_caps {
	bool tags, partial, copy, sniffer, vxlan, inner;	/* flows */
	bool checksums;			/* of sends and receives */
	bool fcs;			/* receives may have it */
	bool work_queues;		/* receive queues are objects of their own, which tables may name */
	bool joint_hash;		/* one QP hashes frames of any version of IP, TCP and UDP */
	uint64_t hash_fields;		/* enum ibv_rx_hash_fields; 0: no groups */
	uint32_t max_table;		/* entries of a table */
	uint32_t max_tso;
	uint32_t rate_min, rate_max;	/* kbit/s */
	uint16_t moderate_frames, moderate_us;	/* the most; 0: none */
	uint64_t core_khz, stamp_mask;	/* the clock of time stamps; 0: none */
};

/* Converts cycles of the device's clock to CLOCK_REALTIME; fitted again every second. */
struct hw_eth_clock {
	uint64_t khz, mask;
	uint64_t cycles, realtime_ns;	/* one instant */
	uint64_t fit_ns;		/* CLOCK_MONOTONIC of that; 0: never */
	double ns_per_cycle;
};

struct hw_eth_device {
	struct dapl_device *dev;
	/* eth_cq.c's: the functions of dev->verbs->ops that it has replaced */
	struct hw_eth_device *next;
	bool adopted;
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
	int (*req_notify_cq)(struct ibv_cq *, int);
	struct dapl_mutex lock;		/* guards probed and the clock */
	struct dapl_mutex groups_lock;	/* guards groups: their list, members, tables and hashes */
	struct hw_group *groups;
	bool probed;
	struct hw_eth_caps caps;	/* constant once probed */
	struct hw_eth_clock clock;
};

struct hw_eth_rule {
	struct hw_eth_rule *next;
	struct dapl_eth_rule rule;
	struct ibv_flow *flow;		/* NULL: the table of its group changed, and both flows failed */
	uint32_t tag;			/* of its flow; 0: none */
	int group, everything;		/* sockets, or -1: one has joined the group, one is promiscuous */
	uint64_t frames, bytes;
};

/* The rules of a raw QP or of a group. A group's are changed with groups_lock held, too. */
struct hw_eth_rules {
	struct hw_eth_device *eth;
	struct hw_group *group;		/* NULL: a QP's */
	struct ibv_qp *target;		/* of flows; NULL: a group's, which has several */
	bool tagged;			/* flows may have tags */
	uint32_t tag_base;		/* tags are this + 1 to this + HW_ETH_MAX_RULES */
	struct dapl_mutex *lock;	/* guards what follows: the QP's, or the group's */
	struct hw_eth_rule *first;
	uint64_t tags_used;		/* bit mask */
};

/* A QP without queues of its own: frames go to the work queues that its table names. */
struct hw_hash {
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;		/* NULL: not made */
};

/* A group that a QP is in. */
struct hw_membership {
	struct hw_membership *next;
	struct hw_group *group;
};

/* Provider-owned memory that receives are filled into. */
struct hw_eth_memory {
	uint8_t *at;
	size_t size;
	struct ibv_mr *mr;
};

struct hw_eth {
	struct ibv_qp qp;		/* what core has */
	struct ibv_context verbs;	/* of this QP alone */
	struct hw_eth_device *eth;
	struct ibv_qp_init_attr init;
	struct dapl_eth_config config;
	struct ibv_qp *hw;		/* NULL until begun */
	struct ibv_wq *wq;		/* receives; NULL: they are the QP's own */
	struct hw_hash own;		/* leads to wq alone */
	struct ibv_cq *cq;		/* of receives */
	struct ibv_cq_ex *cq_ex;	/* the same; NULL: without extensions */
	uint64_t wc_flags;		/* of the CQ */
	uint32_t max_frame, mtu;
	struct hw_eth_memory spill;	/* takes what does not fit into a receive; for all of them */
	struct hw_eth_memory ring;
	uint32_t slot;			/* bytes of a frame of the ring */
	struct hw_eth *next;		/* eth_cq.c's list */
	unsigned users;			/* eth_cq.c's: threads that need cq without a lock */
	struct dapl_mutex lock;		/* guards what follows */
	uint32_t *rooms;		/* bytes of each posted receive, config.mask + 1 */
	uint32_t posted, received;	/* receives, counted without end */
	struct dapl_eth_frame *ready;	/* ring: frames that are here, not polled yet */
	uint32_t taken, released;	/* ring: frames that were polled, and given back */
	bool armed;
	uint64_t armed_wr;
	struct hw_eth_rules rules;
	struct hw_membership *groups;	/* changed with groups_lock held, too */
	bool ended, paced;		/* ended: in ERR */
	uint64_t last_time;
	uint64_t drops_seen;		/* the port's counter, as read last; ~0: unknown when the QP began */
	uint64_t drops;			/* of the port since the QP began */
	struct dapl_eth_stats stats;
};

static inline struct hw_eth *hw_eth_of(struct ibv_qp *qp)
{
	return container_of(qp, struct hw_eth, qp);
}

#endif
