/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign_half_open.c - connections that send no Request: how long they stay, how many there may be, what
 * is told of them. */
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "test/unit/child.h"
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/soft/foreign_tests.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/soft/cm/half_open.h"
#include "test/own_network.h"
#include "test/unit/unit.h"

static void allow_descriptors(rlim_t n)
{
	struct rlimit limit;

	OK(getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_max < n) {
		print_message("%lu descriptors are allowed, %lu needed\n",
			      (unsigned long)limit.rlim_max, (unsigned long)n);
		skip();
	}
	limit.rlim_cur = limit.rlim_cur < n ? n : limit.rlim_cur;
	OK(setrlimit(RLIMIT_NOFILE, &limit));
}

/* Returns the previous limits. */
static struct rlimit set_descriptors(rlim_t n)
{
	struct rlimit before, limit;

	OK(getrlimit(RLIMIT_NOFILE, &before));
	allow_descriptors(n);
	limit = before;
	limit.rlim_cur = n;
	OK(setrlimit(RLIMIT_NOFILE, &limit));
	return before;
}

static long resident_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		fail_msg("/proc/self/statm");
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static bool at_end(int socket, int timeout_ms)
{
	struct pollfd in = { .fd = socket, .events = POLLIN };
	char byte;

	return poll(&in, 1, timeout_ms) == 1 && recv(socket, &byte, 1, 0) <= 0;
}

/* Half of the connections send nothing, the others only the beginning of a Request. */
static void dial_and_be_silent(int *silent, int n)
{
	for (int i = 0; i < n; i++) {
		dial();
		silent[i] = peer_socket;
		if (i % 2)
			put("MPA ID", 6);
	}
}

/* Half-open connections cost little, do not keep other peers out, and are closed after SOFT_HANDSHAKE_S. */
void half_open_connections_time_out(void **state)
{
	enum { N = 1000 };
	static int silent[N];
	long before;

	allow_descriptors(2 * N + 100);
	own_network();
	reset_foreign_peer(false);
	open_device_end();
	before = resident_bytes();
	dial_and_be_silent(silent, N);
	passive_up(WIRE_MPA_S, 2, &four_reads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(resident_bytes() - before < N * 4096l);
#endif
	for (int i = 0; i < N; i++) {
		assert_true(at_end(silent[i], 60000));
		close(silent[i]);
	}
	talk();		/* the complete connection is still open */
	foreign_peer_down();
}

/* One source address gets 1/8 of the descriptors: its oldest connection is closed for its newest. */
void beyond_the_limit_the_oldest_is_closed(void **state)
{
	enum { DESCRIPTORS = 4096, LIMIT = DESCRIPTORS / HALF_OPEN_FRACTION / HALF_OPEN_SOURCES, MORE = 20 };
	static int silent[LIMIT + MORE];
	struct rlimit before;

	before = set_descriptors(DESCRIPTORS);
	own_network();
	reset_foreign_peer(false);
	open_device_end();
	dial_and_be_silent(silent, LIMIT + MORE);
	passive_up(WIRE_MPA_S, 2, &four_reads);
	assert_false(at_end(silent[LIMIT + MORE - 1], 0));
	for (int i = 0; i < MORE; i++)
		assert_true(at_end(silent[i], 1000));
	talk();
	for (int i = 0; i < LIMIT + MORE; i++)
		close(silent[i]);
	foreign_peer_down();
	OK(setrlimit(RLIMIT_NOFILE, &before));
}

/* Forks a process that makes connections and sends nothing, until it is killed. */
static pid_t fork_silent_process(int go, int done, int sources, int each)
{
	struct sockaddr_in to, from = loopback(0);
	uint16_t port;
	pid_t pid = fork_child();

	if (pid)
		return pid;
	if (read(go, &port, sizeof port) != sizeof port)
		_exit(1);
	to = loopback(port);
	for (int i = 0; i < sources * each; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i % sources);
		if (bind(fd, (struct sockaddr *)&from, sizeof from) ||
		    connect(fd, (struct sockaddr *)&to, sizeof to))
			_exit(2);
	}
	if (write(done, "d", 1) != 1)
		_exit(3);
	pause();
	_exit(0);
}

static int open_descriptors(int limit)
{
	int count = 0;

	for (int fd = 0; fd < limit; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* The connections of the silent process are in the backlog before that of the test: once that one is
 * accepted, all of them were. */
static void half_open_connections_leave_descriptors(int sources, int most)
{
	enum { DESCRIPTORS = 400, EACH = 300 };
	static int taken[DESCRIPTORS];
	int go[2], done[2], before, n = 0, last;
	struct rlimit rlimit;
	char byte;
	pid_t pid;

	OK(pipe(go) | pipe(done));
	pid = fork_silent_process(go[0], done[1], sources, EACH);
	assert_true(pid > 0);
	rlimit = set_descriptors(DESCRIPTORS);
	reset_foreign_peer(false);
	open_device_end();
	before = open_descriptors(DESCRIPTORS);
	assert_int_equal(write(go[1], &we.port, sizeof we.port), sizeof we.port);
	assert_int_equal(read(done[0], &byte, 1), 1);
	passive_up(WIRE_MPA_S, 2, &four_reads);
	assert_in_range(open_descriptors(DESCRIPTORS) - before, 2, 2 + most);
	close(peer_socket);
	await(CLOSED);
	/* The application uses all other descriptors. A new peer gets the place of a silent one. */
	while ((taken[n] = dup(0)) >= 0)
		n++;
	assert_true(n > 0);
	last = taken[--n];
	close(last);
	restart_device_end();
	passive_up(WIRE_MPA_S, 2, &four_reads);
	while (n)
		close(taken[--n]);
	talk();
	foreign_peer_down();
	OK(kill(pid, SIGKILL));
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
	OK(setrlimit(RLIMIT_NOFILE, &rlimit));
}

void one_source_gets_half_of_the_share(void **state)
{
	half_open_connections_leave_descriptors(1, 400 / HALF_OPEN_FRACTION / HALF_OPEN_SOURCES);
}

void all_sources_get_a_share(void **state) { half_open_connections_leave_descriptors(4, 400 / HALF_OPEN_FRACTION); }

/* --- what is told of them ------------------------------------------------------------ */

/* Returns the class of the record in `records` that contains `text`; 0 if there is none. */
static unsigned class_of_record(FILE *records, const char *text)
{
	unsigned class = 0, found;
	char line[512];

	rewind(records);
	while (fgets(line, sizeof line, records))
		if (strstr(line, text) && sscanf(line, "%X", &found) == 1)
			class = found;
	return class;
}

/* Runs `part` with all trace records enabled. They are written to a file. */
static FILE *traced(void (*part)(void))
{
	FILE *records = tmpfile();
	int terminal = dup(STDERR_FILENO);

	assert_non_null(records);
	dup2(fileno(records), STDERR_FILENO);
	trace_set_level(TRC_LVL_MAX);
	part();
	trace_set_level(0);
	dup2(terminal, STDERR_FILENO);
	close(terminal);
	return records;
}

static void one_more_than_a_source_may_have(void)
{
	enum { DESCRIPTORS = 128, LIMIT = DESCRIPTORS / HALF_OPEN_FRACTION / HALF_OPEN_SOURCES };
	struct rlimit before = set_descriptors(DESCRIPTORS);
	int silent[LIMIT + 1];

	reset_foreign_peer(false);
	open_device_end();
	dial_and_be_silent(silent, LIMIT + 1);
	passive_up(WIRE_MPA_S, 2, &four_reads);
	for (int i = 0; i < LIMIT + 1; i++)
		close(silent[i]);
	foreign_peer_down();
	OK(setrlimit(RLIMIT_NOFILE, &before));
}

static unsigned lines_with(FILE *records, const char *text)
{
	unsigned count = 0;
	char line[512];

	rewind(records);
	while (fgets(line, sizeof line, records))
		count += strstr(line, text) != NULL;
	return count;
}

/* Two are closed: one for the last silent connection, one for the test's own. */
void closed_half_open_connections_are_one_line(void **state)
{
	unsigned mask = log_mask;
	FILE *records;

	log_mask = 3;
	records = traced(one_more_than_a_source_may_have);
	log_mask = mask;
	assert_int_equal(lines_with(records, "half-open connection closed"), 2);
	assert_int_equal(lines_with(records, "too many connections sent no request: closed the oldest, "
				    "from 127.0.0.1"), 1);
	fclose(records);
}

void errors_have_the_error_class(void **state)
{
	FILE *records = traced(one_more_than_a_source_may_have);

	assert_int_equal(class_of_record(records, "half-open connection closed"), TRC_DAPL_ERROR);
	assert_int_equal(class_of_record(records, "data goes over TCP"), TRC_DAPL_EVENT);
	fclose(records);
}
