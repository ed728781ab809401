/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ethring_fuzz.c - any bytes as the blocks of a TPACKET_V3 ring, which the kernel writes and ring receive reads.
 * Nothing outside of a block is read, every frame lies within a block that the program has, a block gives no more
 * frames than it has room for, and it goes back when its frames are released, no sooner.
 *
 * The first byte of an input has OPTIONS. Records follow: a kind, and what struct record says. */
#include <errno.h>
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "dapl/softeth/counters.h"
#include "dapl/softeth/packet_ring.h"
#include "dapl/softeth/spread.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCK = 4096, MAX_BLOCKS = 3, PLACES = 64, RULES = 3,
	FRAMES = BLOCK / TPACKET3_HDRLEN };	/* most that a block has room for */
enum { ONE_BLOCK = 1, VERIFY = 2, MATCH_ALL = 4, OUTGOING_TOO = 8 };	/* OPTIONS */
enum { WRITE, HAND_OVER, POLL, RELEASE, KINDS };

struct record {
	uint8_t kind;
	uint8_t number;			/* HAND_OVER: status beside TP_STATUS_USER; POLL: frames at most;
					 * RELEASE: frames */
	uint16_t at, length;		/* WRITE: little-endian in the input, and then the bytes */
	const uint8_t *bytes;
};

/* What the target knows of the ring. Blocks [tail, filled) are the program's. */
struct run {
	struct eth_port port;
	struct ring_block use[MAX_BLOCKS];
	uint64_t filled, tail;
	unsigned seen[MAX_BLOCKS], out[MAX_BLOCKS];	/* frames that were polled, and of them those not yet
							 * released */
};

static uint8_t *rings[MAX_BLOCKS + 1];	/* by the number of blocks, each between pages that cannot be read */
static struct eth_spread *spread;

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "ethring_fuzz: %s\n", what);
	abort();
}

/* --- the kernel's side --------------------------------------------------------------------- */

static struct tpacket_hdr_v1 *header_of(struct run *r, uint64_t block)
{
	uint8_t *at = r->port.ring.map + block % r->port.ring.blocks * BLOCK;

	return &((struct tpacket_block_desc *)at)->hdr.bh1;
}

static bool kernel_has(struct run *r, uint64_t block)
{
	return !(header_of(r, block)->block_status & TP_STATUS_USER);
}

/* The blocks that went back have no frame that the program still holds. */
static void note_returned(struct run *r)
{
	for (; r->tail != r->filled && kernel_has(r, r->tail); r->tail++)
		demand(!r->out[r->tail % r->port.ring.blocks], "a block went back before its frames were released");
	for (uint64_t i = r->tail; i != r->filled; i++)
		demand(!kernel_has(r, i), "a block went back before an older one");
}

static void write_bytes(struct run *r, const struct record *record)
{
	uint8_t *block = (uint8_t *)header_of(r, r->filled) - offsetof(struct tpacket_block_desc, hdr.bh1);
	size_t at = record->at % BLOCK, length = record->length;

	if (!kernel_has(r, r->filled))
		return;
	memcpy(block + at, record->bytes, length < BLOCK - at ? length : BLOCK - at);
	header_of(r, r->filled)->block_status = TP_STATUS_KERNEL;
}

/* Of several blocks none has a frame at its begin: an empty one there looks like one at the end of its neighbour. */
static void hand_over(struct run *r, uint8_t status)
{
	if (!kernel_has(r, r->filled))
		return;
	if (r->port.ring.blocks > 1 && !header_of(r, r->filled)->offset_to_first_pkt)
		header_of(r, r->filled)->offset_to_first_pkt = 1;
	header_of(r, r->filled)->block_status = TP_STATUS_USER | (uint32_t)status << 1;
	r->seen[r->filled % r->port.ring.blocks] = r->out[r->filled % r->port.ring.blocks] = 0;
	r->filled++;
}

/* --- the program's side -------------------------------------------------------------------- */

static unsigned sum_bytes(const struct dapl_eth_frame *frame)
{
	unsigned sum = 0;

	for (uint32_t i = 0; i < frame->length; i++)
		sum += frame->data[i];
	return sum;
}

/* An empty frame may lie at the end of a block; of several blocks none has one at its begin (hand_over). */
static bool lies_in(const struct run *r, uint64_t block, const struct dapl_eth_frame *frame)
{
	const uint8_t *begin = r->port.ring.map + block % r->port.ring.blocks * BLOCK, *end = begin + BLOCK;

	return frame->data >= begin + (r->port.ring.blocks > 1) && frame->data <= end &&
	       frame->length <= end - frame->data;
}

/* Frames come from blocks in the order in which those were filled. */
static void check_frame(struct run *r, const struct dapl_eth_frame *frame, uint64_t *block)
{
	unsigned i;

	while (*block != r->filled && !lies_in(r, *block, frame))
		++*block;
	demand(*block != r->filled, "a frame outside of the program's blocks, or out of order");
	i = (unsigned)(*block % r->port.ring.blocks);
	r->out[i]++;
	demand(++r->seen[i] <= FRAMES, "more frames than a block has room for");
	demand(sum_bytes(frame) <= UINT8_MAX * frame->length, "a wrong sum");	/* every byte can be read */
}

static int poll_frames(struct run *r, int max)
{
	struct dapl_eth_frame frames[PLACES];
	uint64_t block = r->tail;
	int n;

	max = max < PLACES ? max : PLACES;
	dapl_mutex_lock(&r->port.lock);
	n = packet_ring_poll(&r->port, frames, max);
	dapl_mutex_unlock(&r->port.lock);
	demand(n >= 0 && n <= max, "more frames than were asked for");
	for (int i = 0; i < n; i++)
		check_frame(r, &frames[i], &block);
	note_returned(r);
	return n;
}

static uint32_t frames_out(const struct run *r)
{
	uint32_t n = 0;

	for (uint64_t i = r->tail; i != r->filled; i++)
		n += r->out[i % r->port.ring.blocks];
	return n;
}

static void release_frames(struct run *r, uint32_t n)
{
	uint32_t have = frames_out(r);
	int err;

	dapl_mutex_lock(&r->port.lock);
	err = packet_ring_release(&r->port, n);
	dapl_mutex_unlock(&r->port.lock);
	demand(err == (n > have ? EINVAL : 0), "a wrong answer to a release");
	for (uint64_t i = r->tail; !err && n; i++) {
		unsigned *out = &r->out[i % r->port.ring.blocks], some = n < *out ? n : *out;

		*out -= some;
		n -= some;
	}
	note_returned(r);
}

/* Everything is polled and released: the kernel has the ring. */
static void drain(struct run *r)
{
	while (poll_frames(r, PLACES))
		;
	release_frames(r, frames_out(r));
	demand(r->tail == r->filled, "a block without frames did not go back");
	release_frames(r, 1);
}

/* --- inputs -------------------------------------------------------------------------------- */

static uint8_t take_byte(const uint8_t **data, size_t *size)
{
	if (!*size)
		return 0;
	--*size;
	return *(*data)++;
}

static uint16_t take_pair(const uint8_t **data, size_t *size)
{
	uint16_t low = take_byte(data, size);

	return (uint16_t)(low | take_byte(data, size) << 8);
}

static bool next_record(const uint8_t **data, size_t *size, struct record *record)
{
	if (!*size)
		return false;
	*record = (struct record){ .kind = take_byte(data, size) % KINDS };
	if (record->kind != WRITE) {
		record->number = take_byte(data, size);
		return true;
	}
	record->at = take_pair(data, size);
	record->length = take_pair(data, size);
	if (record->length > *size)
		record->length = (uint16_t)*size;
	record->bytes = *data;
	*data += record->length;
	*size -= record->length;
	return true;
}

static void play(struct run *r, const struct record *record)
{
	if (record->kind == WRITE)
		write_bytes(r, record);
	else if (record->kind == HAND_OVER)
		hand_over(r, record->number);
	else if (record->kind == POLL)
		poll_frames(r, record->number);
	else
		release_frames(r, record->number);
}

/* IPv4 over a group of two; IPv6; and, as an option, all frames. */
static void set_rules(struct run *r, uint8_t options, struct eth_rule rules[RULES])
{
	static struct rule_counts counts[RULES];
	static struct rule_times times[RULES];
	uint32_t flags = ETH_ALL | (options & OUTGOING_TOO ? ETH_EGRESS : 0);

	for (int i = 0; i < RULES; i++) {
		rules[i] = (struct eth_rule){ .rule = { .mode = ETH_COPY, .flags = flags }, .joined = -1,
			.counts = &counts[i],
			.times = &times[i], .needs_headers = i < 2, .next = i + 1 < RULES ? &rules[i + 1] : NULL };
		rules[i].rule.mask.ip_version = i < 2 ? 0xff : 0;
	}
	rules[0].rule.key.ip_version = 4;
	rules[0].spread = spread;
	rules[1].rule.key.ip_version = 6;
	if (!(options & MATCH_ALL))
		rules[1].next = NULL;
	r->port.rules = rules;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const uint16_t table[2] = { 0, 1 };
	static uint8_t key[TOEPLITZ_KEY] = { 0x6d, 0x5a, 0x56, 0xda };
	const struct dapl_eth_rss rss = { .hash = { .rx_hash_key = key, .rx_hash_key_len = sizeof key }, .size = 2,
		.table = table };

	(void)argc, (void)argv;
	spread = spread_new(&rss);
	demand(spread, "no memory");
	for (size_t n = 1; n <= MAX_BLOCKS; n++) {
		uint8_t *at = mmap(NULL, (n + 2) * BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		demand(at != MAP_FAILED && !mprotect(at + BLOCK, n * BLOCK, PROT_READ | PROT_WRITE), "no memory");
		rings[n] = at + BLOCK;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t options = take_byte(&data, &size);
	uint32_t blocks = options & ONE_BLOCK ? 1 : MAX_BLOCKS;
	struct run r = { .port = { .fd = -1, .verify = options & VERIFY,
		.ring = { .map = rings[blocks], .blocks = blocks, .block_size = BLOCK } } };
	struct eth_rule rules[RULES];
	struct record record;

	dapl_mutex_init(&r.port.lock, RANK_SOFT_ETH);
	r.port.ring.use = r.use;
	memset(rings[blocks], 0, (size_t)blocks * BLOCK);
	set_rules(&r, options, rules);
	while (next_record(&data, &size, &record))
		play(&r, &record);
	drain(&r);
	return 0;
}
