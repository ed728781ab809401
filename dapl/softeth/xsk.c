/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xsk.c - AF_XDP sockets: their memory, and the rings by which chunks of it go to the kernel and come back as frames.
 * Rings have room for all chunks, so they never overflow. What the kernel wrote about a frame is checked all the
 * same, so that nothing outside of the memory is read.
 *
 * The rings are mapped here and not by libxdp: that would bring libbpf and libelf for some lines of code. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "dapl/softeth/xsk.h"

enum {
	SMALL_CHUNK = 2048, LARGE_CHUNK = 4096,		/* bytes; a chunk may not exceed a page */
	HEADROOM = LARGE_CHUNK - XSK_FRAME_MAX,		/* XDP_PACKET_HEADROOM */
	COMPLETIONS = 64,		/* a socket must have this ring, though it does not send */
	FRAMES_MAX = 1 << 20,
	BUSY_TRIES = 1000, BUSY_US = 1000,
};

static int set(int fd, int option, const void *value, size_t size)
{
	return setsockopt(fd, SOL_XDP, option, value, (socklen_t)size) ? errno : 0;
}

static int map_ring(struct xsk_ring *ring, int fd, const struct xdp_ring_offset *at, uint32_t entries, size_t size,
		    off_t page_offset)
{
	uint8_t *map = mmap(NULL, at->desc + entries * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			    page_offset);

	if (map == MAP_FAILED)
		return errno;
	*ring = (struct xsk_ring){ .producer = (uint32_t *)(map + at->producer),
		.consumer = (uint32_t *)(map + at->consumer), .flags = (uint32_t *)(map + at->flags),
		.entries = map + at->desc, .mask = entries - 1, .map = map, .map_size = at->desc + entries * size };
	return 0;
}

static int make_memory(struct xsk *x, uint32_t frames)
{
	struct xdp_umem_reg memory = { .chunk_size = x->chunk };
	void *map;

	x->size = (size_t)frames * x->chunk;
	map = mmap(NULL, x->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (map == MAP_FAILED)
		return errno;
	x->memory = map;
	memory.addr = (uintptr_t)map;
	memory.len = x->size;
	return set(x->fd, XDP_UMEM_REG, &memory, sizeof memory);
}

static int make_rings(struct xsk *x, uint32_t frames)
{
	const uint32_t completions = COMPLETIONS;
	struct xdp_mmap_offsets at;
	socklen_t size = sizeof at;
	int err;

	if ((err = set(x->fd, XDP_UMEM_FILL_RING, &frames, sizeof frames)) ||
	    (err = set(x->fd, XDP_UMEM_COMPLETION_RING, &completions, sizeof completions)) ||
	    (err = set(x->fd, XDP_RX_RING, &frames, sizeof frames)))
		return err;
	if (getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size))
		return errno;
	if ((err = map_ring(&x->fill, x->fd, &at.fr, frames, sizeof(uint64_t), XDP_UMEM_PGOFF_FILL_RING)) ||
	    (err = map_ring(&x->received, x->fd, &at.rx, frames, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING)))
		return err;
	for (uint32_t i = 0; i < frames; i++)
		xsk_give(x, (uint64_t)i * x->chunk);
	__atomic_store_n(x->fill.producer, x->fill.next, __ATOMIC_RELEASE);
	return 0;
}

/* The kernel frees the queue of a socket some time after its close. */
static int bind_patiently(int fd, const struct sockaddr_xdp *at)
{
	for (int i = 0; bind(fd, (const struct sockaddr *)at, sizeof *at); i++) {
		if (errno != EBUSY || i == BUSY_TRIES)
			return errno;
		usleep(BUSY_US);
	}
	return 0;
}

/* The kernel copies frames where the driver has no zero copy. */
static int bind_queue(struct xsk *x, int interface, uint32_t queue)
{
	struct sockaddr_xdp at = { .sxdp_family = AF_XDP, .sxdp_ifindex = (uint32_t)interface, .sxdp_queue_id = queue,
		.sxdp_flags = XDP_USE_NEED_WAKEUP };
	struct xdp_options options = { 0 };
	socklen_t size = sizeof options;
	int err = bind_patiently(x->fd, &at);

	if (err)
		return err;
	x->zero_copy = !getsockopt(x->fd, SOL_XDP, XDP_OPTIONS, &options, &size) &&
		       (options.flags & XDP_OPTIONS_ZEROCOPY);
	return 0;
}

int xsk_open(struct xsk *x, int interface, uint32_t queue, uint32_t frames, uint32_t max_frame, const char **tried)
{
	uint32_t size = COMPLETIONS;
	int err;

	while (size < frames && size < FRAMES_MAX)
		size *= 2;
	x->chunk = max_frame <= SMALL_CHUNK - HEADROOM ? SMALL_CHUNK : LARGE_CHUNK;
	*tried = "a frame of the device's MTU must fit into 3840 bytes";
	if (max_frame > XSK_FRAME_MAX)
		return EMSGSIZE;
	*tried = "socket(AF_XDP) needs CAP_NET_RAW";
	if ((x->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)) < 0)
		return errno;
	*tried = "memory for frames needs CAP_IPC_LOCK or a larger limit of locked memory (ulimit -l)";
	if ((err = make_memory(x, size)) || (err = make_rings(x, size)))
		return err;
	*tried = "the socket cannot be bound to a receive queue, of which another program may have one";
	return bind_queue(x, interface, queue);
}

static void unmap(void *map, size_t size)
{
	if (map)
		munmap(map, size);
}

void xsk_close(struct xsk *x)
{
	unmap(x->fill.map, x->fill.map_size);
	unmap(x->received.map, x->received.map_size);
	if (x->fd >= 0)
		close(x->fd);
	unmap(x->memory, x->size);
}

bool xsk_has_frame(const struct xsk *x)
{
	return __atomic_load_n(x->received.producer, __ATOMIC_ACQUIRE) != x->received.next;
}

static bool lies_in_memory(const struct xsk *x, const struct xdp_desc *frame)
{
	return frame->addr < x->size && frame->len <= x->chunk - (frame->addr & (x->chunk - 1));
}

bool xsk_take(struct xsk *x, struct xdp_desc *frame)
{
	while (xsk_has_frame(x)) {
		*frame = ((const struct xdp_desc *)x->received.entries)[x->received.next++ & x->received.mask];
		if (lies_in_memory(x, frame))
			return true;
	}
	return false;
}

void xsk_give(struct xsk *x, uint64_t address)
{
	((uint64_t *)x->fill.entries)[x->fill.next++ & x->fill.mask] = address & ~(uint64_t)(x->chunk - 1);
}

bool xsk_commit(struct xsk *x)
{
	uint32_t given = *x->fill.producer;
	bool was_empty = __atomic_load_n(x->fill.consumer, __ATOMIC_ACQUIRE) == given;

	__atomic_store_n(x->received.consumer, x->received.next, __ATOMIC_RELEASE);
	if (given != x->fill.next)
		__atomic_store_n(x->fill.producer, x->fill.next, __ATOMIC_RELEASE);
	if (__atomic_load_n(x->fill.flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP)
		recvfrom(x->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	return was_empty && given != x->fill.next;
}

/* A frame that found no chunk counts as dropped, and its failed look at the fill ring counts once more, as
 * rx_fill_ring_empty_descs. Before Linux 5.9 rx_dropped has all, and the rest is not written. */
uint64_t xsk_read_drops(struct xsk *x)
{
	struct xdp_statistics now = { 0 };
	socklen_t size = sizeof now;
	uint64_t before = x->dropped;

	if (getsockopt(x->fd, SOL_XDP, XDP_STATISTICS, &now, &size))
		return 0;
	x->dropped = now.rx_dropped + now.rx_ring_full;
	return x->dropped - before;
}
