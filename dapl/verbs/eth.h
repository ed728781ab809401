/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.h - raw Ethernet QPs of RDMA devices, as the files eth*.c know them.
 *
 * What core has is a QP of ours with an ibv_context of its own, whose operations post to it; the device's QP is
 * made when it begins. Frames complete on a CQ of the QP's own, with time stamps and flow tags, which is polled
 * together with the EVD's (eth_cq.c). */
#ifndef VERBS_ETH_H
#define VERBS_ETH_H
#include "hw.h"
#include "eth_flow.h"
#include "common/trace.h"
#include "dapl/core/eth_device.h"

enum {
	HW_ETH_MAX_RULES = 64,		/* of a QP */
	HW_ETH_HEADERS = 128,		/* bytes of headers of a message that is segmented: IPv6 and TCP with options */
	HW_ETH_MAX_SGE = 64,		/* more than NICs have */
	HW_ETH_TAGS = 8,		/* bytes of two VLAN tags: max_frame is without them */
};

/* What probing a device has found. */
struct hw_eth_caps {
	bool tags, partial, copy, sniffer, drop, vxlan, gre, mpls, inner;	/* flows */
	bool checksums;			/* of sends and receives */
	uint32_t max_tso;
	uint32_t rate_min, rate_max;	/* kbit/s */
	uint16_t moderate_frames, moderate_us;	/* the most; 0: none */
	uint64_t core_khz, stamp_mask;	/* the clock of time stamps; 0: none */
};

/* Cycles of the device's clock as CLOCK_REALTIME, fitted again every second. */
struct hw_eth_clock {
	uint64_t khz, mask;
	uint64_t cycles, realtime_ns;	/* one instant */
	uint64_t fit_ns;		/* CLOCK_MONOTONIC of that; 0: never */
	double ns_per_cycle;
};

struct hw_eth_device {
	struct dapl_device *dev;
	/* eth_cq.c's: what the functions in dev->verbs->ops were */
	struct hw_eth_device *next;
	bool adopted;
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
	int (*req_notify_cq)(struct ibv_cq *, int);
	struct dapl_mutex lock;		/* guards probed and the clock */
	bool probed;
	struct hw_eth_caps caps;	/* constant once probed */
	struct hw_eth_clock clock;
};

struct hw_eth_rule {
	struct hw_eth_rule *next;
	struct dapl_eth_rule rule;
	struct ibv_flow *flow;
	uint32_t tag;			/* of its flow; 0: none */
	int group, everything;		/* sockets: one has joined the group, one is promiscuous; -1: none */
	uint64_t frames, bytes;
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
	struct ibv_cq *cq;		/* of receives */
	struct ibv_cq_ex *cq_ex;	/* the same; NULL: without extensions */
	uint64_t wc_flags;		/* of the CQ */
	uint32_t max_frame, mtu;
	struct hw_eth_memory spill;	/* takes what does not fit into a receive; for all of them */
	struct hw_eth_memory ring;
	uint32_t slot;			/* bytes of a frame of the ring */
	struct hw_eth *next;		/* eth_cq.c's list */
	struct dapl_mutex lock;		/* guards what follows */
	uint32_t *rooms;		/* bytes of each posted receive, config.mask + 1 */
	uint32_t posted, received;	/* receives, counted without end */
	struct dapl_eth_frame *ready;	/* ring: frames that are here, not polled yet */
	uint32_t taken, released;	/* ring: frames that were polled, and given back */
	bool armed;
	uint64_t armed_wr;
	struct hw_eth_rule *rules;
	uint64_t tags_used;		/* bit mask */
	bool ended, paced;		/* ended: in ERR */
	uint64_t last_time;
	uint64_t drops_before;		/* of the port, when the QP began */
	struct dapl_eth_stats stats;
};

static inline struct hw_eth *hw_eth_of(struct ibv_qp *qp)
{
	return container_of(qp, struct hw_eth, qp);
}

/* Why a call is refused. */
#define hw_eth_trace(object, ...) trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "qp", object, NULL, __VA_ARGS__)

extern const struct dapl_eth_ops hw_eth_ops;

/* eth_attr.c */
void hw_eth_open(struct dapl_device *dev);	/* sets dev->eth, which stays NULL if the device has no raw QPs */
int hw_eth_query(struct dapl_device *dev, struct dapl_eth_attr *attr);
uint64_t hw_eth_drops(const struct dapl_device *dev);	/* ~0: not known */
void hw_eth_close(struct dapl_device *dev);

/* eth_probe.c; takes eth->lock */
void hw_eth_probe(struct hw_eth_device *eth);
int hw_eth_raw_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_qp **qp);	/* to try things */

/* eth_qp.c; operations of the device's table for raw QPs */
int hw_eth_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
int hw_eth_reset_qp(struct ibv_qp *qp);
int hw_eth_error_qp(struct ibv_qp *qp);
int hw_eth_destroy_qp(struct ibv_qp *qp);
int hw_eth_to_rts(struct ibv_qp *hw, uint8_t port);
int hw_eth_begin(struct ibv_qp *qp, const struct dapl_eth_config *config);
void hw_eth_stats(struct ibv_qp *qp, struct dapl_eth_stats *stats);

/* eth_recv.c */
int hw_eth_recv_open(struct hw_eth *q);
void hw_eth_recv_close(struct hw_eth *q);	/* after the QP */
void hw_eth_recv_empty(struct hw_eth *q);	/* drops what the CQ has: the QP was reset */
int hw_eth_recv_fill(struct hw_eth *q);		/* posts all of the ring */
int hw_eth_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int hw_eth_poll_frames(struct hw_eth *q, int n, struct ibv_wc *wc);	/* for the EVD's CQ */
int hw_eth_ring_poll(struct ibv_qp *qp, struct dapl_eth_frame *frames, int max);
int hw_eth_ring_release(struct ibv_qp *qp, uint32_t oldest);
int hw_eth_ring_arm(struct ibv_qp *qp, uint64_t wr_id);

/* eth_cq.c */
void hw_eth_cq_add(struct hw_eth *q);
void hw_eth_cq_remove(struct hw_eth *q);
int hw_eth_moderate(struct ibv_cq *cq, uint32_t frames, uint32_t microseconds);
void hw_eth_cq_forget(struct hw_eth_device *eth);	/* at close */

/* eth_send.c */
int hw_eth_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hw_eth_pace(struct ibv_qp *qp, const struct dapl_eth_pace *pace);

/* eth_rule.c */
int hw_eth_rule_add(struct ibv_qp *qp, const struct dapl_eth_rule *rule, void **added);
void hw_eth_rule_free(struct ibv_qp *qp, void *rule);
void hw_eth_rules_end(struct hw_eth *q);
void hw_eth_rule_count(struct ibv_qp *qp, void *rule, uint64_t *frames, uint64_t *bytes);
/* q->lock held: the rule of a frame's flow tag, or NULL. */
struct hw_eth_rule *hw_eth_rule_find(struct hw_eth *q, uint32_t tag);

/* eth_clock.c */
void hw_eth_clock_init(struct hw_eth_device *eth);
bool hw_eth_clock_works(const struct hw_eth_device *eth);
uint64_t hw_eth_clock_convert(struct hw_eth_device *eth, uint64_t cycles);
int hw_eth_clock_read(struct dapl_device *dev, uint64_t *device_ns, uint64_t *system_ns, uint64_t *error_ns);

#endif
