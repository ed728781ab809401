/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm_fallback.c - connections within this host for which shared memory fails: one
 * line for each cause and peer process, and none if shared memory is switched off; a full
 * backlog is retried; a listener without descriptors pauses. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "common/log.h"
#include "dapl/soft/cm/shm_fallback.h"
#include "dapl/soft/shm/attach_socket.h"
#include "test/unit/child.h"
#include "test/unit/soft/ends.h"
#include "test/unit/unit.h"

#define NAME_PREFIX "dapl-soft-"
#define LINE "goes over TCP, which is slower: no shared memory: "

static rlim_t limit(int resource, rlim_t value)
{
	struct rlimit both;
	rlim_t before;

	OK(getrlimit(resource, &both));
	before = both.rlim_cur;
	both.rlim_cur = value;
	OK(setrlimit(resource, &both));
	return before;
}

/* --- what is printed ------------------------------------------------------------------------- */

static FILE *lines;		/* of this process and its children */
static int terminal;

static void record(void)
{
	lines = tmpfile();
	assert_non_null(lines);
	terminal = dup(STDERR_FILENO);
	fcntl(fileno(lines), F_SETFL, O_APPEND);
	dup2(fileno(lines), STDERR_FILENO);
}

static void expect_lines(unsigned expected, const char *text)
{
	unsigned count = 0;
	char line[512];

	rewind(lines);
	while (fgets(line, sizeof line, lines)) {
		if (!strstr(line, LINE) || !strstr(line, text))
			fail_msg("unexpected line: %s", line);
		count++;
	}
	assert_int_equal(count, expected);
}

static void stop_recording(void)
{
	dup2(terminal, STDERR_FILENO);
	close(terminal);
	fclose(lines);
}

/* The line names what an administrator can do, or look for. */
static void hint_fits_the_error(void **state)
{
	static const struct {
		int err;
		const char *hint;
		bool own;		/* a call of this process failed */
	} cases[] = {
		{ EPERM, "Operation not permitted (the peer process belongs to another user)", false },
		{ EPERM, "not permitted (a seccomp filter or a security module denies memfd_create ", true },
		{ ENOSYS, "(this kernel has no memfd_create, or a seccomp filter denies it)", true },
		{ EAFNOSUPPORT, "(AF_UNIX sockets are denied to this process: ", false },
		{ ENFILE, "(raise the system's limit of open files, sysctl fs.file-max)", false },
		/* the peer closed the socket before it read the request */
		{ ECONNRESET, "(the peer process had no room for the request)", false },
		{ ENOMEM, "(see the limits of memory)", false },
	};

	open_two(0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		record();
		soft_progress_lock(ends[0].dev);
		shm_fallback_report(ends[0].conn, cases[i].own ? 0 : 77, cases[i].err);
		soft_progress_unlock(ends[0].dev);
		expect_lines(1, cases[i].hint);
		stop_recording();
	}
	close_two();
}

/* --- limits ---------------------------------------------------------------------------------- */

static void file_size_limit_is_one_line(void **state)
{
	rlim_t before = limit(RLIMIT_FSIZE, 60000);

	record();
	for (int i = 0; i < 2; i++) {
		open_two(0);
		assert_false(uses_rings(&ends[0]));
		close_two();
	}
	limit(RLIMIT_FSIZE, before);
	expect_lines(1, "File too large (the limit is 60000; raise the limit of file sizes");
	stop_recording();
}

static void switched_off_shared_memory_is_no_line(void **state)
{
	record();
	for (int without = 1; without < 4; without++) {
		open_two(without);
		assert_false(uses_rings(&ends[0]));
		close_two();
	}
	setenv("DAPL_SOFT_SHM", "1", 1);
	expect_lines(0, "");
	stop_recording();
}

static void child_without_large_files(uint16_t port, int from, int to)
{
	struct end *e = &ends[0];
	char byte;

	alarm(60);
	limit(RLIMIT_FSIZE, 60000);
	open_end(e);
	start_connect(e, port);
	wait_up(e, ESTABLISHED);
	DIE_UNLESS(!uses_rings(e));
	DIE_UNLESS(write(to, "x", 1) == 1 && read(from, &byte, 1) == 1);
}

/* The initiator reports it. The acceptor, which offered, does not. */
static void initiator_without_memory_is_one_line(void **state)
{
	struct caller o;

	record();
	o = fork_initiator(child_without_large_files);
	expect_byte(o.up[0], 'x');
	expect_lines(1, "File too large (the limit is 60000; ");
	kill_initiator(&o);
	end_initiator(&o);
	stop_recording();
}

static void child_over_tcp(uint16_t port, int from, int to)
{
	struct end *e = &ends[0];
	char byte;

	alarm(60);
	limit(RLIMIT_FSIZE, RLIM_INFINITY);
	log_mask = 0;
	open_end(e);
	start_connect(e, port);
	wait_up(e, ESTABLISHED);
	DIE_UNLESS(!uses_rings(e));
	DIE_UNLESS(write(to, "x", 1) == 1 && read(from, &byte, 1) == 1);
}

/* The acceptor offers, and cannot create the segment. */
static void segment_that_is_too_large_is_one_line(void **state)
{
	rlim_t before = limit(RLIMIT_FSIZE, sizeof(struct ring_memory) - 1);
	struct caller o;

	record();
	o = fork_initiator(child_over_tcp);
	expect_byte(o.up[0], 'x');
	limit(RLIMIT_FSIZE, before);
	expect_lines(1, "File too large (the limit is ");
	kill_initiator(&o);
	end_initiator(&o);
	stop_recording();
}

/* --- descriptors ------------------------------------------------------------------------------ */

static void acceptor_without_descriptors_is_one_line(void **state)
{
	struct dapl_listener *listener;
	uint16_t port = 0;
	rlim_t before;
	int fd;

	record();
	for (int i = 0; i < 2; i++)
		open_end(&ends[i]);
	OK(ops->listen(ends[1].dev, NULL, &port, false, 8, &ends[1], &listener));
	start_connect(&ends[0], port);
	while (!upcall_count(REQUEST, &ends[1]))
		usleep(200);
	fd = dup(0);
	close(fd);
	before = limit(RLIMIT_NOFILE, fd);
	accept_it(&ends[1]);
	wait_up(&ends[0], ESTABLISHED);
	limit(RLIMIT_NOFILE, before);
	assert_false(uses_rings(&ends[0]));
	expect_lines(1, "Too many open files (the limit is ");
	ops->unlisten(listener);
	close_two();
	stop_recording();
}

/* Leaves only the abstract name, as for a user without a runtime directory. */
EXTEND(attach_socket_listen)

int __wrap_attach_socket_listen(uint64_t name, bool file)
{
	if (!file)
		return __real_attach_socket_listen(name, false);
	errno = ENOENT;
	return -1;
}

static unsigned empty_accepts, accepts;		/* atomic: failed for lack of descriptors; all */

EXTEND(accept4)

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	int got = __real_accept4(fd, address, length, flags), err = errno;

	if (got < 0 && err == EMFILE)
		__atomic_add_fetch(&empty_accepts, 1, __ATOMIC_RELEASE);
	if (got >= 0 && !address)
		__atomic_add_fetch(&accepts, 1, __ATOMIC_RELEASE);
	errno = err;
	return got;
}

static void wait_for(const unsigned *count, unsigned more_than)
{
	time_t end = now() + LIMIT_S;

	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) <= more_than) {
		if (now() > end)
			fail_msg("it does not happen");
		usleep(200);
	}
}

/* Returns the name of this process's abstract attach socket as an address. */
static socklen_t own_name(struct sockaddr_un *address)
{
	socklen_t length;

	for (int fd = 0; fd < 256; fd++) {
		memset(address, 0, sizeof *address);
		length = sizeof *address;
		if (!getsockname(fd, (struct sockaddr *)address, &length) &&
		    address->sun_family == AF_UNIX && !address->sun_path[0] &&
		    !strncmp(address->sun_path + 1, NAME_PREFIX, strlen(NAME_PREFIX)))
			return length;
	}
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void child_that_connects(uint16_t port, int from, int to)
{
	char byte;

	alarm(60);
	open_end(&ends[0]);
	start_connect(&ends[0], port);
	wait_up(&ends[0], ESTABLISHED);
	DIE_UNLESS(write(to, "x", 1) == 1 && read(from, &byte, 1) == 1);
}

/* A peer waits in the backlog. The service thread polls every 10 ms and does not spin. */
static void listener_without_descriptors_pauses(void **state)
{
	struct caller o = fork_initiator(child_that_connects);
	struct sockaddr_un address;
	socklen_t length = own_name(&address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), last = dup(0);
	uint64_t began = now_ms();
	unsigned before;
	rlim_t descriptors;

	expect_byte(o.up[0], 'x');
	assert_true(length > 0);
	close(last);
	descriptors = limit(RLIMIT_NOFILE, last);
	OK(connect(fd, (struct sockaddr *)&address, length));
	wait_for(&empty_accepts, 3);
	while (now_ms() < began + 100)
		usleep(1000);
	before = __atomic_load_n(&empty_accepts, __ATOMIC_ACQUIRE);
	assert_in_range(before, 1, (now_ms() - began) / 10 + 2);
	before = __atomic_load_n(&accepts, __ATOMIC_ACQUIRE);
	limit(RLIMIT_NOFILE, descriptors);
	wait_for(&accepts, before);
	close(fd);
	kill_initiator(&o);
	end_initiator(&o);
}

/* --- the backlog ------------------------------------------------------------------------------- */

/* Runs in the child: an acceptor that stops once its Reply is sent and the parent has its
 * socket's name. */
static void acceptor_that_stops(int to, int from)
{
	struct dapl_listener *listener;
	struct end *e = &ends[1];
	struct sockaddr_un address;
	uint16_t port = 0;
	char byte;

	open_end(e);
	OK(ops->listen(e->dev, NULL, &port, false, 8, e, &listener));
	DIE_UNLESS(write(to, &port, sizeof port) == sizeof port);
	DIE_UNLESS(read(from, &byte, 1) == 1);
	send_accept(e);
	DIE_UNLESS(own_name(&address) > 0);
	DIE_UNLESS(write(to, &address, sizeof address) == sizeof address);
	raise(SIGSTOP);
	wait_up(e, ESTABLISHED);
	for (;;)
		pause();
}

/* Forks a process of another user (root can become one). It gets an address, and connects
 * until the backlog is full. */
static pid_t fork_other_user(int from)
{
	struct sockaddr_un address;
	socklen_t length;
	pid_t pid = fork_child();
	int fd, err;

	if (pid)
		return pid;
	DIE_UNLESS(geteuid() || !setresuid(65534, 65534, 65534));
	DIE_UNLESS(read(from, &address, sizeof address) == sizeof address);
	length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1);
	do {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		err = connect(fd, (struct sockaddr *)&address, length) ? errno : 0;
		close(fd);
	} while (!err);
	DIE_UNLESS(err == EAGAIN);
	_exit(0);
}

static enum soft_conn_state state_of(struct end *e)
{
	enum soft_conn_state state;

	soft_progress_lock(e->dev);
	state = e->conn->state;
	soft_progress_unlock(e->dev);
	return state;
}

/* Connects to an acceptor whose backlog is full when the initiator attaches. */
static pid_t connect_to_a_full_backlog(void)
{
	int up[2], down[2], target[2], status;
	struct sockaddr_un address;
	enum soft_conn_state state;
	pid_t pid, attacker;
	uint16_t port;

	OK(pipe(up) | pipe(down) | pipe(target));
	attacker = fork_other_user(target[0]);
	pid = fork_child();
	if (!pid) {
		acceptor_that_stops(up[1], down[0]);
		_exit(1);
	}
	assert_int_equal(read(up[0], &port, sizeof port), sizeof port);
	open_end(&ends[0]);
	start_connect(&ends[0], port);
	soft_progress_lock(ends[0].dev);	/* holds the Reply back */
	assert_int_equal(write(down[1], "x", 1), 1);
	assert_int_equal(read(up[0], &address, sizeof address), sizeof address);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(write(target[1], &address, sizeof address), sizeof address);
	expect_success(attacker);
	soft_progress_unlock(ends[0].dev);
	while ((state = state_of(&ends[0])) != SOFT_ATTACHING && state != SOFT_OPEN)
		usleep(200);
	assert_int_equal(state, SOFT_ATTACHING);
	for (int i = 0; i < 2; i++) {
		close(up[i]);
		close(down[i]);
		close(target[i]);
	}
	return pid;
}

static void end_acceptor(pid_t pid)
{
	int status;

	OK(kill(pid, SIGKILL));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close_end(&ends[0]);
}

static void full_backlog_is_retried(void **state)
{
	pid_t pid;

	record();
	pid = connect_to_a_full_backlog();
	OK(kill(pid, SIGCONT));
	wait_up(&ends[0], ESTABLISHED);
	assert_true(uses_rings(&ends[0]));
	expect_lines(0, "");
	end_acceptor(pid);
	stop_recording();
}

static void backlog_that_stays_full_is_one_line(void **state)
{
	pid_t pid;

	record();
	pid = connect_to_a_full_backlog();
	wait_up(&ends[0], ESTABLISHED);
	assert_false(uses_rings(&ends[0]));
	expect_lines(1, "(the backlog of the peer process stayed full)");
	end_acceptor(pid);
	stop_recording();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hint_fits_the_error),
		/* The child would inherit that this process has reported its own failure. */
		cmocka_unit_test(initiator_without_memory_is_one_line),
		cmocka_unit_test(file_size_limit_is_one_line),
		cmocka_unit_test(switched_off_shared_memory_is_no_line),
		cmocka_unit_test(segment_that_is_too_large_is_one_line),
		cmocka_unit_test(acceptor_without_descriptors_is_one_line),
		cmocka_unit_test(listener_without_descriptors_pauses),
		cmocka_unit_test(full_backlog_is_retried),
		cmocka_unit_test(backlog_that_stays_full_is_one_line),
	};

	alarm(120);
	log_mask = 3;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("shm_fallback", tests, NULL, NULL);
}
