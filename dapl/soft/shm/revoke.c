/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* revoke.c - revokes direct write access (revoke.h): lists the accesses of peers, and waits for
 * them. A writer says that it is within a write before it looks for the permission. A target
 * unpublishes the permission before it looks for writers. Each side has a full fence between the two,
 * so that at least one sees the other.
 *
 * A writer leaves a write after a microsecond, unless it lost its processor there or was stopped.
 * It must do no harm when it goes on. Therefore the kernel's copy is described by an iovec in a
 * window: a page of a file of the target that the initiator has mapped privately. The target
 * truncates the file, which removes the iovec. */
#include "dapl/soft/shm/revoke.h"
#include "common/clock.h"
#include "common/compiler.h"
#include "common/container_of.h"
#include "common/file_size.h"
#include "common/lock.h"
#include "common/log.h"
#include "common/once.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/reach.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --- the target: its file ------------------------------------------------------------------------ */

/* Closes the open window: a writer that found it before this has no iovec for the kernel any more. */
static void close_window(struct shm_process *process)
{
	struct shm_mr_dir *mr_dir = process->mr_dir;
	uint64_t end;

	dapl_mutex_lock(&process->reach_lock);
	end = mr_dir->window;
	if (end) {
		__atomic_store_n(&mr_dir->window, end - WINDOW_SIZE, __ATOMIC_SEQ_CST);
		if (file_set_size(process->window_file, end))
			log_line(LOG_BIT_ERROR, "soft: cannot shrink the file that grants access to memory: %s",
				 strerror(errno));
	}
	dapl_mutex_unlock(&process->reach_lock);
}

/* --- the target: accesses ------------------------------------------------------------------------- */

static bool is_within(const struct shm_access *access)
{
	return __atomic_load_n(&access->writer->within, __ATOMIC_ACQUIRE);
}

static void watch(struct dapl_conn *conn)
{
	struct shm_access *access = shm_own_access(conn);
	struct dapl_device *dev = conn->dev;

	access->granted = true;
	dapl_spin_lock(&dev->accesses.lock);
	if (!access->segment) {
		access->segment = shm_segment_get(conn->shm->segment);
		access->peer = conn->shm->peer;
		access->own = conn->shm->own;
		access->writer = shm_peer_writer(conn);
		access->connected = true;
		LIST_INSERT_HEAD(&dev->accesses.list, access, link);
	}
	dapl_spin_unlock(&dev->accesses.lock);
}

/* access_lock held. Returns the reference to the segment. */
static struct shm_segment *take_off_list(struct shm_access *access)
{
	struct shm_segment *segment = access->segment;

	LIST_REMOVE(access, link);
	access->segment = NULL;
	return segment;
}

/* Returns an access whose connection is gone, and that this round has not looked at, with a reference to its
 * segment; or NULL. */
static struct shm_access *next_orphan(struct dapl_device *dev, struct shm_segment **segment)
{
	struct shm_access *access;

	dapl_spin_lock(&dev->accesses.lock);
	LIST_FOREACH(access, &dev->accesses.list, link)
		if (!access->connected && access->looked != dev->accesses.looks) {
			access->looked = dev->accesses.looks;
			*segment = shm_segment_get(access->segment);
			break;
		}
	dapl_spin_unlock(&dev->accesses.lock);
	return access;
}

/* On the service thread: drops the accesses of connections that are gone, as soon as the peer has left
 * the write or has ended. A process that is killed closes its sockets before it counts as ended, so
 * its connection is gone first. */
static void drop_orphans(struct dapl_timer *timer)
{
	struct dapl_device *dev = container_of(timer, struct dapl_device, accesses.timer);
	struct shm_segment *segment, *dropped;
	struct shm_access *access;
	bool ended, all = true;

	dev->accesses.looks++;
	while ((access = next_orphan(dev, &segment))) {
		ended = !is_within(access) || reach_process_has_ended(access->peer);
		all &= ended;
		if (ended) {
			dapl_spin_lock(&dev->accesses.lock);
			dropped = take_off_list(access);
			dapl_spin_unlock(&dev->accesses.lock);
			shm_segment_put(dropped);
		}
		shm_segment_put(segment);
	}
	if (!all)
		dapl_timer_start(timer, REVOKE_ORPHAN_US, drop_orphans);
}

void revoke_unwatch(struct dapl_conn *conn)
{
	struct shm_access *access = shm_own_access(conn);
	struct dapl_device *dev = conn->dev;
	struct shm_segment *segment = NULL;
	bool orphaned;

	dapl_spin_lock(&dev->accesses.lock);
	access->connected = false;
	if (access->segment && !is_within(access))
		segment = take_off_list(access);
	orphaned = access->segment;
	dapl_spin_unlock(&dev->accesses.lock);
	shm_segment_put(segment);
	if (orphaned)
		dapl_timer_start(&dev->accesses.timer, REVOKE_ORPHAN_US, drop_orphans);
}

void revoke_close(struct dapl_device *dev)
{
	struct shm_access *access;

	dapl_timer_drain(&dev->accesses.timer);
	while ((access = LIST_FIRST(&dev->accesses.list)))
		shm_segment_put(take_off_list(access));
}

/* --- the target: access grants, one for each connection --------------------------------------- */

/* Waits a few microseconds until the peer, whose permission was unpublished before, is not within a
 * write. Returns false if it still is. Does not sleep: a lock may be held. */
static bool revoke_is_done(const struct shm_access *access)
{
	for (int i = 0; i < REVOKE_SPINS; i++) {
		if (likely(!is_within(access)))
			return true;
		dapl_pause();
	}
	return false;
}

void shm_grant_open(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct ring_grant *grant;

	assert_held(&qp->lock);
	if (!conn->shm || !conn->dev->want_direct || qp->state != IBV_QPS_RTS)
		return;
	grant = shm_own_grant(conn->shm);
	__atomic_store_n(&grant->pd, ((struct soft_pd *)qp->qp.pd)->id, __ATOMIC_RELEASE);
	watch(conn);
}

bool shm_grant_revoke(struct dapl_conn *conn)
{
	struct shm_access *access;

	if (!conn->shm)
		return true;
	access = shm_own_access(conn);
	if (access->granted) {
		access->granted = false;
		WRITE_ONCE(shm_own_grant(conn->shm)->pd, 0);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (unlikely(READ_ONCE(shm_peer_writer(conn)->maps)))
			reach_fence_peers();
	}
	return !access->writer || revoke_is_done(access);
}

/* --- the target: waiting for writers ---------------------------------------------------------- */

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = REVOKE_NAP_US * 1000 }, NULL);
}

/* Called repeatedly until it returns true: the peer has left the write, its process has ended, or it is
 * given up. A peer that has lost its processor will leave the write. A peer that was stopped is cut
 * off; the time after that is for a copy that had just begun. Does not sleep. */
static bool revocation_step(struct revocation *revocation)
{
	struct shm_access *access = revocation->access;
	uint64_t waited = clock_now_ns() - revocation->begun_ns;
	bool timed_out = READ_ONCE(access->timed_out);

	if (!is_within(access) || reach_process_has_ended(access->peer))
		return true;
	if (!revocation->cut_off && (timed_out || waited >= REVOKE_CUT_OFF_NS)) {
		revocation->cut_off = true;
		if (access->own->window_file >= 0)
			close_window(access->own);
	}
	if (timed_out)
		return true;
	if (waited < REVOKE_GIVE_UP_NS)
		return false;
	WRITE_ONCE(access->timed_out, true);
	log_line(LOG_BIT_ERROR, "soft: a write of a peer to revoked memory has not ended for a second, expected "
		 "microseconds; no longer waiting for it");
	return true;
}

static void wait_without_lock(struct revocation *revocation)
{
	assert_no_lock_held();
	if (revoke_is_done(revocation->access))
		return;
	while (!revocation_step(revocation))
		nap();
}

/* Finds an access that this revocation has to wait for, with a reference to its segment. */
static struct shm_access *next_writer(struct dapl_device *dev, uint64_t number,
				      struct shm_segment **segment)
{
	struct shm_access *access;

	dapl_spin_lock(&dev->accesses.lock);
	LIST_FOREACH(access, &dev->accesses.list, link) {
		if (access->waited >= number)
			continue;
		if (is_within(access)) {
			*segment = shm_segment_get(access->segment);
			break;
		}
		access->waited = number;
	}
	dapl_spin_unlock(&dev->accesses.lock);
	return access;
}

/* The number is taken after the region was unpublished. So an access that was waited for by a
 * revocation with a higher number has left what it began before this one, too. */
void revoke_wait_for_writers(struct dapl_device *dev)
{
	uint64_t number = __atomic_add_fetch(&dev->accesses.revocations, 1, __ATOMIC_SEQ_CST);
	struct shm_segment *segment;
	struct shm_access *access;

	assert_no_lock_held();
	while ((access = next_writer(dev, number, &segment))) {
		struct revocation revocation = { .access = access, .begun_ns = clock_now_ns() };

		wait_without_lock(&revocation);
		dapl_spin_lock(&dev->accesses.lock);
		if (access->waited < number)
			access->waited = number;
		dapl_spin_unlock(&dev->accesses.lock);
		shm_segment_put(segment);
	}
}

/* --- the target: a QP that is flushed after a revocation -------------------------------------------- */

/* dev->qps_lock held. Returns true if the QP need not be looked at again. */
static bool flush_if_over(struct soft_qp *qp)
{
	struct shm_segment *segment;

	assert_held(&qp->dev->qps_lock);
	if (!__atomic_load_n(&qp->flush_waits, __ATOMIC_ACQUIRE))
		return true;
	segment = qp->revocation.segment;
	if (!revocation_step(&qp->revocation))
		return false;
	dapl_mutex_lock(&qp->lock);
	qp->flush_waits = false;
	soft_qp_end_flush(qp);
	dapl_mutex_unlock(&qp->lock);
	shm_segment_put(segment);
	return true;
}

/* On the service thread. */
static void flush_due(struct dapl_timer *timer)
{
	struct dapl_device *dev = container_of(timer, struct dapl_device, accesses.flush_timer);
	bool all = true;
	struct soft_qp *qp;

	dapl_mutex_lock(&dev->qps_lock);
	LIST_FOREACH(qp, &dev->qps, link)
		all &= flush_if_over(qp);
	dapl_mutex_unlock(&dev->qps_lock);
	if (!all)
		dapl_timer_start(timer, REVOKE_NAP_US, flush_due);
}

void revoke_before_flush(struct soft_qp *qp, struct shm_access *access)
{
	assert_held(&qp->lock);
	qp->revocation = (struct revocation){
		.access = access, .segment = shm_segment_get(qp->conn->shm->segment),
		.begun_ns = clock_now_ns(),
	};
	__atomic_store_n(&qp->flush_waits, true, __ATOMIC_RELEASE);
	dapl_timer_start(&qp->dev->accesses.flush_timer, REVOKE_NAP_US, flush_due);
}

void revoke_instead_of_flush(struct soft_qp *qp)
{
	struct revocation revocation;
	bool waits;

	assert_no_lock_held();		/* it seldom waits, but may */
	dapl_mutex_lock(&qp->dev->qps_lock);
	dapl_mutex_lock(&qp->lock);
	waits = qp->flush_waits;
	qp->flush_waits = false;
	revocation = qp->revocation;
	dapl_mutex_unlock(&qp->lock);
	dapl_mutex_unlock(&qp->dev->qps_lock);
	if (!waits)
		return;
	wait_without_lock(&revocation);
	shm_segment_put(revocation.segment);
}

/* --- the initiator ------------------------------------------------------------------------------- */

uint64_t access_window(const struct shm_process *peer)
{
	uint64_t window = __atomic_load_n(&peer->mr_dir->window, __ATOMIC_ACQUIRE);

	return window % WINDOW_SIZE ? 0 : window;
}

/* Writes the iovec. The kernel stores it: where the file has ended, a store would raise a deadly
 * signal. */
static bool write_iovec(struct iovec *place, char *bounce)
{
	struct iovec words = { bounce, CMA_SHORT_MAX };
	struct iovec here = { &words, sizeof words }, there = { place, sizeof words };

	return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == sizeof words;
}

/* The mapping is private, so that no other process can change what the kernel copies from here. */
static bool map_window(struct shm_conn *shm, uint64_t window)
{
	void *p;

	if (!shm->bounce)
		shm->bounce = malloc(CMA_SHORT_MAX);
	if (!shm->bounce)
		return false;
	shm->window_at = 0;
	p = mmap(shm->window, WINDOW_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | (shm->window ? MAP_FIXED : 0), shm->peer->window_file, window);
	if (p == MAP_FAILED)
		return false;
	shm->window = p;
	madvise(p, WINDOW_SIZE, MADV_DONTFORK);
	if (!write_iovec(p, shm->bounce))
		return false;
	shm->window_at = window;
	return true;
}

const struct iovec *access_source(struct shm_conn *shm, uint64_t window)
{
	return likely(shm->window_at == window) || map_window(shm, window) ? shm->window : NULL;
}

/* Calls the kernel: the function of libc may be a sanitizer's, which reads the iovec itself, also
 * where the window is gone. */
ssize_t access_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int pieces)
{
	return syscall(SYS_process_vm_writev, (long)pid, source, 1l, there, (long)pieces, 0l);
}

void access_free(struct shm_conn *shm)
{
	if (shm->window)
		munmap(shm->window, WINDOW_SIZE);
	free(shm->bounce);
}
