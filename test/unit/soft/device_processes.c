/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_processes.c - tests of test_device: two processes and the end of one, a fork, and many threads. */
#include <assert.h>
#include <signal.h>
#include <sys/wait.h>
#include "dapl/soft/progress/progress.h"
#include "test/unit/child.h"
#include "test/unit/soft/device_ends.h"
#include "test/unit/soft/device_tests.h"
#include "test/unit/unit.h"

static void serve_child(int out)
{
	struct end e;
	struct dapl_listener *listener;
	struct dapl_conn_params params;
	struct { uint16_t port; uint64_t addr; uint32_t rkey; } hello = { 0 };
	struct upcall up;

	open_end(&e, &plain);
	fill(e.buf, 1 << 20, 42);
	for (int i = 0; i < 32; i++)
		OK(post_recv(&e, i, 2 << 20, 1000));
	OK(ops->listen(e.dev, NULL, &hello.port, false, 8, &listener, &listener));
	hello.addr = (uintptr_t)e.buf;
	hello.rkey = e.mr->rkey;
	if (write(out, &hello, sizeof hello) != sizeof hello)
		_exit(1);
	up = expect_up(REQUEST, &listener);
	params = params_of(&e, &plain, NULL);
	OK(ops->accept(up.conn, &params));
	expect_up(ESTABLISHED, &e);
	for (;;)
		pause();	/* never polls: the service thread drives all progress */
}

static void stop(pid_t child)
{
	int status;

	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
}

void blocked_process_makes_progress_and_its_exit_is_detected(void **state)
{
	struct { uint16_t port; uint64_t addr; uint32_t rkey; } hello;
	struct dapl_conn_params params;
	struct sockaddr_storage to;
	struct end a, peer;
	struct ibv_mr mr;
	int fds[2];
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork_child();
	if (!child)
		serve_child(fds[1]);
	assert_int_equal(read(fds[0], &hello, sizeof hello), sizeof hello);
	open_end(&a, &plain);
	to = address_of(&a, hello.port);
	params = params_of(&a, &plain, &to);
	OK(ops->connect(a.dev, &params, &a.conn));
	expect_up(ESTABLISHED, &a);
	mr.rkey = hello.rkey;
	peer.mr = &mr;
	peer.buf = (char *)(uintptr_t)hello.addr;
	OK(post(&a, 1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, 1 << 20, &peer, 0));
	done(a.scq, 1);
	fill(a.buf + (1 << 20), 1 << 20, 42);
	assert_memory_equal(a.buf, a.buf + (1 << 20), 1 << 20);
	OK(post(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 1000, NULL, 0));
	OK(post(&a, 3, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 1000, &peer, 0));
	done(a.scq, 2);
	done(a.scq, 3);
	OK(post_atomic(&a, 4, false, 1, 0, 8, &peer, 64));
	done(a.scq, 4);
	/* a stopped process answers nothing, and continues later; reads need its progress */
	stop(child);
	OK(post_atomic(&a, 5, false, 1, 0, 8, &peer, 64));
	expect_no_wc(a.scq);
	kill(child, SIGCONT);
	done(a.scq, 5);
	/* a killed process: outstanding requests end */
	stop(child);
	OK(post_recv(&a, 9, 0, 8));
	OK(post_atomic(&a, 6, false, 1, 0, 8, &peer, 64));
	OK(post(&a, 7, IBV_WR_RDMA_READ, 0, 0, 1000, &peer, 0));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	expect_wc(a.scq, 6, IBV_WC_RETRY_EXC_ERR);
	expect_wc(a.scq, 7, IBV_WC_WR_FLUSH_ERR);
	expect_wc(a.rcq, 9, IBV_WC_WR_FLUSH_ERR);
	expect_up(BROKEN, &a);
	close(fds[0]);
	close(fds[1]);
	close_end(&a);
}

void idle_process_uses_no_processor(void **state)
{
	struct timespec before, after;
	struct end a, b;

	open_pair(&a, &b, &plain);
	OK(post_recv(&b, 1, 0, 8));
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
	done(a.scq, 1);
	done(b.rcq, 1);
	usleep(20000);		/* the service thread takes over from the poller */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	usleep(500000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec <
		    5000000);
	close_pair(&a, &b);
}

static __thread unsigned yields;
EXTEND(sched_yield)
int __wrap_sched_yield(void)
{
	yields++;
	return __real_sched_yield();
}

/* The service thread may wait for the polling thread's own processor. Without a yield it would
 * wait until the time slice ends, during which the polls are empty. */
void poller_without_the_lock_yields(void **state)
{
	struct end a, b;
	struct ibv_wc wc;

	open_pair(&a, &b, &plain);
	soft_progress_lock(a.dev);
	yields = 0;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(ibv_poll_cq(a.scq, 1, &wc), 0);
		ops->idle();
	}
	soft_progress_unlock(a.dev);
	assert_true(yields > 0);
	close_pair(&a, &b);
}

void a_fork_leaves_the_parent_unharmed(void **state)
{
	struct end a, b;
	struct ibv_wc wc;
	pid_t child;

	open_pair(&a, &b, &plain);
	child = fork_child();
	if (!child) {	/* may make calls, which have no effect */
		ibv_poll_cq(a.scq, 1, &wc);
		post(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &b, 0);
		ibv_poll_cq(a.scq, 1, &wc);
		_exit(0);
	}
	expect_success(child);
	OK(post_recv(&b, 1, 0, 8));
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
	done(a.scq, 1);
	done(b.rcq, 1);
	close_pair(&a, &b);
}

/* --- many threads ------------------------------------------------------------------------------------- */

struct storm {
	struct end *e, *peer;
	int n;
};

static void *storm_sender(void *arg)
{
	struct storm *s = arg;
	int posted = 0, completed = 0;
	struct ibv_wc wc[16];

	while (completed < s->n) {
		int k;

		while (posted < s->n && posted - completed < 60) {
			int err = post(s->e, posted, posted % 3 ? IBV_WR_SEND : IBV_WR_RDMA_READ,
				       IBV_SEND_SIGNALED, 0, posted % 3 ? posted % 3000 : 512,
				       posted % 3 ? NULL : s->peer, 0);

			assert(!err);
			posted++;
		}
		k = ibv_poll_cq(s->e->scq, 16, wc);
		for (int i = 0; i < k; i++)
			assert(wc[i].status == IBV_WC_SUCCESS &&
			       wc[i].wr_id == (uint64_t)completed + i);
		completed += k;
	}
	return NULL;
}

static void *storm_receiver(void *arg)
{
	struct storm *s = arg;
	int got = 0, want = s->n - (s->n + 2) / 3;
	struct ibv_wc wc[16];

	for (int i = 0; i < 100; i++)
		assert(!post_recv(s->e, i, 1 << 20, 4096));
	while (got < want) {
		int k = ibv_poll_cq(s->e->rcq, 16, wc);

		for (int i = 0; i < k; i++) {
			assert(wc[i].status == IBV_WC_SUCCESS);
			assert(!post_recv(s->e, 0, 1 << 20, 4096));
		}
		got += k;
	}
	return NULL;
}

void threads_on_both_ends_transfer_concurrently(void **state)
{
	struct end a, b;
	struct storm s[4] = { { &a, &b, 4000 }, { &b, &a, 4000 }, { &a, &b, 4000 },
		{ &b, &a, 4000 } };
	pthread_t t[4];

	open_pair(&a, &b, &plain);
	pthread_create(&t[0], NULL, storm_sender, &s[0]);
	pthread_create(&t[1], NULL, storm_sender, &s[1]);
	pthread_create(&t[2], NULL, storm_receiver, &s[2]);
	pthread_create(&t[3], NULL, storm_receiver, &s[3]);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	close_pair(&a, &b);
}
