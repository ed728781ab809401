/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* actors.c - threads and processes that act in a test (actors.h). */
#include "actors.h"
#include "run.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- waiters ------------------------------------------------------------------------------- */

static void *wait_here(void *arg)
{
	struct waiter *w = arg;

	w->tid = (pid_t)syscall(SYS_gettid);
	if (w->cno)
		w->ret = dat_cno_wait(w->cno, w->timeout, &w->woken_by);
	else
		w->ret = dat_evd_wait(w->evd, w->timeout, w->threshold, &w->event, &w->nmore);
	w->done = true;
	return NULL;
}

static bool asleep(struct waiter *w)
{
	char path[60], stat[300] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
	FILE *f = fopen(path, "r");
	if (!f)
		return false;
	size_t n = fread(stat, 1, sizeof(stat) - 1, f);
	fclose(f);
	stat[n] = 0;
	char *state = strrchr(stat, ')');
	return state && state[1] && state[2] == 'S';
}

/* Returns when the thread was asleep several times in a row: it does not just wait for a lock. */
static struct waiter *start(struct waiter *w)
{
	struct patience patience_ = { 0 };
	int seen = 0;

	if (pthread_create(&w->thread, NULL, wait_here, w))
		fail("no thread for the test");
	while (seen < 5 && !w->done) {
		if (!waiting(&patience_))
			fail("expected a thread to block, waited %.0f s without it", patience());
		seen = w->tid && asleep(w) ? seen + 1 : 0;
	}
	return w;
}

static struct waiter *new_waiter(void)
{
	struct waiter *w = lasting(sizeof(*w));

	w->nmore = -77;
	w->woken_by = (DAT_EVD_HANDLE)-77;
	return w;
}

struct waiter *waiter_on_evd(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold)
{
	struct waiter *w = new_waiter();

	w->evd = evd;
	w->timeout = timeout;
	w->threshold = threshold;
	return start(w);
}

struct waiter *waiter_on_cno(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout)
{
	struct waiter *w = new_waiter();

	w->cno = cno;
	w->timeout = timeout;
	return start(w);
}

DAT_RETURN released(struct waiter *w)
{
	UNTIL(w->done, "the blocked thread to return");
	pthread_join(w->thread, NULL);
	return w->ret;
}

void expect_blocked(const char *what, struct waiter *w)
{
	for (double end = now() + 0.02; now() < end; sched_yield())
		if (w->done)
			fail("expected %s to stay blocked, found that it returned %s", what,
			     return_name(w->ret));
}

static void ignore(int signal __attribute__((unused)))
{
}

void interrupt(struct waiter *w)
{
	struct sigaction action = { .sa_handler = ignore };

	sigaction(SIGUSR1, &action, NULL);
	pthread_kill(w->thread, SIGUSR1);
}

/* --- crews ------------------------------------------------------------------------------------ */

struct hand {
	pthread_t thread;
	pthread_barrier_t *begin;
	void (*body)(void *arg, int me);
	void *arg;
	int me;
};

static void *work(void *arg)
{
	struct hand *hand = arg;

	pthread_barrier_wait(hand->begin);
	hand->body(hand->arg, hand->me);
	return NULL;
}

void crew(int n, void (*body)(void *arg, int me), void *arg)
{
	struct hand hands[MAX_CREW];
	pthread_barrier_t begin;

	pthread_barrier_init(&begin, NULL, n);
	for (int i = 0; i < n; i++) {
		hands[i] = (struct hand){ .begin = &begin, .body = body, .arg = arg, .me = i };
		if (pthread_create(&hands[i].thread, NULL, work, &hands[i]))
			fail("no thread for the test");
	}
	for (int i = 0; i < n; i++)
		pthread_join(hands[i].thread, NULL);
	pthread_barrier_destroy(&begin);
}

/* --- peers --------------------------------------------------------------------------------------- */

struct peer a_peer(void (*body)(struct peer *self, void *arg), void *arg)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		fail("no socket for the test");
	pid_t pid = fork();
	if (pid < 0)
		fail("no process for the test");
	if (!pid) {
		struct peer self = { .pid = 0, .socket = sockets[1] };
		close(sockets[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ia_is_gone();	/* an IA that is open is the other process's */
		body(&self, arg);
		_exit(0);
	}
	close(sockets[1]);
	return (struct peer){ .pid = pid, .socket = sockets[0] };
}

void tell(const struct peer *peer, const void *message, size_t size)
{
	if (send(peer->socket, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		fail("expected the other process to listen: %s", strerror(errno));
}

void hear(const struct peer *peer, void *message, size_t size)
{
	struct pollfd p = { .fd = peer->socket, .events = POLLIN };
	char *to = message;

	while (size) {
		int ready;
		do
			ready = poll(&p, 1, (int)(patience() * 1000));
		while (ready < 0 && errno == EINTR);
		if (ready != 1)
			fail("expected word from the other process, waited %.0f s without it", patience());
		ssize_t n = recv(peer->socket, to, size, 0);
		if (n <= 0)
			fail("expected word from the other process, found that it ended");
		to += n;
		size -= n;
	}
}

void expect_peer_done(const struct peer *peer)
{
	int status = 0;

	UNTIL(waitpid(peer->pid, &status, WNOHANG) == peer->pid, "the other process to end");
	if (status)
		fail("expected status 0 of the other process, found 0x%x", status);
}

void kill_peer(const struct peer *peer, int signal)
{
	kill(peer->pid, signal);
	/* Returns whether the process has ended, or all its threads have stopped. */
	if (signal == SIGKILL || signal == SIGSTOP)
		waitpid(peer->pid, NULL, WUNTRACED);
}
