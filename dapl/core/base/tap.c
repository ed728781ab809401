/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.c - see tap.h. The client may write anything into its half of the ring's head: a wrong value there
 * only makes records get lost. */
#include "dapl/core/base/tap.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/file_size.h"
#include "common/lock.h"
#include "dapl/core/base/fork.h"

static struct dapl_spin lock = DAPL_SPIN_INIT(RANK_TAP);	/* guards what follows */
static struct tap_ring *ring;
static int file = -1;
static bool active;
static uint64_t head;		/* ring->head is a copy for the client */
static uint64_t tail;		/* ring->tail as last read. Not read again while there is room, to spare the
				 * client's cache line */
static uint32_t snap_bytes;	/* atomic */
static uint32_t capture;	/* atomic: number of the capture, from 1 on */

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
	dapl_spin_unlock(&lock);
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
	struct tap_ring *new = NULL;
	int fd = -1, err;

	if (!ring) {		/* only this thread, the service thread, allocates it */
		err = make_ring(&new, &fd);
		if (err)
			return err;
	}
	dapl_spin_lock(&lock);
	if (new) {
		ring = new;
		file = fd;
	}
	*ring = (struct tap_ring){ .magic = TAP_MAGIC, .version = TAP_VERSION, .size = TAP_SIZE,
		.began = *began = clock_now_ns() };
	head = tail = 0;
	__atomic_store_n(&capture, capture + 1 ? capture + 1 : 1, __ATOMIC_RELAXED);
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

/* Frees the pages of the file; the next capture finds zeroes. */
void dapl_tap_release(void)
{
	struct tap_ring *unused;

	dapl_spin_lock(&lock);
	unused = active ? NULL : ring;
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

uint32_t dapl_tap_capture(void)
{
	return __atomic_load_n(&capture, __ATOMIC_RELAXED);
}

/* --- entries; the functions here are called with the lock held -------------------------------- */

static struct tap_entry *entry_at(uint64_t at)
{
	return (struct tap_entry *)((char *)ring + TAP_HEAD + at % TAP_SIZE);
}

static bool has_room(uint64_t bytes)
{
	return head - tail <= TAP_SIZE && TAP_SIZE - (head - tail) >= bytes;
}

/* Returns NULL if there are not `size` bytes without a wrap. */
static struct tap_entry *take_room(uint32_t size)
{
	uint64_t before_end = TAP_SIZE - head % TAP_SIZE, fill = before_end < size ? before_end : 0;
	struct tap_entry *entry;

	if (!has_room(size + fill)) {
		tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		if (!has_room(size + fill))
			return NULL;
	}
	if (fill) {
		entry = entry_at(head);
		entry->size = (uint32_t)fill;
		entry->state = TAP_SKIP;
		head += fill;
	}
	entry = entry_at(head);
	head += size;
	return entry;
}

static uint32_t parts_of(const struct tap_record *record, bool ends)
{
	uint32_t parts = ends ? TAP_PART_ENDS : 0;

	if (record->op != TAP_SEND)
		parts |= TAP_PART_MEMORY;
	if (record->op == TAP_CMP_SWAP || record->op == TAP_FETCH_ADD)
		parts |= TAP_PART_ATOMIC;
	return parts;
}

static char *append(char *to, const void *bytes, size_t n)
{
	memcpy(to, bytes, n);
	return to + n;
}

static void write_entry(struct tap_entry *entry, const struct tap_record *r, uint32_t size, uint32_t parts,
			const struct iovec *payload)
{
	char *to = (char *)(entry + 1);
	uint32_t left = r->captured;

	*entry = (struct tap_entry){ .size = size, .state = TAP_VALID, .kind = r->kind, .op = r->op, .flags = r->flags,
		.time = r->time, .qpn = r->qpn, .length = r->length, .captured = r->captured, .word = r->word,
		.parts = parts };
	if (parts & TAP_PART_MEMORY)
		to = append(to, &r->memory, sizeof r->memory);
	if (parts & TAP_PART_ATOMIC)
		to = append(to, &r->atomic, sizeof r->atomic);
	if (parts & TAP_PART_ENDS)
		to = append(to, &r->ends, sizeof r->ends);
	for (; left; payload++) {
		uint32_t n = left < payload->iov_len ? left : (uint32_t)payload->iov_len;

		to = append(to, payload->iov_base, n);
		left -= n;
	}
}

static bool put_locked(const struct tap_record *record, uint32_t *shown, const struct iovec *payload,
		       struct tap_place *place)
{
	uint32_t parts = parts_of(record, *shown != capture);
	uint32_t size = (uint32_t)sizeof(struct tap_entry) + record->captured;
	struct tap_entry *entry;

	size += parts & TAP_PART_MEMORY ? sizeof record->memory : 0;
	size += parts & TAP_PART_ATOMIC ? sizeof record->atomic : 0;
	size += parts & TAP_PART_ENDS ? sizeof record->ends : 0;
	size = (size + 7) & ~7u;
	if (!(entry = take_room(size))) {
		__atomic_store_n(&ring->lost, ring->lost + 1, __ATOMIC_RELAXED);
		return false;
	}
	write_entry(entry, record, size, parts, payload);
	*place = (struct tap_place){ head - size, capture };
	*shown = capture;
	__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
	return true;
}

/* --- what devices call ------------------------------------------------------------------------ */

/* HOT: for each message during a capture. */
bool dapl_tap_put(const struct tap_record *record, uint32_t *shown, const struct iovec *payload,
		  struct tap_place *place)
{
	bool put;

	dapl_spin_lock(&lock);
	put = active && (*shown == capture || record->ends.local.family) && put_locked(record, shown, payload, place);
	dapl_spin_unlock(&lock);
	return put;
}

void dapl_tap_cancel(const struct tap_place *place)
{
	dapl_spin_lock(&lock);
	if (ring && place->capture == capture && head - place->at <= TAP_SIZE)	/* otherwise the record was
										 * overwritten */
		__atomic_store_n(&entry_at(place->at)->state, TAP_SKIP, __ATOMIC_RELAXED);
	dapl_spin_unlock(&lock);
}
