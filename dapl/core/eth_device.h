/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_device.h - the interface from dapl/core/eth down to a device that has raw Ethernet endpoints, beside
 * device.h. The structs have the layout of those in dat_eth_extensions.h, which says what their members
 * mean; dapl/core/eth/ops.c compares them.
 *
 * The QP of a raw endpoint is made by device.h's create_qp, with qp_type IBV_QPT_RAW_PACKET, and reset,
 * moved to ERR and destroyed like any other; each of these removes its rules. Sends and receives are posted
 * to it by ibv_post_send and ibv_post_recv. */
#ifndef DAPL_ETH_DEVICE_H
#define DAPL_ETH_DEVICE_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct dapl_device;

struct dapl_eth_attr {
	uint32_t size, mtu, max_frame, clock;
	uint64_t caps;
	uint32_t rx_queues, tx_queues, max_rules, reserved0;
	uint8_t address[6], reserved[2];
	uint32_t max_tso, max_tso_header;
	uint64_t rate_min, rate_max;
	uint32_t max_group, max_table;
};

enum dapl_eth_caps {
	ETH_CAP_COPY = 0x1, ETH_CAP_EGRESS = 0x2, ETH_CAP_PARTIAL_MASK = 0x4, ETH_CAP_INNER = 0x8,
	ETH_CAP_TUNNEL = 0x10, ETH_CAP_VLAN_STRIP = 0x20, ETH_CAP_HASH = 0x40, ETH_CAP_RX_CSUM = 0x80,
	ETH_CAP_JOIN = 0x100, ETH_CAP_TX_CSUM = 0x200, ETH_CAP_TSO = 0x400, ETH_CAP_VLAN_INSERT = 0x800,
	ETH_CAP_LRO = 0x1000, ETH_CAP_PACE = 0x2000, ETH_CAP_LAUNCH = 0x4000,
	ETH_CAP_TAKE = 0x8000, ETH_CAP_RSS = 0x10000, ETH_CAP_RSS_INNER = 0x20000,
	ETH_CAP_MODERATE = 0x40000, ETH_CAP_SEND_STAMP = 0x80000, ETH_CAP_INNER_CSUM = 0x100000,
	ETH_CAP_RSS_LOSSLESS = 0x200000, ETH_CAP_FCS = 0x400000,
	ETH_CAP_XDP = 0x800000,
};

struct dapl_eth_frame {
	const uint8_t *data;
	uint32_t length, wire_length;
	uint64_t time;
	uint32_t flags, hash, tag, lost;
	uint16_t vlan_tci, vlan_type, segments, reserved0;
	uint64_t reserved;
};

enum dapl_eth_frame_flags {
	ETH_FRAME_IP_OK = 0x1, ETH_FRAME_L4_OK = 0x2, ETH_FRAME_VLAN = 0x4, ETH_FRAME_HASH = 0x8,
	ETH_FRAME_OUTGOING = 0x10, ETH_FRAME_PARTIAL = 0x20, ETH_FRAME_HW_TIME = 0x40, ETH_FRAME_IP_BAD = 0x80,
	ETH_FRAME_L4_BAD = 0x100, ETH_FRAME_FCS = 0x200, ETH_FRAME_CUT = 0x400,
};

enum dapl_eth_send_flags { ETH_SEND_CSUM = 0x1, ETH_SEND_TSO = 0x2, ETH_SEND_VLAN = 0x4,
	ETH_SEND_LAUNCH = 0x8, ETH_SEND_STAMP = 0x10, ETH_SEND_INNER_CSUM = 0x20,
	ETH_SEND_MORE = 0x40 };		/* a device may ignore it */

struct dapl_eth_send {
	uint32_t flags;
	uint16_t vlan_tci, vlan_type, mss, header_length;
	uint32_t reserved0;
	uint64_t launch, reserved;
};

struct dapl_eth_pace {
	uint64_t bits_per_s;
	uint32_t burst, frame;
};

/* A send with offloads: its opcode is IBV_WR_DRIVER1, and `how` follows it in memory. With ETH_SEND_STAMP
 * the completion has the time when the frame left: the upper half in src_qp, the lower half in imm_data; 0:
 * unknown. */
struct dapl_eth_wr {
	struct ibv_send_wr wr;
	struct dapl_eth_send how;
};

struct dapl_eth_key {
	uint8_t dst[6], src[6];
	uint16_t ether_type, vlan_tci;
	uint8_t ip_version, protocol, tos, fragment;
	uint32_t flow_label;
	uint8_t ip_src[16], ip_dst[16];
	uint16_t port_src, port_dst;
	uint32_t tunnel_id, tunnel;
};

enum dapl_eth_tunnel { ETH_NO_TUNNEL, ETH_VXLAN, ETH_GENEVE, ETH_GRE, ETH_NVGRE, ETH_MPLS };

struct dapl_eth_rule {
	uint32_t mode, flags, priority, tag;
	struct dapl_eth_key key, mask, inner_key, inner_mask;
};

/* True if both match the same frames with the same priority, whatever they do with the frames. */
static inline bool dapl_eth_rule_is_same(const struct dapl_eth_rule *a, const struct dapl_eth_rule *b)
{
	return a->priority == b->priority && a->flags == b->flags && !memcmp(&a->key, &b->key, sizeof a->key) &&
	       !memcmp(&a->mask, &b->mask, sizeof a->mask) &&
	       !memcmp(&a->inner_key, &b->inner_key, sizeof a->inner_key) &&
	       !memcmp(&a->inner_mask, &b->inner_mask, sizeof a->inner_mask);
}

enum { ETH_COPY = 1, ETH_TAKE, ETH_DROP };
enum dapl_eth_rule_flags { ETH_ALL = 1, ETH_ALL_MULTICAST = 2, ETH_JOIN = 4, ETH_EGRESS = 8 };

/* How a group distributes frames, in terms of verbs: an indirection table of receive queues, and the
 * hash that selects an entry of it by its lowest bits. The hash is IBV_RX_HASH_FUNC_TOEPLITZ with a key
 * of 40 bytes; its fields are both addresses of IPv4 and IPv6, perhaps both ports of TCP and UDP,
 * perhaps IBV_RX_HASH_INNER. A frame without such fields has the hash 0, a fragment that of its
 * addresses. */
struct dapl_eth_rss {
	struct ibv_rx_hash_conf hash;
	uint32_t size;			/* number of entries, a power of 2 */
	const uint16_t *table;		/* for each entry the index of one of the group's QPs, from 0 */
};

/* Tells a group from the QP of an endpoint. */
static inline bool dapl_eth_is_group(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_DRIVER;
}

enum dapl_eth_stats_flags { ETH_STATS_ZERO_COPY = 0x1 };

struct dapl_eth_stats {
	uint32_t size, flags;
	uint64_t received, received_bytes, sent, sent_bytes, lost, lost_device, late, bad, cut;
};

/* How a raw QP receives. */
struct dapl_eth_config {
	uint32_t ring_frames;		/* ring receive: number of frames in the ring, of `snap` bytes each;
					 * 0: posted receives */
	uint32_t snap;			/* bytes that are kept of a frame; 0: all */
	struct dapl_eth_frame *frames;	/* posted receives: the device writes the data of the n-th frame to
					 * frames[n & mask], and n to the completion's src_qp. There are as
					 * many frames as an SRQ may hold receives, because so many can wait
					 * in a CQ */
	uint32_t mask;
	uint32_t max_frame, max_tso;	/* bytes of a send without a VLAN tag, as the device was queried. Core
					 * passes on sends that are longer by a tag; the device refuses them
					 * (EMSGSIZE) if they have no tag, or if it is to insert one */
	bool verify;			/* the device verifies checksums that the kernel has not verified */
	bool fcs;			/* frames end with their FCS; only with ETH_CAP_FCS */
	bool xdp;			/* the ring is one of AF_XDP, which rules of mode TAKE fill before packet
					 * sockets see a frame; only with ETH_CAP_XDP. Core adds rules of mode
					 * TAKE and DROP only, moves none, and makes it no member of a group */
};

struct dapl_eth_ops {
	const char *carrier;		/* value of DAT_ETH_ATTR_RAW */
	bool reads_headers;		/* post_send reads the headers of a send with offloads at the
					 * addresses of its segments, so these must be pointers */
	int (*query)(struct dapl_device *dev, struct dapl_eth_attr *attr);
	/* Called once, before anything is posted: opens the network device for this QP. EPERM: the process
	 * lacks a capability. ENOENT: the library for raw endpoints is missing. EBUSY: another XDP program
	 * is attached. The device has reported these in a line. */
	int (*begin)(struct ibv_qp *qp, const struct dapl_eth_config *config);
	/* EEXIST: there is a rule with this key and priority. ENOSPC: there are too many rules. EPERM: the
	 * process lacks a capability; the device has reported it in a line. */
	int (*add_rule)(struct ibv_qp *qp, const struct dapl_eth_rule *rule, void **added);
	/* Does nothing if the rule has ended because the QP went to ERR or was reset. */
	void (*free_rule)(struct ibv_qp *qp, void *rule);
	/* Moves a rule to another QP of the device: no frame is lost or received twice, and none passes a
	 * DROP rule. EOPNOTSUPP: the device cannot guarantee that. */
	int (*move_rule)(struct ibv_qp *from, void *rule, struct ibv_qp *to, void **moved);
	void (*count_rule)(struct ibv_qp *qp, void *rule, uint64_t *frames, uint64_t *bytes);
	/* Ring receive. Returns the number of frames, 0 if there is none, or -errno. */
	int (*poll)(struct ibv_qp *qp, struct dapl_eth_frame *frames, int max);
	int (*release)(struct ibv_qp *qp, uint32_t oldest);	/* EINVAL: `oldest` is more than the number
								 * of frames that were polled */
	/* Asks for one completion with this wr_id on the receive CQ when there are frames. EALREADY: the
	 * next poll of the CQ finds it, and its channel does not notify. */
	int (*arm)(struct ibv_qp *qp, uint64_t wr_id);
	void (*stats)(struct ibv_qp *qp, struct dapl_eth_stats *stats);
	/* Sets the rate of sends, which is within the device's limits, or 0 for none. A reset ends it. */
	int (*pace)(struct ibv_qp *qp, const struct dapl_eth_pace *pace);
	int (*clock)(struct dapl_device *dev, uint64_t *device_ns, uint64_t *system_ns, uint64_t *error_ns);
	/* Makes a QP of the type IBV_QPT_DRIVER, which has no queues, like a QP over an indirection table: it
	 * takes rules by the operations above, and gives frames to the receive queues of `qps`. These QPs do not
	 * change, and keep rules of their own. A member that is reset, moved to ERR or destroyed leaves its
	 * groups; frames for its entries of the table then reach no QP. Core serialises calls for groups and moves
	 * of rules.
	 * EOPNOTSUPP: a QP cannot be a member. NULL: no groups. */
	int (*create_group)(struct dapl_device *dev, struct ibv_qp *const *qps, uint32_t n,
			    const struct dapl_eth_rss *rss, struct ibv_qp **group);
	/* Replaces the table by another of the same size at one instant: no frame is received twice, and
	 * with ETH_CAP_RSS_LOSSLESS none is lost. EINVAL: the table names a member that has left. */
	int (*set_group)(struct ibv_qp *group, const uint16_t *table);
	void (*free_group)(struct ibv_qp *group);	/* frees its rules, too */
	/* The CQ's channel is notified after `frames` completions, or `microseconds` after the first of
	 * them; 0 frames: at each. Works like ibv_modify_cq. EINVAL: a value is above the device's limit.
	 * NULL: not supported. */
	int (*moderate)(struct ibv_cq *cq, uint32_t frames, uint32_t microseconds);
};

#endif
