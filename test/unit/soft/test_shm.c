/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm.c - shared-memory connections: that they are used, between processes and in
 * one; a killed peer leaves nothing behind; a process without the token, and a peer that
 * stores invalid data, harm no other connection. The tests read from the device which protocol
 * carries the data. test_device.c tests the messages themselves. */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "test/unit/soft/ends.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/progress/progress.h"

/* --- two processes --------------------------------------------------------------------------------- */

static const uint32_t lengths[] = { 0, 1, 8, 31, 32, 33, 64, 4000, 16384, 16385, 300000, HALF };

/* The child connects, sends, writes, reads and adds, then waits to be killed. */
static void child_part(uint16_t port, int from, int to)
{
	struct end *e = &ends[0];
	struct other o;

	alarm(60);
	open_end(e);
	start_connect(e, port);
	wait_up(e, ESTABLISHED);
	DIE_UNLESS(uses_rings(e));
	DIE_UNLESS(read(from, &o, sizeof o) == sizeof o);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		pattern(e->buf, lengths[i], i);
		post(e, IBV_WR_SEND, lengths[i], 0, 0);
		DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS);
		post(e, IBV_WR_RDMA_WRITE, lengths[i], o.address, o.rkey);
		DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS);
		memset(e->buf, 0, lengths[i]);
		post(e, IBV_WR_RDMA_READ, lengths[i], o.address, o.rkey);
		DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS);
		DIE_UNLESS(has_pattern(e->buf, lengths[i], i));
		DIE_UNLESS(write(to, "x", 1) == 1 && read(from, &o, sizeof o) == sizeof o);
	}
	post(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, o.address, o.rkey);
	DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS && *(uint64_t *)e->buf == 37);
	DIE_UNLESS(write(to, "y", 1) == 1);
	pause();
}

static void data_arrives_between_processes_and_a_killed_peer_is_detected(void **state)
{
	struct end *e = &ends[1];
	struct caller o = fork_initiator(child_part);

	(void)state;
	assert_true(uses_rings(e));
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		post_receive(e);
	tell(o.down[1], e);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		done(e);
		expect_byte(o.up[0], 'x');	/* RDMA: only the service thread drives progress here */
		settle(e);
		assert_true(has_pattern(e->buf + HALF, lengths[i], i));
		assert_true(has_pattern(e->buf, lengths[i], i));
		memset(e->buf, 0, BUFFER);
		*(uint64_t *)e->buf = 37;
		settle(e);
		tell(o.down[1], e);
	}
	expect_byte(o.up[0], 'y');
	settle(e);
	assert_int_equal(*(uint64_t *)e->buf, 42);
	post_receive(e);
	kill_initiator(&o);
	assert_int_equal(next_status(e), IBV_WC_WR_FLUSH_ERR);
	end_initiator(&o);
}

/* --- one process --------------------------------------------------------------------------------------- */

static void shared_memory_serves_one_process_unless_an_end_refuses(void **state)
{
	(void)state;
	for (int without = 0; without < 4; without++) {
		open_two(without);
		assert_int_equal(uses_rings(&ends[0]), !without);
		assert_int_equal(uses_rings(&ends[1]), !without);
		post_receive(&ends[1]);
		post(&ends[0], IBV_WR_SEND, 100, 0, 0);
		done(&ends[0]);
		done(&ends[1]);
		close_two();
	}
}

static const struct ring_memory *memory_of(const struct end *e)
{
	const struct ring_memory *memory;

	soft_progress_lock(e->dev);
	memory = e->conn->shm ? e->conn->shm->segment->memory : NULL;
	soft_progress_unlock(e->dev);
	return memory;
}

/* Returns the TCP counters of this end. */
static struct tcp_info sent_by(const struct end *e)
{
	struct tcp_info info;
	socklen_t length = sizeof info;

	memset(&info, 0, sizeof info);
	soft_progress_lock(e->dev);
	OK(getsockopt(e->conn->fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	soft_progress_unlock(e->dev);
	return info;
}

/* Counts the closed connections from or to this port that the kernel keeps in TIME_WAIT. */
static int remembered(uint16_t port)
{
	enum { TIME_WAIT = 6 };
	FILE *list = fopen("/proc/thread-self/net/tcp", "r");
	unsigned local, remote, state;
	int n = 0;
	char line[256];

	assert_non_null(list);
	while (fgets(line, sizeof line, list))
		n += sscanf(line, " %*u: %*x:%x %*x:%x %x", &local, &remote, &state) == 3 &&
		     (local == port || remote == port) && state == TIME_WAIT;
	fclose(list);
	return n;
}

static void send_and_check(struct end *from, struct end *to, uint32_t length, unsigned seed)
{
	pattern(from->buf, length, seed);
	memset(to->buf + HALF, 0, length);
	post_receive(to);
	post(from, IBV_WR_SEND, length, 0, 0);
	done(from);
	done(to);
	assert_true(has_pattern(to->buf + HALF, length, seed));
}

/* The initiator and the acceptor are one device. A new connection uses the memory of the last
 * one and finds none of its data there. Over TCP the initiator sends its Request only, which
 * acknowledges the TCP handshake too, and the end leaves no state in the kernel. */
static void device_reuses_the_memory_of_its_connections(void **state)
{
	enum { ROUNDS = 4 };
	const struct ring_memory *memory = NULL;
	struct dapl_listener *listener;
	void *in_between[ROUNDS];	/* occupy the addresses that were unmapped */
	uint16_t port = 0;

	(void)state;
	setenv("DAPL_SOFT_SHM", "1", 1);
	open_end(&ends[0]);
	ends[1].dev = ends[0].dev;
	open_end(&ends[1]);
	OK(ops->listen(ends[1].dev, NULL, &port, false, 8, &ends[1], &listener));
	for (unsigned round = 0; round < ROUNDS; round++) {
		start_connect(&ends[0], port);
		accept_it(&ends[1]);
		wait_up(&ends[0], ESTABLISHED);
		assert_non_null(memory_of(&ends[0]));
		assert_ptr_equal(memory_of(&ends[0]), memory_of(&ends[1]));
		if (memory)
			assert_ptr_equal(memory_of(&ends[0]), memory);
		memory = memory_of(&ends[0]);
		assert_int_equal(sent_by(&ends[0]).tcpi_data_segs_out, 1);
		for (unsigned i = 0; i < 200; i++) {
			send_and_check(&ends[0], &ends[1], round % 2 ? 5000 : 8, i + round);
			send_and_check(&ends[1], &ends[0], round % 2 ? 8 : 5000, i + round);
		}
		assert_in_range(sent_by(&ends[0]).tcpi_segs_out, 2, 3);	/* and the acknowledgement of the Reply */
		release_end(&ends[round / 2]);
		wait_up(&ends[!(round / 2)], CLOSED);
		release_end(&ends[!(round / 2)]);
		for (int i = 0; i < 2; i++)
			OK(ops->reset_qp(ends[i].dev, ends[i].qp));
		upcalls_drop(NULL);
		assert_int_equal(remembered(port), 0);
		in_between[round] = mmap(NULL, sizeof *memory, PROT_NONE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		munmap(in_between[round], sizeof *memory);
	ops->unlisten(listener);
	close_objects(&ends[1]);
	memset(&ends[1], 0, sizeof ends[1]);
	close_end(&ends[0]);
}

/* A connecting parent and child identify each other by random numbers. */
static void parent_and_child_have_different_random_numbers(void **state)
{
	uint32_t its = 0, peer_is_dapl;
	int fds[2], status;
	pid_t child;

	(void)state;
	open_end(&ends[0]);
	OK(pipe(fds));
	soft_random();
	child = fork();
	if (!child) {
		its = soft_random();
		_exit(write(fds[1], &its, sizeof its) != sizeof its);
	}
	peer_is_dapl = soft_random();
	assert_int_equal(read(fds[0], &its, sizeof its), sizeof its);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_not_equal(its, peer_is_dapl);
	close(fds[0]);
	close(fds[1]);
	close_end(&ends[0]);
}

/* --- CMA: a blocked peer is not woken ----------------------------------------------------- */

/* Called just before copy number `nth` that this thread asks the kernel for. `asked` counts
 * the copies. */
static void (*meanwhile)(void);
static unsigned meanwhile_at, copies;
static bool copies_refused;
static struct iovec stored[8];		/* where the kernel stored, in this order */
static unsigned stores;

static bool copy_refused(void)
{
	copies++;
	if (meanwhile && copies == meanwhile_at)
		call_in_thread(meanwhile);
	errno = EPERM;
	return copies_refused;
}

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
				 const struct iovec *there, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
				 const struct iovec *there, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
				 const struct iovec *there, unsigned long m, unsigned long flags)
{
	return copy_refused() ? -1 : __real_process_vm_writev(pid, here, n, there, m, flags);
}

ssize_t __real_access_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int n);
ssize_t __wrap_access_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int n);
ssize_t __wrap_access_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int n)
{
	if (copy_refused())
		return -1;
	for (int i = 0; i < n && stores < sizeof stored / sizeof *stored; i++)
		stored[stores++] = there[i];
	return __real_access_copy(pid, source, there, n);
}

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
				const struct iovec *there, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
				const struct iovec *there, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
				const struct iovec *there, unsigned long m, unsigned long flags)
{
	return copy_refused() ? -1 : __real_process_vm_readv(pid, here, n, there, m, flags);
}

static void open_sleeper(void)
{
	if (!cma_works())
		skip();
	open_two(0);
	meanwhile = NULL;
	copies = meanwhile_at = stores = 0;
	copies_refused = false;
	wait_asleep(&ends[0]);
}

static const uint32_t direct_lengths[] = { 1, 7, 8, 9, 16, 63, 64, 4096, 5001, CMA_SHORT_MAX };

/* Runs in the child: writes and reads the memory of its parent, which sleeps in read(). */
static void child_with_a_blocked_parent(uint16_t port, int from, int to)
{
	struct end *e = &ends[0];
	uint32_t sleep_count, expected = 0;
	struct other o;

	alarm(60);
	open_end(e);
	start_connect(e, port);
	wait_up(e, ESTABLISHED);
	DIE_UNLESS(read(from, &o, sizeof o) == sizeof o);
	sleep_count = wait_asleep(e);
	for (size_t i = 0; i < sizeof direct_lengths / sizeof *direct_lengths; i++) {
		uint32_t length = direct_lengths[i], offset = i % 3 ? 0 : 4091;

		pattern(e->buf, length, i);
		post(e, IBV_WR_RDMA_WRITE, length, o.address + offset, o.rkey);
		DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS);
		DIE_UNLESS(e->conn->shm->direct == ++expected);
		memset(e->buf, 0, length);
		post(e, IBV_WR_RDMA_READ, length, o.address + offset, o.rkey);
		DIE_UNLESS(next_status(e) == IBV_WC_SUCCESS);
		DIE_UNLESS(e->conn->shm->direct == ++expected);
		DIE_UNLESS(has_pattern(e->buf, length, i));
	}
	DIE_UNLESS(sleep_count == sleeps_of_peer(e));
	DIE_UNLESS(write(to, "z", 1) == 1);
	pause();
}

static void blocked_process_is_accessed_without_a_wake_up(void **state)
{
	enum { LAST = sizeof direct_lengths / sizeof *direct_lengths - 1 };
	struct end *e = &ends[1];
	struct caller o;

	(void)state;
	if (!cma_works())
		skip();
	o = fork_initiator(child_with_a_blocked_parent);
	tell(o.down[1], e);
	expect_byte(o.up[0], 'z');
	assert_true(has_pattern(e->buf + (LAST % 3 ? 0 : 4091), direct_lengths[LAST], LAST));
	kill_initiator(&o);
	end_initiator(&o);
}

/* Revokes a region while a peer announces a write. */
static void revoke_during_write(void)
{
	struct ring_writer *writer = shm_own_writer(ends[0].conn);
	struct ibv_mr *mr;

	OK(ops->reg_mr(ends[1].pd, ends[1].buf, 64, IBV_ACCESS_LOCAL_WRITE |
		       IBV_ACCESS_REMOTE_WRITE, NULL, &mr));
	WRITE_ONCE(writer->within, 1);
	OK(ops->dereg_mr(mr));
	WRITE_ONCE(writer->within, 0);
}

static void deregister(void)
{
	OK(ops->dereg_mr(ends[1].mr));
	memset(ends[1].buf, 0x55, HALF);
}

static void fail_qp(void)
{
	post_receive(&ends[1]);
	OK(ops->error_qp(ends[1].qp));
	while (next_status(&ends[1]) != IBV_WC_WR_FLUSH_ERR)
		;
	memset(ends[1].buf, 0x55, HALF);
}

/* Registers the memory again, for close_end(). The STag is another one. */
static void register_anew(void)
{
	OK(ops->reg_mr(ends[1].pd, ends[1].buf, BUFFER, IBV_ACCESS_LOCAL_WRITE, NULL,
		       &ends[1].mr));
}

/* The region is revoked before the kernel copies, at each copy there is: the first reads the
 * directory's id, and the first write to a window is preceded by one that announces the
 * source. No byte is stored afterwards, and a read that copied afterwards does not succeed.
 * The target waits for one second until it gives up, because the announced write is by the
 * same thread. */
static void revoked_memory_is_not_accessed_by_cma(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	(void)state;
	for (unsigned proto = 0; proto < 8; proto++) {
		bool first = proto & 4, dereg = proto & 2;

		open_sleeper();
		if (!first) {
			post_to_other(opcodes[proto & 1], 8, 0);
			done(&ends[0]);
		}
		assert_int_equal(ends[0].conn->shm->direct, !first);
		memset(ends[0].buf, 0x33, 100);
		meanwhile = dereg ? deregister : fail_qp;
		meanwhile_at = first ? 2 : copies + 1;
		post_to_other(opcodes[proto & 1], 100, 0);
		assert_true(copies >= meanwhile_at);
		if (dereg)
			assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
		for (unsigned i = 0; i < 100; i++)
			assert_int_equal(ends[1].buf[i], 0x55);
		assert_int_equal(ends[0].conn->shm->direct, !first);
		meanwhile = NULL;
		if (dereg)
			register_anew();
		close_two();
	}
}

/* Runs in the child: is connected to, and then sleeps. */
static void child_that_sleeps(int to)
{
	open_end(&ends[1]);
	be_target(to, ends[1].buf, ends[1].mr);
}

static struct target sleeper;

static void kill_sleeper(void)
{
	kill(sleeper.pid, SIGKILL);
	waitpid(sleeper.pid, NULL, 0);
}

/* The target has exited before the kernel copies. */
static void target_that_is_killed_during_a_copy_fails_the_request(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct end *e = &ends[0];

	(void)state;
	if (!cma_works())
		skip();
	for (int proto = 0; proto < 2; proto++) {
		sleeper = fork_target(child_that_sleeps);
		wait_asleep(e);
		post(e, opcodes[proto], 8, sleeper.memory.address, sleeper.memory.rkey);
		done(e);
		assert_int_equal(e->conn->shm->direct, 1);
		copies = 0;
		meanwhile = kill_sleeper;
		meanwhile_at = 1;
		post(e, opcodes[proto], 100, sleeper.memory.address, sleeper.memory.rkey);
		assert_int_equal(e->conn->shm->direct, 1);
		assert_int_not_equal(next_status(e), IBV_WC_SUCCESS);
		wait_up(e, BROKEN);
		meanwhile = NULL;
		close_end(e);
	}
}

static void last_word_of_a_cma_write_is_stored_last(void **state)
{
	(void)state;
	open_sleeper();
	pattern(ends[0].buf, 100, 7);
	post_to_other(IBV_WR_RDMA_WRITE, 8, 0);
	done(&ends[0]);
	stores = 0;
	post_to_other(IBV_WR_RDMA_WRITE, 100, 0);
	done(&ends[0]);
	assert_int_equal(stores, 2);
	assert_ptr_equal(stored[0].iov_base, ends[1].buf);
	assert_int_equal(stored[0].iov_len, 96);
	assert_ptr_equal(stored[1].iov_base, ends[1].buf + 96);
	assert_int_equal(stored[1].iov_len, 4);
	assert_true(has_pattern(ends[1].buf, 100, 7));
	close_two();
}

static void requests_without_the_right_are_refused(void **state)
{
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	(void)state;
	for (int proto = 0; proto < 6; proto++) {
		uint64_t address;
		bool read = proto == 1;

		open_sleeper();
		OK(ops->alloc_pd(ends[1].dev, &pd));
		OK(ops->reg_mr(proto == 4 ? pd : ends[1].pd, ends[1].buf, 4096,
			       IBV_ACCESS_LOCAL_WRITE |
			       (proto == 0 ? IBV_ACCESS_REMOTE_READ : proto == 1
				? IBV_ACCESS_REMOTE_WRITE
				: IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE), NULL, &mr));
		address = (uintptr_t)ends[1].buf;
		address += proto == 2 ? 4089 : proto == 3 ? -1 : 0;
		post(&ends[0], read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 8, address,
		     mr->rkey ^ (proto == 5));
		assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(ends[0].conn->shm->direct, 0);
		wait_up(&ends[1], BROKEN);
		OK(ops->dereg_mr(mr));
		OK(ops->dealloc_pd(pd));
		close_two();
	}
}

/* Limits the size of files of this process. Exceeding the limit ends the process. */
static void limit_files(rlim_t size)
{
	struct rlimit limit;

	OK(getrlimit(RLIMIT_FSIZE, &limit));
	limit.rlim_cur = size;
	OK(setrlimit(RLIMIT_FSIZE, &limit));
}

/* CMA is refused by the system, by one side's setting, or not allowed in this order: the ring
 * carries the request. */
static void requests_without_cma_use_the_ring(void **state)
{
	(void)state;
	for (int proto = 0; proto < 6; proto++) {
		if (proto < 2)
			setenv("DAPL_SOFT_DIRECT", "0", 1);
		open_sleeper();
		unsetenv("DAPL_SOFT_DIRECT");
		ends[proto == 0].dev->want_direct = true;	/* the other end's 0 is enough */
		copies_refused = proto == 2;
		pattern(ends[0].buf, 20000, proto);
		if (proto == 3)
			post(&ends[0], IBV_WR_SEND, 8, 0, 0);	/* has no receive */
		if (proto == 4)
			post(&ends[0], IBV_WR_RDMA_WRITE, 0, 0, 0);
		post_to_other(IBV_WR_RDMA_WRITE, proto == 5 ? CMA_SHORT_MAX + 1 : 100, 0);
		if (proto == 3)
			post_receive(&ends[1]);
		if (proto == 3 || proto == 4)
			done(&ends[0]);
		done(&ends[0]);
		settle(&ends[1]);
		assert_true(has_pattern(ends[1].buf, 100, proto));
		assert_int_equal(ends[0].conn->shm->direct, 0);
		copies_refused = false;
		close_two();
	}
}

/* The size limit bounds the grant file, and may shrink afterwards. */
static void file_size_limit_leaves_cma(void **state)
{
	(void)state;
	limit_files(1 << 20);
	open_sleeper();
	limit_files(1 << 19);		/* the output of this test may be a file, too */
	post_to_other(IBV_WR_RDMA_WRITE, 100, 0);
	done(&ends[0]);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	meanwhile = deregister;
	meanwhile_at = copies + 1;
	post_to_other(IBV_WR_RDMA_WRITE, 100, 0);
	assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
	meanwhile = NULL;
	limit_files(RLIM_INFINITY);
	register_anew();
	close_two();
}

/* The source of a copy by the kernel is not in the shared file, so no other process can change
 * it. */
static void other_processes_cannot_choose_the_source_of_a_copy(void **state)
{
	static const char nothing[64];
	const struct shm_process *target;
	char words[sizeof nothing];

	(void)state;
	open_sleeper();
	post_to_other(IBV_WR_RDMA_WRITE, 8, 0);
	done(&ends[0]);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	target = ends[1].dev->process;
	assert_int_equal(pread(target->window_file, words, sizeof words, target->mr_dir->window),
			 sizeof words);
	assert_memory_equal(words, nothing, sizeof words);
	close_two();
}

/* Each window is used until it is closed, the last one too. After that the ring carries
 * requests. */
static void full_grant_file_leaves_the_ring(void **state)
{
	uint64_t window;

	(void)state;
	limit_files(3 * 65536 - 1);		/* one open window, and the data below it */
	open_sleeper();
	limit_files(RLIM_INFINITY);
	window = ends[1].dev->process->mr_dir->window;
	assert_int_equal(window, 65536);
	for (int proto = 0; proto < 2; proto++) {
		post_to_other(IBV_WR_RDMA_WRITE, 8, 0);
		done(&ends[0]);
		assert_int_equal(ends[0].conn->shm->direct, 1);
		if (proto == 0)
			revoke_during_write();
	}
	assert_int_equal(ends[1].dev->process->mr_dir->window, 0);
	close_two();
}

/* The MR directory does not fit either: there is no shared memory then, and no SIGXFSZ. */
static void small_file_size_limit_leaves_tcp(void **state)
{
	(void)state;
	limit_files(60000);
	open_two(0);
	limit_files(RLIM_INFINITY);
	assert_null(ends[0].conn->shm);
	pattern(ends[0].buf, 100, 7);
	post_to_other(IBV_WR_RDMA_WRITE, 100, 0);
	done(&ends[0]);
	settle(&ends[1]);
	assert_true(has_pattern(ends[1].buf, 100, 7));
	close_two();
}

/* --- large reads ------------------------------------------------------------------------------ */

static const uint32_t large[] = { PROTO_MIN, CMA_SHORT_MAX + 1, 100001, 1 << 20, HALF };
enum { LARGE = sizeof large / sizeof *large };

/* Makes this protocol the faster one for the device of ends[0]. */
static void make_faster(struct shm_proto_table *table, enum shm_proto proto)
{
	for (int i = 0; i < PROTO_SIZES; i++) {
		table->size[i].turn = 101;	/* 101: not a turn to try the other protocol */
		table->size[i].ns[0] = proto == PROTO_COPY ? 1 : 1 << 20;
		table->size[i].ns[1] = proto == PROTO_CMA ? 1 : 1 << 20;
	}
}

/* Announces that the other end's device is polling, or blocked again. This thread then drives
 * its progress. */
static void announce_polling(void)
{
	wait_asleep(&ends[0]);
	served = &ends[1];
	__atomic_add_fetch(ends[1].dev->process->sleep_count, 1, __ATOMIC_RELAXED);
}

static void let_sleep(void)
{
	served = NULL;
	__atomic_add_fetch(ends[1].dev->process->sleep_count, 1, __ATOMIC_RELAXED);
}

static void read_large(uint32_t length, unsigned i)
{
	pattern(ends[1].buf, length, i);
	memset(ends[0].buf, 0, length);
	post_to_other(IBV_WR_RDMA_READ, length, 0);
	done(&ends[0]);
	assert_true(has_pattern(ends[0].buf, length, i));
}

/* A polling peer's memory is read by the faster protocol; a blocked peer's memory without a
 * wake-up. */
static void large_reads_use_the_faster_protocol(void **state)
{
	(void)state;
	for (int proto = 0; proto < 3; proto++) {
		uint32_t sleep_count;

		open_sleeper();
		sleep_count = sleeps_of_peer(&ends[0]);
		make_faster(&ends[0].dev->reads, proto == 0 ? PROTO_CMA : PROTO_COPY);
		if (proto < 2)
			announce_polling();
		for (unsigned i = 0; i < LARGE; i++)
			read_large(large[i], i);
		if (proto == 2)
			assert_int_equal(sleeps_of_peer(&ends[0]), sleep_count);
		assert_int_equal(ends[0].conn->shm->direct, proto == 1 ? 0 : LARGE);
		if (proto < 2)
			let_sleep();
		close_two();
	}
}

/* With CMA no data arrives from which the peer could see that it must take over progress. So
 * its poll count decides, and whether the count still grows. */
static void polling_peer_is_not_idle(void **state)
{
	const uint32_t *direct;
	time_t until = now() + LIMIT_S;
	uint32_t before;

	(void)state;
	open_sleeper();
	direct = &ends[0].conn->shm->direct;
	make_faster(&ends[0].dev->reads, PROTO_COPY);
	read_large(PROTO_MIN, 0);
	read_large(64, 1);
	assert_int_equal(*direct, 2);
	served = &ends[1];
	do {
		before = *direct;
		for (int i = 0; i < 100; i++)
			soft_progress_poll(ends[1].dev);
		read_large(PROTO_MIN, 2);
		ends[0].conn->shm->proto.desched = (struct shm_desched){ 0 };	/* that is another reason */
		read_large(64, 3);
	} while (*direct != before && now() < until);
	assert_int_equal(*direct, before);
	served = NULL;
	wait_asleep(&ends[0]);
	do
		read_large(64, 4);
	while (*direct == before && now() < until);
	assert_int_not_equal(*direct, before);
	close_two();
}

/* Posts a request, and drives the progress of the other end only once it counts as late. */
static void post_to_late_peer(enum ibv_wr_opcode opcode, unsigned i)
{
	pattern(ends[opcode == IBV_WR_RDMA_READ].buf, 64, i);
	memset(ends[opcode == IBV_WR_RDMA_WRITE].buf, 0, 64);
	served = NULL;
	post_to_other(opcode, 64, 0);
	usleep(50);
	served = &ends[1];
	done(&ends[0]);
	assert_true(has_pattern(ends[opcode == IBV_WR_RDMA_WRITE].buf, 64, i));
}

/* The peer polls but is descheduled, so each response takes long. */
static void descheduled_peer_is_not_waited_for(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	(void)state;
	for (int proto = 0; proto < 2; proto++) {
		const uint32_t *direct;

		open_sleeper();
		direct = &ends[0].conn->shm->direct;
		announce_polling();
		for (unsigned i = 0; i < 17; i++)
			post_to_late_peer(opcodes[proto], i);
		assert_int_equal(*direct, 0);
		for (unsigned i = 0; i < 16; i++)
			post_to_late_peer(opcodes[proto], i);
		assert_int_equal(*direct, 16);
		ends[0].dev->want_direct = false;
		post_to_late_peer(opcodes[proto], 0);
		assert_int_equal(*direct, 16);
		let_sleep();
		close_two();
	}
}

/* The first use of the ring's memory takes long, and must not count as a measurement. */
static void first_use_of_memory_is_not_measured(void **state)
{
	const uint32_t *ns;

	(void)state;
	open_sleeper();
	ns = ends[0].dev->reads.size[1].ns;
	announce_polling();
	for (unsigned i = 0; i < 8; i++)
		read_large(RING_CHUNK, i);
	assert_int_equal(ends[0].dev->reads.size[1].turn, 8);
	assert_int_equal(ends[0].conn->shm->direct, 4);
	assert_int_equal(ns[0], 0);
	assert_int_not_equal(ns[1], 0);
	for (unsigned i = 0; i < 64 && !ns[0]; i++)
		read_large(RING_CHUNK, i);
	assert_int_not_equal(ns[0], 0);
	let_sleep();
	close_two();
}

/* Requests posted before are executed before: a read returns what a write stored. */
static void large_read_keeps_the_order_of_requests(void **state)
{
	(void)state;
	open_sleeper();
	for (unsigned i = 0; i < 100; i++) {
		uint32_t length = large[i % LARGE];

		pattern(ends[0].buf, length, i);
		post(&ends[0], IBV_WR_RDMA_WRITE, length, (uintptr_t)ends[1].buf, ends[1].mr->rkey);
		post_to_other(IBV_WR_RDMA_READ, length, 0);
		done(&ends[0]);
		done(&ends[0]);
		assert_true(has_pattern(ends[0].buf, length, i));
		assert_true(has_pattern(ends[1].buf, length, i));
	}
	assert_true(ends[0].conn->shm->direct > 0);
	close_two();
}

/* The ring executes a read that the kernel refuses, or reports its error. */
static void large_read_that_the_kernel_refuses_uses_the_ring(void **state)
{
	(void)state;
	open_sleeper();
	make_faster(&ends[0].dev->reads, PROTO_CMA);
	copies_refused = true;
	read_large(100000, 1);
	copies_refused = false;
	assert_int_equal(ends[0].conn->shm->direct, 0);
	close_two();

	open_sleeper();
	post_to_other(IBV_WR_RDMA_READ, 8, 0);
	done(&ends[0]);
	meanwhile = deregister;
	meanwhile_at = copies + 1;
	post_to_other(IBV_WR_RDMA_READ, 100000, 0);
	assert_int_equal(next_status(&ends[0]), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	meanwhile = NULL;
	register_anew();
	close_two();
}

static void reads_beyond_the_largest_measured_length_use_the_ring(void **state)
{
	(void)state;
	open_sleeper();
	OK(ops->dereg_mr(ends[0].mr));
	free(ends[0].buf);
	ends[0].buf = aligned_alloc(4096, 2 * PROTO_MAX);
	OK(ops->reg_mr(ends[0].pd, ends[0].buf, 2 * PROTO_MAX, IBV_ACCESS_LOCAL_WRITE, NULL,
		       &ends[0].mr));
	OK(ops->dereg_mr(ends[1].mr));
	free(ends[1].buf);
	ends[1].buf = aligned_alloc(4096, 2 * PROTO_MAX);
	OK(ops->reg_mr(ends[1].pd, ends[1].buf, 2 * PROTO_MAX, IBV_ACCESS_LOCAL_WRITE |
		       IBV_ACCESS_REMOTE_READ, NULL, &ends[1].mr));
	read_large(PROTO_MAX, 1);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	read_large(PROTO_MAX + 1, 2);
	assert_int_equal(ends[0].conn->shm->direct, 1);
	close_two();
}

/* --- rendezvous: the target copies large writes and sends --------------------------------- */

/* Posts a write or send of this length, and takes its completion. */
static void transfer_large(enum ibv_wr_opcode opcode, uint32_t length, unsigned i)
{
	char *at = ends[1].buf + (opcode == IBV_WR_SEND ? HALF : 0);

	pattern(ends[0].buf, length, i);
	memset(at, 0, length);
	if (opcode == IBV_WR_SEND)
		post_receive(&ends[1]);
	post_to_other(opcode, length, 0);
	done(&ends[0]);
	if (opcode == IBV_WR_SEND)
		done(&ends[1]);
	assert_true(has_pattern(at, length, i));
}

static const enum ibv_wr_opcode rendezvous_opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND };

static void large_payloads_use_rendezvous(void **state)
{
	(void)state;
	for (int proto = 0; proto < 4; proto++) {
		uint32_t before, parts = 0;

		open_sleeper();
		make_faster(&ends[0].dev->writes, proto & 2 ? PROTO_COPY : PROTO_CMA);
		transfer_large(rendezvous_opcodes[proto & 1], RING_CHUNK, 99);	/* one message of the ring */
		before = ends[1].conn->shm->fetched;
		for (unsigned i = 1; i < LARGE; i++) {
			transfer_large(rendezvous_opcodes[proto & 1], large[i], i);
			parts += (large[i] + RING_RNDV_MAX - 1) / RING_RNDV_MAX;
		}
		if (proto & 2)
			assert_int_equal(ends[1].conn->shm->fetched, 0);
		else
			assert_true(!before && ends[1].conn->shm->fetched >= parts);
		close_two();
	}
}

/* The duration of a series is measured for all of its requests. A request with another
 * protocol waits until the series ends. */
static void consecutive_large_writes_are_measured_as_a_series(void **state)
{
	enum { LENGTH = 20000, N = 3 };
	const struct shm_conn *shm;
	const struct soft_qp *qp;

	(void)state;
	open_sleeper();
	announce_polling();
	shm = ends[0].conn->shm;
	qp = ends[0].conn->qp;
	ends[0].conn->shm->tx.touched = RING_BULK;
	make_faster(&ends[0].dev->writes, PROTO_COPY);
	for (int i = 0; i < N; i++)
		post_to_other(IBV_WR_RDMA_WRITE, LENGTH, i * LENGTH);
	assert_int_equal(shm->proto.writes.under_way, N);
	make_faster(&ends[0].dev->writes, PROTO_COPY);		/* the kernel's turn to be tried */
	ends[0].dev->writes.size[1].turn = 1 << 20;
	post_to_other(IBV_WR_RDMA_WRITE, LENGTH, N * LENGTH);
	assert_int_equal(ends[0].conn->tx.cursor.wqe, qp->sq_tail - 1);
	for (int i = 0; i < N; i++)
		done(&ends[0]);
	assert_int_equal(shm->proto.writes.under_way, 1);
	assert_int_equal(shm->proto.writes.bytes, 0);
	assert_int_not_equal(ends[0].dev->writes.size[1].ns[0], 1);	/* it was learned from */
	done(&ends[0]);
	assert_int_equal(shm->proto.writes.bytes, LENGTH);
	make_faster(&ends[0].dev->writes, PROTO_COPY);		/* no tries: nothing waits, or is told */
	post_to_other(IBV_WR_RDMA_WRITE, LENGTH, 0);
	make_faster(&ends[0].dev->writes, PROTO_CMA);
	post_to_other(IBV_WR_RDMA_WRITE, LENGTH, LENGTH);
	assert_int_equal(ends[0].conn->tx.cursor.wqe, qp->sq_tail);
	done(&ends[0]);
	done(&ends[0]);
	assert_int_equal(ends[0].dev->writes.size[1].ns[0], 1 << 20);
	let_sleep();
	close_two();
}

/* A message arrives before its receive is posted. */
static void unexpected_rendezvous_is_copied_at_once(void **state)
{
	time_t end = now() + LIMIT_S;

	(void)state;
	open_sleeper();
	make_faster(&ends[0].dev->writes, PROTO_CMA);
	pattern(ends[0].buf, 100000, 3);
	post_to_other(IBV_WR_SEND, 100000, 0);
	while (!__atomic_load_n(&ends[1].conn->shm->fetched, __ATOMIC_RELAXED))
		if (now() > end)
			fail_msg("it is not copied before there is a receive");
	settle(&ends[1]);
	post_receive(&ends[1]);
	done(&ends[0]);
	done(&ends[1]);
	assert_true(has_pattern(ends[1].buf + HALF, 100000, 3));
	close_two();
}

/* The target requests the data in pieces, and no request uses rendezvous any more. */
static void rendezvous_without_cma_falls_back_to_the_ring(void **state)
{
	(void)state;
	for (int proto = 0; proto < 4; proto++) {
		open_sleeper();
		make_faster(&ends[0].dev->writes, PROTO_CMA);
		if (proto & 2)		/* CMA works at first, then no more */
			transfer_large(rendezvous_opcodes[proto & 1], 100001, 1);
		copies_refused = true;
		transfer_large(rendezvous_opcodes[proto & 1], 100001, 2);
		assert_true(ends[0].conn->shm->fallback_request);
		assert_int_equal(ends[1].conn->shm->asked, 100001 / RING_CHUNK + 1);
		copies_refused = false;
		for (unsigned i = 1; i < LARGE; i++)
			transfer_large(rendezvous_opcodes[proto & 1], large[i], i);
		assert_int_equal(ends[1].conn->shm->fetched, proto >> 1);
		assert_int_equal(ends[1].conn->shm->asked, 100001 / RING_CHUNK + 1);
		close_two();
	}
}

static void take_back(void)
{
	OK(ops->error_qp(ends[0].qp));
	memset(ends[0].buf, 0x55, HALF);
}

/* The sender's completions return its memory to the consumer: a copy made afterwards must not
 * be delivered, nor any message behind it. The connection may still be closed in order. */
static void cancelled_rendezvous_is_not_delivered(void **state)
{
	(void)state;
	for (int proto = 0; proto < 2; proto++) {
		open_sleeper();
		make_faster(&ends[0].dev->writes, PROTO_CMA);
		post_receive(&ends[1]);
		post_receive(&ends[1]);
		transfer_large(IBV_WR_RDMA_WRITE, 100000, 1);
		meanwhile = take_back;
		meanwhile_at = copies + 1;
		copies_refused = proto == 1;
		post_to_other(IBV_WR_SEND, 100000, 0);
		post_to_other(IBV_WR_SEND, 8, 0);
		assert_int_equal(next_status(&ends[0]), IBV_WC_WR_FLUSH_ERR);
		meanwhile = NULL;
		OK(ops->disconnect(ends[0].conn));
		wait_up(&ends[1], CLOSED);
		OK(ops->error_qp(ends[1].qp));
		for (int i = 0; i < 2; i++)
			assert_int_equal(next_status(&ends[1]), IBV_WC_WR_FLUSH_ERR);
		copies_refused = false;
		close_two();
	}
}

/* The source is no longer registered: the sender does not send it. */
static void deregistered_source_is_not_sent(void **state)
{
	(void)state;
	open_sleeper();
	make_faster(&ends[0].dev->writes, PROTO_CMA);
	transfer_large(IBV_WR_RDMA_WRITE, 100000, 1);
	copies_refused = true;
	dapl_mutex_lock(&ends[1].dev->progress_lock);
	post_to_other(IBV_WR_RDMA_WRITE, 100000, 0);
	OK(ops->dereg_mr(ends[0].mr));
	dapl_mutex_unlock(&ends[1].dev->progress_lock);
	assert_int_equal(next_status(&ends[0]), IBV_WC_LOC_PROT_ERR);
	wait_up(&ends[1], BROKEN);
	copies_refused = false;
	OK(ops->reg_mr(ends[0].pd, ends[0].buf, BUFFER, IBV_ACCESS_LOCAL_WRITE, NULL, &ends[0].mr));
	close_two();
}

/* --- a peer that stores invalid data ------------------------------------------------------ */

static void bad_opcode(struct ring_slot *slot)
{
	slot->op = 200;
}

static void too_long(struct ring_slot *slot)
{
	slot->op = WIRE_SEND;
	slot->length = UINT32_MAX;
	slot->at = 0;
}

static void elsewhere(struct ring_slot *slot)
{
	slot->op = WIRE_WRITE;
	slot->length = 4096;
	slot->at = UINT32_MAX - 100;
}

static void lent_too_little(struct ring_slot *slot)
{
	slot->op = WIRE_SEND;
	slot->flags = RING_IS_LAST | RING_IS_RNDV;
	slot->length = RING_CHUNK;
}

static void lent_too_much(struct ring_slot *slot)
{
	lent_too_little(slot);
	slot->length = RING_RNDV_MAX + 1;
}

/* The sender has no such rendezvous when it is asked for the data. */
static void rendezvous_of_nothing(struct ring_slot *slot)
{
	lent_too_little(slot);
	slot->length = RING_CHUNK + 1;
	slot->address = 4096;
	rndv_enable(ends[0].conn->shm);
}

static void request_too_short(struct ring_slot *slot)
{
	slot->op = WIRE_READ_REQUEST;
	slot->flags = RING_IS_LAST;
	slot->length = 20;
}

static void answer_unasked(struct ring_slot *slot)
{
	slot->op = WIRE_READ_RESPONSE;
	slot->flags = RING_IS_LAST;
	slot->length = 8;
}

static void foreign_stag(struct ring_slot *slot)
{
	slot->op = WIRE_WRITE;
	slot->flags = RING_IS_LAST;
	slot->length = 8;
	slot->word = 0x12345678;
}

static void acknowledges_too_much(struct ring_slot *slot)
{
	slot->op = WIRE_ACK;
	slot->flags = RING_IS_LAST;
	slot->delivered = 1000;
}

/* One side stores an invalid message. The other ends the connection, and the device works on. */
static void invalid_message_ends_its_connection(void **state)
{
	static void (*const bad[])(struct ring_slot *) = {
		bad_opcode, too_long, elsewhere, request_too_short, answer_unasked, foreign_stag,
		acknowledges_too_much, lent_too_little, lent_too_much, rendezvous_of_nothing,
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ring_tx *tx;
		struct ring_slot *slot;

		open_two(0);
		post_receive(&ends[1]);
		tx = &ends[0].conn->shm->tx;
		slot = &tx->slot[tx->tail % RING_SLOTS];
		bad[i](slot);
		__atomic_store_n(&slot->seq, tx->tail + 1, __ATOMIC_RELEASE);
		while (!upcall_count(BROKEN, &ends[1]) &&
		       !ibv_poll_cq(ends[1].cq, 0, NULL))
			soft_progress_poll(ends[1].dev);
		wait_up(&ends[1], BROKEN);
		assert_int_equal(next_status(&ends[1]), IBV_WC_WR_FLUSH_ERR);
		close_two();
	}
}

/* The peer requests the payload of a rendezvous that there is not. */
static void request_for_a_payload_that_was_not_offered_ends_the_connection(void **state)
{
	struct ring_ack *ack;
	time_t end = now() + LIMIT_S;

	(void)state;
	open_two(0);
	post_receive(&ends[0]);
	ack = (struct ring_ack *)ends[1].conn->shm->rx.ack;
	__atomic_store_n(&ack->fallback_at, 4096, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ack->fallback_request, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ack->count, 1, __ATOMIC_RELEASE);
	while (!upcall_count(BROKEN, &ends[0]) && now() < end)
		soft_progress_poll(ends[0].dev);
	wait_up(&ends[0], BROKEN);
	assert_int_equal(next_status(&ends[0]), IBV_WC_WR_FLUSH_ERR);
	close_two();
}

/* The peer stores another message each time that one was received. */
enum { STORES_MAX = 1000 };
static bool stores_on;		/* atomic, like stores */
static unsigned stores;

/* Replaces the function by which the peer reports its end. */
static void report_no_end(struct dapl_conn *conn)
{
	struct ring_ack *ack = (struct ring_ack *)conn->shm->tx.ack;

	__atomic_add_fetch(&ack->count, 1, __ATOMIC_RELEASE);
}

bool __real_shm_conn_receive(struct dapl_conn *conn, bool later);
bool __wrap_shm_conn_receive(struct dapl_conn *conn, bool later);
bool __wrap_shm_conn_receive(struct dapl_conn *conn, bool later)
{
	bool more = __real_shm_conn_receive(conn, later);

	if (conn->owner != &ends[1] || !__atomic_load_n(&stores_on, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&stores, __ATOMIC_RELAXED) == STORES_MAX)
		return more;
	__atomic_add_fetch(&stores, 1, __ATOMIC_RELAXED);
	report_no_end(conn);
	return more;
}

/* The peer closes its socket and continues to store: the receiver sees the end. */
static void peer_that_stores_after_its_end_is_closed(void **state)
{
	(void)state;
	open_two(0);
	__atomic_store_n(&stores_on, true, __ATOMIC_RELAXED);
	soft_progress_lock(ends[0].dev);
	report_no_end(ends[1].conn);
	OK(shutdown(ends[0].conn->fd, SHUT_WR));
	soft_progress_unlock(ends[0].dev);
	wait_up(&ends[1], BROKEN);
	__atomic_store_n(&stores_on, false, __ATOMIC_RELAXED);
	assert_in_range(__atomic_load_n(&stores, __ATOMIC_RELAXED), 1, STORES_MAX - 1);
	close_two();
}

/* --- processes without the token ---------------------------------------------------------- */

struct fetch_request {
	char greeting[8];
	uint64_t key, process;
};

static int connect_to_attach_socket(const uint8_t token[16])
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	uint64_t name;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t length;

	memcpy(&name, token, 8);
	length = offsetof(struct sockaddr_un, sun_path) + 1 +
		 snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "dapl-soft-%016llx",
			  (unsigned long long)name);
	OK(connect(fd, (struct sockaddr *)&a, length));
	return fd;
}

/* Sends a request, with three descriptors unless the first is negative. */
static void say(int fd, const void *data, size_t length, int wake_fd, int mr_dir, int pending)
{
	char control[CMSG_SPACE(3 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)data, length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (wake_fd >= 0) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof control;
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(3 * sizeof(int));
		memcpy(CMSG_DATA(c), (int[]){ wake_fd, mr_dir, pending }, 3 * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), length);
}

/* Returns the bytes of the answer; 0: closed without an answer. */
static ssize_t read_answer(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[64];

	assert_int_equal(poll(&p, 1, LIMIT_S * 1000), 1);
	return recv(fd, answer, sizeof answer, 0);
}

static void process_without_the_token_cannot_attach(void **state)
{
	struct fetch_request request = { "daplshm5", 0, 77 }, other;
	int wake_fd = eventfd(0, EFD_NONBLOCK), blocking = eventfd(0, 0), fd, pipes[2];
	int file = memfd_create("t", MFD_ALLOW_SEALING), small = memfd_create("t", 0);
	int pending = memfd_create("t", MFD_ALLOW_SEALING);
	struct shm_segment *segment;
	struct attach_offer *offer;
	uint8_t token[16];

	(void)state;
	OK(pipe(pipes) | ftruncate(file, sizeof(struct shm_mr_dir)) | ftruncate(small, 100));
	OK(ftruncate(pending, sizeof(struct shm_pending)));
	OK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	OK(fcntl(pending, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	open_end(&ends[1]);
	soft_progress_lock(ends[1].dev);
	offer = attach_offer_new(ends[1].dev, NULL, token);
	soft_progress_unlock(ends[1].dev);
	assert_non_null(offer);
	memcpy(&request.key, token + 8, 8);
	for (int proto = 0; proto < 9; proto++) {
		other = request;
		fd = connect_to_attach_socket(token);
		switch (proto) {
		case 0:			/* wrong key */
			other.key ^= 1ull << 40;
			say(fd, &other, sizeof other, wake_fd, file, pending);
			break;
		case 1:			/* another version */
			other.greeting[7]++;
			say(fd, &other, sizeof other, wake_fd, file, pending);
			break;
		case 2:			/* no descriptors */
			say(fd, &other, sizeof other, -1, -1, -1);
			break;
		case 3:			/* the wake-up descriptor is no eventfd */
			say(fd, &other, sizeof other, pipes[1], file, pending);
			break;
		case 4:			/* the eventfd is blocking */
			say(fd, &other, sizeof other, blocking, file, pending);
			break;
		case 5:			/* a file that can shrink */
			say(fd, &other, sizeof other, wake_fd, small, pending);
			break;
		case 6:			/* half a request */
			say(fd, &other, 12, wake_fd, file, pending);
			break;
		case 7:			/* a pending bitmap that can shrink */
			say(fd, &other, sizeof other, wake_fd, file, small);
			break;
		case 8:			/* sends nothing, until the time limit */
			break;
		}
		assert_int_equal(read_answer(fd), 0);
		close(fd);
	}
	fd = connect_to_attach_socket(token);		/* all is right; a second use of the token is refused */
	say(fd, &request, sizeof request, wake_fd, file, pending);
	assert_true(read_answer(fd) > 0);
	close(fd);
	fd = connect_to_attach_socket(token);
	say(fd, &request, sizeof request, wake_fd, file, pending);
	assert_int_equal(read_answer(fd), 0);
	close(fd);
	segment = attach_offer_end(offer);
	assert_non_null(segment);
	shm_segment_put(segment);
	close_end(&ends[1]);
	close(wake_fd);
	close(blocking);
	close(file);
	close(pending);
	close(small);
	close(pipes[0]);
	close(pipes[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_arrives_between_processes_and_a_killed_peer_is_detected),
		cmocka_unit_test(shared_memory_serves_one_process_unless_an_end_refuses),
		cmocka_unit_test(device_reuses_the_memory_of_its_connections),
		cmocka_unit_test(parent_and_child_have_different_random_numbers),
		cmocka_unit_test(blocked_process_is_accessed_without_a_wake_up),
		cmocka_unit_test(revoked_memory_is_not_accessed_by_cma),
		cmocka_unit_test(target_that_is_killed_during_a_copy_fails_the_request),
		cmocka_unit_test(last_word_of_a_cma_write_is_stored_last),
		cmocka_unit_test(requests_without_the_right_are_refused),
		cmocka_unit_test(requests_without_cma_use_the_ring),
		cmocka_unit_test(file_size_limit_leaves_cma),
		cmocka_unit_test(other_processes_cannot_choose_the_source_of_a_copy),
		cmocka_unit_test(full_grant_file_leaves_the_ring),
		cmocka_unit_test(small_file_size_limit_leaves_tcp),
		cmocka_unit_test(large_reads_use_the_faster_protocol),
		cmocka_unit_test(polling_peer_is_not_idle),
		cmocka_unit_test(descheduled_peer_is_not_waited_for),
		cmocka_unit_test(first_use_of_memory_is_not_measured),
		cmocka_unit_test(large_read_keeps_the_order_of_requests),
		cmocka_unit_test(large_read_that_the_kernel_refuses_uses_the_ring),
		cmocka_unit_test(reads_beyond_the_largest_measured_length_use_the_ring),
		cmocka_unit_test(large_payloads_use_rendezvous),
		cmocka_unit_test(consecutive_large_writes_are_measured_as_a_series),
		cmocka_unit_test(unexpected_rendezvous_is_copied_at_once),
		cmocka_unit_test(rendezvous_without_cma_falls_back_to_the_ring),
		cmocka_unit_test(cancelled_rendezvous_is_not_delivered),
		cmocka_unit_test(deregistered_source_is_not_sent),
		cmocka_unit_test(invalid_message_ends_its_connection),
		cmocka_unit_test(request_for_a_payload_that_was_not_offered_ends_the_connection),
		cmocka_unit_test(peer_that_stores_after_its_end_is_closed),
		cmocka_unit_test(process_without_the_token_cannot_attach),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	unsetenv("DAPL_SOFT_CRC");
	unsetenv("DAPL_SOFT_SHM");
	unsetenv("DAPL_SOFT_DIRECT");
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
