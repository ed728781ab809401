/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_soft_shm.c - shared memory between devices: that it is used, between processes and in
 * one, that a killed peer leaves nothing, and that strangers and peers that store nonsense
 * spoil no more than their own connection. It looks into the device to see which way data
 * goes. What messages do is test_soft_device.c's matter. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "dapl/soft/soft.h"

static const struct dapl_device_ops *ops = &dapl_device_ops;

#define OK(call) assert_int_equal((call), 0)

/* --- upcalls: how many of each kind, for each of the two ends ------------------------------ */

enum kind { REQUEST, ESTABLISHED, FAILED, CLOSED, BROKEN, RELEASED, KINDS };
static unsigned came[2][KINDS];
static struct dapl_conn *requested;

static void note(const void *who, enum kind kind);

void dapl_up_request(void *sp, struct dapl_conn *conn, const struct dapl_request *r)
{
	(void)r;
	__atomic_store_n(&requested, conn, __ATOMIC_RELEASE);
	note(sp, REQUEST);
}

void dapl_up_established(void *owner, struct dapl_conn *conn, const struct dapl_established *i)
{
	(void)conn;
	(void)i;
	note(owner, ESTABLISHED);
}

void dapl_up_failed(void *owner, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t n)
{
	(void)conn;
	(void)why;
	(void)pdata;
	(void)n;
	note(owner, FAILED);
}

void dapl_up_disconnected(void *owner, struct dapl_conn *conn, bool orderly)
{
	(void)conn;
	note(owner, orderly ? CLOSED : BROKEN);
}

void dapl_up_released(void *owner)
{
	note(owner, RELEASED);
}

void dapl_up_async(void *ia, const struct ibv_async_event *event)
{
	(void)ia;
	(void)event;
}

/* --- an end: a device with one of everything -------------------------------------------------- */

enum { BUFFER = 3 << 20, HALF = BUFFER / 2, LIMIT_S = 20 };

struct end {
	struct dapl_device *dev;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct dapl_conn *conn;
	char *buf;
};
static struct end ends[2];		/* 0 connects, 1 listens */

static void note(const void *who, enum kind kind)
{
	__atomic_add_fetch(&came[who == &ends[1]][kind], 1, __ATOMIC_RELEASE);
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void wait_up(const struct end *e, enum kind kind)
{
	time_t end = now() + LIMIT_S;

	while (!__atomic_exchange_n(&came[e == &ends[1]][kind], 0, __ATOMIC_ACQUIRE)) {
		if (now() > end)
			fail_msg("upcall %d did not come", kind);
		usleep(200);
	}
}

static void open_end(struct end *e)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
					 .cap = { 64, 64, 2, 2, 64 } };

	memset(came[e == &ends[1]], 0, sizeof came[0]);
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

static void close_end(struct end *e)
{
	if (e->conn) {
		ops->release(e->conn);
		wait_up(e, RELEASED);
	}
	OK(ops->dereg_mr(e->mr));
	OK(ops->destroy_qp(e->qp));
	OK(ops->destroy_cq(e->cq));
	OK(ops->destroy_channel(e->channel));
	OK(ops->dealloc_pd(e->pd));
	ops->close(e->dev);
	free(e->buf);
	memset(e, 0, sizeof *e);
}

static void start_connect(struct end *e, uint16_t port)
{
	struct dapl_device_attr attr;
	struct dapl_conn_params params = { .qp = e->qp, .owner = e, .reads_out = 4,
					   .reads_in = 4 };

	OK(ops->query(e->dev, &attr));
	soft_address_set_port(&attr.address, port);
	params.remote = (struct sockaddr *)&attr.address;
	OK(ops->connect(e->dev, &params, &e->conn));
}

static void accept_it(struct end *e)
{
	struct dapl_conn_params params = { .qp = e->qp, .owner = e, .reads_out = 4,
					   .reads_in = 4 };

	wait_up(e, REQUEST);
	e->conn = __atomic_load_n(&requested, __ATOMIC_ACQUIRE);
	OK(ops->accept(e->conn, &params));
	wait_up(e, ESTABLISHED);
}

static bool uses_rings(const struct end *e)
{
	bool rings;

	soft_engine_lock(e->dev);
	rings = e->conn->pair != NULL;
	soft_engine_unlock(e->dev);
	return rings;
}

static void post(struct end *e, enum ibv_wr_opcode opcode, uint32_t length, uint64_t remote,
		 uint32_t rkey)
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

static void post_receive(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + HALF, HALF, e->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	OK(ibv_post_recv(e->qp, &wr, &bad));
}

static enum ibv_wc_status next_status(struct end *e)
{
	time_t end = now() + LIMIT_S;
	struct ibv_wc wc;

	while (!ibv_poll_cq(e->cq, 1, &wc))
		if (now() > end)
			fail_msg("no completion");
	return wc.status;
}

static void done(struct end *e)
{
	assert_int_equal(next_status(e), IBV_WC_SUCCESS);
}

static void pattern(char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		at[i] = (char)((i + seed) * 167 >> 3);
}

static bool has_pattern(const char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		if (at[i] != (char)((i + seed) * 167 >> 3))
			return false;
	return true;
}

/* --- two processes --------------------------------------------------------------------------------- */

struct other {			/* what the child is told and tells, over pipes */
	uint64_t address;
	uint32_t rkey;
};

static const uint32_t lengths[] = { 0, 1, 8, 31, 32, 33, 64, 4000, 16384, 16385, 300000, HALF };

#define DIE_UNLESS(ok) do { if (!(ok)) _exit(__LINE__ % 250 + 1); } while (0)

/* The child: connects, sends, writes, reads, adds; then waits to be killed. */
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

/* What the device's threads did, and what they will do, is in order with what we do: they
 * hold this lock, and the pipes are no order that a sanitizer knows. */
static void settle(struct end *e)
{
	soft_engine_lock(e->dev);
	soft_engine_unlock(e->dev);
}

static void tell(int fd, struct end *e)
{
	struct other o = { (uintptr_t)e->buf, e->mr->rkey };

	assert_int_equal(write(fd, &o, sizeof o), sizeof o);
}

static void expect_byte(int fd, char c)
{
	char got = 0;

	assert_int_equal(read(fd, &got, 1), 1);
	assert_int_equal(got, c);
}

static void data_between_processes_and_a_killed_peer(void **state)
{
	struct dapl_listener *listener;
	struct end *e = &ends[1];
	int down[2], up[2], go[2], status;
	uint16_t port = 0;
	pid_t child;

	(void)state;
	OK(pipe(down) | pipe(up) | pipe(go));
	child = fork();			/* before this process has a device */
	if (!child) {
		DIE_UNLESS(read(go[0], &port, sizeof port) == sizeof port);
		close(up[0]);
		child_part(port, down[0], up[1]);
		_exit(1);
	}
	close(up[1]);
	open_end(e);
	OK(ops->listen(e->dev, NULL, &port, false, 8, e, &listener));
	assert_int_equal(write(go[1], &port, sizeof port), sizeof port);
	accept_it(e);
	assert_true(uses_rings(e));
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		post_receive(e);
	tell(down[1], e);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		done(e);
		expect_byte(up[0], 'x');	/* RDMA: the service thread alone serves it */
		settle(e);
		assert_true(has_pattern(e->buf + HALF, lengths[i], i));
		assert_true(has_pattern(e->buf, lengths[i], i));
		memset(e->buf, 0, BUFFER);
		*(uint64_t *)e->buf = 37;
		settle(e);
		tell(down[1], e);
	}
	expect_byte(up[0], 'y');
	settle(e);
	assert_int_equal(*(uint64_t *)e->buf, 42);
	post_receive(e);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status));
	wait_up(e, BROKEN);
	assert_int_equal(next_status(e), IBV_WC_WR_FLUSH_ERR);
	ops->unlisten(listener);
	close_end(e);
	for (int i = 0; i < 2; i++) {
		close(down[i]);
		close(go[i]);
	}
	close(up[0]);
}

/* --- one process --------------------------------------------------------------------------------------- */

/* `without`: bits of the ends that are told to use TCP. */
static void open_two(int without)
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

static void close_two(void)
{
	close_end(&ends[0]);
	close_end(&ends[1]);
}

static void one_process_unless_a_side_refuses(void **state)
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

/* --- whoever sleeps is woken ------------------------------------------------------------------------------- */

static uint32_t seed;
static unsigned handovers = 4000;

static uint32_t next_random(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	return *random >> 8;
}

/* Sleeps until there may be something. */
static void sleep_on(struct end *e)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;

	if (poll(&p, 1, LIMIT_S * 1000) != 1) {
		fprintf(stderr, "not woken, DAPL_TEST_SEED=%u\n", seed);
		abort();
	}
	ops->get_cq_event(e->channel, &cq);
}

/* One completion, got in one of many ways. False: it is a send's. */
static bool take_somehow(struct end *e, uint32_t *random)
{
	struct timespec nap = { 0, next_random(random) % 64 * 1000 };
	unsigned way = next_random(random) % 8, polls = next_random(random) % 300;
	struct ibv_wc wc;

	if (way == 7)
		nanosleep(&nap, NULL);
	for (;;) {
		for (unsigned i = 0; i <= polls; i++)
			if (ibv_poll_cq(e->cq, 1, &wc))
				goto got;
		if (way < 3)
			continue;
		ibv_req_notify_cq(e->cq, 0);
		if (ibv_poll_cq(e->cq, 1, &wc))
			goto got;
		sleep_on(e);
	}
got:
	if (wc.status != IBV_WC_SUCCESS)
		abort();
	return wc.opcode & IBV_WC_RECV;
}

static void *play(void *arg)
{
	struct end *e = arg;
	uint32_t random = seed + (e == &ends[1]);

	for (unsigned i = 0; i < handovers; i++) {
		if (i || e == &ends[0])
			post(e, IBV_WR_SEND, next_random(&random) % 100, 0, 0);
		while (!take_somehow(e, &random))
			;
		post_receive(e);
	}
	if (e == &ends[1])	/* the last answer */
		post(e, IBV_WR_SEND, 1, 0, 0);
	return NULL;
}

/* A ball that goes to and fro between two threads, who poll, sleep or are busy elsewhere at
 * random: each time that it is not handed over, the game hangs. */
static void nobody_sleeps_through_a_message(void **state)
{
	const char *s = getenv("DAPL_TEST_SEED"), *n = getenv("DAPL_TEST_HANDOVERS");
	pthread_t thread[2];

	(void)state;
	seed = s ? strtoul(s, NULL, 0) : (uint32_t)getpid() * 2654435761u;
	handovers = n ? strtoul(n, NULL, 0) : handovers;
	print_message("DAPL_TEST_SEED=%u\n", seed);
	open_two(0);
	for (int i = 0; i < 16; i++) {
		post_receive(&ends[0]);
		post_receive(&ends[1]);
	}
	for (int i = 0; i < 2; i++)
		OK(pthread_create(&thread[i], NULL, play, &ends[i]));
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	close_two();
}

/* --- a peer that stores nonsense -------------------------------------------------------------------------- */

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

static void request_too_short(struct ring_slot *slot)
{
	slot->op = WIRE_READ_REQUEST;
	slot->last = 1;
	slot->length = 20;
}

static void answer_unasked(struct ring_slot *slot)
{
	slot->op = WIRE_READ_RESPONSE;
	slot->last = 1;
	slot->length = 8;
}

static void foreign_stag(struct ring_slot *slot)
{
	slot->op = WIRE_WRITE;
	slot->last = 1;
	slot->length = 8;
	slot->word = 0x12345678;
}

static void acknowledges_too_much(struct ring_slot *slot)
{
	slot->op = WIRE_ACK;
	slot->last = 1;
	slot->delivered = 1000;
}

/* One side stores a message as a peer never would: the other ends the connection, and the
 * device is as good as before. */
static void nonsense_in_a_ring_ends_its_connection(void **state)
{
	static void (*const bad[])(struct ring_slot *) = {
		bad_opcode, too_long, elsewhere, request_too_short, answer_unasked, foreign_stag,
		acknowledges_too_much,
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ring_tx *tx;
		struct ring_slot *slot;

		open_two(0);
		post_receive(&ends[1]);
		tx = &ends[0].conn->pair->tx;
		slot = &tx->slot[tx->tail % RING_SLOTS];
		bad[i](slot);
		__atomic_store_n(&slot->seq, tx->tail + 1, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&came[1][BROKEN], __ATOMIC_ACQUIRE) &&
		       !ibv_poll_cq(ends[1].cq, 0, NULL))
			soft_engine_poll(ends[1].dev);
		wait_up(&ends[1], BROKEN);
		assert_int_equal(next_status(&ends[1]), IBV_WC_WR_FLUSH_ERR);
		close_two();
	}
}

/* Each time that something was received, a peer has stored on meanwhile. */
enum { STORES_MAX = 1000 };
static bool stores_on;		/* atomic, like stores */
static unsigned stores;

/* What its peer does. */
static void tell_nothing(struct dapl_conn *conn)
{
	struct ring_told *told = (struct ring_told *)conn->pair->tx.told;

	__atomic_add_fetch(&told->count, 1, __ATOMIC_RELEASE);
}

void __real_soft_pair_receive(struct dapl_conn *conn, bool later);
void __wrap_soft_pair_receive(struct dapl_conn *conn, bool later);
void __wrap_soft_pair_receive(struct dapl_conn *conn, bool later)
{
	__real_soft_pair_receive(conn, later);
	if (conn->owner != &ends[1] || !__atomic_load_n(&stores_on, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&stores, __ATOMIC_RELAXED) == STORES_MAX)
		return;
	__atomic_add_fetch(&stores, 1, __ATOMIC_RELAXED);
	tell_nothing(conn);
}

/* It closes its socket and goes on storing: its end is seen all the same. */
static void who_stores_on_after_its_end_is_not_waited_for(void **state)
{
	(void)state;
	open_two(0);
	__atomic_store_n(&stores_on, true, __ATOMIC_RELAXED);
	soft_engine_lock(ends[0].dev);
	tell_nothing(ends[1].conn);
	OK(shutdown(ends[0].conn->fd, SHUT_WR));
	soft_engine_unlock(ends[0].dev);
	wait_up(&ends[1], BROKEN);
	__atomic_store_n(&stores_on, false, __ATOMIC_RELAXED);
	assert_in_range(__atomic_load_n(&stores, __ATOMIC_RELAXED), 1, STORES_MAX - 1);
	close_two();
}

/* --- strangers at the socket ---------------------------------------------------------------------------------- */

struct fetch_request {
	char greeting[8];
	uint64_t key, station;
};

static int knock(const uint8_t token[16])
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

static void say(int fd, const void *data, size_t length, int first, int second)
{
	char control[CMSG_SPACE(2 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)data, length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (first >= 0) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof control;
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(c), (int[]){ first, second }, 2 * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), length);
}

/* Bytes of the answer; 0: closed without one. */
static ssize_t hears(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[64];

	assert_int_equal(poll(&p, 1, LIMIT_S * 1000), 1);
	return recv(fd, answer, sizeof answer, 0);
}

static void strangers_get_no_memory(void **state)
{
	struct fetch_request request = { "daplshm1", 0, 77 }, other;
	int bell = eventfd(0, EFD_NONBLOCK), blocking = eventfd(0, 0), fd, pipes[2];
	int file = memfd_create("t", MFD_ALLOW_SEALING), small = memfd_create("t", 0);
	struct soft_segment *segment;
	struct soft_offer *offer;
	uint8_t token[16];

	(void)state;
	OK(pipe(pipes) | ftruncate(file, 4096) | ftruncate(small, 100));
	OK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	open_end(&ends[1]);
	soft_engine_lock(ends[1].dev);
	offer = soft_offer_new(ends[1].dev, token);
	soft_engine_unlock(ends[1].dev);
	assert_non_null(offer);
	memcpy(&request.key, token + 8, 8);
	for (int way = 0; way < 8; way++) {
		other = request;
		fd = knock(token);
		switch (way) {
		case 0:			/* does not know the key */
			other.key ^= 1ull << 40;
			say(fd, &other, sizeof other, bell, file);
			break;
		case 1:			/* another version */
			other.greeting[7]++;
			say(fd, &other, sizeof other, bell, file);
			break;
		case 2:			/* no descriptors */
			say(fd, &other, sizeof other, -1, -1);
			break;
		case 3:			/* a bell that is none */
			say(fd, &other, sizeof other, pipes[1], file);
			break;
		case 4:			/* one that may block */
			say(fd, &other, sizeof other, blocking, file);
			break;
		case 5:			/* a file that may shrink */
			say(fd, &other, sizeof other, bell, small);
			break;
		case 6:			/* half a request */
			say(fd, &other, 12, bell, file);
			break;
		case 7:			/* nothing: time runs out */
			break;
		}
		assert_int_equal(hears(fd), 0);
		close(fd);
	}
	fd = knock(token);		/* all is right: and only once */
	say(fd, &request, sizeof request, bell, file);
	assert_true(hears(fd) > 0);
	close(fd);
	fd = knock(token);
	say(fd, &request, sizeof request, bell, file);
	assert_int_equal(hears(fd), 0);
	close(fd);
	segment = soft_offer_end(offer);
	assert_non_null(segment);
	soft_segment_put(segment);
	close_end(&ends[1]);
	close(bell);
	close(blocking);
	close(file);
	close(small);
	close(pipes[0]);
	close(pipes[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_between_processes_and_a_killed_peer),
		cmocka_unit_test(one_process_unless_a_side_refuses),
		cmocka_unit_test(nobody_sleeps_through_a_message),
		cmocka_unit_test(nonsense_in_a_ring_ends_its_connection),
		cmocka_unit_test(who_stores_on_after_its_end_is_not_waited_for),
		cmocka_unit_test(strangers_get_no_memory),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	unsetenv("DAPL_SOFT_CRC");
	unsetenv("DAPL_SOFT_SHM");
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
