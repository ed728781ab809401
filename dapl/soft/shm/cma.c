/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cma.c - writes and reads the memory of a process on this host that is idle, without
 * waking it. The initiator checks what the target would have checked, and has the kernel
 * copy (process_vm_writev and process_vm_readv, which need the permission to debug the target).
 * What cannot be done this way goes through the ring, and errors are found there.
 *
 * When a target revokes its permission, reads check afterwards whether it still held. The target
 * waits for writes, or cuts them off (revoke.c). doc/design/soft-shared-memory.md has the argument. */
#include "dapl/soft/shm/cma.h"
#include "common/compiler.h"
#include "common/lock.h"
#include "common/once.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/tap_record.h"
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/reach.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <sys/uio.h>

/* --- the initiator: what may be accessed -------------------------------------------------------- */

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

/* Returns true if the kernel copied all of `length` bytes. `copied` is the result of its call: an error that will
 * not go away ends direct access to the peer. A short copy is no such error, and sets no errno. */
static bool check_copy(struct shm_process *peer, ssize_t copied, uint32_t length)
{
	if (likely(copied == (ssize_t)length))
		return true;
	if (copied >= 0 || (errno != EPERM && errno != ESRCH && errno != ENOSYS))
		return false;
	dapl_mutex_lock(&peer->reach_lock);
	WRITE_ONCE(peer->reach, SOFT_REACH_NO);
	dapl_mutex_unlock(&peer->reach_lock);
	return false;
}

/* Returns true if copies of the kernel become visible in the order in which it makes them. */
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
		if (!check_copy(shm->peer, access_copy(shm->peer->pid, source, there, 1), body))
			return false;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		length -= body;
		memmove(shm->bounce, shm->bounce + body, length);
		body = 0;
	}
	return check_copy(shm->peer, access_copy(shm->peer->pid, source, there + !body, 1 + !!body), length);
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
	copy_gather((uint8_t *)shm->bounce, iov, pieces);
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
	return check_copy(peer, process_vm_readv(peer->pid, iov, pieces, &there, 1, 0), target.length) &&
	       mr_permit_still_valid(&permit);
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

	if (!reach_memory(shm->peer))
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
	assert_held(&qp->lock);
	if (!access_memory(qp, conn, wqe))
		return false;
	wqe->state = SOFT_DONE;
	tap_record_executed(qp, wqe);
	conn->stream.tx.cursor.wqe++;
	return true;
}

/* --- large payloads: the initiator copies for reads, the target for writes and sends ---------- */

bool cma_read(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	uint64_t begun_ns = proto_read_begins(conn);
	bool done = access_memory(qp, conn, wqe);

	assert_held(&qp->lock);
	if (done)
		proto_read_by_cma(conn, wqe, begun_ns);
	else
		proto_read_failed(conn, wqe);
	return done;
}

bool cma_read_now(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to, uint32_t length)
{
	struct target target = { stag, length, remote };
	struct shm_conn *shm = conn->shm;

	if (!reach_memory(shm->peer) ||
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
bool rndv_fetch(struct dapl_conn *conn, uint64_t address, const struct iovec *to, int pieces, uint32_t length)
{
	struct iovec there = { (char *)(uintptr_t)address, length };
	struct shm_conn *shm = conn->shm;

	if (!conn->dev->want_direct || !reach_memory(shm->peer) ||
	    process_vm_readv(shm->peer->pid, to, pieces, &there, 1, 0) != (ssize_t)length)
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (rndv_is_cancelled(conn))
		return false;
	WRITE_ONCE(shm->fetched, shm->fetched + 1);
	return true;
}
