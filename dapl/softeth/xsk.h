/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xsk.h - an AF_XDP socket of one receive queue, with memory for frames of its own (xsk.c). Not for several threads
 * at once. */
#ifndef SOFTETH_XSK_H
#define SOFTETH_XSK_H
#include <linux/if_xdp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of the rings that a socket shares with the kernel. */
struct xsk_ring {
	uint32_t *producer, *consumer, *flags;
	void *entries;
	uint32_t next, mask;		/* next: of the side that is here, without end */
	void *map;
	size_t map_size;
};

/* All 0 but fd, which is -1, before it is opened. */
struct xsk {
	int fd;
	uint8_t *memory;		/* chunks of `chunk` bytes, one for each frame */
	size_t size;
	uint32_t chunk;			/* a power of 2 */
	struct xsk_ring fill, received;	/* chunks that the kernel may use; frames */
	bool zero_copy;
	uint64_t dropped;		/* as xsk_read_drops() returned it last */
};

/* Room for a frame in a chunk of the largest size; the kernel needs the rest. */
enum { XSK_FRAME_MAX = 4096 - 256 };

/* Opens and binds a socket with room for at least this number of frames of up to max_frame bytes. Returns 0 or an
 * errno; then *tried is what failed and what it needs. xsk_close() is called in both cases. */
int xsk_open(struct xsk *x, int interface, uint32_t queue, uint32_t frames, uint32_t max_frame, const char **tried);
void xsk_close(struct xsk *x);
bool xsk_has_frame(const struct xsk *x);
/* Takes the next frame. It is the caller's until xsk_give(). Returns false if there is none. */
bool xsk_take(struct xsk *x, struct xdp_desc *frame);
/* Gives the chunk of a frame back, with the next xsk_commit(). */
void xsk_give(struct xsk *x, uint64_t address);
/* Shows the kernel what was taken and given. Returns true if it had no chunk left before, so frames may have been
 * lost. */
bool xsk_commit(struct xsk *x);
/* Frames that the kernel had no room for, since the last call. */
uint64_t xsk_read_drops(struct xsk *x);

#endif
