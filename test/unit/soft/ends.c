/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.c - the two ends of ends.h: opens, connects, posts, waits. Fails the test
 * only if one of these fails. */
#include "test/unit/child.h"
#include "test/unit/soft/ends.h"
#include "common/address.h"
#include "dapl/soft/progress/progress.h"
#include "test/unit/unit.h"
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

const struct dapl_device_ops *ops = &dapl_device_ops;

/* --- an end: a device with one of everything -------------------------------------------------- */

struct end ends[2];

int use_shared_memory(void **state)
{
	unsetenv("DAPL_SOFT_CRC");
	unsetenv("DAPL_SOFT_SHM");
	unsetenv("DAPL_SOFT_DIRECT");
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void *call_it(void *call)
{
	(*(void (**)(void))call)();
	return NULL;
}

void call_in_thread(void (*call)(void))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_it, &call), 0);
	pthread_join(thread, NULL);
}

struct upcall wait_up(const struct end *e, enum upcall_kind kind)
{
	struct upcall up = { 0 };

	if (!upcall_take(kind, e, LIMIT_S * 1000, &up))
		fail_msg("upcall %d did not come", kind);
	return up;
}

void open_end(struct end *e)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
					 .cap = { 64, 64, 2, 2, 64 } };

	upcalls_drop(e);
	if (!e->dev)
		OK(ops->open("lo 0", e, &e->dev));
	OK(ops->alloc_pd(e->dev, &e->pd));
	OK(ops->create_channel(e->dev, &e->channel));
	OK(ops->create_cq(e->dev, 256, e, e->channel, &e->cq));
	attr.send_cq = attr.recv_cq = e->cq;
	OK(ops->create_qp(e->dev, e->pd, &attr, &e->qp));
	e->buf = aligned_alloc(4096, BUFFER);
	memset(e->buf, 0, BUFFER);
	OK(ops->reg_mr(e->pd, e->buf, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC, NULL, &e->mr));
}

void release_end(struct end *e)
{
	if (!e->conn)
		return;
	ops->release(e->conn);
	wait_up(e, RELEASED);
	e->conn = NULL;
}

void close_objects(struct end *e)
{
	release_end(e);
	OK(ops->dereg_mr(e->mr));
	OK(ops->destroy_qp(e->qp));
	OK(ops->destroy_cq(e->cq));
	OK(ops->destroy_channel(e->channel));
	OK(ops->dealloc_pd(e->pd));
	free(e->buf);
}

void close_end(struct end *e)
{
	close_objects(e);
	ops->close(e->dev);
	memset(e, 0, sizeof *e);
}

void start_connect(struct end *e, uint16_t port)
{
	struct dapl_device_attr attr;
	struct dapl_conn_params params = { .qp = e->qp, .owner = e, .reads_out = 4,
					   .reads_in = 4, .tuning = e->tuning, .qos = e->qos };

	OK(ops->query(e->dev, &attr));
	address_set_port((struct sockaddr *)&attr.address, port);
	params.remote = (struct sockaddr *)&attr.address;
	OK(ops->connect(e->dev, &params, &e->conn));
}

struct other ends_join(uint16_t port, int from)
{
	struct end *e = &ends[0];
	struct other o;

	alarm(60);
	open_end(e);
	start_connect(e, port);
	wait_up(e, ESTABLISHED);
	DIE_UNLESS(read(from, &o, sizeof o) == sizeof o);
	return o;
}

void send_accept(struct end *e)
{
	struct dapl_conn_params params = { .qp = e->qp, .owner = e, .reads_out = 4,
					   .reads_in = 4, .tuning = e->tuning, .qos = e->qos };

	e->conn = wait_up(e, REQUEST).conn;
	OK(ops->accept(e->conn, &params));
}

void accept_it(struct end *e)
{
	send_accept(e);
	wait_up(e, ESTABLISHED);
}

bool uses_rings(const struct end *e)
{
	bool rings;

	soft_progress_lock(e->dev);
	rings = e->conn->shm != NULL;
	soft_progress_unlock(e->dev);
	return rings;
}

void post(struct end *e, enum ibv_wr_opcode opcode, uint32_t length, uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, length, e->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	OK(ibv_post_send(e->qp, &wr, &bad));
}

void post_receive(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + HALF, HALF, e->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	OK(ibv_post_recv(e->qp, &wr, &bad));
}

const struct end *served;

enum ibv_wc_status next_status(struct end *e)
{
	time_t end = now() + LIMIT_S;
	struct ibv_wc wc;

	while (!ibv_poll_cq(e->cq, 1, &wc)) {
		if (served)
			soft_progress_poll((const struct soft_cq *)served->cq);
		if (now() > end)
			fail_msg("no completion");
	}
	return wc.status;
}

void done(struct end *e) { assert_int_equal(next_status(e), IBV_WC_SUCCESS); }

void pattern(char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		at[i] = (char)((i + seed) * 167 >> 3);
}

bool has_pattern(const char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		if (at[i] != (char)((i + seed) * 167 >> 3))
			return false;
	return true;
}

void settle(struct end *e)
{
	soft_progress_lock(e->dev);
	soft_progress_unlock(e->dev);
}

void tell(int fd, struct end *e)
{
	struct other o = { (uintptr_t)e->buf, e->mr->rkey };

	assert_int_equal(write(fd, &o, sizeof o), sizeof o);
}

void expect_byte(int fd, char c)
{
	char got = 0;

	assert_int_equal(read(fd, &got, 1), 1);
	assert_int_equal(got, c);
}

void open_two(int without)
{
	struct dapl_listener *listener;
	uint16_t port = 0;

	for (int i = 0; i < 2; i++) {
		setenv("DAPL_SOFT_SHM", without >> i & 1 ? "0" : "1", 1);
		open_end(&ends[i]);
	}
	OK(ops->listen(ends[1].dev, NULL, &port, false, 8, &ends[1], &listener));
	start_connect(&ends[0], port);
	accept_it(&ends[1]);
	wait_up(&ends[0], ESTABLISHED);
	ops->unlisten(listener);
}

void close_two(void)
{
	close_end(&ends[0]);
	close_end(&ends[1]);
}

struct caller fork_initiator(void (*part)(uint16_t port, int from, int to))
{
	struct end *e = &ends[1];
	struct caller o;
	uint16_t port = 0;

	OK(pipe(o.down) | pipe(o.up) | pipe(o.go));
	o.pid = fork_child();		/* before this process has a device */
	if (!o.pid) {
		DIE_UNLESS(read(o.go[0], &port, sizeof port) == sizeof port);
		close(o.up[0]);
		part(port, o.down[0], o.up[1]);
		_exit(1);
	}
	close(o.up[1]);
	open_end(e);
	OK(ops->listen(e->dev, NULL, &port, false, 8, e, &o.listener));
	assert_int_equal(write(o.go[1], &port, sizeof port), sizeof port);
	accept_it(e);
	return o;
}

void kill_initiator(struct caller *o)
{
	int status;

	kill(o->pid, SIGKILL);
	waitpid(o->pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	wait_up(&ends[1], BROKEN);
}

void end_initiator(struct caller *o)
{
	ops->unlisten(o->listener);
	close_end(&ends[1]);
	for (int i = 0; i < 2; i++) {
		close(o->down[i]);
		close(o->go[i]);
	}
	close(o->up[0]);
}

struct offer {
	uint16_t port;
	struct other memory;
};

/* Called in the child. Reports the port and the memory, and accepts. */
void be_target(int to, const void *memory, const struct ibv_mr *mr)
{
	struct end *e = &ends[1];
	struct dapl_listener *listener;
	struct offer is = { .memory = { (uintptr_t)memory, mr->rkey } };

	OK(ops->listen(e->dev, NULL, &is.port, false, 8, e, &listener));
	DIE_UNLESS(write(to, &is, sizeof is) == sizeof is);
	accept_it(e);
}

struct target fork_target(void (*part)(int to))
{
	struct target t;
	struct offer is;
	int up[2];

	OK(pipe(up));
	t.pid = fork_child();
	if (!t.pid) {
		part(up[1]);
		for (;;)
			pause();
	}
	assert_int_equal(read(up[0], &is, sizeof is), sizeof is);
	open_end(&ends[0]);
	start_connect(&ends[0], is.port);
	wait_up(&ends[0], ESTABLISHED);
	close(up[0]);
	close(up[1]);
	t.memory = is.memory;
	return t;
}

uint32_t sleeps_of_peer(const struct end *e)
{
	return __atomic_load_n(e->conn->shm->peer->sleep_count, __ATOMIC_RELAXED);
}

uint32_t wait_asleep(const struct end *e)
{
	uint32_t before, after = sleeps_of_peer(e);
	time_t end = now() + LIMIT_S;

	do {
		before = after;
		usleep(10000);
		after = sleeps_of_peer(e);
		if (now() > end)
			fail_msg("the peer does not go to sleep");
	} while (before != after || !(after & 1));
	return after;
}

bool cma_works(void)
{
	uint64_t from = 1, to = 0;
	struct iovec here = { &from, 8 }, there = { &to, 8 };

	return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == 8;
}

void post_to_other(enum ibv_wr_opcode opcode, uint32_t length, uint32_t offset)
{
	post(&ends[0], opcode, length, (uintptr_t)ends[1].buf + offset, ends[1].mr->rkey);
}

