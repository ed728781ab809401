/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_reach.c - whether a peer process may be accessed: its id must be where it says, its files must be sealed,
 * and it must live. The peer is a child that shares a directory with the test. */
#include "test/unit/child.h"
#include "test/unit/soft/ends.h"
#include <signal.h>
#include <sys/wait.h>
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/reach.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/shm/shared.h"
#include "test/unit/unit.h"

static struct shm_mr_dir *directory;	/* shared with the child */
static struct shm_process peer;
static pid_t child;
static int up[2];

static int set_up(void **state)
{
	directory = mmap(NULL, sizeof *directory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (directory == MAP_FAILED || pipe(up))
		return -1;
	peer = (struct shm_process){ .id = 4711, .mr_dir = directory, .file = -1, .window_file = -1,
		.pidfd = -1, .wake_fd = -1 };
	dapl_mutex_init(&peer.reach_lock, RANK_SOFT_REACH);
	child = 0;
	return 0;
}

static void end_child(void)
{
	if (!child)
		return;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	child = 0;
}

static int tear_down(void **state)
{
	end_child();
	if (peer.file < 0)
		mr_dir_close(&peer);
	close(up[0]);
	close(up[1]);
	return munmap(directory, sizeof *directory);
}

/* A peer with this id, whose window file has these seals (-1: those of a real one). */
static void start_child(uint64_t id, int seals)
{
	char byte;

	child = fork_child();
	if (!child) {
		struct shm_process own = { .id = id, .mr_dir = directory, .window_file = -1, .pidfd = -1 };

		mr_dir_open(&own);
		if (seals >= 0)
			directory->fd = sealed_file_new(4 * WINDOW_SIZE, seals);
		DIE_UNLESS(own.window_file >= 0 && directory->fd >= 0 && write(up[1], "", 1) == 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	if (!cma_works())
		skip();		/* the system forbids process_vm_readv() */
}

UNIT_CASE(peer_that_denies_access_is_not_reached)
{
	directory->pid = 0;
	assert_false(reach_memory(&peer));
	directory->pid = (uint32_t)getpid();	/* too late: it is tried once */
	assert_false(reach_memory(&peer));
	assert_int_equal(peer.reach, SOFT_REACH_NO);
}

/* Its process id belongs to another process by now. */
UNIT_CASE(process_with_another_id_is_not_the_peer)
{
	start_child(peer.id + 1, -1);
	assert_false(reach_memory(&peer));
	assert_int_equal(peer.window_file, -1);
}

/* The file could grow again after a window of it was cut off, or its seals could be changed. */
UNIT_CASE(window_file_must_be_sealed)
{
	static const int seals[] = { F_SEAL_GROW, F_SEAL_SEAL, 0 };

	for (size_t i = 0; i < sizeof seals / sizeof *seals; i++) {
		start_child(peer.id, seals[i]);
		assert_false(reach_memory(&peer));
		assert_int_equal(peer.window_file, -1);
		end_child();
		mr_dir_close(&peer);
		peer.reach = SOFT_REACH_UNTRIED;
	}
	start_child(peer.id, F_SEAL_GROW | F_SEAL_SEAL);
	assert_true(reach_memory(&peer));
}

UNIT_CASE(ended_peer_is_noticed)
{
	start_child(peer.id, -1);
	assert_true(reach_memory(&peer));
	end_child();
	assert_true(reach_process_has_ended(&peer));
	peer.seen_ns = 0;	/* it was seen long ago: look again */
	assert_false(reach_memory(&peer));
	assert_int_equal(peer.reach, SOFT_REACH_NO);
	peer.seen_ns = UINT64_MAX / 2;
	assert_false(reach_memory(&peer));	/* for good */
}

UNIT_CASE(peer_that_ended_before_it_was_reached_has_ended)
{
	pid_t pid;

	start_child(peer.id, -1);
	pid = child;
	end_child();
	assert_int_equal(directory->pid, pid);
	assert_true(reach_process_has_ended(&peer));
	assert_int_equal(peer.reach, SOFT_REACH_NO);
}

UNIT_CASE(only_regular_files_are_opened)
{
	int file = sealed_file_new(4096, 0), copy;

	assert_true(file >= 0);
	copy = reach_open_file(getpid(), file);
	assert_true(copy >= 0 && copy != file);
	assert_true(fcntl(copy, F_GETFD) & FD_CLOEXEC);
	close(copy);
	assert_int_equal(reach_open_file(getpid(), up[0]), -1);	/* a pipe */
	close(file);
	assert_int_equal(reach_open_file(getpid(), file), -1);
	assert_int_equal(reach_open_file(getpid(), -1), -1);
	assert_int_equal(reach_open_file(0, 0), -1);
}

UNIT_MAIN(NULL, NULL)
