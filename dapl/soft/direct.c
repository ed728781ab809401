/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* direct.c - writes and reads the memory of a process on this host that sleeps, or does not run,
 * without waking it: the initiator checks what the target would have checked, and has the kernel
 * copy (process_vm_writev and readv, which the kernel's rules for debuggers must allow).
 * Whatever can't be done this way goes through the ring, and errors are found there.
 *
 * When a target takes back its permission, reads look afterwards whether it still held; writes
 * are waited for, or cut off (gate.c). doc/design/soft-direct.md has the argument. */
#include "dapl/soft/soft.h"
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

enum {
	ALIVE_NS = 10000000,		/* a process number is not used again so soon */
	LOOK_NS = 100000,		/* how much a peer polls is looked at as often, at most */
	POLL_NS = 20000,		/* who polls so often serves his peers */
};

/* --- the target: the board --------------------------------------------------------------- */

void soft_board_open(struct soft_station *station)
{
	struct soft_board *board = station->board;

	if (!soft_gate_open(station))
		return;
	board->id = station->id;
	board->self = (uintptr_t)board;
	board->fences = soft_gate_can_fence();
	__atomic_store_n(&board->pid, getpid(), __ATOMIC_RELEASE);
}

void soft_board_close(struct soft_station *station)
{
	if (station->gate_file >= 0)
		close(station->gate_file);
	if (station->process >= 0)
		close(station->process);
	station->gate_file = station->process = -1;
}

static struct board_entry *entries(struct soft_board *board, uint32_t stag)
{
	return board->entry[(stag >> 8) % BOARD_SETS];
}

static bool is_public(const struct soft_station *station, const struct soft_region *region)
{
	return station && station->gate_file >= 0 && region->kind == SOFT_MR &&
	       (region->access & SOFT_REMOTE_ACCESS);
}

void soft_board_publish(struct soft_station *station, const struct soft_region *region)
{
	struct board_entry *e, *end;

	if (!is_public(station, region))
		return;
	e = entries(station->board, region->stag);
	for (end = e + BOARD_WAYS; e < end && e->version & 1; e++)
		;
	if (e == end)
		return;
	STORE(e->stag, region->stag);
	STORE(e->access, region->access);
	STORE(e->pd, region->pd->id);
	STORE(e->first, region->first);
	STORE(e->length, region->length);
	STORE(e->base, (uintptr_t)region->base);
	STORE(e->file, region->file);
	STORE(e->offset, region->offset);
	__atomic_store_n(&e->version, e->version + 1, __ATOMIC_RELEASE);
}

bool soft_board_withdraw(struct soft_station *station, const struct soft_region *region)
{
	struct board_entry *e, *end;

	if (!is_public(station, region))
		return false;
	e = entries(station->board, region->stag);
	for (end = e + BOARD_WAYS; e < end; e++) {
		if (!(e->version & 1) || e->stag != region->stag)
			continue;
		STORE(e->version, e->version + 1);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (region->file >= 0)
			soft_gate_fence();
		return region->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	}
	return false;
}

/* --- the target: doors, one for each connection -------------------------------------------- */

void soft_door_open(struct soft_qp *qp, struct dapl_conn *conn)
{
	struct ring_door *door;

	if (!conn->pair || !conn->dev->want_direct || qp->state != IBV_QPS_RTS)
		return;
	door = soft_own_door(conn->pair);
	__atomic_store_n(&door->pd, ((struct soft_pd *)qp->qp.pd)->id, __ATOMIC_RELEASE);
	conn->pair->door_open = true;
}

void soft_door_close(struct dapl_conn *conn)
{
	struct soft_pair *pair = conn->pair;

	if (!pair || !pair->door_open)
		return;
	pair->door_open = false;
	STORE(soft_own_door(pair)->pd, 0);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(ONCE(soft_peers_writer(conn)->maps)))
		soft_gate_fence();
	soft_gate_settle(conn);
}

/* --- the initiator: can the peer be reached at all? ------------------------------------------ */

/* Without a pidfd it's our own process. */
static bool was_seen_lately(const struct soft_station *peer)
{
	return peer->process < 0 || soft_lately_ns() - ONCE(peer->seen_ns) < ALIVE_NS;
}

/* The process with this number lives, and had, when it was looked at, the station. */
static bool lives(struct soft_station *peer)
{
	struct pollfd ended = { .fd = peer->process, .events = POLLIN };

	if (was_seen_lately(peer))
		return true;
	STORE(peer->seen_ns, soft_lately_ns());
	return poll(&ended, 1, 0) == 0;
}

/* The memory of process pid has the station's id where the station says. */
static bool has_id(const struct soft_station *peer, pid_t pid)
{
	uint64_t id = 0;
	struct iovec here = { &id, sizeof id };
	struct iovec there = { (char *)(uintptr_t)peer->board->self +
			       offsetof(struct soft_board, id), sizeof id };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof id && id == peer->id;
}

int soft_direct_open(pid_t pid, int number)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return -1;	/* to open what is no file may do anything */
	return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int open_gate(pid_t pid, int number)
{
	int fd = soft_direct_open(pid, number);
	int seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : 0;

	if (seals >= 0 && (seals & F_SEAL_GROW) && (seals & F_SEAL_SEAL))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* reach_lock held, once for each station. */
static bool try_to_reach(struct soft_station *peer)
{
	pid_t pid = __atomic_load_n(&peer->board->pid, __ATOMIC_ACQUIRE);

	if (pid <= 0)
		return false;
	if (peer->file < 0) {		/* another process's */
		peer->process = syscall(SYS_pidfd_open, pid, 0);
		if (peer->process < 0)
			return false;
	}
	if (!has_id(peer, pid) || !lives(peer))
		return false;
	if (peer->file < 0)		/* only now that it's known whose it is */
		peer->gate_file = open_gate(pid, peer->board->fd);
	peer->pid = pid;
	soft_trace(TRC_LVL_DETAIL, "station", peer, "process %d can be accessed", pid);
	return peer->gate_file >= 0;
}

bool soft_direct_reaches(struct soft_station *peer)
{
	bool reached;

	if (likely(__atomic_load_n(&peer->reach, __ATOMIC_ACQUIRE) == SOFT_REACH_YES) &&
	    likely(was_seen_lately(peer)))
		return true;
	dapl_spin_lock(&peer->reach_lock);
	if (unlikely(peer->reach == SOFT_REACH_UNTRIED)) {
		reached = try_to_reach(peer);
		__atomic_store_n(&peer->reach, reached ? SOFT_REACH_YES : SOFT_REACH_NO,
				 __ATOMIC_RELEASE);
	}
	if (peer->reach == SOFT_REACH_YES && unlikely(!lives(peer)))
		STORE(peer->reach, SOFT_REACH_NO);
	reached = peer->reach == SOFT_REACH_YES;
	dapl_spin_unlock(&peer->reach_lock);
	return reached;
}

bool soft_direct_has_ended(struct soft_station *peer)
{
	struct pollfd ended = { .events = POLLIN };
	pid_t pid = ONCE(peer->board->pid);

	soft_direct_reaches(peer);	/* opens the pidfd, the first time, if there is a process */
	ended.fd = peer->process;
	if (ended.fd >= 0)
		return poll(&ended, 1, 0) > 0;
	return peer->file < 0 && pid > 0 && kill(pid, 0) && errno == ESRCH;
}

/* --- the initiator: what may be accessed -------------------------------------------------------- */

/* The entry of an STag, in one state. */
static bool find_entry(const struct soft_board *board, uint32_t stag, struct soft_permit *permit)
{
	const struct board_entry *e = entries((struct soft_board *)board, stag), *end;
	struct board_entry *is = &permit->is;

	for (end = e + BOARD_WAYS; e < end; e++) {
		is->version = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);
		if (!(is->version & 1) || ONCE(e->stag) != stag)
			continue;
		permit->entry = e;
		is->stag = stag;
		is->access = ONCE(e->access);
		is->pd = ONCE(e->pd);
		is->first = ONCE(e->first);
		is->length = ONCE(e->length);
		is->base = ONCE(e->base);
		is->file = ONCE(e->file);
		is->offset = ONCE(e->offset);
		return true;
	}
	return false;
}

/* What mem.c checks at the target, but for the range. */
bool soft_permit_find(const struct dapl_conn *conn, uint32_t stag, uint32_t needed,
		      struct soft_permit *permit)
{
	uint64_t pd;

	permit->door = conn->pair->door;
	pd = __atomic_load_n(&permit->door->pd, __ATOMIC_ACQUIRE);
	return pd && find_entry(conn->pair->peer->board, stag, permit) && permit->is.pd == pd &&
	       (permit->is.access & needed) && soft_permit_holds(permit);
}

/* Memory of the target's, as a request names it. */
struct target {
	uint32_t stag, length;
	uint64_t remote;
};

/* Where that is in the target's process; NULL: it may not be accessed. */
static char *permitted(const struct dapl_conn *conn, struct target target, uint32_t needed,
		       struct soft_permit *permit)
{
	if (!soft_permit_find(conn, target.stag, needed, permit) ||
	    !soft_permit_covers(permit, target.remote, target.length))
		return NULL;
	return (char *)(uintptr_t)(permit->is.base + (target.remote - permit->is.first));
}

/* --- the initiator: access ------------------------------------------------------------------------ */

/* The kernel copied less than it should. It may not any more, or there is nothing: for good? */
static bool copy_failed(struct soft_station *peer)
{
	if (errno != EPERM && errno != ESRCH && errno != ENOSYS)
		return false;
	dapl_spin_lock(&peer->reach_lock);
	STORE(peer->reach, SOFT_REACH_NO);
	dapl_spin_unlock(&peer->reach_lock);
	return false;
}

/* Does a copy that the kernel makes later become visible later? */
#ifdef __x86_64__
enum { COPIES_IN_ORDER = true };
#else
enum { COPIES_IN_ORDER = false };
#endif

/* What is in the bounce buffer. The last aligned 8 bytes are copied when all else is in place. */
static bool copy_out(struct soft_pair *pair, const struct iovec *source, char *at, uint32_t length)
{
	uint32_t tail = (uintptr_t)(at + length - 1) % 8 + 1, body;
	struct iovec there[2];

	body = tail < length ? length - tail : 0;
	there[0] = (struct iovec){ at, body };
	there[1] = (struct iovec){ at + body, length - body };
	if (body && !COPIES_IN_ORDER) {
		if (soft_gate_copy(pair->peer->pid, source, there, 1) != body)
			return copy_failed(pair->peer);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		length -= body;
		memmove(pair->bounce, pair->bounce + body, length);
		body = 0;
	}
	return soft_gate_copy(pair->peer->pid, source, there + !body, 1 + !!body) ==
		       (ssize_t)length ||
	       copy_failed(pair->peer);
}

/* The gate is looked at first: a window that is opened later than the permission was
 * withdrawn is not found with the permission. */
static bool write_within(const struct dapl_conn *conn, struct target target,
			 const struct iovec *iov, int pieces)
{
	struct soft_pair *pair = conn->pair;
	uint64_t window = soft_gate_look(pair->peer);
	struct soft_permit permit;
	const struct iovec *source;
	char *at = window ? permitted(conn, target, IBV_ACCESS_REMOTE_WRITE, &permit) : NULL;

	source = at ? soft_gate_source(pair, window) : NULL;
	if (!source)
		return false;
	ring_gather((uint8_t *)pair->bounce, iov, pieces);
	return copy_out(pair, source, at, target.length);
}

static bool write_to(struct dapl_conn *conn, struct target target, const struct iovec *iov,
		     int pieces)
{
	struct ring_writer *own = soft_own_writer(conn);
	bool written;

	soft_gate_enter(own, false);
	written = write_within(conn, target, iov, pieces);
	soft_gate_leave(own);
	return written;
}

static bool read_from(const struct dapl_conn *conn, struct target target, const struct iovec *iov,
		      int pieces)
{
	struct soft_station *peer = conn->pair->peer;
	struct soft_permit permit;
	struct iovec there = { permitted(conn, target, IBV_ACCESS_REMOTE_READ, &permit),
			       target.length };

	if (!there.iov_base)
		return false;
	if (process_vm_readv(peer->pid, iov, pieces, &there, 1, 0) != (ssize_t)target.length)
		return copy_failed(peer);
	return soft_permit_holds(&permit);
}

/* Where the request's own memory is. 0: not registered (any more). */
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

bool soft_direct_nobody_polls(struct soft_pair *pair)
{
	uint64_t now = soft_now_ns(), since = now - pair->looked_ns;
	uint32_t polls;

	if (since >= LOOK_NS) {
		polls = ONCE(pair->peer->board->polls);
		pair->polls_much = (polls - pair->polls) * (uint64_t)POLL_NS > since;
		pair->polls = polls;
		pair->looked_ns = now;
	}
	return !pair->polls_much;
}

/* Order: all that was posted before is complete, so the target has executed it. And who posts
 * on without having looked for the last completion, or wants none, does not wait for this
 * one: then a ring carries more. */
bool soft_direct_suits(const struct soft_qp *qp, const struct dapl_conn *conn,
		       unsigned send_flags)
{
	const struct soft_cq *cq = (struct soft_cq *)qp->qp.send_cq;

	return conn->dev->want_direct && ONCE(conn->pair->peer->reach) != SOFT_REACH_NO &&
	       qp->sq_head == conn->tx.cursor.wqe &&
	       soft_is_signalled(qp, send_flags) &&
	       ONCE(cq->head) == ONCE(cq->tail);
}

/* Nothing is before it that the target has not executed. */
static bool access_memory(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	struct soft_pair *pair = conn->pair;
	struct target target = { wqe->rkey, wqe->length, wqe->remote };
	bool read = wqe->opcode == IBV_WR_RDMA_READ;
	struct iovec iov[SOFT_MAX_SGE];
	int pieces;

	if (!soft_direct_reaches(pair->peer))
		return false;
	pieces = own_memory(qp, wqe, iov);
	if (!pieces || !(read ? read_from(conn, target, iov, pieces)
			      : write_to(conn, target, iov, pieces)))
		return false;
	pair->direct++;
	return true;
}

bool soft_direct_execute(struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	bool read = wqe->opcode == IBV_WR_RDMA_READ;

	if (wqe->state != SOFT_POSTED || !wqe->length || wqe->length > DIRECT_MAX ||
	    (read && !conn->reads_out) || !soft_direct_suits(qp, conn, wqe->flags) ||
	    !access_memory(qp, conn, wqe))
		return false;
	wqe->state = SOFT_DONE;
	conn->tx.cursor.wqe++;
	soft_qp_complete_sends(qp);
	return true;
}

/* --- what is large: reads by the initiator, writes and sends by the target -------------------- */

enum { NEVER_NS = 1000000000 };		/* what fails is to be chosen seldom */


void soft_direct_choose(const struct dapl_conn *conn, struct soft_swqe *wqe)
{
	const struct soft_station *peer = conn->pair->peer;
	bool read = wqe->opcode == IBV_WR_RDMA_READ, possible, try = false;

	possible = conn->dev->want_direct &&
		   (read ? wqe->length <= CHOICE_MAX && ONCE(peer->reach) != SOFT_REACH_NO
			 : !conn->pair->wanted);
	if (!possible)
		wqe->large.way = SOFT_WAY_RING;
	else if (read && soft_direct_at_rest(conn->pair))
		wqe->large.way = SOFT_WAY_KERNEL;
	else
		wqe->large.way = soft_choice_make(read ? &conn->dev->reads : &conn->dev->writes,
						  wqe->length, &try);
	wqe->large.try = try;
}

bool soft_direct_read(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe)
{
	uint64_t begun = soft_now_ns();
	bool done = access_memory(qp, conn, wqe);

	soft_choice_learn(&conn->dev->reads, SOFT_WAY_KERNEL, wqe->length,
			  done ? soft_now_ns() - begun : NEVER_NS);
	if (!done)
		wqe->large.way = SOFT_WAY_RING;
	return done;
}

bool soft_direct_read_now(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to,
			  uint32_t length)
{
	struct target target = { stag, length, remote };
	struct soft_pair *pair = conn->pair;

	if (length < CHOICE_MIN || !conn->dev->want_direct ||
	    !(soft_direct_at_rest(pair) ||
	      soft_choice_is_kernel(&conn->dev->reads, length)) ||
	    !soft_direct_reaches(pair->peer) ||
	    !read_from(conn, target, &(struct iovec){ to, length }, 1))
		return false;
	pair->direct++;
	return true;
}

void soft_direct_lend(struct soft_pair *pair)
{
	STORE(soft_own_door(pair)->lends, 1);
}

void soft_direct_recall(struct soft_pair *pair)
{
	STORE(soft_own_door(pair)->lends, 0);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool soft_direct_recalled(const struct dapl_conn *conn)
{
	return !ONCE(conn->pair->door->lends);
}

/* Like a read: what it copied counts if it's still lent afterwards. */
bool soft_direct_fetch(struct dapl_conn *conn, uint64_t address, const struct iovec *to, int pieces,
		       uint32_t length)
{
	struct iovec there = { (char *)(uintptr_t)address, length };
	struct soft_pair *pair = conn->pair;

	if (!conn->dev->want_direct || !soft_direct_reaches(pair->peer) ||
	    process_vm_readv(pair->peer->pid, to, pieces, &there, 1, 0) != (ssize_t)length)
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (soft_direct_recalled(conn))
		return false;
	STORE(pair->fetched, pair->fetched + 1);
	return true;
}
