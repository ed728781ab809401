/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* process.c - the processes that share memory (process.h): their table, their descriptors, and the
 * wake-up of one by another. attach.c and attach_server.c exchange the descriptors.
 *
 * The own process is made of two sealed files and an eventfd. What a peer sends counts only if it
 * is the same: no other descriptor is mapped or written to. */
#include "dapl/soft/shm/process.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/stags.h"
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/shm/sealed_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MR_DIR_SIZE = sizeof(struct shm_mr_dir), PENDING_SIZE = sizeof(struct shm_pending),
};

/* Guards the list and the reference counts; innermost. */
static struct dapl_mutex process_lock = DAPL_MUTEX_INIT(RANK_SOFT_PROCESSES);
static LIST_HEAD(, shm_process) processes = LIST_HEAD_INITIALIZER(processes);

/* --- the table --------------------------------------------------------------------------------- */

/* process_lock held. */
static struct shm_process *process_find(uint64_t id)
{
	struct shm_process *process;

	assert_held(&process_lock);
	LIST_FOREACH(process, &processes, link)
		if (process->id == id) {
			process->refs++;
			return process;
		}
	return NULL;
}

static void close_files(struct shm_process *process)
{
	if (process->file >= 0)
		close(process->file);
	if (process->pending_file >= 0)
		close(process->pending_file);
}

static void process_free(struct shm_process *process)
{
	mr_dir_close(process);
	if (process->mr_dir)
		munmap(process->mr_dir, MR_DIR_SIZE);
	if (process->pending)
		munmap(process->pending, PENDING_SIZE);
	if (process->wake_fd >= 0)
		close(process->wake_fd);
	close_files(process);
	free(process);
}

void shm_process_put(struct shm_process *process)
{
	bool last;

	if (!process)
		return;
	dapl_mutex_lock(&process_lock);
	last = !--process->refs;
	if (last)
		LIST_REMOVE(process, link);
	dapl_mutex_unlock(&process_lock);
	if (last)
		process_free(process);
}

void shm_process_get(struct shm_process *process)
{
	dapl_mutex_lock(&process_lock);
	process->refs++;
	dapl_mutex_unlock(&process_lock);
}

/* --- this process --------------------------------------------------------------------------------- */

/* A process without descriptors and memory. */
static struct shm_process *process_blank(void)
{
	struct shm_process *process = calloc(1, sizeof *process);

	if (!process)
		return NULL;
	process->refs = 1;
	dapl_mutex_init(&process->reach_lock, RANK_SOFT_REACH);
	process->wake_fd = process->file = process->pending_file = process->window_file =
		process->pidfd = -1;
	return process;
}

/* Makes and maps a sealed file. *fd is its descriptor. NULL: there is no memory. */
static void *map_new(size_t size, int *fd)
{
	*fd = sealed_file_new(size, F_SEAL_SHRINK | F_SEAL_GROW);
	return *fd >= 0 ? sealed_file_map(*fd, size, PROT_READ | PROT_WRITE) : NULL;
}

/* This process, for one device. Peers may read the MR directory; they could write to it only where
 * the kernel lacks the seal. */
static struct shm_process *process_new(bool direct)
{
	struct shm_process *process = process_blank();
	int err;

	if (!process)
		return NULL;
	process->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (process->wake_fd >= 0)
		process->mr_dir = map_new(MR_DIR_SIZE, &process->file);
	if (process->mr_dir)
		process->pending = map_new(PENDING_SIZE, &process->pending_file);
	if (!process->pending) {
		err = errno;
		process_free(process);
		errno = err;
		return NULL;
	}
	fcntl(process->file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);	/* Linux 5.1 */
	process->id = soft_random_64();
	process->sleep_count = &process->mr_dir->sleep_count;
	*process->sleep_count = 1;				/* no thread polls */
	if (direct)
		mr_dir_open(process);
	dapl_mutex_lock(&process_lock);
	LIST_INSERT_HEAD(&processes, process, link);
	dapl_mutex_unlock(&process_lock);
	return process;
}

/* What the eventfd was signaled for is in the rings, which each turn looks at; the service thread clears it. */
static void serve_wakeup(struct soft_input *input, uint32_t events, bool polling)
{
	(void)input;
	(void)events;
	(void)polling;
}

struct shm_process *shm_process_own(struct dapl_device *dev)
{
	struct epoll_event event = soft_input_event(&dev->shm.wake_input, EPOLLIN);
	struct shm_process *process = dev->shm.process;

	assert_held(&dev->progress_lock);
	if (process)
		return process;
	dev->shm.wake_input.serve = serve_wakeup;
	process = process_new(dev->want_direct);
	if (process && epoll_ctl(dev->data_epoll, EPOLL_CTL_ADD, process->wake_fd, &event)) {
		int err = errno;

		shm_process_put(process);
		errno = err;
		process = NULL;
	}
	if (process)
		soft_stags_publish_all(dev, process);
	return process;
}

void shm_process_fds(const struct shm_process *process, int *fds)
{
	fds[0] = process->wake_fd;
	fds[1] = process->file;
	fds[2] = process->pending_file;
}

/* --- peers -------------------------------------------------------------------------------------- */

/* Returns true if the descriptor is an eventfd that does not block. No other one is written to. */
static bool is_wake_fd(int fd)
{
	static const char kind[] = "anon_inode:[eventfd]";
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof target);
	return n == sizeof kind - 1 && !memcmp(target, kind, n) &&
	       (fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* Maps a file that a peer sent. NULL: it is not sealed, or there is no memory. */
static void *map_sent(int fd, size_t size, int protection)
{
	return sealed_file_check(fd, size) ? sealed_file_map(fd, size, protection) : NULL;
}

/* A peer process that was not known before. It takes over the eventfd. */
static struct shm_process *process_from_peer(uint64_t id, const int *fds)
{
	struct shm_process *process = process_blank();

	if (!process)
		return NULL;
	process->id = id;
	if (is_wake_fd(fds[0])) {
		process->mr_dir = map_sent(fds[1], MR_DIR_SIZE, PROT_READ);
		process->pending = map_sent(fds[2], PENDING_SIZE, PROT_READ | PROT_WRITE);
	}
	if (!process->mr_dir || !process->pending) {
		process_free(process);
		return NULL;
	}
	process->wake_fd = fds[0];
	process->sleep_count = &process->mr_dir->sleep_count;
	return process;
}

struct shm_process *shm_process_of_peer(uint64_t id, const int *fds)
{
	struct shm_process *process, *other;

	dapl_mutex_lock(&process_lock);
	other = process_find(id);
	dapl_mutex_unlock(&process_lock);
	process = other ? NULL : process_from_peer(id, fds);
	if (!process)
		close(fds[0]);
	close(fds[1]);
	close(fds[2]);
	if (!process)
		return other;
	dapl_mutex_lock(&process_lock);
	other = process_find(id);
	if (!other)
		LIST_INSERT_HEAD(&processes, process, link);
	dapl_mutex_unlock(&process_lock);
	if (other)
		process_free(process);
	return other ? other : process;
}

/* --- wake-ups ------------------------------------------------------------------------------------ */

void shm_notify_self(struct shm_process *process)
{
	uint64_t one = 1;
	ssize_t n = write(process->wake_fd, &one, sizeof one);

	(void)n;	/* fails only if the counter is at its maximum: it is signaled then */
}

/* One signal is enough for each time that the peer falls asleep. */
void shm_notify_wake(struct shm_process *process, uint32_t sleep_count)
{
	if (__atomic_exchange_n(&process->notified, sleep_count, __ATOMIC_RELAXED) != sleep_count)
		shm_notify_self(process);
}

void shm_notify_clear(struct dapl_device *dev)
{
	uint64_t count;
	ssize_t n;

	assert_held(&dev->progress_lock);
	if (!dev->shm.process)
		return;
	n = read(dev->shm.process->wake_fd, &count, sizeof count);
	(void)n;
}

/* --- fork ----------------------------------------------------------------------------------------- */

void shm_process_fork_prepare(void)
{
	dapl_mutex_lock(&process_lock);
}

void shm_process_fork_done(void)
{
	dapl_mutex_unlock(&process_lock);
}

void shm_process_fork_child(void)
{
	struct shm_process *process;

	LIST_FOREACH(process, &processes, link) {
		close(process->wake_fd);
		close_files(process);
		mr_dir_close(process);
	}
	LIST_INIT(&processes);
}
