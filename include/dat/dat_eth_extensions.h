/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_eth_extensions.h - endpoints for whole Ethernet frames, on the network device of an IA:
 * capture, crafted frames, groups received in user space. An addition of these providers.
 * dat_eth(7) is the overview; each call has a page of section 3.
 *
 * An IA with such endpoints has the provider-specific attribute DAT_ETH_ATTR_RAW. Its value names
 * what carries the frames: "PACKET", packet sockets; "VERBS", raw packet QPs of an RDMA
 * device.
 *
 * Like all extensions the calls go through dat_extension_op(): the casts below fix the types of its
 * variable arguments. Each call returns DAT_SUCCESS or a value whose type, DAT_GET_TYPE(value), is
 * in its list. A call that fails changes nothing. A provider without raw endpoints returns
 * DAT_NOT_IMPLEMENTED, which the lists leave out. Structures that are passed to a call are copied. */
#ifndef _DAT_ETH_EXTENSIONS_H_
#define _DAT_ETH_EXTENSIONS_H_

#include "udat.h"
#include <stdint.h>

#define DAT_ETH_ATTR_RAW "DAT_ETH_RAW"

/* DAT_EP_ATTR.service_type of a raw endpoint. */
#define DAT_ETH_SERVICE_TYPE_RAW ((DAT_SERVICE_TYPE)0x600)

/* Events. DTO: a posted receive, or a send with DAT_ETH_SEND_STAMP, completed;
 * event_extension_data holds a DAT_ETH_FRAME. READY: dat_eth_arm() was called, and there are frames
 * for dat_eth_poll(). */
#define DAT_ETH_DTO_EVENT ((DAT_EVENT_NUMBER)0x60000)
#define DAT_ETH_READY_EVENT ((DAT_EVENT_NUMBER)0x60001)

typedef DAT_HANDLE DAT_ETH_RULE_HANDLE;
typedef DAT_HANDLE DAT_ETH_GROUP_HANDLE;

/* Beyond the numbers of the other extensions. */
typedef enum dat_eth_op {
	DAT_ETH_QUERY_OP = 0x600,
	DAT_ETH_POLL_OP,
	DAT_ETH_RELEASE_OP,
	DAT_ETH_ARM_OP,
	DAT_ETH_RULE_ADD_OP,
	DAT_ETH_RULE_FREE_OP,
	DAT_ETH_RULE_QUERY_OP,
	DAT_ETH_STATS_OP,
	DAT_ETH_POST_SEND_OP,
	DAT_ETH_PACE_OP,
	DAT_ETH_CLOCK_OP,
	DAT_ETH_RULE_MOVE_OP,
	DAT_ETH_GROUP_CREATE_OP,
	DAT_ETH_GROUP_SET_OP,
	DAT_ETH_GROUP_FREE_OP,
	DAT_ETH_MODERATE_OP
} DAT_ETH_OP;

/* What a device can do: bits of DAT_ETH_ATTR.caps. A call that needs a bit that is not set returns
 * DAT_MODEL_NOT_SUPPORTED. */
typedef enum dat_eth_cap {
	DAT_ETH_CAP_COPY         = 0x0001,	/* rules of mode DAT_ETH_COPY */
	DAT_ETH_CAP_EGRESS       = 0x0002,	/* DAT_ETH_EGRESS */
	DAT_ETH_CAP_PARTIAL_MASK = 0x0004,	/* masks with any bits */
	DAT_ETH_CAP_INNER        = 0x0008,	/* inner_key of tunnels */
	DAT_ETH_CAP_TUNNEL       = 0x0010,	/* tunnels are parsed; VERBS: VXLAN at least */
	DAT_ETH_CAP_VLAN_STRIP   = 0x0020,	/* VLAN tags may be stripped: DAT_ETH_FRAME_VLAN */
	DAT_ETH_CAP_HASH         = 0x0040,	/* frames may carry a hash: DAT_ETH_FRAME_HASH */
	DAT_ETH_CAP_RX_CSUM      = 0x0080,	/* DAT_ETH_FRAME_L4_OK */
	DAT_ETH_CAP_JOIN         = 0x0100,	/* DAT_ETH_JOIN */
	DAT_ETH_CAP_TX_CSUM      = 0x0200,	/* DAT_ETH_SEND_CSUM */
	DAT_ETH_CAP_TSO          = 0x0400,	/* DAT_ETH_SEND_TSO */
	DAT_ETH_CAP_VLAN_INSERT  = 0x0800,	/* DAT_ETH_SEND_VLAN */
	DAT_ETH_CAP_LRO          = 0x1000,	/* frames may be joined: DAT_ETH_FRAME.segments */
	DAT_ETH_CAP_PACE         = 0x2000,	/* dat_eth_pace() */
	DAT_ETH_CAP_LAUNCH       = 0x4000,	/* DAT_ETH_SEND_LAUNCH */
	DAT_ETH_CAP_TAKE         = 0x8000,	/* rules of mode DAT_ETH_TAKE and DAT_ETH_DROP */
	DAT_ETH_CAP_RSS          = 0x10000,	/* dat_eth_group_create() */
	DAT_ETH_CAP_RSS_INNER    = 0x20000,	/* DAT_ETH_RSS_INNER */
	DAT_ETH_CAP_MODERATE     = 0x40000,	/* dat_eth_moderate() */
	DAT_ETH_CAP_SEND_STAMP   = 0x80000,	/* DAT_ETH_SEND_STAMP */
	DAT_ETH_CAP_INNER_CSUM   = 0x100000,	/* DAT_ETH_SEND_INNER_CSUM */
	DAT_ETH_CAP_RSS_LOSSLESS = 0x200000,	/* dat_eth_group_set() loses no frame */
	DAT_ETH_CAP_FCS          = 0x400000,	/* frames may come with their FCS, see dat_eth(7) */
	DAT_ETH_CAP_XDP          = 0x800000	/* eth_receive = xdp, see dat_eth(7) */
} DAT_ETH_CAP;

/* DAT_ETH_ATTR.clock: the clock of time stamps. All are nanoseconds of CLOCK_REALTIME. */
#define DAT_ETH_CLOCK_NONE 0
#define DAT_ETH_CLOCK_SOFTWARE 1	/* read by the kernel when it receives the frame */
#define DAT_ETH_CLOCK_HARDWARE 2	/* read by the NIC, converted */

typedef struct dat_eth_attr {
	DAT_UINT32 size;		/* in: sizeof(DAT_ETH_ATTR) */
	DAT_UINT32 mtu;			/* bytes of payload */
	DAT_UINT32 max_frame;		/* bytes of a frame that is sent, without FCS; a VLAN tag
					 * (0x8100) in it may be 4 bytes more */
	DAT_UINT32 clock;		/* DAT_ETH_CLOCK_* */
	DAT_UINT64 caps;
	DAT_UINT32 rx_queues, tx_queues;	/* of the network device; 1 if it does not tell */
	DAT_UINT32 max_rules;		/* of an endpoint */
	DAT_UINT32 reserved0;
	uint8_t address[6];		/* of the network device */
	uint8_t reserved[2];
	DAT_UINT32 max_tso;		/* bytes of a segmented message with headers; 0: none */
	DAT_UINT32 max_tso_header;	/* bytes of its headers */
	DAT_UINT64 rate_min, rate_max;	/* of dat_eth_pace(), bit/s */
	DAT_UINT32 max_group;		/* endpoints of a group; 0: no groups */
	DAT_UINT32 max_table;		/* entries of its table */
} DAT_ETH_ATTR;

/* Bits of DAT_ETH_FRAME.flags. */
#define DAT_ETH_FRAME_IP_OK 0x0001	/* the checksum of the outer IPv4 header is right */
#define DAT_ETH_FRAME_L4_OK 0x0002	/* that of TCP or UDP is; see eth_checksum in dat_eth(7) */
#define DAT_ETH_FRAME_VLAN 0x0004	/* a VLAN tag was stripped: vlan_tci, vlan_type */
#define DAT_ETH_FRAME_HASH 0x0008	/* hash is valid */
#define DAT_ETH_FRAME_OUTGOING 0x0010	/* sent by this host */
#define DAT_ETH_FRAME_PARTIAL 0x0020	/* sent on this host, before its checksums were computed */
#define DAT_ETH_FRAME_HW_TIME 0x0040	/* time was taken by the NIC */
#define DAT_ETH_FRAME_IP_BAD 0x0080	/* the checksum of the outer IPv4 header is wrong */
#define DAT_ETH_FRAME_L4_BAD 0x0100	/* that of TCP or UDP is */
#define DAT_ETH_FRAME_FCS 0x0200	/* the FCS follows; both lengths count its 4 bytes */
#define DAT_ETH_FRAME_CUT 0x0400	/* ring: longer than its memory for a frame (128 KiB), so the
					 * end is missing, beside what eth_snap leaves out */

typedef struct dat_eth_frame {
	const uint8_t *data;		/* ring receive only: valid until released */
	DAT_UINT32 length;		/* bytes that are here */
	DAT_UINT32 wire_length;		/* bytes of the frame, without a stripped tag; without
					 * FCS unless flags say so */
	DAT_UINT64 time;		/* ns since 1970; not less than the frame before's, unless
					 * the clock was set back by more than a second */
	DAT_UINT32 flags;
	DAT_UINT32 hash;		/* the group's, by a rule of a group; else the kernel's
					 * or the NIC's */
	DAT_UINT32 tag;			/* of the rule that matched */
	DAT_UINT32 lost;		/* frames lost since the frame before */
	uint16_t vlan_tci, vlan_type;	/* host byte order; type: 0x8100 or 0x88a8 */
	uint16_t segments;		/* joined frames; 0 or 1: not joined */
	uint16_t reserved0;
	DAT_UINT64 reserved;
} DAT_ETH_FRAME;			/* 56 bytes */

/* Bits of DAT_ETH_SEND.flags. */
#define DAT_ETH_SEND_CSUM 0x1	/* fills in the checksums of IPv4, and of TCP or UDP */
#define DAT_ETH_SEND_TSO 0x2	/* cuts the message into frames of `mss` bytes of TCP payload;
				 * includes CSUM */
#define DAT_ETH_SEND_VLAN 0x4	/* inserts a VLAN tag behind the addresses */
#define DAT_ETH_SEND_LAUNCH 0x8	/* the frame leaves at `launch`, not before */
#define DAT_ETH_SEND_STAMP 0x10	/* completes with a DAT_ETH_DTO_EVENT whose DAT_ETH_FRAME.time is
				 * when the frame left; 0 if the network device did not report it
				 * within a second. Not with TSO */
#define DAT_ETH_SEND_INNER_CSUM 0x20	/* fills in the checksums within a tunnel: VXLAN, Geneve,
					 * GRE, NVGRE. Not with TSO */
#define DAT_ETH_SEND_MORE 0x40	/* more frames follow at once: the device may hold this one, for
				 * some milliseconds at most, and send it together with
				 * them. A hint that needs no capability */

/* How dat_eth_post_send() sends. Members that no flag asks for are 0. */
typedef struct dat_eth_send {
	DAT_UINT32 flags;
	uint16_t vlan_tci, vlan_type;	/* VLAN; host byte order; type: 0 or 0x8100, or 0x88a8 */
	uint16_t mss;			/* TSO */
	uint16_t header_length;		/* TSO: bytes up to the TCP payload */
	DAT_UINT32 reserved0;
	DAT_UINT64 launch;		/* LAUNCH; ns since 1970. A time that is past: at once */
	DAT_UINT64 reserved;
} DAT_ETH_SEND;

/* The rate at which an endpoint sends. It counts the bytes of frames without FCS. */
typedef struct dat_eth_pace {
	DAT_UINT64 bits_per_s;		/* 0: no limit */
	DAT_UINT32 burst;		/* bytes that may leave back to back after a pause;
					 * 0: one frame */
	DAT_UINT32 frame;		/* bytes of a typical frame, for devices that use it; 0:
					 * unknown */
} DAT_ETH_PACE;

/* DAT_ETH_RULE.mode */
#define DAT_ETH_COPY 1			/* the endpoint gets a copy, the kernel's stack the frame */
#define DAT_ETH_TAKE 2			/* the endpoint gets it, the kernel's stack does not */
#define DAT_ETH_DROP 3			/* neither gets it */
/* DAT_ETH_RULE.flags */
#define DAT_ETH_ALL 0x1			/* promiscuous: also frames to other stations */
#define DAT_ETH_ALL_MULTICAST 0x2	/* all groups */
#define DAT_ETH_JOIN 0x4		/* joins the group of key.ip_dst, by IGMP or MLD */
#define DAT_ETH_EGRESS 0x8		/* also frames that this host sends */

/* DAT_ETH_KEY.tunnel */
#define DAT_ETH_TUNNEL_NONE 0
#define DAT_ETH_TUNNEL_VXLAN 1		/* UDP port 4789 */
#define DAT_ETH_TUNNEL_GENEVE 2		/* UDP port 6081 */
#define DAT_ETH_TUNNEL_GRE 3
#define DAT_ETH_TUNNEL_NVGRE 4
#define DAT_ETH_TUNNEL_MPLS 5

/* Header fields of a frame, in network byte order but for `tunnel`. A field that the frame does not
 * have is 0. */
typedef struct dat_eth_key {
	uint8_t dst[6], src[6];
	uint16_t ether_type;		/* behind the last VLAN tag */
	uint16_t vlan_tci;		/* of the outermost tag */
	uint8_t ip_version;		/* 4 or 6 */
	uint8_t protocol;		/* behind IPv6 extension headers */
	uint8_t tos;			/* type of service, or traffic class */
	uint8_t fragment;		/* 1: a fragment that is not the first */
	DAT_UINT32 flow_label;		/* IPv6, 20 bits */
	uint8_t ip_src[16], ip_dst[16];	/* IPv4: the first four bytes */
	uint16_t port_src, port_dst;	/* TCP, UDP, SCTP */
	DAT_UINT32 tunnel_id;		/* VNI, VSID, GRE key, MPLS label */
	DAT_UINT32 tunnel;		/* DAT_ETH_TUNNEL_* */
} DAT_ETH_KEY;

/* A frame matches if (field & mask) == key for every field of both headers. */
typedef struct dat_eth_rule {
	DAT_UINT32 mode, flags;
	DAT_UINT32 priority;		/* low numbers are looked at first */
	DAT_UINT32 tag;			/* comes with each frame that matched this rule */
	DAT_ETH_KEY key, mask;
	DAT_ETH_KEY inner_key, inner_mask;
} DAT_ETH_RULE;

/* DAT_ETH_RSS.fields: what is hashed. */
#define DAT_ETH_RSS_IP 0x1		/* both addresses; always needed */
#define DAT_ETH_RSS_PORTS 0x2		/* and both ports of TCP and UDP */
#define DAT_ETH_RSS_INNER 0x4		/* of the headers within a tunnel, if there is one */

/* How a group distributes frames: the lowest bits of the Toeplitz hash select an entry of the
 * table, which names an endpoint. */
typedef struct dat_eth_rss {
	DAT_UINT32 fields;
	DAT_UINT32 table_size;		/* a power of 2 */
	const uint16_t *table;		/* numbers of endpoints, from 0 */
	uint8_t key[40];
	DAT_UINT64 reserved;
} DAT_ETH_RSS;

/* Bits of DAT_ETH_STATS.flags. */
#define DAT_ETH_STATS_ZERO_COPY 0x1	/* eth_receive = xdp: the NIC writes frames where the program
					 * reads them */

typedef struct dat_eth_stats {
	DAT_UINT32 size;		/* in: sizeof(DAT_ETH_STATS) */
	DAT_UINT32 flags;		/* DAT_ETH_STATS_* */
	DAT_UINT64 received, received_bytes;	/* given to the program */
	DAT_UINT64 sent, sent_bytes;
	DAT_UINT64 lost;		/* for want of a receive, or of room in the ring */
	DAT_UINT64 lost_device;		/* by the network device, for all its users, since the
					 * endpoint was made; ~0: not known */
	DAT_UINT64 late;		/* sends whose launch time was past when they were posted */
	DAT_UINT64 bad;			/* of `received`: with DAT_ETH_FRAME_IP_BAD or _L4_BAD */
	DAT_UINT64 cut;			/* of `received`: with DAT_ETH_FRAME_CUT */
} DAT_ETH_STATS;

/* dat_eth_query(DAT_IA_HANDLE ia, DAT_ETH_ATTR *attr)
 *
 * Describes the network device of `ia`: address, lengths, limits, clock, and DAT_ETH_CAP_* in
 * `caps`. The caller sets attr->size to sizeof *attr; at most so many bytes are written.
 *
 * DAT_INVALID_HANDLE		ia is not an open IA
 * DAT_INVALID_PARAMETER	attr is NULL, or its size is too small
 * DAT_MODEL_NOT_SUPPORTED	libdaplsoft-eth.so is not installed */
#define dat_eth_query(ia, attr) \
	dat_extension_op((DAT_HANDLE)(ia), (DAT_EXTENDED_OP)DAT_ETH_QUERY_OP, \
		(DAT_ETH_ATTR *)(attr))

/* dat_eth_post_send(DAT_EP_HANDLE ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
 *		DAT_DTO_COOKIE cookie, const DAT_ETH_SEND *how, DAT_COMPLETION_FLAGS flags)
 *
 * Sends a frame, or a message that is cut into frames, as dat_ep_post_send() does, and completes
 * its headers as how->flags say. The memory that `iov` names is not changed. It belongs to the
 * transfer until the completion, whose length is that of the message; `iov` can be reused at once.
 *
 * DAT_INVALID_HANDLE		ep is not a raw endpoint
 * DAT_INVALID_PARAMETER	how is NULL, has an unknown flag or a member without its flag, or
 *				does not fit the frame; a line of the trace says why
 * DAT_LENGTH_ERROR		less than 14 bytes; more than max_frame, or with TSO than max_tso
 *				(a VLAN tag in the frame may be 4 bytes more)
 * DAT_INSUFFICIENT_RESOURCES	the queue of the endpoint or of the device is full
 * DAT_MODEL_NOT_SUPPORTED	a capability is absent; or the PZ has had a zero-based LMR, on RDMA
 *				devices */
#define dat_eth_post_send(ep, n, iov, cookie, how, flags) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_ETH_POST_SEND_OP, \
		(DAT_COUNT)(n), (const DAT_LMR_TRIPLET *)(iov), (DAT_DTO_COOKIE)(cookie), \
		(const DAT_ETH_SEND *)(how), (DAT_COMPLETION_FLAGS)(flags))

/* dat_eth_pace(DAT_EP_HANDLE ep, const DAT_ETH_PACE *pace)
 *
 * Makes frames leave at that rate from now on, in the order of the posts. A send that has to wait
 * completes when its frame leaves. The rate may be changed while sends wait. dat_ep_reset() ends
 * it.
 *
 * DAT_INVALID_HANDLE		ep is not a raw endpoint
 * DAT_INVALID_PARAMETER	pace is NULL, or the rate is neither 0 nor from rate_min to
 *				rate_max
 * DAT_INVALID_STATE		ep is disconnected
 * DAT_MODEL_NOT_SUPPORTED	no DAT_ETH_CAP_PACE */
#define dat_eth_pace(ep, pace) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_ETH_PACE_OP, \
		(const DAT_ETH_PACE *)(pace))

/* dat_eth_clock(DAT_IA_HANDLE ia, DAT_UINT64 *device_ns, DAT_UINT64 *system_ns,
 *		DAT_UINT64 *error_ns)
 *
 * Reads the clock that stamps frames and CLOCK_REALTIME at one instant, to within *error_ns. All
 * three are nanoseconds. With DAT_ETH_CLOCK_SOFTWARE both are one clock.
 *
 * DAT_INVALID_HANDLE		ia is not an open IA
 * DAT_INVALID_PARAMETER	a pointer is NULL
 * DAT_MODEL_NOT_SUPPORTED	libdaplsoft-eth.so is not installed */
#define dat_eth_clock(ia, device_ns, system_ns, error_ns) \
	dat_extension_op((DAT_HANDLE)(ia), (DAT_EXTENDED_OP)DAT_ETH_CLOCK_OP, \
		(DAT_UINT64 *)(device_ns), (DAT_UINT64 *)(system_ns), (DAT_UINT64 *)(error_ns))

/* dat_eth_poll(DAT_EP_HANDLE ep, DAT_ETH_FRAME *frames, DAT_COUNT max, DAT_COUNT *got)
 *
 * Describes the next frames of a ring in frames[0] to frames[*got - 1], at most `max`, in the order
 * in which they came. Nothing is copied: `data` points into the ring, and is valid until
 * dat_eth_release(), or until the endpoint is reset or freed.
 *
 * DAT_QUEUE_EMPTY		there is no frame; the value is exactly this
 * DAT_INVALID_HANDLE		ep is not a raw endpoint
 * DAT_INVALID_PARAMETER	a pointer is NULL, or max is below 1
 * DAT_INVALID_STATE		ep is disconnected
 * DAT_MODEL_NOT_SUPPORTED	ep has posted receives and no ring */
#define dat_eth_poll(ep, frames, max, got) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_ETH_POLL_OP, \
		(DAT_ETH_FRAME *)(frames), (DAT_COUNT)(max), (DAT_COUNT *)(got))

/* dat_eth_release(DAT_EP_HANDLE ep, DAT_COUNT oldest)
 *
 * Gives back that many frames, the oldest first. Their memory must not be read afterwards. The
 * errors are those of dat_eth_poll() except for DAT_QUEUE_EMPTY, and:
 *
 * DAT_INVALID_PARAMETER	oldest is negative, or more than were polled and not released */
#define dat_eth_release(ep, oldest) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_ETH_RELEASE_OP, \
		(DAT_COUNT)(oldest))

/* dat_eth_arm(DAT_EP_HANDLE ep)
 *
 * Requests one DAT_ETH_READY_EVENT on the receive EVD as soon as there are frames. Frames that are
 * not released count, so release all and poll once more before. An event may come without a frame.
 *
 * DAT_INVALID_HANDLE		ep is not a raw endpoint, or has no receive EVD
 * DAT_INVALID_STATE		ep is disconnected
 * DAT_INSUFFICIENT_RESOURCES	no memory
 * DAT_MODEL_NOT_SUPPORTED	ep has posted receives and no ring */
#define dat_eth_arm(ep) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_ETH_ARM_OP)

/* dat_eth_rule_add(DAT_HANDLE ep_or_group, const DAT_ETH_RULE *rule, DAT_ETH_RULE_HANDLE *handle)
 *
 * Adds a rule to a raw endpoint that is connected, or to a group. Before the first rule no frame
 * comes. The caller frees *handle with dat_eth_rule_free(), unless the rule has ended with its
 * endpoint or group: at dat_ep_disconnect(), dat_ep_free() or dat_eth_group_free().
 *
 * DAT_INVALID_HANDLE		ep_or_group is neither
 * DAT_INVALID_PARAMETER	a pointer is NULL, the mode is 0, a flag is unknown, a key has bits
 *				outside of its mask, or there is no group for DAT_ETH_JOIN
 * DAT_INVALID_STATE		ep is disconnected, or has a rule with this key, flags and priority
 * DAT_INSUFFICIENT_RESOURCES	max_rules are there, or no memory
 * DAT_MODEL_NOT_SUPPORTED	the device has no such mode or cannot match the rule; a DROP rule
 *				for a group; COPY or EGRESS with eth_receive = xdp
 * DAT_PRIVILEGES_VIOLATION	TAKE and DROP over packet sockets need CAP_BPF and CAP_NET_ADMIN */
#define dat_eth_rule_add(ep_or_group, rule, handle) \
	dat_extension_op((DAT_HANDLE)(ep_or_group), (DAT_EXTENDED_OP)DAT_ETH_RULE_ADD_OP, \
		(const DAT_ETH_RULE *)(rule), (DAT_ETH_RULE_HANDLE *)(handle))

/* dat_eth_rule_free(DAT_ETH_RULE_HANDLE rule)
 *
 * Ends a rule. The handle is no longer valid.
 *
 * DAT_INVALID_HANDLE		rule is none, or has ended with its endpoint or group */
#define dat_eth_rule_free(rule) \
	dat_extension_op((DAT_HANDLE)(rule), (DAT_EXTENDED_OP)DAT_ETH_RULE_FREE_OP)

/* dat_eth_rule_move(DAT_ETH_RULE_HANDLE rule, DAT_HANDLE ep_or_group)
 *
 * Moves a rule: from now on its frames come to that raw endpoint or group of the same IA. None is
 * lost, and none comes to both. Frames that are in the ring of the old endpoint stay there.
 *
 * DAT_INVALID_HANDLE		rule is none, or ep_or_group is none of this IA
 * DAT_INVALID_STATE		ep is disconnected, or has a rule with this key, flags and priority
 * DAT_INSUFFICIENT_RESOURCES	max_rules are there, or no memory
 * DAT_MODEL_NOT_SUPPORTED	a DROP rule to a group; an RDMA device, or eth_receive = xdp,
 *				which move no rules */
#define dat_eth_rule_move(rule, ep_or_group) \
	dat_extension_op((DAT_HANDLE)(rule), (DAT_EXTENDED_OP)DAT_ETH_RULE_MOVE_OP, \
		(DAT_HANDLE)(ep_or_group))

/* dat_eth_group_create(DAT_IA_HANDLE ia, DAT_COUNT n, const DAT_EP_HANDLE *eps,
 *		const DAT_ETH_RSS *rss, DAT_ETH_GROUP_HANDLE *group)
 *
 * Makes a group of `n` raw endpoints, at most max_group, which share the frames of the group's
 * rules: each frame comes to one of them. The endpoints still belong to the caller. They may have
 * rules of their own, which are looked at first. The caller frees *group with dat_eth_group_free().
 *
 * DAT_INVALID_HANDLE		ia is no IA, or an endpoint is not a raw one of it
 * DAT_INVALID_PARAMETER	a pointer is NULL, n is out of range, an endpoint comes twice, or
 *				`rss` is wrong; a line of the trace says why
 * DAT_INVALID_STATE		an endpoint is disconnected
 * DAT_INSUFFICIENT_RESOURCES	no memory
 * DAT_MODEL_NOT_SUPPORTED	no DAT_ETH_CAP_RSS, no DAT_ETH_CAP_RSS_INNER for DAT_ETH_RSS_INNER,
 *				or an endpoint that its device cannot put into a table, or
 *				with eth_receive = xdp */
#define dat_eth_group_create(ia, n, eps, rss, group) \
	dat_extension_op((DAT_HANDLE)(ia), (DAT_EXTENDED_OP)DAT_ETH_GROUP_CREATE_OP, \
		(DAT_COUNT)(n), (const DAT_EP_HANDLE *)(eps), (const DAT_ETH_RSS *)(rss), \
		(DAT_ETH_GROUP_HANDLE *)(group))

/* dat_eth_group_set(DAT_ETH_GROUP_HANDLE group, const uint16_t *table)
 *
 * Replaces the table by another one of the same size. No frame comes twice, and with
 * DAT_ETH_CAP_RSS_LOSSLESS none is lost. A frame that came before goes by the old table.
 *
 * DAT_INVALID_HANDLE		group is no group
 * DAT_INVALID_PARAMETER	table is NULL, or an entry names no endpoint, or one that has left
 * DAT_INSUFFICIENT_RESOURCES	no memory */
#define dat_eth_group_set(group, table) \
	dat_extension_op((DAT_HANDLE)(group), (DAT_EXTENDED_OP)DAT_ETH_GROUP_SET_OP, \
		(const uint16_t *)(table))

/* dat_eth_group_free(DAT_ETH_GROUP_HANDLE group)
 *
 * Ends the group and its rules, whose handles are no longer valid. The endpoints stay.
 *
 * DAT_INVALID_HANDLE		group is no group */
#define dat_eth_group_free(group) \
	dat_extension_op((DAT_HANDLE)(group), (DAT_EXTENDED_OP)DAT_ETH_GROUP_FREE_OP)

/* dat_eth_rule_query(DAT_ETH_RULE_HANDLE handle, DAT_ETH_RULE *rule, DAT_UINT64 *frames,
 *		DAT_UINT64 *bytes)
 *
 * Gives a copy of the rule, and how many frames and bytes it has given to the program, or dropped;
 * ~0: unknown. Each pointer may be NULL.
 *
 * DAT_INVALID_HANDLE		handle is none, or its rule has ended */
#define dat_eth_rule_query(handle, rule, frames, bytes) \
	dat_extension_op((DAT_HANDLE)(handle), (DAT_EXTENDED_OP)DAT_ETH_RULE_QUERY_OP, \
		(DAT_ETH_RULE *)(rule), (DAT_UINT64 *)(frames), (DAT_UINT64 *)(bytes))

/* dat_eth_moderate(DAT_EVD_HANDLE evd, DAT_COUNT frames, DAT_UINT32 microseconds)
 *
 * A thread that waits on the EVD, its CNO or its descriptor is woken after so many completions, or
 * so long after the first. Completions with errors and solicited ones wake it at once. 0 frames: at
 * once, as without the call. dat_evd_dequeue() gets events without delay in any case.
 *
 * DAT_INVALID_HANDLE		evd is no EVD with DAT_EVD_DTO_FLAG
 * DAT_INVALID_PARAMETER	frames is negative or more than the device has, or microseconds is 0
 *				and frames is not
 * DAT_MODEL_NOT_SUPPORTED	no DAT_ETH_CAP_MODERATE */
#define dat_eth_moderate(evd, frames, microseconds) \
	dat_extension_op((DAT_HANDLE)(evd), (DAT_EXTENDED_OP)DAT_ETH_MODERATE_OP, \
		(DAT_COUNT)(frames), (DAT_UINT32)(microseconds))

/* dat_eth_stats(DAT_EP_HANDLE ep, DAT_ETH_STATS *stats)
 *
 * Gives the counts of frames and bytes of `ep`. Over packet sockets received + lost is what was sent
 * to the endpoint; on RDMA devices, and with DAT_ETH_STATS_ZERO_COPY, `lost` leaves out what the
 * device dropped. The caller sets stats->size to sizeof *stats; at most
 * so many bytes are written.
 *
 * DAT_INVALID_HANDLE		ep is not a raw endpoint
 * DAT_INVALID_PARAMETER	stats is NULL, or its size is too small
 * DAT_INVALID_STATE		ep has no queue pair: another thread frees or resets it */
#define dat_eth_stats(ep, stats) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_ETH_STATS_OP, \
		(DAT_ETH_STATS *)(stats))

#endif
