/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm.c - shared-memory connections: that they are used unless an end refuses, and that their memory is
 * used again. The tests read from the device which protocol carries the data. test_device.c tests the messages
 * themselves. */
#include <linux/tcp.h>
#include "test/unit/child.h"
#include "test/unit/soft/ends.h"
#include "dapl/soft/shm/shm_segment.h"
#include "test/unit/unit.h"

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

UNIT_MAIN(use_shared_memory, NULL)
