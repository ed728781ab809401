/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cma.c - writes and reads the memory of a process on this host that is idle or descheduled,
 * without waking it. The initiator checks what the target would have checked, and has the kernel
 * copy (process_vm_writev and process_vm_readv, which need the permission to debug the target).
 * What cannot be done this way goes through the ring, and errors are found there.
 *
 * When a target revokes its permission, reads check afterwards whether it still held. The target
 * waits for writes, or cuts them off (revoke.c). doc/design/soft-shared-memory.md has the argument. */
#include "dapl/soft/shm/cma.h"
#include "common/clock.h"
#include "common/lock.h"
#include "common/once.h"
#include "common/trace.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* --- the target: the MR directory ------------------------------------------------------------- */

void mr_dir_open(struct shm_process *process)
{
	struct shm_mr_dir *mr_dir = process->mr_dir;

	if (!revoke_open(process))
		return;
	mr_dir->id = process->id;
	mr_dir->self = (uintptr_t)mr_dir;
	mr_dir->fences = revoke_can_fence();
	__atomic_store_n(&mr_dir->pid, getpid(), __ATOMIC_RELEASE);
}

void mr_dir_close(struct shm_process *process)
{
	if (process->window_file >= 0)
		close(process->window_file);
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->window_file = process->pidfd = -1;
}

static struct mr_dir_entry *entries(struct shm_mr_dir *mr_dir, uint32_t stag)
{
	return mr_dir->entry[(stag >> 8) % MR_DIR_SETS];
}

static bool is_public(const struct shm_process *process, const struct soft_region *region)
{
	return process && process->window_file >= 0 && region->kind == SOFT_MR &&
	       (region->access & SOFT_REMOTE_ACCESS);
}

void mr_dir_publish(struct shm_process *process, const struct soft_region *region)
{
	struct mr_dir_entry *e, *end;

	if (!is_public(process, region))
		return;
	e = entries(process->mr_dir, region->stag);
	for (end = e + MR_DIR_WAYS; e < end && e->version & 1; e++)
		;
	if (e == end)
		return;
	WRITE_ONCE(e->stag, region->stag);
	WRITE_ONCE(e->access, region->access);
	WRITE_ONCE(e->pd, region->pd->id);
	WRITE_ONCE(e->first, region->first);
	WRITE_ONCE(e->length, region->length);
	WRITE_ONCE(e->base, (uintptr_t)region->base);
	WRITE_ONCE(e->file, region->file);
	WRITE_ONCE(e->offset, region->offset);
	__atomic_store_n(&e->version, e->version + 1, __ATOMIC_RELEASE);
}

bool mr_dir_withdraw(struct shm_process *process, const struct soft_region *region)
{
	struct mr_dir_entry *e, *end;

	if (!is_public(process, region))
		return false;
	e = entries(process->mr_dir, region->stag);
	for (end = e + MR_DIR_WAYS; e < end; e++) {
		if (!(e->version & 1) || e->stag != region->stag)
			continue;
		WRITE_ONCE(e->version, e->version + 1);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (region->file >= 0)
			revoke_fence_peers();
		return region->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	}
	return false;
}

/* --- the target: access grants, one for each connection --------------------------------------- */

void shm_grant_open(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct ring_grant *grant;

	if (!conn->shm || !conn->dev->want_direct || qp->state != IBV_QPS_RTS)
		return;
	grant = shm_own_grant(conn->shm);
	__atomic_store_n(&grant->pd, ((struct soft_pd *)qp->qp.pd)->id, __ATOMIC_RELEASE);
	revoke_watch(conn);
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
			revoke_fence_peers();
	}
	return !access->writer || revoke_is_done(access);
}

/* --- the initiator: can the peer be reached at all? ------------------------------------------ */

/* Without a pidfd, it is this process. */
static bool was_seen_lately(const struct shm_process *peer)
{
	return peer->pidfd < 0 || clock_coarse_ns() - READ_ONCE(peer->seen_ns) < PEER_ALIVE_NS;
}

/* True: the process with this id lives. When it was reached, it was the peer. */
static bool lives(struct shm_process *peer)
{
	struct pollfd ended = { .fd = peer->pidfd, .events = POLLIN };

	if (was_seen_lately(peer))
		return true;
	WRITE_ONCE(peer->seen_ns, clock_coarse_ns());
	return poll(&ended, 1, 0) == 0;
}

/* True: the memory of process `pid` has the peer's id where the peer says it is. */
static bool has_id(const struct shm_process *peer, pid_t pid)
{
	uint64_t id = 0;
	struct iovec here = { &id, sizeof id };
	struct iovec there = { (char *)(uintptr_t)peer->mr_dir->self +
			       offsetof(struct shm_mr_dir, id), sizeof id };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof id && id == peer->id;
}

int shm_process_open_file(pid_t pid, int number)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return -1;	/* opening anything but a regular file may have side effects */
	return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int open_window_file(pid_t pid, int number)
{
	int fd = shm_process_open_file(pid, number);
	int seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : 0;

	if (seals >= 0 && (seals & F_SEAL_GROW) && (seals & F_SEAL_SEAL))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Called once for each peer process, with reach_lock held. */
static bool try_to_reach(struct shm_process *peer)
{
	pid_t pid = __atomic_load_n(&peer->mr_dir->pid, __ATOMIC_ACQUIRE);

	if (pid <= 0)
		return false;
	if (peer->file < 0) {		/* another process */
		peer->pidfd = syscall(SYS_pidfd_open, pid, 0);
		if (peer->pidfd < 0)
			return false;
	}
	if (!has_id(peer, pid) || !lives(peer))
		return false;
	if (peer->file < 0)		/* only now is it known that the file belongs to the peer */
		peer->window_file = open_window_file(pid, peer->mr_dir->fd);
	peer->pid = pid;
	soft_trace(TRC_LVL_DETAIL, "process", peer, "process %d can be accessed", pid);
	return peer->window_file >= 0;
}

bool cma_reaches(struct shm_process *peer)
{
	bool reached;

	if (likely(__atomic_load_n(&peer->reach, __ATOMIC_ACQUIRE) == SOFT_REACH_YES) &&
	    likely(was_seen_lately(peer)))
		return true;
	dapl_mutex_lock(&peer->reach_lock);
	if (unlikely(peer->reach == SOFT_REACH_UNTRIED)) {
		reached = try_to_reach(peer);
		__atomic_store_n(&peer->reach, reached ? SOFT_REACH_YES : SOFT_REACH_NO,
				 __ATOMIC_RELEASE);
	}
	if (peer->reach == SOFT_REACH_YES && unlikely(!lives(peer)))
		WRITE_ONCE(peer->reach, SOFT_REACH_NO);
	reached = peer->reach == SOFT_REACH_YES;
	dapl_mutex_unlock(&peer->reach_lock);
	return reached;
}

bool shm_process_has_ended(struct shm_process *peer)
{
	struct pollfd ended = { .events = POLLIN };
	pid_t pid = READ_ONCE(peer->mr_dir->pid);

	cma_reaches(peer);	/* opens the pidfd at the first call, if there is a process */
	ended.fd = peer->pidfd;
	if (ended.fd >= 0)
		return poll(&ended, 1, 0) > 0;
	return peer->file < 0 && pid > 0 && kill(pid, 0) && errno == ESRCH;
}

/* --- the initiator: what may be accessed -------------------------------------------------------- */

/* Finds the entry of an STag and copies it. mr_permit_still_valid() then tells if the copy is
 * consistent. */
static bool find_entry(const struct shm_mr_dir *mr_dir, uint32_t stag, struct mr_permit *permit)
{
	const struct mr_dir_entry *e = entries((struct shm_mr_dir *)mr_dir, stag), *end;
	struct mr_dir_entry *is = &permit->is;

	for (end = e + MR_DIR_WAYS; e < end; e++) {
		is->version = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);
		if (!(is->version & 1) || READ_ONCE(e->stag) != stag)
			continue;
		permit->entry = e;
		is->stag = stag;
		is->access = READ_ONCE(e->access);
		is->pd = READ_ONCE(e->pd);
		is->first = READ_ONCE(e->first);
		is->length = READ_ONCE(e->length);
		is->base = READ_ONCE(e->base);
		is->file = READ_ONCE(e->file);
		is->offset = READ_ONCE(e->offset);
		return true;
	}
	return false;
}

/* Checks what obj/mem.c checks at the target, except the range. */
bool mr_permit_find(const struct dapl_conn *conn, uint32_t stag, uint32_t needed,
		      struct mr_permit *permit)
{
	uint64_t pd;

	permit->grant = conn->shm->grant;
	pd = __atomic_load_n(&permit->grant->pd, __ATOMIC_ACQUIRE);
	return pd && find_entry(conn->shm->peer->mr_dir, stag, permit) && permit->is.pd == pd &&
	       (permit->is.access & needed) && mr_permit_still_valid(permit);
}

/* Memory of the target, as a request names it. */
struct target {
	uint32_t stag, length;
	uint64_t remote;
};

/* The address in the process of the target; NULL: it may not be accessed. */
static char *permitted(const struct dapl_conn *conn, struct target target, uint32_t needed,
		       struct mr_permit *permit)
{
	if (!mr_permit_find(conn, target.stag, needed, permit) ||
	    !mr_permit_covers(permit, target.remote, target.length))
		return NULL;
	return (char *)(uintptr_t)(permit->is.base + (target.remote - permit->is.first));
}

/* --- the initiator: access ------------------------------------------------------------------------ */

/* The kernel copied less than it should. Errors that will not go away end direct access to the
 * peer. Returns false. */
static bool copy_failed(struct shm_process *peer)
{
	if (errno != EPERM && errno != ESRCH && errno != ENOSYS)
		return false;
	dapl_mutex_lock(&peer->reach_lock);
	WRITE_ONCE(peer->reach, SOFT_REACH_NO);
	dapl_mutex_unlock(&peer->reach_lock);
	return false;
}

/* True: copies of the kernel become visible in the order in which it makes them. */
#ifdef __x86_64__
enum { COPIES_IN_ORDER = true };
#else
enum { COPIES_IN_ORDER = false };
#endif

/* Copies the bounce buffer to the target. The last aligned 8 bytes are copied when all others are
 * in place. */
static bool copy_out(struct shm_conn *shm, const struct iovec *source, char *at, uint32_t length)
{
	uint32_t tail = (uintptr_t)(at + length - 1) % 8 + 1, body;
	struct iovec there[2];

	body = tail < length ? length - tail : 0;
	there[0] = (struct iovec){ at, body };
	there[1] = (struct iovec){ at + body, length - body };
	if (body && !COPIES_IN_ORDER) {
		if (access_copy(shm->peer->pid, source, there, 1) != (ssize_t)body)
			return copy_failed(shm->peer);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		length -= body;
		memmove(shm->bounce, shm->bounce + body, length);
		body = 0;
	}
	return access_copy(shm->peer->pid, source, there + !body, 1 + !!body) ==
		       (ssize_t)length ||
	       copy_failed(shm->peer);
}

/* Reads the window before the permission: then a window that is opened after the permission was
 * withdrawn is not found together with the permission. */
static bool write_within(const struct dapl_conn *conn, struct target target,
			 const struct iovec *iov, int pieces)
{
	struct shm_conn *shm = conn->shm;
	uint64_t window = access_window(shm->peer);
	struct mr_permit permit;
	const struct iovec *source;
	char *at = window ? permitted(conn, target, IBV_ACCESS_REMOTE_WRITE, &permit) : NULL;

	source = at ? access_source(shm, window) : NULL;
	if (!source)
		return false;
	ring_gather((uint8_t *)shm->bounce, iov, pieces);
	return copy_out(shm, source, at, target.length);
}

static bool write_to(struct dapl_conn *conn, struct target target, const struct iovec *iov,
		     int pieces)
{
	struct ring_writer *own = shm_own_writer(conn);
	bool written;

	access_begin(own, false);
	written = write_within(conn, target, iov, pieces);
	access_end(own);
	return written;
}

static bool read_from(const struct dapl_conn *conn, struct target target, const struct iovec *iov,
		      int pieces)
{
	struct shm_process *peer = conn->shm->peer;
	struct mr_permit permit;
	struct iovec there = { permitted(conn, target, IBV_ACCESS_REMOTE_READ, &permit),
			       target.length };

	if (!there.iov_base)
		return false;
	if (process_vm_readv(peer->pid, iov, pieces, &there, 1, 0) != (ssize_t)target.length)
		return copy_failed(peer);
	return mr_permit_still_valid(&permit);
}

/* The local memory of the request as iovecs. 0: it is not registered (any more). */
static int own_memory(const struct soft_qp *qp, struct soft_swqe *wqe, struct iovec *iov)
{
	int access = wqe->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0, n;

	if (wqe->flags & IBV_SEND_INLINE) {
		iov[0] = (struct iovec){ wqe->sge, wqe->length };
		return 1;
	}
	n = soft_mem_slice(qp->dev, qp->qp.pd, wqe->sge, wqe->sges, 0, wqe->length, access, iov,
			   SOFT_MAX_SGE);
	return n > 0 ? n : 0;
}

/* Executes a request by CMA. The target has executed all requests before it. */
static bool access_memory(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	struct shm_conn *shm = conn->shm;
	struct target target = { wqe->rkey, wqe->length, wqe->remote };
	bool read = wqe->opcode == IBV_WR_RDMA_READ;
	struct iovec iov[SOFT_MAX_SGE];
	int pieces;

	if (!cma_reaches(shm->peer))
		return false;
	pieces = own_memory(qp, wqe, iov);
	if (!pieces || !(read ? read_from(conn, target, iov, pieces)
			      : write_to(conn, target, iov, pieces)))
		return false;
	shm->direct++;
	return true;
}

bool cma_execute(struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	if (!access_memory(qp, conn, wqe))
		return false;
	wqe->state = SOFT_DONE;
	conn->tx.cursor.wqe++;
	return true;
}

/* --- large payloads: the initiator copies for reads, the target for writes and sends ---------- */

bool cma_read(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	uint64_t begun = clock_now_ns();
	bool done = access_memory(qp, conn, wqe);

	proto_read_by_cma(conn, wqe, done ? (clock_now_ns() - begun) | 1 : 0);
	return done;
}

bool cma_read_now(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to,
			  uint32_t length)
{
	struct target target = { stag, length, remote };
	struct shm_conn *shm = conn->shm;

	if (!cma_reaches(shm->peer) ||
	    !read_from(conn, target, &(struct iovec){ to, length }, 1))
		return false;
	shm->direct++;
	return true;
}

void rndv_enable(struct shm_conn *shm)
{
	WRITE_ONCE(shm_own_grant(shm)->rndv_enabled, 1);
}

void rndv_disable(struct shm_conn *shm)
{
	WRITE_ONCE(shm_own_grant(shm)->rndv_enabled, 0);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool rndv_is_cancelled(const struct dapl_conn *conn)
{
	return !READ_ONCE(conn->shm->grant->rndv_enabled);
}

/* As with a read, what was copied counts only if the payload was not withdrawn meanwhile. */
bool rndv_fetch(struct dapl_conn *conn, uint64_t address, const struct iovec *to, int pieces,
		       uint32_t length)
{
	struct iovec there = { (char *)(uintptr_t)address, length };
	struct shm_conn *shm = conn->shm;

	if (!conn->dev->want_direct || !cma_reaches(shm->peer) ||
	    process_vm_readv(shm->peer->pid, to, pieces, &there, 1, 0) != (ssize_t)length)
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (rndv_is_cancelled(conn))
		return false;
	WRITE_ONCE(shm->fetched, shm->fetched + 1);
	return true;
}
