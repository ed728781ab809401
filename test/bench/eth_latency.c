/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_latency.c - time from a frame's departure to its reader, which polls or blocks: raw Ethernet endpoints beside
 * bare packet sockets, for test/bench/eth-run.
 *
 *	eth_latency IA FROM TO RATE FRAMES ROUNDS
 *
 * A thread sends frames on the device FROM, each with the time at which it is handed to the kernel. The readers on the
 * device TO, which is that of IA, take turns, so that what else the machine does meets them all. Sender and reader
 * have a processor each, 0 and 1. The sender sleeps between frames: then the service thread of a reader that blocks has
 * a processor, too, if it needs one. The bare rings have the blocks and the time-out of those of the software device
 * (packet_ring.c). */
#include <arpa/inet.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	TEST_TYPE = 0x88b5, LENGTH = 64, STAMP = 16,	/* bytes; STAMP: the offset of the time */
	BLOCK_SIZE = 128 << 10, BLOCKS = 13, RETIRE_MS = 2,
	RING_FRAMES = 1024,		/* these make BLOCKS of it, at an MTU of 1500 */
	RECEIVES = 256, SLOT = 2048, BATCH = 64,
	WAIT_US = 100000,		/* us; a reader that blocks looks so often whether the turn ends */
	SETTLED = 10,			/* a tenth of the frames, the first ones, is not counted */
};

static const char *ia_name, *from, *to;
static uint64_t rate, frame_count, rounds;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pin(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof set, &set);		/* else where the kernel puts it */
}

/* --- sender --------------------------------------------------------------------------------------------------- */

static int packet_socket(const char *netdev, int protocol)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons((uint16_t)protocol),
		.sll_ifindex = (int)if_nametoindex(netdev) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0 || !at.sll_ifindex || bind(fd, (struct sockaddr *)&at, sizeof at))
		die(netdev);
	return fd;
}

static bool sender_ended;	/* atomic */

static void *send_frames(void *unused)
{
	static uint8_t frame[LENGTH];
	int fd = packet_socket(from, 0), one = 1;
	uint64_t due;

	(void)unused;
	pin(0);
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
	memcpy(frame, "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x88\xb5", 14);
	due = now_ns();
	for (uint64_t i = 0; i < frame_count; i++) {
		const struct timespec at = { .tv_sec = (time_t)(due / 1000000000),
			.tv_nsec = (long)(due % 1000000000) };
		uint64_t time;

		/* the service thread may have the processor */
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		time = now_ns();
		memcpy(frame + STAMP, &time, sizeof time);
		if (send(fd, frame, sizeof frame, 0) != sizeof frame)
			die("send");
		due += 1000000000 / rate;
	}
	close(fd);
	__atomic_store_n(&sender_ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* --- what a reader found ----------------------------------------------------------------------------------------- */

static uint64_t *times;		/* ns, of the frames of all rounds of one reader */
static uint64_t time_count, seen;	/* seen: in this round */

static void take(const uint8_t *frame)
{
	uint64_t sent;

	if (frame[12] != TEST_TYPE >> 8 || frame[13] != (TEST_TYPE & 255) || seen == frame_count)
		return;
	memcpy(&sent, frame + STAMP, sizeof sent);
	if (seen++ >= frame_count / SETTLED)
		times[time_count++] = now_ns() - sent;
}

/* --- bare packet sockets ------------------------------------------------------------------------------------------ */

static int fd;
static uint8_t *map;
static unsigned at_block;

static void open_socket(void)
{
	int size = 8 << 20;

	fd = packet_socket(to, ETH_P_ALL);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
}

static void poll_socket(void)
{
	uint8_t frame[SLOT];

	if (recv(fd, frame, sizeof frame, MSG_DONTWAIT) >= LENGTH)
		take(frame);
}

static void open_blocking_socket(void)
{
	struct timeval limit = { .tv_usec = WAIT_US };

	open_socket();
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static void wait_for_socket(void)
{
	uint8_t frame[SLOT];

	if (recv(fd, frame, sizeof frame, 0) >= LENGTH)
		take(frame);
}

static void open_ring(void)
{
	struct tpacket_req3 request = { .tp_block_size = BLOCK_SIZE, .tp_block_nr = BLOCKS, .tp_frame_size = 2048,
		.tp_frame_nr = BLOCK_SIZE / 2048 * BLOCKS, .tp_retire_blk_tov = RETIRE_MS,
		.tp_feature_req_word = TP_FT_REQ_FILL_RXHASH };
	int version = TPACKET_V3;

	fd = packet_socket(to, ETH_P_ALL);
	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request))
		die("PACKET_RX_RING");
	map = mmap(NULL, (size_t)BLOCKS * BLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die("mmap");
	at_block = 0;
}

static void poll_ring(void)
{
	struct tpacket_block_desc *b = (struct tpacket_block_desc *)(map + (size_t)at_block * BLOCK_SIZE);
	const uint8_t *h;

	if (!(__atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
		return;
	h = (const uint8_t *)b + b->hdr.bh1.offset_to_first_pkt;
	for (uint32_t i = 0; i < b->hdr.bh1.num_pkts; i++) {
		take(h + ((const struct tpacket3_hdr *)h)->tp_mac);
		h += ((const struct tpacket3_hdr *)h)->tp_next_offset;
	}
	__atomic_store_n(&b->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	at_block = (at_block + 1) % BLOCKS;
}

static void close_socket(void)
{
	if (map)
		munmap(map, (size_t)BLOCKS * BLOCK_SIZE);
	map = NULL;
	close(fd);
}

/* --- raw endpoints ---------------------------------------------------------------------------------------------- */

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE received;
static DAT_EP_HANDLE ep;
static DAT_LMR_CONTEXT context;
static uint8_t memory[RECEIVES * SLOT];

static void check(const char *call, DAT_RETURN ret)
{
	const char *major = "?", *minor = "?";

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &major, &minor);
	fprintf(stderr, "eth_latency: %s: %s %s\n", call, major, minor);
	exit(1);
}
#define CHECK(call) check(#call, (call))

static void open_endpoint(DAT_NAMED_ATTR *named, int named_count)
{
	DAT_EP_ATTR attr = { .service_type = DAT_ETH_SERVICE_TYPE_RAW, .qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = named_count ? 0 : RECEIVES, .max_recv_iov = named_count ? 0 : 1,
		.ep_provider_specific_count = named_count, .ep_provider_specific = named };
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_ETH_RULE any = { .mode = DAT_ETH_COPY };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_ETH_RULE_HANDLE rule;
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;
	DAT_VLEN length;
	DAT_VADDR address;

	CHECK(dat_ia_open((char *)ia_name, 8, &async, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_evd_create(ia, RECEIVES, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &received));
	CHECK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			     &lmr, &context, NULL, &length, &address));
	CHECK(dat_ep_create(ia, pz, received, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &ep));
	CHECK(dat_eth_rule_add(ep, &any, &rule));
}

static void post(uint64_t slot)
{
	DAT_LMR_TRIPLET iov = { .lmr_context = context, .segment_length = SLOT,
		.virtual_address = (uintptr_t)memory + slot * SLOT };

	CHECK(dat_ep_post_recv(ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = slot }, DAT_COMPLETION_DEFAULT_FLAG));
}

static void open_posted(void)
{
	open_endpoint(NULL, 0);
	for (uint64_t slot = 0; slot < RECEIVES; slot++)
		post(slot);
}

static void take_posted(const DAT_EVENT *event)
{
	uint64_t slot = event->event_data.dto_completion_event_data.user_cookie.as_64;

	take(memory + slot * SLOT);
	post(slot);
}

static void poll_posted(void)
{
	DAT_EVENT event;

	if (dat_evd_dequeue(received, &event) == DAT_SUCCESS)
		take_posted(&event);
}

static void wait_for_posted(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	if (dat_evd_wait(received, WAIT_US, 1, &event, &more) == DAT_SUCCESS)
		take_posted(&event);
}

static void open_endpoint_ring(void)
{
	static char frames[12];
	DAT_NAMED_ATTR named[] = { { "eth_receive", "ring" }, { "eth_frames", frames } };

	snprintf(frames, sizeof frames, "%d", RING_FRAMES);
	open_endpoint(named, 2);
}

static void poll_endpoint_ring(void)
{
	DAT_ETH_FRAME frames[BATCH];
	DAT_COUNT got;

	if (dat_eth_poll(ep, frames, BATCH, &got) != DAT_SUCCESS)
		return;
	for (DAT_COUNT i = 0; i < got; i++)
		take(frames[i].data);
	CHECK(dat_eth_release(ep, got));
}

static void close_endpoint(void)
{
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- turns and rows --------------------------------------------------------------------------------------------- */

enum { POSTED, POSTED_WAIT, RING, BARE_SOCKET, BARE_SOCKET_WAIT, BARE_RING, READERS };

static struct reader {
	const char *name;
	void (*open)(void), (*poll)(void), (*close)(void);
	const struct reader *bare;	/* what it is compared with, or NULL */
	uint64_t *times, count;
} readers[READERS] = {
	[POSTED] = { "endpoint, posted receives, dat_evd_dequeue",
		     open_posted, poll_posted, close_endpoint, &readers[BARE_SOCKET], NULL, 0 },
	[POSTED_WAIT] = { "endpoint, posted receives, dat_evd_wait",
			  open_posted, wait_for_posted, close_endpoint, &readers[BARE_SOCKET_WAIT], NULL, 0 },
	[RING] = { "endpoint, ring, dat_eth_poll",
		   open_endpoint_ring, poll_endpoint_ring, close_endpoint, &readers[BARE_RING], NULL, 0 },
	[BARE_SOCKET] = { "bare socket, recv that polls", open_socket, poll_socket, close_socket, NULL, NULL, 0 },
	[BARE_SOCKET_WAIT] = { "bare socket, recv that blocks",
			       open_blocking_socket, wait_for_socket, close_socket, NULL, NULL, 0 },
	[BARE_RING] = { "bare ring, TPACKET_V3", open_ring, poll_ring, close_socket, NULL, NULL, 0 },
};

/* The service thread of the IA, which is made here, keeps all processors. */
static void turn(struct reader *r)
{
	uint64_t end = 0;
	cpu_set_t all;
	pthread_t sender;

	times = r->times;
	time_count = r->count;
	seen = 0;
	sched_getaffinity(0, sizeof all, &all);
	r->open();
	sender_ended = false;
	if (pthread_create(&sender, NULL, send_frames, NULL))
		die("pthread_create");
	pin(1);
	while (seen < frame_count && (!end || now_ns() < end)) {
		r->poll();
		if (!end && __atomic_load_n(&sender_ended, __ATOMIC_ACQUIRE))
			end = now_ns() + 500000000;	/* what has not come by then is lost */
	}
	pthread_join(sender, NULL);
	r->close();
	sched_setaffinity(0, sizeof all, &all);
	r->count = time_count;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double percentile(const struct reader *r, unsigned percent)
{
	return r->count ? (double)r->times[(r->count - 1) * percent / 100] / 1e3 : 0;
}

static void row(const struct reader *r)
{
	uint64_t expected = (frame_count - frame_count / SETTLED) * rounds;

	printf("  %-44s p50 %8.2f us, p99 %8.2f us", r->name, percentile(r, 50), percentile(r, 99));
	if (r->bare && r->bare->count)
		printf(", %.2f and %.2f of %s", percentile(r, 50) / percentile(r->bare, 50),
		       percentile(r, 99) / percentile(r->bare, 99), r->bare->name);
	if (r->count != expected)
		printf("; %llu of %llu lost", (unsigned long long)(expected - r->count), (unsigned long long)expected);
	printf("\n");
}

int main(int argc, char **argv)
{
	if (argc != 7 || !(rate = strtoull(argv[4], NULL, 10)) || !(frame_count = strtoull(argv[5], NULL, 10)) ||
	    !(rounds = strtoull(argv[6], NULL, 10))) {
		fprintf(stderr, "usage: eth_latency IA FROM TO RATE FRAMES ROUNDS\n");
		return 2;
	}
	ia_name = argv[1];
	from = argv[2];
	to = argv[3];
	for (int i = 0; i < READERS; i++)
		if (!(readers[i].times = calloc(frame_count * rounds, sizeof *readers[i].times)))
			die("calloc");
	for (uint64_t round = 0; round < rounds; round++)
		for (int i = 0; i < READERS; i++)
			turn(&readers[i]);
	for (int i = 0; i < READERS; i++)
		qsort(readers[i].times, readers[i].count, sizeof *readers[i].times, compare);
	for (int i = 0; i < READERS; i++)
		row(&readers[i]);
	for (int i = 0; i < READERS; i++)
		free(readers[i].times);
	return 0;
}
