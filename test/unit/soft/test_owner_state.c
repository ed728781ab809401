/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_owner_state.c - the progress owner of a device: which may follow which, what becomes of a change that is
 * not allowed, and what holds for each owner: whether data wakes the service thread, whether peers notify, and
 * whether the wake-ups of a socket are suppressed. */
#include "config.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/soft/progress/owner_state.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/process.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "test/unit/child.h"
#include "test/unit/unit.h"

enum { OWNERS = OWNER_POLLING_THREADS + 1, MARK = 4096 };

static struct dapl_device dev;
static struct dapl_conn conn;
static struct shm_process process;
static uint32_t sleep_count;
static int ready;			/* in data_epoll, and readable */

/* Rows are owners before a change, columns the owners after it, in the same order. */
static const char *const allowed[OWNERS] = {
	/*			    S B P */
	[OWNER_SERVICE_THREAD] =   ". y y",
	[OWNER_BLOCKED_THREAD] =   "y . y",
	[OWNER_POLLING_THREADS] =  "y . .",
};

/* The changes from the service thread to each owner, and back: each allowed one is among them. */
static const enum progress_owner round_trip[] = {
	OWNER_BLOCKED_THREAD, OWNER_SERVICE_THREAD, OWNER_POLLING_THREADS, OWNER_SERVICE_THREAD,
	OWNER_BLOCKED_THREAD, OWNER_POLLING_THREADS, OWNER_SERVICE_THREAD,
};
enum { CHANGES = sizeof round_trip / sizeof *round_trip };

static bool is_allowed(int from, int to) { return allowed[from][2 * to] == 'y'; }

static void change(enum progress_owner owner)
{
	dapl_mutex_lock(&dev.progress.owner_lock);
	soft_owner_set(&dev, owner, "test");
	dapl_mutex_unlock(&dev.progress.owner_lock);
}

UNIT_FIXTURE(set_up)
{
	struct epoll_event event = { .events = EPOLLIN };

	memset(&dev, 0, sizeof dev);
	dapl_mutex_init(&dev.progress.owner_lock, RANK_SOFT_OWNER);
	ready = eventfd(1, EFD_CLOEXEC);
	dev.data_epoll = epoll_create1(EPOLL_CLOEXEC);
	dev.progress.service_epoll = epoll_create1(EPOLL_CLOEXEC);
	conn.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(epoll_ctl(dev.data_epoll, EPOLL_CTL_ADD, ready, &event), 0);
	assert_int_equal(epoll_ctl(dev.progress.service_epoll, EPOLL_CTL_ADD, dev.data_epoll, &event), 0);
	process.sleep_count = &sleep_count;
	sleep_count = 1;
}

UNIT_FIXTURE(tear_down)
{
	close(ready);
	close(dev.data_epoll);
	close(dev.progress.service_epoll);
	close(conn.fd);
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

/* --- which may follow which ----------------------------------------------------------------- */

UNIT_TEST(each_change_is_allowed_or_not)
{
	for (int from = 0; from < OWNERS; from++)
		for (int to = 0; to < OWNERS; to++)
			if (soft_owner_may_follow(from, to) != is_allowed(from, to))
				fail_msg("%s -> %s", soft_owner_name(from), soft_owner_name(to));
}

UNIT_TEST(owners_have_different_names)
{
	for (int a = 0; a < OWNERS; a++)
		for (int b = 0; b < a; b++)
			assert_string_not_equal(soft_owner_name(a), soft_owner_name(b));
}

/* In a child: a build that checks locks aborts. Returns the owner afterwards, or -1 after an abort. */
static int owner_after(int from, int to, bool *reported)
{
	int status, out[2];
	char text[256];
	pid_t child;

	assert_int_equal(pipe(out), 0);
	child = fork_child();
	if (!child) {
		if (dup2(out[1], STDERR_FILENO) < 0)
			_exit(255);	/* no owner has this number */
		dev.progress.owner = from;
		change(to);
		_exit(dev.progress.owner);
	}
	close(out[1]);
	*reported = read(out[0], text, sizeof text) > 0;
	close(out[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGABRT);
		return -1;
	}
	return WEXITSTATUS(status);
}

TEST(forbidden_change_is_refused)
{
#ifdef DAPL_LOCK_CHECK
	const bool aborts = true;
#else
	const bool aborts = false;
#endif

	for (int from = 0; from < OWNERS; from++)
		for (int to = 0; to < OWNERS; to++) {
			bool reported, good = is_allowed(from, to);

			assert_int_equal(owner_after(from, to, &reported), good ? to : aborts ? -1 : from);
			assert_true(reported == !good);
		}
}

/* --- what holds for each owner -------------------------------------------------------------- */

static bool data_wakes_service_thread(void)
{
	struct pollfd p = { .fd = dev.progress.service_epoll, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

TEST(data_wakes_the_service_thread_if_it_is_the_owner)
{
	assert_true(data_wakes_service_thread());
	for (int i = 0; i < CHANGES; i++) {
		change(round_trip[i]);
		assert_true(data_wakes_service_thread() == (round_trip[i] == OWNER_SERVICE_THREAD));
	}
}

TEST(peers_notify_unless_threads_poll)
{
	dev.shm.process = &process;
	for (int i = 0; i < CHANGES; i++) {
		uint32_t before = sleep_count;
		bool polls = round_trip[i] == OWNER_POLLING_THREADS;

		change(round_trip[i]);
		assert_true(soft_owner_polls(&dev) == polls);
		assert_int_equal(sleep_count % 2, !polls);
		assert_in_range(sleep_count - before, 0, 1);
	}
	assert_int_equal(sleep_count, 5);	/* peers have notified for a value once at most */
}

/* The count of a process that is made while threads poll is odd: it is so until they poll again. */
TEST(process_may_appear_while_threads_poll)
{
	change(OWNER_POLLING_THREADS);
	dev.shm.process = &process;
	change(OWNER_SERVICE_THREAD);
	assert_int_equal(sleep_count, 1);
	change(OWNER_POLLING_THREADS);
	assert_int_equal(sleep_count, 2);
}

static int mark(void)
{
	socklen_t length = sizeof(int);
	int bytes = 0;

	assert_int_equal(getsockopt(conn.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, &length), 0);
	return bytes;
}

TEST(socket_wakes_again_when_polling_ends)
{
	const int raised = MARK;

	change(OWNER_POLLING_THREADS);
	assert_int_equal(setsockopt(conn.fd, SOL_SOCKET, SO_RCVLOWAT, &raised, sizeof raised), 0);
	dev.progress.suppressed = &conn;
	change(OWNER_SERVICE_THREAD);
	assert_null(dev.progress.suppressed);
	assert_int_equal(mark(), 1);
}

/* --- the trace ------------------------------------------------------------------------------ */

static void look_for_change(void *arg, const char *text, size_t length)
{
	char line[512];

	snprintf(line, sizeof line, "%.*s", (int)length, text);
	if (strstr(line, "blocked thread") && strstr(line, "was service thread (test)"))
		++*(int *)arg;
}

TEST(change_is_traced)
{
	int lines = 0;

	change(OWNER_BLOCKED_THREAD);
	trace_each(look_for_change, &lines);
	assert_int_equal(lines, 0);
	change(OWNER_SERVICE_THREAD);
	trace_set_level(TRC_LVL_DETAIL);
	change(OWNER_BLOCKED_THREAD);
	trace_set_level(TRC_LVL_OFF);
	trace_each(look_for_change, &lines);
	assert_int_equal(lines, 1);
}

UNIT_MAIN(NULL, NULL)
