/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_process.c - what the own process is made of, which descriptors of a peer are accepted, how long a process
 * lives, and how often it is woken. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/obj/stags.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/verbs/mr.h"
#include "dapl/soft/shm/shared.h"
#include "test/unit/child.h"
#include "test/unit/descriptors.h"
#include "test/unit/unit.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW, ID = 4711 };

static struct dapl_device *dev;
static unsigned open_before;
static int step_that_fails;		/* of those that make a process; 0: none */
static int steps;
static int racing[PROCESS_FDS];		/* descriptors of a second peer with the same id, or -1 */
static struct shm_process *raced;

EXTEND(eventfd, memfd_create, mmap64)

/* Sets errno. */
static bool step_fails(void)
{
	errno = ENFILE;
	return step_that_fails && ++steps == step_that_fails;
}

int __wrap_eventfd(unsigned count, int flags) { return step_fails() ? -1 : __real_eventfd(count, flags); }

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return step_fails() ? -1 : __real_memfd_create(name, flags);
}

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	int fds[PROCESS_FDS];

	if (racing[0] >= 0) {
		memcpy(fds, racing, sizeof fds);
		racing[0] = -1;
		raced = shm_process_of_peer(ID, fds);
	}
	return step_fails() ? MAP_FAILED : __real_mmap64(at, size, protection, flags, fd, offset);
}

UNIT_FAIL_CALLOC(step_that_fails && step_fails())

/* --- what the cases use --------------------------------------------------------------------------------------- */

/* Each case runs with the progress lock held. */
UNIT_FIXTURE(set_up)
{
	dev = calloc(1, sizeof *dev);
	dev->data_epoll = epoll_create1(EPOLL_CLOEXEC);
	dapl_mutex_init(&dev->progress_lock, RANK_SOFT_PROGRESS);
	assert_int_equal(soft_stags_init(dev, &soft_mr_directory), 0);
	dapl_mutex_lock(&dev->progress_lock);
	step_that_fails = steps = 0;
	racing[0] = -1;
	raced = NULL;
	open_before = open_descriptors();
}

/* No case leaves a descriptor open. */
UNIT_FIXTURE(tear_down)
{
	step_that_fails = 0;
	shm_process_put(dev->shm.process);
	dapl_mutex_unlock(&dev->progress_lock);
	assert_int_equal(open_descriptors(), open_before);
	close(dev->data_epoll);
	soft_stags_fini(dev);
	free(dev);
}

/* What a peer sends: the kinds of descriptors that are accepted. */
static void make_peer(int *fds)
{
	fds[0] = __real_eventfd(0, EFD_NONBLOCK);
	fds[1] = sealed_file_new(sizeof(struct shm_mr_dir), SEALS);
	fds[2] = sealed_file_new(sizeof(struct shm_pending), SEALS);
	assert_true(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
}

static struct shm_process *know_peer(int *fds)
{
	make_peer(fds);
	return shm_process_of_peer(ID, fds);
}

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

/* The value of an eventfd, which it clears. */
static uint64_t signals(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

/* --- this process ---------------------------------------------------------------------------------------------- */

/* As in a service without standard input, output and error. */
UNIT_CASE(own_process_may_have_descriptor_0)
{
	int input = dup(0);

	close(0);
	assert_non_null(shm_process_own(dev));
	assert_int_equal(dev->shm.process->wake_fd, 0);
	shm_process_put(dev->shm.process);
	dev->shm.process = NULL;
	if (input >= 0) {
		dup2(input, 0);
		close(input);
	}
}

UNIT_CASE(process_that_cannot_be_made_leaves_nothing)
{
	for (int i = 1; i <= 6; i++) {	/* the process, the eventfd, two files, and their mappings */
		step_that_fails = i;
		steps = 0;
		errno = 0;
		assert_null(shm_process_own(dev));
		assert_int_equal(errno, ENFILE);
		assert_int_equal(steps, i);
		assert_int_equal(open_descriptors(), open_before);
	}
	assert_null(dev->shm.process);
}

UNIT_CASE(process_that_cannot_be_watched_is_not_made)
{
	int epoll = dev->data_epoll;

	dev->data_epoll = -1;
	assert_null(shm_process_own(dev));
	assert_int_equal(errno, EBADF);
	assert_null(dev->shm.process);
	dev->data_epoll = epoll;
}

UNIT_CASE(peers_cannot_write_to_the_directory)
{
	void *map;

	assert_non_null(shm_process_own(dev));
	if (!(fcntl(dev->shm.process->file, F_GET_SEALS) & F_SEAL_FUTURE_WRITE)) {
		int probe = sealed_file_new(4096, 0);
		int err = fcntl(probe, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);

		close(probe);
		assert_int_equal(err, -1);	/* a kernel without this seal */
		skip();
	}
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, dev->shm.process->file, 0);
	assert_ptr_equal(map, MAP_FAILED);
}

/* --- peers ------------------------------------------------------------------------------------------------------ */

UNIT_CASE(peer_without_references_is_forgotten)
{
	int fds[PROCESS_FDS], again[PROCESS_FDS];
	struct shm_process *peer = know_peer(fds);

	shm_process_get(peer);
	shm_process_put(peer);
	assert_true(is_open(fds[0]));
	shm_process_put(peer);
	shm_process_put(NULL);
	peer = know_peer(again);
	assert_int_equal(peer->refs, 1);
	assert_int_equal(peer->wake_fd, again[0]);
	shm_process_put(peer);
}

/* Replaces one of the descriptors of a peer, which is then refused. */
static void expect_refused(int which, int fd)
{
	int fds[PROCESS_FDS];

	assert_true(fd >= 0);
	make_peer(fds);
	close(fds[which]);
	fds[which] = fd;
	assert_null(shm_process_of_peer(ID, fds));
	assert_int_equal(open_descriptors(), open_before);
}

UNIT_CASE(only_an_eventfd_that_does_not_block_is_written_to)
{
	expect_refused(0, __real_eventfd(0, 0));
	expect_refused(0, sealed_file_new(4096, SEALS));
	expect_refused(0, open("/dev/null", O_RDWR | O_NONBLOCK));
	expect_refused(0, epoll_create1(0));
}

UNIT_CASE(only_sealed_files_of_their_size_are_mapped)
{
	static const size_t sizes[] = { 0, sizeof(struct shm_mr_dir), sizeof(struct shm_pending) };

	for (int i = 1; i <= 2; i++) {
		expect_refused(i, sealed_file_new(sizes[i], F_SEAL_SHRINK));
		expect_refused(i, sealed_file_new(sizes[i] - 4096, SEALS));
		expect_refused(i, sealed_file_new(sizes[i] + 4096, SEALS));
	}
}

UNIT_CASE(peer_without_memory_is_not_known)
{
	int fds[PROCESS_FDS];

	for (int i = 1; i <= 3; i++) {		/* the process and two mappings */
		make_peer(fds);
		step_that_fails = i;
		steps = 0;
		assert_null(shm_process_of_peer(ID, fds));
		step_that_fails = 0;
		assert_int_equal(open_descriptors(), open_before);
	}
}

UNIT_CASE(peer_that_is_made_twice_at_once_is_kept_once)
{
	int fds[PROCESS_FDS], first;
	struct shm_process *peer;

	make_peer(racing);
	first = racing[0];
	peer = know_peer(fds);
	assert_non_null(raced);
	assert_ptr_equal(peer, raced);
	assert_int_equal(peer->wake_fd, first);
	assert_int_equal(peer->refs, 2);
	shm_process_put(peer);
	shm_process_put(peer);
}

/* --- wake-ups ---------------------------------------------------------------------------------------------------- */

UNIT_CASE(sleeping_peer_is_woken_once)
{
	int fds[PROCESS_FDS];
	struct shm_process *peer = know_peer(fds);

	for (uint32_t sleep_count = 1; sleep_count <= 5; sleep_count += 2) {
		shm_notify_wake(peer, sleep_count);
		shm_notify_wake(peer, sleep_count);
		assert_int_equal(signals(fds[0]), 1);
		shm_notify_wake(peer, sleep_count);
		assert_int_equal(signals(fds[0]), 0);
	}
	shm_process_put(peer);
}

/* --- fork -------------------------------------------------------------------------------------------------------- */

/* In the child: which promise is broken, or 0. */
static int broken_in_child(const struct shm_process *own, const struct shm_process *peer)
{
	int fds[PROCESS_FDS], own_fds[PROCESS_FDS], peer_fd = peer->wake_fd, window = own->window_file;
	struct shm_process *again;

	shm_process_fds(own, own_fds);
	shm_process_fork_child();
	for (int i = 0; i < PROCESS_FDS; i++)
		if (is_open(own_fds[i]))
			return 1;
	if (is_open(peer_fd) || is_open(window))
		return 2;
	again = know_peer(fds);
	return again == peer || again->refs != 1 ? 3 : 0;
}

UNIT_CASE(child_has_none_of_the_processes)
{
	int fds[PROCESS_FDS];
	struct shm_process *peer = know_peer(fds);
	pid_t pid;

	dev->want_direct = true;
	assert_non_null(shm_process_own(dev));
	assert_true(dev->shm.process->window_file >= 0);
	shm_process_fork_prepare();
	pid = fork_child();
	if (!pid) {
		shm_process_fork_done();
		_exit(broken_in_child(dev->shm.process, peer));
	}
	shm_process_fork_done();
	expect_success(pid);
	assert_true(is_open(fds[0]));
	shm_process_put(peer);
}

UNIT_MAIN(NULL, NULL)
