/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_ring.c - ring receive over TPACKET_V3: the kernel fills blocks of frames in shared memory, the program reads
 * them there. A block goes back to the kernel when all its frames are released. What the kernel wrote about
 * lengths is checked all the same, so that nothing outside of a block is read.
 *
 * The kernel marks blocks that it closed after a loss, not their frames. Then its counter is read, and the
 * losses are reported with the next frame: their sum is exact, their place is exact to a block. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "common/compiler.h"
#include "dapl/softeth/counters.h"
#include "dapl/softeth/packet_ring.h"
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/validate.h"

enum {
	BLOCK_SIZE = 128 << 10,		/* bytes; a frame of 64 KiB must fit, longer ones are cut */
	MIN_BLOCKS = 4,
	MAX_BLOCKS = 32768,		/* 4 GiB */
	RETIRE_MS = 2,			/* a block that is not full is handed over after this time */
	FRAME_OVERHEAD = 128,		/* bytes of headers and alignment around a frame */
	CACHE_LINE = 64,
	PREFETCH_FRAMES = 6,		/* frames ahead: 6 short ones take as long as a line of another processor */
	PREFETCH_LINES = 3,		/* the header, and the first bytes of the frame */
	PREFETCH_BLOCK_LINES = 8,	/* of the next block: its header, and the first frames */
};

/* The header of a frame. The kernel aligns it; nothing here depends on that. */
typedef struct tpacket3_hdr frame_header __attribute__((aligned(1)));

static uint32_t blocks_for(uint32_t frames, uint32_t bytes)
{
	uint64_t all = (uint64_t)frames * (bytes + FRAME_OVERHEAD);
	uint64_t blocks = (all + BLOCK_SIZE - 1) / BLOCK_SIZE;

	return blocks < MIN_BLOCKS ? MIN_BLOCKS : blocks > MAX_BLOCKS ? MAX_BLOCKS : (uint32_t)blocks;
}

int packet_ring_open(struct eth_port *port, uint32_t frames, uint32_t max_frame)
{
	struct eth_ring *ring = &port->ring;
	struct tpacket_req3 request = { .tp_block_size = BLOCK_SIZE, .tp_frame_size = TPACKET_ALIGNMENT << 7,
		.tp_retire_blk_tov = RETIRE_MS, .tp_feature_req_word = TP_FT_REQ_FILL_RXHASH };
	int version = TPACKET_V3;
	void *map;

	ring->blocks = blocks_for(frames, port->snap && port->snap < max_frame ? port->snap : max_frame);
	ring->block_size = BLOCK_SIZE;
	request.tp_block_nr = ring->blocks;
	request.tp_frame_nr = BLOCK_SIZE / request.tp_frame_size * ring->blocks;
	if (!(ring->use = calloc(ring->blocks, sizeof *ring->use)))
		return ENOMEM;
	if (setsockopt(port->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
	    setsockopt(port->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request))
		return errno;
	map = mmap(NULL, (size_t)ring->blocks * BLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, port->fd, 0);
	if (map == MAP_FAILED)
		return errno;
	ring->map = map;
	return 0;
}

void packet_ring_close(struct eth_port *port)
{
	if (port->ring.map)
		munmap(port->ring.map, (size_t)port->ring.blocks * port->ring.block_size);
	free(port->ring.use);
}

static struct tpacket_block_desc *block(const struct eth_ring *ring, uint64_t index)
{
	return (struct tpacket_block_desc *)(ring->map + (size_t)(index % ring->blocks) * ring->block_size);
}

static void give_back(struct eth_ring *ring, uint64_t index)
{
	__atomic_store_n(&block(ring, index)->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

/* Gives back the oldest blocks without frames that the program still has. */
static void give_back_unused(struct eth_ring *ring)
{
	for (; ring->tail != ring->head && !ring->use[ring->tail % ring->blocks].out; ring->tail++)
		give_back(ring, ring->tail);
}

static ALWAYS_INLINE void prefetch(const void *at, int lines)
{
	for (int i = 0; i < lines; i++)
		__builtin_prefetch((const char *)at + i * CACHE_LINE);
}

/* Enters block `head`, if the kernel has filled it and the program no longer has it. A number of frames that the block
 * has no room for is cut: when frames do not follow each other, the poll ends all the same. */
static bool enter(struct eth_port *port)
{
	struct eth_ring *ring = &port->ring;
	struct tpacket_block_desc *b = block(ring, ring->head);
	uint32_t most = ring->block_size / TPACKET3_HDRLEN, status;

	if (ring->entered)
		return true;
	if (ring->head - ring->tail == ring->blocks)
		return false;
	status = __atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE);
	if (!(status & TP_STATUS_USER))
		return false;
	if (status & TP_STATUS_LOSING)
		port->lost_pending += eth_counters_read_drops(port);
	ring->entered = true;
	ring->frames_left = b->hdr.bh1.num_pkts < most ? b->hdr.bh1.num_pkts : most;
	ring->block = (const uint8_t *)b;
	ring->next = b->hdr.bh1.offset_to_first_pkt;
	ring->use[ring->head % ring->blocks].out = 0;
	prefetch(block(ring, ring->head + 1), PREFETCH_BLOCK_LINES);
	return true;
}

static void leave(struct eth_ring *ring)
{
	ring->entered = false;
	ring->head++;
	give_back_unused(ring);
}

/* The frames of the entered block that a poll looks at, in variables of that poll. Its end puts back where it is. */
struct walk {
	const uint8_t *block;
	size_t next, size;		/* offset of the next frame; bytes of the block */
	uint32_t left;
};

static ALWAYS_INLINE struct walk begin_walk(const struct eth_ring *ring)
{
	return (struct walk){ ring->block, ring->next, ring->block_size, ring->frames_left };
}

static ALWAYS_INLINE void end_walk(struct eth_ring *ring, const struct walk *walk)
{
	ring->next = walk->next;
	ring->frames_left = walk->left;
}

/* Fetches the lines of a frame that comes later: the processor that received it wrote them, and where a frame begins
 * stands in the one before, so each would be waited for. Assumes frames of one length; a wrong guess costs little. */
static ALWAYS_INLINE void prefetch_ahead(const frame_header *h)
{
	prefetch((const char *)h + PREFETCH_FRAMES * (size_t)h->tp_next_offset, PREFETCH_LINES);
}

/* HOT: returns the next frame, or NULL if there is none. Its offsets are 32 bits, and the sums 64, so these do not
 * wrap. */
static ALWAYS_INLINE const frame_header *next_header(struct walk *walk)
{
	const frame_header *h = (const frame_header *)(walk->block + walk->next);

	if (unlikely(!walk->left) || unlikely(walk->next > walk->size - TPACKET3_HDRLEN) ||
	    unlikely(walk->next + h->tp_mac + (uint64_t)h->tp_snaplen > walk->size))
		return NULL;
	prefetch_ahead(h);
	walk->left--;
	walk->next += h->tp_next_offset;
	return h;
}

/* The bytes that the ring has of a frame if a block has room for them. Joined frames (BIG TCP) may be longer. */
static uint32_t wanted_length(const struct eth_port *port, const frame_header *h)
{
	return port->snap && port->snap < h->tp_len ? port->snap : h->tp_len;
}

static ALWAYS_INLINE uint32_t flags_of(const frame_header *h, bool outgoing)
{
	const uint32_t told = TP_STATUS_CSUMNOTREADY | TP_STATUS_CSUM_VALID | TP_STATUS_VLAN_VALID;
	uint32_t flags = outgoing ? ETH_FRAME_OUTGOING : 0;

	if (h->hv1.tp_rxhash)
		flags |= ETH_FRAME_HASH;
	if (likely(!(h->tp_status & told)))
		return flags;
	if (h->tp_status & TP_STATUS_CSUMNOTREADY)
		flags |= ETH_FRAME_PARTIAL;
	else if (h->tp_status & TP_STATUS_CSUM_VALID)
		flags |= ETH_FRAME_L4_OK;
	if (h->tp_status & TP_STATUS_VLAN_VALID)
		flags |= ETH_FRAME_VLAN;
	return flags;
}

static ALWAYS_INLINE struct eth_tag tag_of(const frame_header *h)
{
	struct eth_tag tag = { 0, 0 };

	if (unlikely(h->tp_status & TP_STATUS_VLAN_VALID)) {
		tag.type = h->tp_status & TP_STATUS_VLAN_TPID_VALID ? h->hv1.tp_vlan_tpid : ETH_P_8021Q;
		tag.tci = (uint16_t)h->hv1.tp_vlan_tci;
	}
	return tag;
}

static NOINLINE void validate(const struct eth_port *port, const frame_header *h, struct dapl_eth_frame *frame)
{
	struct virtio_net_hdr vnet = { .flags = 0 };	/* as the kernel wrote it before the frame */

	if (h->tp_snaplen && h->tp_mac >= sizeof vnet)
		memcpy(&vnet, frame->data - sizeof vnet, sizeof vnet);
	eth_validate(port, frame, &vnet, frame->data, h->tp_snaplen,
		     &(struct iovec){ (void *)frame->data, h->tp_snaplen }, 1);
}

/* Returns false for a frame without IP: it has no checksum, and is no joined one. */
static inline bool may_have_ip(const uint8_t *data, uint32_t length)
{
	uint16_t type;

	if (length < ETH_HLEN)
		return false;
	memcpy(&type, data + offsetof(struct ethhdr, h_proto), sizeof type);
	if (type == htons(ETH_P_IP) || type == htons(ETH_P_IPV6))
		return true;
	return unlikely(type == htons(ETH_P_8021Q)) || unlikely(type == htons(ETH_P_8021AD));
}

/* Fills *frame with what is known of it but its time and losses. */
static ALWAYS_INLINE void fill(const struct eth_port *port, const frame_header *h, struct eth_tag tag, bool outgoing,
			       const struct eth_rule *rule, struct dapl_eth_frame *frame)
{
	*frame = (struct dapl_eth_frame){ .data = (const uint8_t *)h + h->tp_mac, .length = h->tp_snaplen,
		.wire_length = h->tp_len, .flags = flags_of(h, outgoing), .hash = h->hv1.tp_rxhash,
		.tag = rule->rule.tag, .vlan_tci = tag.tci, .vlan_type = tag.type };
	if (unlikely(h->tp_snaplen < wanted_length(port, h)))
		frame->flags |= ETH_FRAME_CUT;
}

static ALWAYS_INLINE uint64_t time_of(const frame_header *h)
{
	return (uint64_t)h->tp_sec * 1000000000u + h->tp_nsec;
}

static ALWAYS_INLINE uint8_t packet_type_of(const frame_header *h)
{
	const uint8_t *from = (const uint8_t *)h + TPACKET_ALIGN(sizeof *h);	/* struct sockaddr_ll */

	return from[offsetof(struct sockaddr_ll, sll_pkttype)];
}

/* Returns the rule that matches the frame, or NULL. */
static struct eth_rule *describe(struct eth_port *port, const frame_header *h, struct dapl_eth_frame *frame)
{
	const uint8_t *data = (const uint8_t *)h + h->tp_mac;
	const uint8_t type = packet_type_of(h);
	bool outgoing = type == PACKET_OUTGOING;
	struct eth_tag tag = tag_of(h);
	uint32_t hash = h->hv1.tp_rxhash;
	struct eth_rule *rule = eth_rule_find(port, data, h->tp_snaplen, tag, time_of(h), outgoing,
					      type == PACKET_OTHERHOST, &hash);

	if (!rule)
		return NULL;
	fill(port, h, tag, outgoing, rule, frame);
	frame->hash = hash;
	if (rule->spread)
		frame->flags |= ETH_FRAME_HASH;
	validate(port, h, frame);
	eth_rule_account(port, frame, time_of(h));
	return rule;
}

/* Frames of the entered block, at most `max`, that a rule matches. Sets *h to NULL behind the last one of the block. */
static int poll_each(struct eth_port *port, struct dapl_eth_frame *frames, int max, struct rule_tally *tally,
		     const frame_header **h)
{
	struct walk walk = begin_walk(&port->ring);
	int n = 0;

	while (n < max && (*h = next_header(&walk))) {
		struct eth_rule *rule = describe(port, *h, &frames[n]);

		if (rule)
			eth_tally_frames(tally, rule, 1, frames[n++].wire_length);
	}
	end_walk(&port->ring, &walk);
	return n;
}

/* HOT: the same if `rule` matches all frames. What is counted is counted once. */
static int poll_all(struct eth_port *port, struct eth_rule *rule, struct dapl_eth_frame *frames, int max,
		    struct rule_tally *tally, const frame_header **last)
{
	uint64_t time = port->last_time, bytes = 0;
	struct walk walk = begin_walk(&port->ring);
	const frame_header *h = NULL;
	int n;

	for (n = 0; n < max && (h = next_header(&walk)); n++) {
		struct dapl_eth_frame *frame = &frames[n];

		fill(port, h, tag_of(h), packet_type_of(h) == PACKET_OUTGOING, rule, frame);
		frame->time = time = frame_time_even_out(time_of(h), time);
		bytes += frame->wire_length;
		if (may_have_ip(frame->data, frame->length))
			validate(port, h, frame);
		if (unlikely(frame->flags & (ETH_FRAME_IP_BAD | ETH_FRAME_L4_BAD | ETH_FRAME_CUT)))
			eth_rule_count_faults(port, frame);
	}
	end_walk(&port->ring, &walk);
	*last = h;
	if (!n)
		return 0;
	frames->lost = port->lost_pending;
	port->lost_pending = 0;
	port->last_time = time;
	port->stats.received += (uint64_t)n;
	port->stats.received_bytes += bytes;
	eth_tally_frames(tally, rule, (uint64_t)n, bytes);
	return n;
}

/* Frames of the entered block, at most `max`. The rule is looked up once if all frames match it: the block was handed
 * over before, so its frames came before any change of rules that is announced later. */
static int poll_block(struct eth_port *port, struct dapl_eth_frame *frames, int max, struct rule_tally *tally)
{
	struct eth_rule *const all = eth_rule_of_all(port);
	struct eth_ring *ring = &port->ring;
	const frame_header *h = NULL;
	int n = all ? poll_all(port, all, frames, max, tally, &h) : poll_each(port, frames, max, tally, &h);

	ring->use[ring->head % ring->blocks].out += (uint32_t)n;
	ring->out += (uint64_t)n;
	if (!h)
		leave(ring);
	return n;
}

int packet_ring_poll(struct eth_port *port, struct dapl_eth_frame *frames, int max)
{
	struct rule_tally tally = { .rule = NULL };
	int n = 0;

	while (n < max && enter(port))
		n += poll_block(port, frames + n, max - n, &tally);
	eth_tally_end(&tally);
	return n;
}

/* Frames of the entered block, which is not in [tail, head), are released last. */
int packet_ring_release(struct eth_port *port, uint32_t oldest)
{
	struct eth_ring *ring = &port->ring;

	if (oldest > ring->out)
		return EINVAL;
	ring->out -= oldest;
	for (uint64_t i = ring->tail; oldest; i++) {
		uint32_t *have = &ring->use[i % ring->blocks].out;
		uint32_t some = oldest < *have ? oldest : *have;

		*have -= some;
		oldest -= some;
	}
	if (ring->entered && !ring->frames_left)
		leave(ring);
	else
		give_back_unused(ring);
	return 0;
}
