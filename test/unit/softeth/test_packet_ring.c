/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_packet_ring.c - ring receive: which frames come from a ring that the test fills as the kernel does, and what is
 * known of them, and when a block goes back. Blocks are small; rules are those of a first byte. How a ring
 * is opened is test_ring_open.c's. */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <sys/uio.h>
#include "dapl/softeth/packet_ring.h"
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/validate.h"
#include "test/unit/unit.h"

enum { BLOCKS = 3, BLOCK = 4096, FIRST = 64, MAC = 96, PLACES = 16,
	WANTED = 0xaa, SPREAD = 0xbb, UNWANTED = 0x55, LENGTH = 60 };

static struct eth_port port;
static struct eth_rule wanted, spread;
static struct rule_times always;
static unsigned validations;
static bool bad;			/* what a validation finds */
static struct eth_spread *const group = (struct eth_spread *)&port;	/* it is not looked at */
static struct dapl_eth_frame frames[PLACES];
static uint8_t *memory;			/* of the ring: a sanitizer sees what is read behind it */
static unsigned filling;		/* the kernel's next block */
static uint32_t fill_offset;		/* in it, of its next frame */
static uint32_t hashes[2];		/* that rules were given, and that they gave, if not 0 */
static uint32_t drops;			/* the kernel's counter */
static char tallies[64];		/* what was counted for rules: letter, frames and bytes of each */
static struct virtio_net_hdr validated;
static bool found_other_host;

/* --- in place of rules and checksums ---------------------------------------------------------------------------- */

REPLACE(eth_rule_find, eth_rule_count_frames, eth_validate, getsockopt)

struct eth_rule *__wrap_eth_rule_find(struct eth_port *at, const uint8_t *frame, uint32_t captured, struct eth_tag tag,
				      uint64_t time, bool outgoing, bool other_host, uint32_t *hash)
{
	assert_ptr_equal(at, &port);
	assert_in_range(frame - memory, 0, BLOCKS * BLOCK);
	assert_int_equal(time / 1000000000, 5);
	found_other_host = other_host;
	hashes[0] = *hash;
	if (hashes[1])
		*hash = hashes[1];
	return !captured || *frame == WANTED ? &wanted : *frame == SPREAD ? &spread : NULL;
}

void __wrap_eth_rule_count_frames(struct eth_rule *rule, uint64_t n, uint64_t bytes)
{
	size_t used = strlen(tallies);

	snprintf(tallies + used, sizeof tallies - used, "%c:%u,%u ", rule == &spread ? 's' : 'w', (unsigned)n,
		 (unsigned)bytes);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	assert_int_equal(fd, port.fd);
	assert_int_equal(level, SOL_PACKET);
	assert_int_equal(name, PACKET_STATISTICS);
	((struct tpacket_stats_v3 *)value)->tp_drops = drops;
	drops = 0;
	return 0;
}

void __wrap_eth_validate(const struct eth_port *at, struct dapl_eth_frame *frame, const struct virtio_net_hdr *vnet,
			 const uint8_t *head, uint32_t parsed, const struct iovec *iov, int n)
{
	assert_ptr_equal(at, &port);
	assert_ptr_equal(head, frame->data);
	assert_int_equal(parsed, frame->length);
	assert_int_equal(n, 1);
	assert_ptr_equal(iov->iov_base, head);
	assert_int_equal(iov->iov_len, parsed);
	validated = *vnet;
	validations++;
	frame->flags |= bad ? ETH_FRAME_IP_BAD : 0;
}

/* --- the kernel ------------------------------------------------------------------------------------------------- */

static struct tpacket_block_desc *block(unsigned i)
{
	return (struct tpacket_block_desc *)(memory + (size_t)i * BLOCK);
}

static uint8_t *data_of(struct tpacket3_hdr *h) { return (uint8_t *)h + h->tp_mac; }

/* Stores a frame in the block that is being filled. */
static struct tpacket3_hdr *store(uint8_t first, uint32_t length)
{
	struct tpacket_block_desc *b = block(filling);
	struct tpacket3_hdr *h = (struct tpacket3_hdr *)((uint8_t *)b + fill_offset);
	const struct sockaddr_ll from = { .sll_family = AF_PACKET, .sll_pkttype = PACKET_HOST };

	assert_int_equal(b->hdr.bh1.block_status, TP_STATUS_KERNEL);
	*h = (struct tpacket3_hdr){ .tp_next_offset = TPACKET_ALIGN(MAC + length), .tp_sec = 5, .tp_nsec = fill_offset,
		.tp_snaplen = length, .tp_len = length, .tp_mac = MAC };
	memcpy((uint8_t *)h + TPACKET_ALIGN(sizeof *h), &from, sizeof from);
	memset(data_of(h), first, length);
	b->hdr.bh1.num_pkts++;
	fill_offset += h->tp_next_offset;
	return h;
}

/* Gives the block to the program. */
static struct tpacket_block_desc *hand_over(void)
{
	struct tpacket_block_desc *b = block(filling);

	b->hdr.bh1.offset_to_first_pkt = FIRST;
	b->hdr.bh1.block_status = TP_STATUS_USER;
	filling = (filling + 1) % BLOCKS;
	fill_offset = FIRST;
	return b;
}

/* The kernel may fill the next block. */
static bool kernel_has(unsigned i)
{
	if (block(i)->hdr.bh1.block_status != TP_STATUS_KERNEL)
		return false;
	block(i)->hdr.bh1.num_pkts = 0;
	return true;
}

/* A block of wanted frames. */
static void hand_over_frames(unsigned n)
{
	assert_true(kernel_has(filling));
	for (unsigned i = 0; i < n; i++)
		store(WANTED, LENGTH);
	hand_over();
}

/* --- fixture ---------------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	memory = calloc(BLOCKS, BLOCK);
	port = (struct eth_port){ .fd = 33, .ring = { .map = memory, .blocks = BLOCKS, .block_size = BLOCK,
		.use = calloc(BLOCKS, sizeof(struct ring_block)) } };
	wanted = (struct eth_rule){ .rule.tag = 9 };
	spread = (struct eth_rule){ .rule.tag = 10, .spread = group };
	dapl_mutex_init(&port.lock, RANK_SOFT_ETH);
	dapl_mutex_lock(&port.lock);
	validations = 0;
	bad = false;
	filling = 0;
	fill_offset = FIRST;
	drops = hashes[0] = hashes[1] = 0;
	*tallies = '\0';
	memset(&validated, 0xff, sizeof validated);
	return !memory || !port.ring.use;
}

UNIT_FIXTURE(tear_down)
{
	dapl_mutex_unlock(&port.lock);
	free(port.ring.use);
	free(memory);
}

static void polls(int max, int expected)
{
	memset(frames, 0, sizeof frames);
	assert_int_equal(packet_ring_poll(&port, frames, max), expected);
}

static void releases(uint32_t oldest) { assert_int_equal(packet_ring_release(&port, oldest), 0); }

/* The one frame of a poll. */
static const struct dapl_eth_frame *polled(void)
{
	hand_over();
	polls(PLACES, 1);
	return frames;
}

/* --- which frames come ------------------------------------------------------------------------------------------ */

UNIT_CASE(frames_lie_in_the_ring_in_the_order_of_the_kernel)
{
	struct tpacket3_hdr *first, *second;

	polls(PLACES, 0);
	first = store(WANTED, 60);
	first->tp_nsec = 17;
	second = store(WANTED, 100);
	second->tp_len = 1500;			/* it was cut */
	polls(PLACES, 0);			/* the kernel still has the block */
	hand_over();
	polls(PLACES, 2);
	assert_ptr_equal(frames[0].data, data_of(first));
	assert_int_equal(frames[0].length, 60);
	assert_int_equal(frames[0].wire_length, 60);
	assert_int_equal(frames[0].time, 5000000017);
	assert_int_equal(frames[0].tag, 9);
	assert_ptr_equal(frames[1].data, data_of(second));
	assert_int_equal(frames[1].length, 100);
	assert_int_equal(frames[1].wire_length, 1500);
	polls(PLACES, 0);
	assert_int_equal(port.stats.received, 2);
	assert_int_equal(port.stats.received_bytes, 1560);
}

UNIT_CASE(block_without_wanted_frames_goes_back_at_once)
{
	store(UNWANTED, 60);
	hand_over();
	hand_over();				/* the kernel may retire an empty one */
	hand_over_frames(1);
	polls(PLACES, 1);
	assert_true(kernel_has(0) && kernel_has(1) && !kernel_has(2));
}

/* --- blocks go back --------------------------------------------------------------------------------------------- */

UNIT_CASE(block_that_is_polled_in_parts_stays_until_all_were_seen)
{
	hand_over_frames(3);
	polls(2, 2);
	releases(2);
	assert_false(kernel_has(0));
	polls(1, 1);				/* the poll does not see that this was the last one */
	assert_false(kernel_has(0));
	releases(1);
	assert_true(kernel_has(0));
	hand_over_frames(1);
	polls(PLACES, 1);			/* of the next block */
	assert_ptr_equal(frames[0].data, memory + BLOCK + FIRST + MAC);
}

UNIT_CASE(more_than_was_polled_cannot_be_released)
{
	assert_int_equal(packet_ring_release(&port, 1), EINVAL);
	hand_over_frames(2);
	hand_over_frames(2);
	polls(3, 3);
	assert_int_equal(packet_ring_release(&port, 4), EINVAL);
	assert_false(kernel_has(0));		/* nothing is released */
	releases(0);
	releases(3);
	assert_true(kernel_has(0) && !kernel_has(1));
	assert_int_equal(packet_ring_release(&port, 1), EINVAL);
}

/* A fast port has filled 2^32 blocks in some hours. Their number in the ring is no power of two. */
UNIT_CASE(ring_goes_on_after_any_number_of_blocks)
{
	port.ring.head = port.ring.tail = UINT32_MAX;
	filling = UINT32_MAX % BLOCKS;
	for (unsigned i = 0; i < 2 * BLOCKS; i++) {
		hand_over_frames(2);
		polls(PLACES, 2);
		assert_ptr_equal(frames[0].data, memory + (UINT32_MAX + (uint64_t)i) % BLOCKS * BLOCK + FIRST + MAC);
		releases(2);
	}
}

/* --- what is known of a frame ----------------------------------------------------------------------------------- */

UNIT_CASE(status_becomes_flags)
{
	static const struct { uint32_t status, flags; } cases[] = {
		{ 0, 0 },
		{ TP_STATUS_CSUM_VALID, ETH_FRAME_L4_OK },
		{ TP_STATUS_CSUMNOTREADY, ETH_FRAME_PARTIAL },
		{ TP_STATUS_CSUMNOTREADY | TP_STATUS_CSUM_VALID, ETH_FRAME_PARTIAL },
		{ TP_STATUS_VLAN_VALID, ETH_FRAME_VLAN },
		{ TP_STATUS_VLAN_TPID_VALID, 0 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		store(WANTED, LENGTH)->tp_status = cases[i].status;
		assert_int_equal(polled()->flags, cases[i].flags);
		tear_down(state);
		set_up(state);
	}
}

UNIT_CASE(stripped_tag_comes_with_the_frame)
{
	static const struct { uint32_t status; uint16_t tci, type; } cases[] = {
		{ 0, 0, 0 },
		{ TP_STATUS_VLAN_VALID, 0x2064, ETH_P_8021Q },
		{ TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID, 0x2064, ETH_P_8021AD },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tpacket3_hdr *h = store(WANTED, LENGTH);

		h->tp_status = cases[i].status;
		h->hv1.tp_vlan_tci = 0x2064;
		h->hv1.tp_vlan_tpid = ETH_P_8021AD;
		polled();
		assert_int_equal(frames[0].vlan_tci, cases[i].tci);
		assert_int_equal(frames[0].vlan_type, cases[i].type);
		tear_down(state);
		set_up(state);
	}
}

static void set_type(struct tpacket3_hdr *h, uint8_t type)
{
	((struct sockaddr_ll *)((uint8_t *)h + TPACKET_ALIGN(sizeof *h)))->sll_pkttype = type;
}

UNIT_CASE(direction_is_that_of_the_address)
{
	set_type(store(WANTED, LENGTH), PACKET_OUTGOING);
	assert_int_equal(polled()->flags, ETH_FRAME_OUTGOING);
	assert_false(found_other_host);
	set_type(store(WANTED, LENGTH), PACKET_OTHERHOST);
	assert_int_equal(polled()->flags, 0);
	assert_true(found_other_host);
}

UNIT_CASE(hash_is_the_kernels_or_that_of_the_rule)
{
	store(WANTED, LENGTH)->hv1.tp_rxhash = 0x1234;
	assert_int_equal(polled()->flags, ETH_FRAME_HASH);
	assert_int_equal(frames[0].hash, 0x1234);
	assert_int_equal(hashes[0], 0x1234);
	hashes[1] = 0x5678;
	store(SPREAD, LENGTH);
	assert_int_equal(polled()->flags, ETH_FRAME_HASH);
	assert_int_equal(frames[0].hash, 0x5678);
	assert_int_equal(frames[0].tag, 10);
}

UNIT_CASE(loss_is_told_with_the_next_frame_that_is_wanted)
{
	drops = 3;
	store(WANTED, LENGTH);			/* stored before the loss */
	hand_over();
	store(UNWANTED, LENGTH);
	store(WANTED, LENGTH);
	store(WANTED, LENGTH);
	hand_over()->hdr.bh1.block_status |= TP_STATUS_LOSING;
	polls(PLACES, 3);
	assert_int_equal(frames[0].lost, 0);
	assert_int_equal(frames[1].lost, 3);
	assert_int_equal(frames[2].lost, 0);
}

/* What a block has no room for is missing; what eth_snap leaves out is not. */
UNIT_CASE(frame_that_is_longer_than_a_block_is_marked)
{
	struct tpacket3_hdr *h;

	port.snap = 0;
	h = store(WANTED, LENGTH);
	h->tp_len = 200000;
	polled();
	assert_true(frames[0].flags & ETH_FRAME_CUT);
	assert_int_equal(frames[0].length, LENGTH);
	assert_int_equal(frames[0].wire_length, 200000);
	port.snap = LENGTH + 1;
	h = store(WANTED, LENGTH);
	h->tp_len = 200000;
	polled();
	assert_true(frames[0].flags & ETH_FRAME_CUT);
	port.snap = LENGTH;
	h = store(WANTED, LENGTH);
	h->tp_len = 200000;
	polled();
	assert_false(frames[0].flags & ETH_FRAME_CUT);
	assert_int_equal(port.stats.cut, 2);
}

UNIT_CASE(header_before_the_frame_is_validated)
{
	struct virtio_net_hdr vnet = { .gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 77 };
	struct tpacket3_hdr *h = store(WANTED, LENGTH);

	memcpy(data_of(h) - sizeof vnet, &vnet, sizeof vnet);
	polled();
	assert_memory_equal(&validated, &vnet, sizeof vnet);
	h = store(WANTED, LENGTH);
	memcpy(data_of(h) - sizeof vnet, &vnet, sizeof vnet);
	h->tp_snaplen = 0;			/* of an empty frame the kernel writes none */
	polled();
	assert_int_equal(validated.gso_size, 0);
}

UNIT_CASE(frames_of_a_rule_are_counted_together)
{
	store(WANTED, 60);
	store(UNWANTED, 61);
	store(WANTED, 62)->tp_len = 1000;
	hand_over();
	store(WANTED, 63);
	store(SPREAD, 64);
	store(WANTED, 65);
	hand_over();
	polls(PLACES, 5);
	assert_string_equal(tallies, "w:3,1123 s:1,64 w:1,65 ");
	polls(PLACES, 0);
	assert_string_equal(tallies, "w:3,1123 s:1,64 w:1,65 ");
}

/* Each frame is described as if its rule had been looked up. Only IP has checksums. */
UNIT_CASE(frames_of_a_rule_of_all_are_described)
{
	static const uint16_t types[] = { ETH_P_IP, ETH_P_IPV6, ETH_P_8021Q, ETH_P_8021AD, ETH_P_ARP };

	wanted.rule.flags = ETH_EGRESS | ETH_ALL;
	wanted.times = &always;
	port.rules = &wanted;
	bad = true;
	drops = 3;
	store(UNWANTED, LENGTH)->tp_nsec = 20;
	store(UNWANTED, LENGTH)->tp_nsec = 10;	/* another processor's clock is behind */
	store(UNWANTED, LENGTH)->tp_len = 200000;
	set_type(store(UNWANTED, LENGTH), PACKET_OUTGOING);
	hand_over()->hdr.bh1.block_status |= TP_STATUS_LOSING;
	polls(PLACES, 4);
	assert_int_equal(frames[0].lost, 3);
	assert_int_equal(frames[1].lost, 0);
	assert_int_equal(frames[0].time, 5000000020);
	assert_int_equal(frames[1].time, 5000000020);
	assert_int_equal(frames[1].tag, 9);
	assert_int_equal(frames[2].flags, ETH_FRAME_CUT);
	assert_int_equal(frames[3].flags, ETH_FRAME_OUTGOING);
	assert_int_equal(port.stats.received, 4);
	assert_int_equal(port.stats.received_bytes, 3 * LENGTH + 200000);
	assert_int_equal(port.stats.cut, 1);
	assert_string_equal(tallies, "w:4,200180 ");
	assert_int_equal(validations, 0);
	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		uint8_t *type = data_of(store(UNWANTED, LENGTH)) + 12;

		type[0] = (uint8_t)(types[i] >> 8);
		type[1] = (uint8_t)types[i];
	}
	store(UNWANTED, 10);
	hand_over();
	polls(PLACES, 6);
	assert_int_equal(validations, 4);
	assert_int_equal(port.stats.bad, 4);
	assert_int_equal(frames[3].flags, ETH_FRAME_IP_BAD);
	assert_int_equal(frames[4].flags, 0);
	releases(10);
	assert_int_equal(packet_ring_release(&port, 1), EINVAL);
}

/* The type is the last two bytes of an Ethernet header. A frame of 13 bytes has none. */
UNIT_CASE(type_is_read_from_a_whole_ethernet_header)
{
	wanted.rule.flags = ETH_EGRESS | ETH_ALL;
	wanted.times = &always;
	port.rules = &wanted;
	for (uint32_t length = ETH_HLEN - 1; length <= ETH_HLEN; length++) {
		const uint8_t type[] = { ETH_P_IP >> 8, ETH_P_IP & 255 };

		memcpy(data_of(store(UNWANTED, length)) + ETH_HLEN - sizeof type, type, sizeof type);
		hand_over();
		polls(PLACES, 1);
		assert_int_equal(frames[0].length, length);
		assert_int_equal(validations, length == ETH_HLEN);
	}
}

/* --- a ring with wrong lengths ---------------------------------------------------------------------------------- */

UNIT_CASE(nothing_is_read_outside_of_a_block)
{
	static const struct { uint32_t next, mac, length; } cases[] = {
		{ BLOCK - FIRST, MAC, LENGTH },		/* the next header is behind the block */
		{ BLOCK - FIRST - 16, MAC, LENGTH },	/* it begins within it */
		{ UINT32_MAX - 15, MAC, LENGTH },
		{ 0, MAC, BLOCK - FIRST - MAC + 1 },	/* this frame ends behind it */
		{ 0, MAC, UINT32_MAX },
		{ 0, BLOCK - FIRST - LENGTH + 1, LENGTH },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tpacket3_hdr *h = store(WANTED, LENGTH);

		h->tp_next_offset = cases[i].next;
		h->tp_mac = (uint16_t)cases[i].mac;
		h->tp_snaplen = cases[i].length;
		hand_over()->hdr.bh1.num_pkts = 2;
		polls(PLACES, cases[i].next ? 1 : 0);
		assert_int_equal(kernel_has(0), !cases[i].next);
		tear_down(state);
		set_up(state);
	}
	store(WANTED, BLOCK - FIRST - MAC);		/* just fits */
	assert_int_equal(polled()->length, BLOCK - FIRST - MAC);
}

/* The frame says that it is followed by itself, and the block that it has any number of them. */
UNIT_CASE(block_gives_no_more_frames_than_it_has_room_for)
{
	int n = 0;

	store(WANTED, LENGTH)->tp_next_offset = 0;
	hand_over()->hdr.bh1.num_pkts = UINT32_MAX;
	hand_over_frames(1);
	while (n <= BLOCK && packet_ring_poll(&port, frames, 1))
		n++;
	assert_in_range(n, 1, BLOCK / TPACKET3_HDRLEN + 1);
	assert_ptr_equal(frames[0].data, memory + BLOCK + FIRST + MAC);
	releases((uint32_t)n);
	assert_true(kernel_has(0) && kernel_has(1));
}

/* A sanitizer sees a load that needs alignment. */
UNIT_CASE(frame_may_begin_anywhere)
{
	store(WANTED, LENGTH);
	memmove(memory + FIRST + 1, memory + FIRST, MAC + LENGTH);
	hand_over()->hdr.bh1.offset_to_first_pkt = FIRST + 1;
	polls(PLACES, 1);
	assert_ptr_equal(frames[0].data, memory + FIRST + 1 + MAC);
}

UNIT_CASE(block_that_begins_outside_of_itself_has_no_frames)
{
	store(WANTED, LENGTH);
	hand_over()->hdr.bh1.offset_to_first_pkt = BLOCK;
	hand_over_frames(1);
	polls(PLACES, 1);
	assert_true(kernel_has(0));
}

UNIT_MAIN(NULL, NULL)
