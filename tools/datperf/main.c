/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - datperf: runs the server, the client, or both (--fork), and the measurements in order. See
 * datperf(1). */
#include "../call.h"
#include "../cli.h"
#include "../messages.h"
#include "../names.h"
#ifdef DATPERF_CARRIER
#include "carrier.h"
#endif
#include "compare.h"
#include "connect.h"
#include "measure.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- the two sides ----------------------------------------------------------- */

struct service {
	const struct options *o;
	struct group group;
};

static void serve_client(void *arg)
{
	struct service *s = arg;

	connect_accept(&s->group, s->o->threads, s->o->endpoints, s->o->once_seconds);
	group_run(&s->group, serve, NULL);
	connect_end(&s->group);
}

static void print_service(const struct options *o, const struct adapter *a)
{
	struct sockaddr_storage own;
	char address[ADDRESS_TEXT];

	adapter_address(a, &own);
	printf("serving on %s, address %s, port %llu\n", o->device,
	       address_text((struct sockaddr *)&own, address), (unsigned long long)o->port);
	fflush(stdout);
}

/* Serves clients. If a client fails, or a peer is not datperf, prints one line and serves the next client.
 * Writes the
 * connection qualifier to `ready_fd` when a client may connect, unless it is -1. */
static void run_server(const struct options *o, int ready_fd)
{
	static struct service s;
	DAT_CONN_QUAL port;

	s.o = o;
	cli_on_failure(group_has_failed);
	group_open(&s.group, o->device, o->memory, o->srq);
	port = adapter_listen(&s.group.adapter, o->port);
	if (ready_fd < 0)
		print_service(o, &s.group.adapter);
	else if (write(ready_fd, &port, sizeof port) != sizeof port)
		fail("the other process has gone");
	if (o->once)
		serve_client(&s);
	while (!o->once)
		if (!cli_attempt(serve_client, &s))
			connect_drop(&s.group);
	group_close(&s.group);
}

/* --- the order of the measurements ------------------------------------------- */

static volatile sig_atomic_t interrupted;

/* The first signal ends the run after the current line. A second signal ends it at once. */
static void on_interrupt(int signal_number)
{
	interrupted = 1;
	signal(signal_number, SIG_DFL);
}

static const size_t bandwidth_sizes[] = {
	1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20
};
enum { BANDWIDTH_SIZES = sizeof bandwidth_sizes / sizeof *bandwidth_sizes };

/* The sizes of latencies in a chart. A table has one size. */
static const size_t latency_sizes[] = { 8, 32, 128, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10 };
enum { LATENCY_SIZES = sizeof latency_sizes / sizeof *latency_sizes };

static struct setting setting_of(const struct options *o, enum test test, size_t size)
{
	return (struct setting){ .test = test,
				 .size = size,
				 .seconds = o->seconds,
				 .rounds = o->rounds,
				 .wake = o->wake,
				 .depth = o->depth,
				 .both_ways = o->both_ways && tests[test].kind == KIND_BANDWIDTH,
				 .port = o->port };
}

static void run_one(struct group *g, const struct options *o, struct setting s)
{
	struct comparison c = { 0 };
	struct result r;

	report_progress(&s);
	if (o->compare)
		c = compare(g, &s);
	r = measure(g, &s);
	report_result(&s, &r, &c, o->histogram && tests[s.test].kind != KIND_BANDWIDTH);
}

/* The default sizes of a bandwidth of datagrams: these, and the largest datagram. */
static const size_t datagram_sizes[] = { 64, 256, 1 << 10, 4 << 10 };
enum { DATAGRAM_SIZES = sizeof datagram_sizes / sizeof *datagram_sizes };

static int find_datagram_sizes(size_t sizes[DATAGRAM_SIZES + 1], size_t limit)
{
	int count = 0;

	while (count < DATAGRAM_SIZES && datagram_sizes[count] < limit) {
		sizes[count] = datagram_sizes[count];
		count++;
	}
	sizes[count] = limit;
	return count + 1;
}

/* Returns the most bytes of a transfer: the targets of both sides have room for no more, or a datagram. */
static size_t limit_of(const struct group *g, enum test test)
{
	return tests[test].rdma ? link_target_size(&g->links[0]) :
	       tests[test].datagrams ? g->links[0].datagrams.limit : SIZE_MAX;
}

static bool has_room(const struct group *g, enum test test, size_t size)
{
	return size <= limit_of(g, test);
}

/* Returns NULL, or the reason why a test cannot be made with these options. */
static const char *reason_to_skip(const struct group *g, const struct options *o, enum test test)
{
	if (test_missing(&g->adapter, test))
		return test_missing(&g->adapter, test);
	if (tests[test].polls_memory && o->wake != WAKE_POLL)
		return "its target polls memory: there is nothing to wait for";
	if (tests[test].datagrams && tests[test].kind == KIND_BANDWIDTH && o->both_ways)
		return "datagrams are counted in one direction only";
	return NULL;
}

/* Runs one test, in each of its sizes. */
static void run_sizes(struct group *g, const struct options *o, enum test test, const struct sockaddr *to)
{
	const struct test_info *info = &tests[test];
	const size_t one = info->fixed_size ? info->fixed_size : 8, *sizes = &one;
	size_t of_datagrams[DATAGRAM_SIZES + 1];
	bool left_out = false;
	int count = 1;

	if (!info->fixed_size && o->size_count)
		sizes = o->sizes, count = o->size_count;
	else if (info->datagrams && info->kind == KIND_BANDWIDTH)
		sizes = of_datagrams, count = find_datagram_sizes(of_datagrams, limit_of(g, test));
	else if (info->kind == KIND_BANDWIDTH && o->bandwidth_size)
		sizes = &o->bandwidth_size;
	else if (info->kind == KIND_BANDWIDTH)
		sizes = bandwidth_sizes, count = BANDWIDTH_SIZES;
	else if (o->plot && !info->fixed_size)
		sizes = latency_sizes, count = LATENCY_SIZES;
	for (int i = 0; i < count && !interrupted; i++) {
		struct setting s = setting_of(o, test, sizes[i]);

		s.to = to;
		if (has_room(g, test, sizes[i]))
			run_one(g, o, s);
		else
			left_out = true;
	}
	if (left_out)
		report_larger_left_out(test, limit_of(g, test));
}

static void run_test(struct group *g, const struct options *o, enum test test, const struct sockaddr *to)
{
	const char *why = reason_to_skip(g, o, test);

	if (!why && tests[test].datagrams && !measure_open_datagrams(g, to, o->port))
		why = "the server's interface adapter has no datagrams";
	if (why) {
		report_skipped(test, why);
		return;
	}
	run_sizes(g, o, test, to);
	if (tests[test].datagrams)
		measure_close_datagrams(g);
}

/* What tells whether the limits are kept, if no option selects more: the latency of a small message, the bandwidth of
 * large ones. */
static void run_for_limits(struct group *g, const struct options *o)
{
	enum test bandwidth = test_missing(&g->adapter, TEST_WRITE_BW) ? TEST_SEND_BW : TEST_WRITE_BW;
	size_t large = has_room(g, bandwidth, LINK_BLOCK) ? LINK_BLOCK : link_target_size(&g->links[0]);

	if (o->limits.latency > 0)
		run_one(g, o, setting_of(o, TEST_SEND_LAT, 8));
	if (o->limits.bandwidth > 0 && !interrupted)
		run_one(g, o, setting_of(o, bandwidth, large));
}

/* Prints the overview, which is the output if no option selects another: two latencies, and bandwidths side
 * by side. */
static void print_overview(struct group *g, const struct options *o)
{
	static const enum test latencies[] = { TEST_SEND_LAT, TEST_WRITE_LAT };

	if (has_room(g, TEST_WRITE_BW, LINK_BLOCK))
		printf("data checked: send, RDMA write and RDMA read, 1 byte to 1 MiB\n\n");
	else
		printf("data checked: send, 1 byte to 1 MiB; RDMA write and RDMA read to %s, for which both sides have "
		       "device memory\n\n", size_text(link_target_size(&g->links[0])));
	fflush(stdout);
	printf("latency of 8 bytes, polling      least    median      99 %%\n");
	for (int i = 0; i < 2 && !interrupted; i++) {
		struct setting s = setting_of(o, latencies[i], 8);
		struct result r;

		report_progress(&s);
		r = measure(g, &s);
		report_end_progress();
		printf("  %-24s %8.2f  %8.2f  %8.2f  us%s\n", tests[s.test].title, r.latency.min, r.latency.median,
		       r.latency.p99, report_mark(&r));
		fflush(stdout);
	}
	printf("\nbandwidth              RDMA write                  send\n");
	for (int i = 0; i < BANDWIDTH_SIZES && !interrupted; i++) {
		struct setting write = setting_of(o, TEST_WRITE_BW, bandwidth_sizes[i]);
		struct setting send = setting_of(o, TEST_SEND_BW, bandwidth_sizes[i]);
		struct result w = { 0 }, s;
		char writes[64] = "       -";

		if (has_room(g, TEST_WRITE_BW, write.size)) {
			report_progress(&write);
			w = measure(g, &write);
			snprintf(writes, sizeof writes, "%8.*f %s %8.0f/s", report_decimals(), report_rate(w.bytes),
				 report_rate_name(), w.messages);
		}
		report_progress(&send);
		s = measure(g, &send);
		report_end_progress();
		printf("  %8s  %-24s  %8.*f %s %8.0f/s%s\n", size_text(write.size), writes, report_decimals(),
		       report_rate(s.bytes), report_rate_name(), s.messages, report_mark(w.shared ? &w : &s));
		fflush(stdout);
	}
	if (g->links[0].shared && !strcmp(g->carrier, "memory"))
		printf("\nThe writes go to shared memory. They stay in the writer's cache, and sends are copied.\n"
		       "Compare with --private.\n");
}

/* Returns whether an option selects tests, or how they are made or shown. */
static bool selects(const struct options *o)
{
	bool any = o->size_count || o->rounds || o->wake || o->histogram || o->compare || o->plot || o->both_ways ||
		   o->every > 0 || o->depth != LINK_DEPTH || o->format != FORMAT_TABLE;

	for (int i = 0; i < TESTS; i++)
		any |= o->tests[i];
	return any;
}

/* The tests if no option selects any. --every has few lines in a round; --both-ways is about bandwidth. */
static void select_usual_tests(struct options *o)
{
	bool latency = !o->both_ways;

	o->tests[TEST_SEND_LAT] = latency;
	o->tests[TEST_WRITE_LAT] = latency && !(o->every > 0);
	o->tests[TEST_SEND_BW] = latency && !(o->every > 0);
	o->tests[TEST_WRITE_BW] = true;
	if (o->every > 0 && !o->size_count)
		o->bandwidth_size = LINK_BLOCK;
}

/* Sleeps until now() is `end`, or an interruption. */
static void sleep_until(double end)
{
	while (!interrupted && now() < end) {
		double rest = end - now(), most = 0.2;	/* seconds; a signal before nanosleep() is seen after that */
		struct timespec time = { .tv_nsec = (long)((rest < most ? rest : most) * 1e9) };

		if (rest > 0)
			nanosleep(&time, NULL);
	}
}

static void run_tests(struct group *g, struct options o, const struct sockaddr *to)
{
	check_data(g);
	if (o.format == FORMAT_LIMITS) {
		run_for_limits(g, &o);
		return;
	}
	if (!selects(&o)) {
		print_overview(g, &o);
		return;
	}
	if (!memchr(o.tests, true, sizeof o.tests))
		select_usual_tests(&o);
	do {
		double start = now();

		for (int i = 0; i < TESTS && !interrupted; i++)
			if (o.tests[i])
				run_test(g, &o, i, to);
		sleep_until(start + o.every);
	} while (o.every > 0 && !interrupted);
}

/* --- the client, and --fork ------------------------------------------------------ */

enum { INTERRUPTED = 128 + SIGINT };	/* exit status, as of a program that the signal ends */

static pid_t server_pid;
static int client_status;

static void end_server(void)
{
	if (server_pid > 0)
		kill(server_pid, SIGKILL);
}

/* Waits for the serving process. Returns whether it failed; it has printed the reason then. */
static bool server_failed(void)
{
	int status = 0;

	while (server_pid > 0 && waitpid(server_pid, &status, 0) < 0)
		;
	server_pid = 0;
	if (WIFSIGNALED(status))
		fprintf(stderr, "datperf: the serving process was ended by signal %d\n",
			WTERMSIG(status));
	return status != 0;
}

/* Returns whether a failure was reported already. If the server has failed, it has printed a line, and the
 * failure of the client is only a consequence. */
static bool failure_is_known(void)
{
	siginfo_t info = { .si_pid = 0 };

	if (group_has_failed())
		return true;
	report_end_progress();
	if (server_pid <= 0 ||
	    waitid(P_PID, (id_t)server_pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return false;
	return server_failed();
}

/* Stores what carries the data of the connections: "memory", "tcp, MTU 1500" or "rdma, MTU 1024". */
static void find_carrier(struct group *g)
{
	const struct adapter *a = &g->adapter;

	if (a->is_rdma && a->mtu)
		snprintf(g->carrier, sizeof g->carrier, "rdma, MTU %u", a->mtu);
	else if (a->is_rdma)
		snprintf(g->carrier, sizeof g->carrier, "rdma");
#ifdef DATPERF_CARRIER
	else
		carrier_find(g->carrier, sizeof g->carrier);
#endif
}

static void run_client(const struct options *o)
{
	static struct group g;
	struct sockaddr_storage to;
	char address[ADDRESS_TEXT];

	cli_on_failure(failure_is_known);
	if (o->plot)
		plot_open(o->plot);
	group_open(&g, o->device, o->memory, o->srq);
	group_shape(&g, o->block, o->most);
	if (o->server.host)
		resolve_for(g.adapter.ia, o->server.host, &to);
	else
		adapter_address(&g.adapter, &to);
	connect_to(&g, (struct sockaddr *)&to, o->port, o->threads ? o->threads : 1,
		   o->endpoints ? o->endpoints : 1);
	find_carrier(&g);
	signal(SIGINT, on_interrupt);
	report_use(o->gigabits, o->every > 0, o->tests[TEST_UD_LAT] || o->tests[TEST_UD_BW]);
	report_begin(o->format, &g, address_text((struct sockaddr *)&to, address), o->compare,
		     o->compare ? compare_begin(&g.adapter) : NULL);
	run_tests(&g, *o, (struct sockaddr *)&to);
	report_end(interrupted, &o->limits);
	end_service(&g);
	connect_end(&g);
	group_close(&g);
	client_status = o->plot && !plot_close() ? CLI_FAILURE : interrupted ? INTERRUPTED :
			!limits_kept(&o->limits) ? CLI_OUTSIDE : 0;
}

/* The serving process of --fork ends with the client, however the client ends: by SIGKILL, or by SIGPIPE
 * while it prints. */
static void end_with_client(pid_t client)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != client)	/* the client ended before prctl() */
		_exit(CLI_FAILURE);
}

static void run_both(struct options o)
{
	pid_t client = getpid();
	int ready[2];
	DAT_CONN_QUAL port;

	o.once = true;
	if (pipe(ready))
		fail("pipe: %m");
	server_pid = fork();
	if (server_pid < 0)
		fail("fork: %m");
	if (server_pid == 0) {
		signal(SIGINT, SIG_IGN); /* the client ends the run */
		end_with_client(client);
		close(ready[0]);
		run_server(&o, ready[1]);
		exit(0);
	}
	close(ready[1]);
	atexit(end_server);
	if (read(ready[0], &port, sizeof port) == sizeof port) {
		o.port = port;
		run_client(&o);
	}
	if (server_failed())
		exit(CLI_FAILURE);
}

/* Measures each pair of several hosts. The hosts have datperf in their path, or where this one was called. */
static void run_hosts(const struct options *o, const char *called)
{
	static struct matrix m;
	const char *program = strchr(called, '/') ? called : "datperf";
	static struct whole_file file;
	bool good;

	if (o->plot)
		whole_file_find(&file, "--plot", o->plot);
	good = hosts_measure(&o->hosts, program, o->device, o->port, o->seconds, &m);
	if (o->format == FORMAT_JSON)
		matrix_print_json(&m, &o->limits);
	else
		matrix_print(&m, &o->limits);
	if (o->plot)
		matrix_draw(&m, &file);
	client_status = !good ? CLI_FAILURE : !matrix_keeps(&m, &o->limits) ? CLI_OUTSIDE : 0;
}

int main(int argc, char **argv)
{
	struct options o;

	cli_init("datperf", options_usage);
	messages_init();
	o = options_read(argc, argv);
	if (limits_given(&o.limits) && !selects(&o))
		o.format = FORMAT_LIMITS;
	if (o.hosts.count)
		run_hosts(&o, argv[0]);
	else if (o.both)
		run_both(o);
	else if (o.server.host)
		run_client(&o);
	else
		run_server(&o, -1);
	cli_finish_with(client_status);
}
