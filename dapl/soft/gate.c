/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gate.c - see gate.h. Who writes to a peer's memory says so before it looks for the
 * permission; a target takes back the permission before it looks for who writes. Between the
 * two is a full fence on either side, so one of them sees the other.
 *
 * Who is within a write comes out of it after a microsecond, unless it lost its processor there,
 * or was stopped. So that it does no harm when it goes on, the kernel's copy is described by
 * words in a window, a page of a file of the target's, which the initiator has mapped
 * privately: the target makes the file shorter, and the words are gone. */
#include "dapl/soft/soft.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The file: windows, the last of which is open. Nobody can make it longer again. */
#define WINDOW (64ull << 10)		/* at least a page, on any machine */
#define GATE_SIZE (1ull << 40)

enum {
	SETTLE_SPINS = 1000,
	SETTLE_NAP_NS = 50000, CUT_OFF_NS = 500000000, SETTLE_NS = 1000000000,
};

/* --- the target: its file ------------------------------------------------------------------------ */

bool soft_gate_open(struct soft_station *station)
{
	uint64_t limit = soft_file_limit(), size;
	int fd;

	size = limit < GATE_SIZE ? limit / WINDOW * WINDOW : GATE_SIZE;
	fd = size ? soft_sealed_file(size, F_SEAL_GROW | F_SEAL_SEAL) : -1;
	if (fd < 0)
		return false;
	station->gate_file = fd;
	station->board->fd = fd;
	station->board->gate = size - WINDOW;
	return true;
}

/* Who looked for the open window before this has no words for the kernel any more. */
static void close_window(struct soft_station *station)
{
	struct soft_board *board = station->board;
	uint64_t end;

	dapl_spin_lock(&station->reach_lock);
	end = board->gate;
	if (end) {
		__atomic_store_n(&board->gate, end - WINDOW, __ATOMIC_SEQ_CST);
		if (ftruncate(station->gate_file, end))
			log_line(SOFT_LOG_ERR, "soft: ftruncate: %s", strerror(errno));
	}
	dapl_spin_unlock(&station->reach_lock);
}

/* --- fences in other processes ------------------------------------------------------------------- */

static int barrier(int command)
{
	return syscall(SYS_membarrier, command, 0);
}

bool soft_gate_can_fence(void)
{
	int commands = barrier(MEMBARRIER_CMD_QUERY);

	return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void soft_gate_fence(void)
{
	barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* 0: not yet; 1: it is; -1: it can't be. */
static int registered;

bool soft_gate_is_fenced(void)
{
	if (!ONCE(registered))
		STORE(registered, barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) ? -1 : 1);
	return ONCE(registered) > 0;
}

void soft_gate_fork_child(void)
{
	registered = 0;
}

/* --- the target: taking back --------------------------------------------------------------------- */

static uint64_t nap(uint64_t since)
{
	nanosleep(&(struct timespec){ .tv_nsec = SETTLE_NAP_NS }, NULL);
	return soft_now_ns() - since;
}

/* Until the peer has come out of it, has ended, or the time is over. True: the first or second. */
static bool comes_out(const struct soft_pair *pair, const uint32_t *within, uint64_t begun,
		      uint64_t until_ns)
{
	while (__atomic_load_n(within, __ATOMIC_ACQUIRE) && !soft_direct_has_ended(pair->peer))
		if (nap(begun) >= until_ns)
			return false;
	return true;
}

/* The peer has not come out of it at once. One that has lost its processor will; one that has been
 * stopped is cut off, and then there is time for a copy that was just under way. */
static __attribute__((noinline)) void wait_or_cut_off(struct dapl_conn *conn,
						      const uint32_t *within)
{
	struct soft_pair *pair = conn->pair;
	uint64_t begun = soft_now_ns();

	if (!pair->unsettled && comes_out(pair, within, begun, CUT_OFF_NS))
		return;
	if (pair->own->gate_file >= 0)
		close_window(pair->own);
	if (pair->unsettled || comes_out(pair, within, begun, SETTLE_NS))
		return;
	pair->unsettled = true;
	log_line(SOFT_LOG_ERR, "soft: a peer has been within a write to memory that is being taken "
		 "back for a second; not waiting any longer");
}

void soft_gate_settle(struct dapl_conn *conn)
{
	const uint32_t *within = &soft_peers_writer(conn)->within;

	for (int i = 0; i < SETTLE_SPINS; i++) {
		if (likely(!__atomic_load_n(within, __ATOMIC_ACQUIRE)))
			return;
		dapl_pause();
	}
	wait_or_cut_off(conn, within);
}

/* --- the initiator ------------------------------------------------------------------------------- */

uint64_t soft_gate_look(const struct soft_station *peer)
{
	uint64_t window = __atomic_load_n(&peer->board->gate, __ATOMIC_ACQUIRE);

	return window % WINDOW ? 0 : window;
}

/* Stores nothing itself: where the file has ended, that would be a deadly signal. */
static bool describe(struct iovec *place, char *bounce)
{
	struct iovec words = { bounce, DIRECT_MAX };
	struct iovec here = { &words, sizeof words }, there = { place, sizeof words };

	return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == sizeof words;
}

/* Private, so that nobody else has a say in what the kernel copies from here. */
static bool map_window(struct soft_pair *pair, uint64_t window)
{
	void *p;

	if (!pair->bounce)
		pair->bounce = malloc(DIRECT_MAX);
	if (!pair->bounce)
		return false;
	pair->window_at = 0;
	p = mmap(pair->window, WINDOW, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | (pair->window ? MAP_FIXED : 0), pair->peer->gate_file, window);
	if (p == MAP_FAILED)
		return false;
	pair->window = p;
	madvise(p, WINDOW, MADV_DONTFORK);
	if (!describe(p, pair->bounce))
		return false;
	pair->window_at = window;
	return true;
}

const struct iovec *soft_gate_source(struct soft_pair *pair, uint64_t window)
{
	return likely(pair->window_at == window) || map_window(pair, window) ? pair->window : NULL;
}

/* libc's function may be a sanitizer's, who reads the words himself, also where there is nothing. */
ssize_t soft_gate_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int pieces)
{
	return syscall(SYS_process_vm_writev, (long)pid, source, 1l, there, (long)pieces, 0l);
}

void soft_gate_free(struct soft_pair *pair)
{
	if (pair->window)
		munmap(pair->window, WINDOW);
	free(pair->bounce);
}
