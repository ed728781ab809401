/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* revoke.c - revokes direct write access (revoke.h). A writer says that it is within a write before
 * it looks for the permission. A target revokes the permission before it looks for writers. Each
 * side has a full fence between the two, so that at least one sees the other.
 *
 * A writer leaves a write after a microsecond, unless it lost its processor there or was stopped.
 * It must do no harm when it goes on. Therefore the kernel's copy is described by an iovec in a
 * window: a page of a file of the target that the initiator has mapped privately. The target
 * truncates the file, and the iovec is gone. */
#include "dapl/soft/shm/revoke.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/once.h"
#include "common/trace.h"
#include "dapl/core/base/lock.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The file consists of windows, of which the last is open. F_SEAL_GROW keeps it from being extended
 * again. */
#define WINDOW (64ull << 10)		/* at least a page, on any machine */
#define WINDOW_FILE_SIZE (1ull << 40)

/* --- the target: its file ------------------------------------------------------------------------ */

bool revoke_open(struct shm_process *process)
{
	uint64_t limit = sealed_file_limit(), size;
	int fd;

	size = limit < WINDOW_FILE_SIZE ? limit / WINDOW * WINDOW : WINDOW_FILE_SIZE;
	fd = size ? sealed_file_new(size, F_SEAL_GROW | F_SEAL_SEAL) : -1;
	if (fd < 0)
		return false;
	process->window_file = fd;
	process->mr_dir->fd = fd;
	process->mr_dir->window = size - WINDOW;
	return true;
}

/* Closes the open window: a writer that found it before this has no iovec for the kernel any more. */
static void close_window(struct shm_process *process)
{
	struct shm_mr_dir *mr_dir = process->mr_dir;
	uint64_t end;

	dapl_spin_lock(&process->reach_lock);
	end = mr_dir->window;
	if (end) {
		__atomic_store_n(&mr_dir->window, end - WINDOW, __ATOMIC_SEQ_CST);
		if (ftruncate(process->window_file, end))
			log_line(SOFT_LOG_ERR, "soft: ftruncate: %s", strerror(errno));
	}
	dapl_spin_unlock(&process->reach_lock);
}

/* --- fences in other processes ------------------------------------------------------------------- */

static int barrier(int command)
{
	return syscall(SYS_membarrier, command, 0);
}

bool revoke_can_fence(void)
{
	int commands = barrier(MEMBARRIER_CMD_QUERY);

	return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void revoke_fence_peers(void)
{
	barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* 0: not tried yet; 1: registered; -1: not possible */
static int registered;

bool access_is_fenced(void)
{
	if (!READ_ONCE(registered))
		WRITE_ONCE(registered, barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) ? -1 : 1);
	return READ_ONCE(registered) > 0;
}

void access_fork_child(void)
{
	registered = 0;
}

/* --- the target: waiting for writers ---------------------------------------------------------- */

static uint64_t nap(uint64_t since)
{
	nanosleep(&(struct timespec){ .tv_nsec = REVOKE_NAP_NS }, NULL);
	return clock_now_ns() - since;
}

/* Waits until the peer has left the write, its process has ended, or the time is over. True: the
 * first or the second. */
static bool leaves_write(const struct shm_conn *shm, const uint32_t *within, uint64_t begun,
		      uint64_t until_ns)
{
	while (__atomic_load_n(within, __ATOMIC_ACQUIRE) && !shm_process_has_ended(shm->peer))
		if (nap(begun) >= until_ns)
			return false;
	return true;
}

/* The peer has not left the write at once. A peer that has lost its processor will leave it. A peer
 * that was stopped is cut off; then there is time for a copy that had just begun. */
static __attribute__((noinline)) void wait_or_cut_off(struct dapl_conn *conn,
						      const uint32_t *within)
{
	struct shm_conn *shm = conn->shm;
	uint64_t begun = clock_now_ns();

	if (!shm->revoke_timed_out && leaves_write(shm, within, begun, REVOKE_CUT_OFF_NS))
		return;
	if (shm->own->window_file >= 0)
		close_window(shm->own);
	if (shm->revoke_timed_out || leaves_write(shm, within, begun, REVOKE_GIVE_UP_NS))
		return;
	shm->revoke_timed_out = true;
	log_line(SOFT_LOG_ERR, "soft: a peer has been within a write to memory that is being taken "
		 "back for a second; not waiting any longer");
}

void revoke_wait(struct dapl_conn *conn)
{
	const uint32_t *within = &shm_peer_writer(conn)->within;

	for (int i = 0; i < REVOKE_SPINS; i++) {
		if (likely(!__atomic_load_n(within, __ATOMIC_ACQUIRE)))
			return;
		dapl_pause();
	}
	wait_or_cut_off(conn, within);
}

/* --- the initiator ------------------------------------------------------------------------------- */

uint64_t access_window(const struct shm_process *peer)
{
	uint64_t window = __atomic_load_n(&peer->mr_dir->window, __ATOMIC_ACQUIRE);

	return window % WINDOW ? 0 : window;
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
	p = mmap(shm->window, WINDOW, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | (shm->window ? MAP_FIXED : 0), shm->peer->window_file, window);
	if (p == MAP_FAILED)
		return false;
	shm->window = p;
	madvise(p, WINDOW, MADV_DONTFORK);
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
		munmap(shm->window, WINDOW);
	free(shm->bounce);
}
