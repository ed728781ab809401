/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm.c - shared-memory connections: that they are used, between processes and in one, and that a killed peer
 * leaves nothing behind. The tests read from the device which protocol carries the data. test_device.c tests the
 * messages themselves. */
#include <linux/tcp.h>
#include "test/unit/child.h"
#include "test/unit/soft/ends.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/shm/shm_segment.h"
#include "test/unit/unit.h"

/* --- two processes --------------------------------------------------------------------------------- */

static const uint32_t lengths[] = { 0, 1, 8, 31, 32, 33, 64, 4000, 16384, 16385, 300000, HALF };

/* The child connects, sends, writes, reads and adds, then waits to be killed. */
static void child_part(uint16_t port, int from, int to)
{
	struct end *e = &ends[0];
	struct other o = ends_join(port, from);

	DIE_UNLESS(uses_rings(e));
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

UNIT_TEST(data_arrives_between_processes_and_a_killed_peer_is_detected)
{
	struct end *e = &ends[1];
	struct caller o = fork_initiator(child_part);

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

UNIT_TEST(shared_memory_serves_one_process_unless_an_end_refuses)
{
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

static uint16_t port_of(const struct end *e)
{
	struct sockaddr_in address;
	socklen_t length = sizeof address;

	soft_progress_lock(e->dev);
	OK(getsockname(e->conn->fd, (struct sockaddr *)&address, &length));
	soft_progress_unlock(e->dev);
	return ntohs(address.sin_port);
}

/* Counts the closed connections between these two ports that the kernel keeps in TIME_WAIT. One port alone may have
 * been another program's. */
static int remembered(uint16_t one, uint16_t other)
{
	enum { TIME_WAIT = 6 };
	FILE *list = fopen("/proc/thread-self/net/tcp", "r");
	unsigned local, remote, state;
	int n = 0;
	char line[256];

	assert_non_null(list);
	while (fgets(line, sizeof line, list))
		n += sscanf(line, " %*u: %*x:%x %*x:%x %x", &local, &remote, &state) == 3 &&
		     ((local == one && remote == other) || (local == other && remote == one)) && state == TIME_WAIT;
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
UNIT_TEST(device_reuses_the_memory_of_its_connections)
{
	enum { ROUNDS = 4 };
	const struct ring_memory *memory = NULL;
	struct dapl_listener *listener;
	void *in_between[ROUNDS];	/* occupy the addresses that were unmapped */
	uint16_t port = 0, from;

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
		from = port_of(&ends[0]);
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
		assert_int_equal(remembered(port, from), 0);
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
UNIT_TEST(parent_and_child_have_different_random_numbers)
{
	uint32_t of_child = 0, of_parent;
	int fds[2];
	pid_t child;

	open_end(&ends[0]);
	OK(pipe(fds));
	soft_random();
	child = fork_child();
	if (!child) {
		of_child = soft_random();
		_exit(write(fds[1], &of_child, sizeof of_child) != sizeof of_child);
	}
	of_parent = soft_random();
	assert_int_equal(read(fds[0], &of_child, sizeof of_child), sizeof of_child);
	expect_success(child);
	assert_int_not_equal(of_child, of_parent);
	close(fds[0]);
	close(fds[1]);
	close_end(&ends[0]);
}

UNIT_MAIN(use_shared_memory, NULL)
