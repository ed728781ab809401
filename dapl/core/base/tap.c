/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.c - see tap.h. */
#include "dapl/core/base/tap.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/file_size.h"
#include "dapl/core/base/fork.h"

struct dapl_tap dapl_tap = { .capture = 1 /* no connection was shown yet */, .plain = DAPL_TAP_NOT_PLAIN,
	.lock = DAPL_SPIN_INIT(RANK_TAP) };

static int file = -1;		/* guarded by the lock */

static void before_fork(void)
{
	dapl_spin_lock(&dapl_tap.lock);
}

static void parent_after_fork(void)
{
	dapl_spin_unlock(&dapl_tap.lock);
}

/* Called with the lock held, or when no thread is in a call. */
static void forget_ring(void)
{
	if (file >= 0)
		close(file);
	file = -1;
	dapl_tap.ring = NULL;
	dapl_tap.active = false;
	WRITE_ONCE(dapl_tap.capture, dapl_tap.capture + 1);
	WRITE_ONCE(dapl_tap.plain, DAPL_TAP_NOT_PLAIN);
}

/* The memory is not inherited (MADV_DONTFORK). */
static void child_after_fork(void)
{
	forget_ring();
	dapl_spin_unlock(&dapl_tap.lock);
}

void dapl_tap_init(void)
{
	static struct dapl_fork_part part = { .rank = RANK_TAP, .before = before_fork,
		.parent = parent_after_fork, .child = child_after_fork };

	dapl_fork_register(&part);
}

/* The file is sealed against shrinking, so that later accesses to the ring cannot raise SIGBUS. */
static int make_ring(struct tap_ring **made, int *fd)
{
	void *at;

	*fd = memfd_create("dapl-tap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	at = MAP_FAILED;
	if (!file_set_size(*fd, TAP_HEAD + TAP_SIZE) &&
	    !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		at = mmap(NULL, TAP_HEAD + TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (at == MAP_FAILED) {
		int err = errno;

		close(*fd);
		return -err;
	}
	madvise(at, TAP_HEAD + TAP_SIZE, MADV_DONTFORK);
	*made = at;
	return 0;
}

int dapl_tap_begin(uint32_t snap, uint64_t *began)
{
	uint32_t clock = ticks_are_usable() ? TAP_TICKS : TAP_REALTIME;
	struct tap_ring *new = NULL;
	int fd = -1, err;

	if (!dapl_tap.ring) {		/* only this thread, the service thread, allocates it */
		err = make_ring(&new, &fd);
		if (err)
			return err;
	}
	dapl_spin_lock(&dapl_tap.lock);
	if (new) {
		dapl_tap.ring = new;
		file = fd;
	}
	*dapl_tap.ring = (struct tap_ring){ .magic = TAP_MAGIC, .version = TAP_VERSION, .size = TAP_SIZE,
		.began = *began = clock_now_ns(), .clock = clock };
	dapl_tap.head = 0;
	dapl_tap.limit = TAP_SIZE;
	WRITE_ONCE(dapl_tap.clock, clock);
	WRITE_ONCE(dapl_tap.snap, snap < TAP_SNAP_MAX ? snap : TAP_SNAP_MAX);
	WRITE_ONCE(dapl_tap.capture, dapl_tap.capture + 1);
	WRITE_ONCE(dapl_tap.plain, clock == TAP_TICKS && snap >= TAP_INLINE ? dapl_tap.capture : DAPL_TAP_NOT_PLAIN);
	dapl_tap.active = true;
	fd = file;
	dapl_spin_unlock(&dapl_tap.lock);
	return fd;
}

void dapl_tap_end(void)
{
	dapl_spin_lock(&dapl_tap.lock);
	if (dapl_tap.active)
		WRITE_ONCE(dapl_tap.capture, dapl_tap.capture + 1);
	WRITE_ONCE(dapl_tap.plain, DAPL_TAP_NOT_PLAIN);
	dapl_tap.active = false;
	dapl_spin_unlock(&dapl_tap.lock);
}

/* Frees the pages of the file; the next capture finds zeroes. */
void dapl_tap_release(void)
{
	char *unused;

	dapl_spin_lock(&dapl_tap.lock);
	unused = dapl_tap.active || !dapl_tap.ring ? NULL : (char *)dapl_tap.ring + TAP_HEAD;
	dapl_spin_unlock(&dapl_tap.lock);
	if (unused)
		madvise(unused, TAP_SIZE, MADV_REMOVE);
}

void dapl_tap_fini(void)
{
	if (dapl_tap.ring)
		munmap(dapl_tap.ring, TAP_HEAD + TAP_SIZE);
	forget_ring();
}

/* --- entries ------------------------------------------------------------------------------------ */

/* `tail` is the client's, and may have any value. */
static uint64_t free_bytes(uint64_t tail)
{
	uint64_t used = dapl_tap.head - tail;

	assert_held(&dapl_tap.lock);
	return used <= TAP_SIZE ? TAP_SIZE - used : 0;
}

/* Reads the client's position only here, that is when the program has used up what it knew of: each look costs the
 * client a cache miss. */
bool dapl_tap_make_room(uint32_t size)
{
	uint64_t free = free_bytes(__atomic_load_n(&dapl_tap.ring->tail, __ATOMIC_ACQUIRE));
	uint64_t before_end = TAP_SIZE - dapl_tap.head % TAP_SIZE, fill = before_end < size ? before_end : 0;

	assert_held(&dapl_tap.lock);
	if (free < size + fill) {
		WRITE_ONCE(dapl_tap.ring->lost, dapl_tap.ring->lost + 1);
		return false;
	}
	if (fill) {
		*dapl_tap_at(dapl_tap.head) = (struct tap_entry){ .state = TAP_VOID, .kind = TAP_FILL };
		dapl_tap.head += fill;
		free -= fill;
		before_end = TAP_SIZE;
	}
	dapl_tap.limit = dapl_tap.head + (free < before_end ? free : before_end);
	return true;
}

/* --- what devices call ------------------------------------------------------------------------ */

bool dapl_tap_show(uint32_t qpn, uint8_t flags, const struct tap_ends *ends, uint32_t *shown)
{
	struct tap_entry *entry = NULL;

	dapl_spin_lock(&dapl_tap.lock);
	if (dapl_tap.active && (dapl_tap_has_room(TAP_LINE) || dapl_tap_make_room(TAP_LINE))) {
		entry = dapl_tap_at(dapl_tap.head);
		*entry = (struct tap_entry){ .qpn = qpn, .state = TAP_VALID, .kind = TAP_ENDS,
			.flags = flags, .ends = *ends };
		*shown = dapl_tap.capture;
		dapl_tap_publish(TAP_LINE);
	} else {
		dapl_spin_unlock(&dapl_tap.lock);
	}
	return entry;
}

void dapl_tap_cancel(const struct tap_place *place)
{
	dapl_spin_lock(&dapl_tap.lock);
	if (dapl_tap_is_shown(place->capture) && dapl_tap.head - place->at <= TAP_SIZE)	/* not overwritten */
		__atomic_store_n(&dapl_tap_at(place->at)->state, TAP_VOID, __ATOMIC_RELAXED);
	dapl_spin_unlock(&dapl_tap.lock);
}
