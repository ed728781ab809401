/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_fork.c - what a fork does to software devices: the child holds none of their sockets and takes no progress from
 * its parent, and a device that was closed is left alone. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/fork.h"
#include "test/unit/child.h"
#include "test/unit/soft/ends.h"
#include "test/unit/unit.h"

/* --- what is replaced ---------------------------------------------------------------------------------------- */

static void *watched;			/* memory that stays when it is freed, so that the test can read it */
static bool was_freed;

EXTEND(free)

void __wrap_free(void *memory)
{
	if (memory && memory == watched)
		was_freed = true;
	else
		__real_free(memory);
}

/* --- descriptors --------------------------------------------------------------------------------------------- */

/* Forks a child that lives until it is killed. Returns when the fork handlers have run there. */
static pid_t fork_idle_child(void)
{
	int ready[2];
	pid_t child;

	OK(pipe(ready));
	child = fork_child();
	if (!child) {
		DIE_UNLESS(write(ready[1], "r", 1) == 1);
		for (;;)
			pause();
	}
	expect_byte(ready[0], 'r');
	close(ready[0]);
	close(ready[1]);
	return child;
}

static void kill_child(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void init_device(struct dapl_device *dev)
{
	dapl_mutex_init(&dev->progress_lock, RANK_SOFT_PROGRESS);
	LIST_INIT(&dev->cm.conns);
	LIST_INIT(&dev->cm.ports);
	dev->datagrams.fd = -1;
	soft_fork_add_device(dev);
}

/* Each descriptor is an end of a socket pair. Its peer reads the end of the stream when no process has it open. */
UNIT_TEST(child_holds_no_descriptor_of_a_device)
{
	static struct dapl_device first, second;
	static struct soft_cm_conn attaching_cm, connected_cm;
	static struct dapl_conn attaching = { .cm = &attaching_cm }, connected = { .cm = &connected_cm };
	static struct soft_port port;
	int *const owned[] = { &attaching.fd, &attaching_cm.attach_fd, &connected.fd, &port.fd, &first.datagrams.fd };
	enum { OWNED = sizeof owned / sizeof *owned };
	int peers[OWNED], pair[2];
	pid_t child;
	char byte;

	init_device(&first);
	init_device(&second);
	LIST_INSERT_HEAD(&first.cm.conns, &attaching, link);
	LIST_INSERT_HEAD(&second.cm.conns, &connected, link);
	LIST_INSERT_HEAD(&second.cm.ports, &port, link);
	connected_cm.attach_fd = -1;
	for (int i = 0; i < OWNED; i++) {
		OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		*owned[i] = pair[0];
		peers[i] = pair[1];
	}
	child = fork_idle_child();
	for (int i = 0; i < OWNED; i++) {
		assert_int_equal(recv(peers[i], &byte, 1, MSG_DONTWAIT), -1);	/* open in the parent */
		close(*owned[i]);
		assert_int_equal(recv(peers[i], &byte, 1, MSG_DONTWAIT), 0);
		close(peers[i]);
	}
	kill_child(child);
	soft_fork_remove_device(&first);
	soft_fork_remove_device(&second);
}

static int hold[2];		/* the grandchild lives until this pipe is closed */

/* Connects and forks. The grandchild reports when the fork handlers have run there. */
static void child_with_a_child(uint16_t port, int from, int to)
{
	char byte;

	close(hold[1]);
	open_end(&ends[0]);
	start_connect(&ends[0], port);
	wait_up(&ends[0], ESTABLISHED);
	if (!fork()) {
		alarm(120);
		DIE_UNLESS(write(to, "g", 1) == 1);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	for (;;)
		pause();
}

static void peer_sees_the_end(const char *shm)
{
	struct caller o;

	setenv("DAPL_SOFT_SHM", shm, 1);
	OK(pipe(hold));
	o = fork_initiator(child_with_a_child);
	assert_int_equal(uses_rings(&ends[1]), *shm == '1');
	expect_byte(o.up[0], 'g');
	kill_initiator(&o);
	close(hold[0]);
	close(hold[1]);
	end_initiator(&o);
}

UNIT_TEST(peer_sees_the_end_of_a_process_whose_child_lives_on)
{
	peer_sees_the_end("0");
	peer_sees_the_end("1");
}

/* --- progress ------------------------------------------------------------------------------------------------ */

/* In the child: goes to sleep as a thread does that has polled. Returns false if that has an effect. */
static bool sleeps_without_effect(struct end *e)
{
	e->dev->progress.owner = OWNER_POLLING_THREADS;
	DIE_UNLESS(ibv_req_notify_cq(e->cq, 0) == 0);
	if (e->dev->progress.owner != OWNER_POLLING_THREADS)
		return false;
	e->dev->progress.owner = OWNER_SERVICE_THREAD;
	return ops->sleep(e->dev, true) == -1;
}

/* The epoll sets are those of the parent: a blocked thread of the child would take the data from the parent's service
 * thread, which answers the read. */
UNIT_TEST(child_that_blocks_leaves_progress_to_its_parent)
{
	int status;
	pid_t child;

	open_two(3);
	child = fork_child();
	if (!child)
		_exit(!sleeps_without_effect(&ends[1]));
	assert_int_equal(waitpid(child, &status, 0), child);
	post_to_other(IBV_WR_RDMA_READ, 8, 0);
	done(&ends[0]);
	assert_int_equal(status, 0);
	close_two();
}

/* --- what the child does with the devices -------------------------------------------------------------------- */

/* Calls operations of the parent's devices. Descriptors of the child have the numbers of those that the fork closed. */
static void use_devices(struct dapl_listener *listener)
{
	int fds[64];
	struct ibv_wc wc;

	for (int i = 0; i < 64; i++)
		fds[i] = dup(STDERR_FILENO);
	for (struct end *e = ends; e < ends + 2; e++) {
		post(e, IBV_WR_RDMA_WRITE, 8, (uintptr_t)e->buf, e->mr->rkey);
		DIE_UNLESS(ibv_poll_cq(e->cq, 1, &wc) == 0);
		DIE_UNLESS(ops->disconnect(e->conn) == 0);
		ops->release(e->conn);
		e->conn = NULL;
	}
	ops->unlisten(listener);
	close_two();
	for (int i = 0; i < 64; i++)
		DIE_UNLESS(close(fds[i]) == 0);
	_exit(0);
}

UNIT_TEST(calls_of_a_child_have_no_effect)
{
	for (int without = 0; without <= 3; without += 3) {
		struct dapl_listener *listener;
		uint16_t port = 0;
		pid_t child;

		open_two(without);
		assert_int_equal(uses_rings(&ends[0]), !without);
		OK(ops->listen(ends[1].dev, NULL, &port, false, 8, state, &listener));
		child = fork_child();
		if (!child)
			use_devices(listener);
		expect_success(child);
		ops->unlisten(listener);
		post_to_other(IBV_WR_RDMA_READ, 8, 0);
		done(&ends[0]);
		close_two();
	}
}

/* --- state of the process ------------------------------------------------------------------------------------ */

static void add_half_open(struct dapl_device *dev, struct dapl_conn *conns, struct soft_cm_conn *cms, unsigned n)
{
	dapl_mutex_lock(&dev->progress_lock);
	for (unsigned i = 0; i < n; i++) {
		conns[i] = (struct dapl_conn){ .dev = dev, .cm = &cms[i], .remote.ss_family = AF_INET };
		((struct sockaddr_in *)&conns[i].remote)->sin_addr.s_addr = i;
		soft_half_open_add(&conns[i]);
	}
	dapl_mutex_unlock(&dev->progress_lock);
}

static void remove_half_open(struct dapl_device *dev, struct dapl_conn *conns, unsigned n)
{
	dapl_mutex_lock(&dev->progress_lock);
	for (unsigned i = 0; i < n; i++)
		soft_half_open_remove(&conns[i]);
	dapl_mutex_unlock(&dev->progress_lock);
}

/* The process has as many as it may. Those of the parent do not count in the child, nor does their end. */
UNIT_TEST(child_starts_without_half_open_connections)
{
	enum { DESCRIPTORS = 64, ALL = DESCRIPTORS / HALF_OPEN_FRACTION };
	static struct dapl_device dev, own;
	static struct soft_cm_conn cms[ALL], new_cms[2];
	static struct dapl_conn conns[ALL], new[2];
	struct rlimit limit, low;
	pid_t child;

	OK(getrlimit(RLIMIT_NOFILE, &limit));
	low = (struct rlimit){ DESCRIPTORS, limit.rlim_max };
	init_device(&dev);
	TAILQ_INIT(&dev.half_open.list);
	add_half_open(&dev, conns, cms, ALL);
	OK(setrlimit(RLIMIT_NOFILE, &low));
	child = fork_child();
	if (!child) {
		init_device(&own);
		TAILQ_INIT(&own.half_open.list);
		add_half_open(&own, new, new_cms, 2);
		DIE_UNLESS(!soft_half_open_surplus(&new[1]));
		remove_half_open(&dev, conns, ALL);
		DIE_UNLESS(!soft_half_open_surplus(&new[1]));
		_exit(0);
	}
	expect_success(child);
	add_half_open(&dev, new, new_cms, 2);
	assert_ptr_equal(soft_half_open_surplus(&new[1]), &conns[0]);
	OK(setrlimit(RLIMIT_NOFILE, &limit));
	remove_half_open(&dev, conns, ALL);
	remove_half_open(&dev, new, 2);
	soft_fork_remove_device(&dev);
}

/* --- closed devices ------------------------------------------------------------------------------------------ */

UNIT_TEST(closed_device_is_left_alone)
{
	struct dapl_device *dev;
	pid_t child;

	OK(ops->open("lo 0", state, &dev));
	watched = dev;
	ops->close(dev);
	assert_true(was_freed);
	child = fork_child();
	if (!child)
		_exit(dev->dead);
	expect_success(child);
	watched = NULL;
	free(dev);
}

UNIT_MAIN(use_shared_memory, NULL)
