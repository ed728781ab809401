/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.c - see tap.h. The client may write anything into its half of the ring's head: what it says
 * only makes records get lost. */
#include "dapl/core/base/tap.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/lock.h"
#include "dapl/core/base/fork.h"

static struct dapl_spin lock = DAPL_SPIN_INIT(RANK_TAP);	/* guards what follows */
static struct tap_ring *ring;
static int file = -1;
static bool active;
static uint64_t head;		/* ring->head is a copy for the client */
static uint32_t snap_bytes;	/* atomic */
static uint32_t pending;	/* atomic: records that are not committed */

static void before_fork(void)
{
	dapl_spin_lock(&lock);
}

static void parent_after_fork(void)
{
	dapl_spin_unlock(&lock);
}

/* The memory is not inherited (MADV_DONTFORK). */
static void child_after_fork(void)
{
	if (file >= 0)
		close(file);
	file = -1;
	ring = NULL;
	active = false;
	pending = 0;
	dapl_spin_unlock(&lock);
}

void dapl_tap_init(void)
{
	static struct dapl_fork_part part = { .rank = RANK_TAP, .before = before_fork,
		.parent = parent_after_fork, .child = child_after_fork };

	dapl_fork_register(&part);
}

/* The file cannot shrink, so touching the ring cannot fail later. */
static int make_ring(struct tap_ring **made, int *fd)
{
	void *at;

	*fd = memfd_create("dapl-tap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	at = MAP_FAILED;
	if (!ftruncate(*fd, TAP_HEAD + TAP_SIZE) && !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
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
	struct tap_ring *new = NULL;
	int fd = -1, err;

	if (!ring) {		/* only this thread, the service thread, makes it */
		err = make_ring(&new, &fd);
		if (err)
			return err;
	}
	dapl_spin_lock(&lock);
	if (new) {
		ring = new;
		file = fd;
	}
	if (__atomic_load_n(&pending, __ATOMIC_ACQUIRE)) {
		dapl_spin_unlock(&lock);
		return -EBUSY;
	}
	*ring = (struct tap_ring){ .magic = TAP_MAGIC, .version = TAP_VERSION, .size = TAP_SIZE,
		.began = *began = clock_now_ns() };
	head = 0;
	__atomic_store_n(&snap_bytes, snap < TAP_SNAP_MAX ? snap : TAP_SNAP_MAX, __ATOMIC_RELAXED);
	active = true;
	fd = file;
	dapl_spin_unlock(&lock);
	return fd;
}

void dapl_tap_end(void)
{
	dapl_spin_lock(&lock);
	active = false;
	dapl_spin_unlock(&lock);
}

/* The pages of the file go; the next capture finds zeroes. */
void dapl_tap_release(void)
{
	struct tap_ring *unused;

	dapl_spin_lock(&lock);
	unused = active || __atomic_load_n(&pending, __ATOMIC_ACQUIRE) ? NULL : ring;
	dapl_spin_unlock(&lock);
	if (unused)
		madvise((char *)unused + TAP_HEAD, TAP_SIZE, MADV_REMOVE);
}

void dapl_tap_fini(void)
{
	if (ring)
		munmap(ring, TAP_HEAD + TAP_SIZE);
	if (file >= 0)
		close(file);
	ring = NULL;
	file = -1;
	active = false;
}

uint32_t dapl_tap_snap(void)
{
	return __atomic_load_n(&snap_bytes, __ATOMIC_RELAXED);
}

static struct tap_record *record_at(uint64_t at)
{
	return (struct tap_record *)((char *)ring + TAP_HEAD + at % TAP_SIZE);
}

/* Called with the lock held. Returns NULL if there are not `size` bytes without a wrap. */
static struct tap_record *take_room(uint32_t size)
{
	uint64_t used = head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE), before_end = TAP_SIZE - head % TAP_SIZE;
	struct tap_record *record = record_at(head);

	if (used > TAP_SIZE || TAP_SIZE - used < size + (before_end < size ? before_end : 0))
		return NULL;
	if (before_end < size) {
		record->size = (uint32_t)before_end;
		record->state = TAP_SKIP;
		head += before_end;
		record = record_at(head);
	}
	record->state = TAP_PENDING;
	record->size = size;
	head += size;
	__atomic_add_fetch(&pending, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
	return record;
}

struct tap_record *dapl_tap_reserve(uint32_t payload)
{
	uint32_t size = (uint32_t)((sizeof(struct tap_record) + payload + 7) & ~7ul);
	struct tap_record *record = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	dapl_spin_lock(&lock);
	if (active && !(record = take_room(size)))
		__atomic_store_n(&ring->lost, ring->lost + 1, __ATOMIC_RELAXED);
	dapl_spin_unlock(&lock);
	if (!record)
		return NULL;
	memset((char *)record + 8, 0, sizeof *record - 8);
	record->time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return record;
}

void dapl_tap_commit(struct tap_record *record, bool valid)
{
	__atomic_store_n(&record->state, valid ? TAP_VALID : TAP_SKIP, __ATOMIC_RELEASE);
	__atomic_sub_fetch(&pending, 1, __ATOMIC_RELEASE);
}
