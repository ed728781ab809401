/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - datperf: options, the two processes of --fork, the order of the measurements. See
 * datperf(1). */
#include "../cli.h"
#include "../names.h"
#include "baseline.h"
#include "measure.h"
#include "report.h"
#include <getopt.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZES = 21 }; /* at most: all powers of two up to LINK_BLOCK */

struct options {
	const char *device, *server;
	DAT_CONN_QUAL port;
	double seconds;  /* a line of a table takes about so long */
	uint32_t rounds; /* of a measurement; 0: as many as take so long */
	bool both, once, histogram, compare;
	enum memory_kind memory;
	bool tests[TESTS]; /* none: the overview */
	size_t sizes[SIZES];
	int size_count; /* 0: those that suit the test */
	enum wake wake;
	enum format format;
};

static const char usage_text[] =
	"usage: datperf -D IA                     serve, until interrupted\n"
	"       datperf -D IA -s ADDRESS          measure, against a datperf that serves\n"
	"       datperf -D IA --fork              both, on this host\n"
	"\n"
	"  -D, --device IA        interface adapter, a name in dat.conf\n"
	"  -s, --server ADDRESS   where the other datperf serves\n"
	"  -p, --port N           connection qualifier (default 45290)\n"
	"  -T, --test LIST        send-lat write-lat immed-lat read-lat atomic-lat\n"
	"                         send-bw write-bw read-bw connect, by commas; lat, bw, all\n"
	"  -S, --size LIST        bytes of a transfer: 8,4K,1M or 1K-1M (up to 1M)\n"
	"  -t, --time SECONDS     for each line (default 0.5)\n"
	"  -n, --rounds N         for each line, instead of a time\n"
	"  -w, --wake HOW         learn of completions: poll, wait or cno (default poll)\n"
	"      --histogram        the distribution of latencies, too\n"
	"      --compare          TCP and memcpy of this host, too\n"
	"      --csv, --json      output for programs\n"
	"      --once             serve one client, then end\n"
	"      --private          memory of this process alone (see datperf(1))\n"
	"      --dm               memory of the device (see dat_dm(7))\n"
	"  -h, --help             this text\n"
	"      --version          the version\n";

/* --- options ----------------------------------------------------------------- */

/* Tests that a word of --test stands for. */
static bool stands_for(const char *word, enum test test)
{
	if (!strcmp(word, "all") || !strcmp(word, tests[test].name))
		return true;
	return (!strcmp(word, "lat") && tests[test].kind == KIND_LATENCY) ||
	       (!strcmp(word, "bw") && tests[test].kind == KIND_BANDWIDTH);
}

static void read_tests(struct options *o, const char *list)
{
	char *words = strdup(list), *rest = words, *word;

	while (words && (word = strsep(&rest, ","))) {
		bool found = false;

		for (int i = 0; i < TESTS; i++)
			if (stands_for(word, i))
				found = o->tests[i] = true;
		if (!found)
			usage_error("--test: \"%s\" found, a test, lat, bw or all expected", word);
	}
	free(words);
}

/* A number of bytes, with K or M; the text goes on at *end. */
static size_t read_size(const char *list, const char *text, char **end)
{
	unsigned long n = *text >= '0' && *text <= '9' ? strtoul(text, end, 10) : 0;
	unsigned shift = 0;

	if (n && (**end == 'K' || **end == 'k'))
		shift = 10;
	else if (n && (**end == 'M' || **end == 'm'))
		shift = 20;
	if (!n || n > LINK_BLOCK || n << shift > LINK_BLOCK)
		usage_error("--size: \"%s\" found, sizes from 1 to 1M expected", list);
	*end += shift != 0;
	return n << shift;
}

static void add_size(struct options *o, size_t size)
{
	if (o->size_count == SIZES)
		usage_error("--size: more than %d sizes", SIZES);
	o->sizes[o->size_count++] = size;
}

static void read_sizes(struct options *o, const char *list)
{
	char *at = (char *)list;

	for (;; at++) {
		size_t from = read_size(list, at, &at);

		add_size(o, from);
		if (*at == '-')
			for (size_t to = read_size(list, at + 1, &at); from * 2 <= to; from *= 2)
				add_size(o, from * 2);
		if (!*at)
			return;
		if (*at != ',')
			usage_error("--size: \"%s\" found, sizes from 1 to 1M expected", list);
	}
}

static enum wake read_wake(const char *text)
{
	static const char *const names[] = { "poll", "wait", "cno" };

	for (int i = 0; i <= WAKE_CNO; i++)
		if (!strcmp(text, names[i]))
			return i;
	usage_error("--wake: \"%s\" found, poll, wait or cno expected", text);
}

static struct options parse(int argc, char **argv)
{
	enum { FORK = 256, ONCE, JSON, CSV, PRIVATE, DEVICE_MEMORY, HISTOGRAM, COMPARE, VERSION };
	static const struct option names[] = {
		{ "device", required_argument, NULL, 'D' },
		{ "server", required_argument, NULL, 's' },
		{ "port", required_argument, NULL, 'p' },
		{ "time", required_argument, NULL, 't' },
		{ "test", required_argument, NULL, 'T' },
		{ "size", required_argument, NULL, 'S' },
		{ "rounds", required_argument, NULL, 'n' },
		{ "wake", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ "fork", no_argument, NULL, FORK },
		{ "once", no_argument, NULL, ONCE },
		{ "json", no_argument, NULL, JSON },
		{ "csv", no_argument, NULL, CSV },
		{ "private", no_argument, NULL, PRIVATE },
		{ "dm", no_argument, NULL, DEVICE_MEMORY },
		{ "histogram", no_argument, NULL, HISTOGRAM },
		{ "compare", no_argument, NULL, COMPARE },
		{ "version", no_argument, NULL, VERSION },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .port = 45290, .seconds = 0.5 };
	int c;

	while ((c = getopt_long(argc, argv, ":D:s:p:t:T:S:n:w:h", names, NULL)) != -1) {
		switch (c) {
		case 'D': o.device = optarg; break;
		case 's': o.server = optarg; break;
		case 'p': o.port = cli_number("--port", optarg, 1, ULONG_MAX); break;
		case 't': o.seconds = cli_positive("--time", optarg, 3600); break;
		case 'T': read_tests(&o, optarg); break;
		case 'S': read_sizes(&o, optarg); break;
		case 'n': o.rounds = (uint32_t)cli_number("--rounds", optarg, 1, 100000000); break;
		case 'w': o.wake = read_wake(optarg); break;
		case FORK: o.both = true; break;
		case ONCE: o.once = true; break;
		case JSON: o.format = FORMAT_JSON; break;
		case CSV: o.format = FORMAT_CSV; break;
		case PRIVATE: o.memory = MEMORY_PRIVATE; break;
		case DEVICE_MEMORY: o.memory = MEMORY_DEVICE; break;
		case HISTOGRAM: o.histogram = true; break;
		case COMPARE: o.compare = true; break;
		case 'h': cli_print_help(); break;
		case VERSION: cli_print_version(); break;
		default: usage_error_option(argv, c);
		}
	}
	if (optind != argc)
		usage_error("\"%s\" found, only options expected", argv[optind]);
	if (!o.device)
		usage_error("-D, the interface adapter, is missing");
	return o;
}

/* --- addresses --------------------------------------------------------------- */

static void resolve(const char *name, struct sockaddr_storage *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int rc = getaddrinfo(name, NULL, &hints, &found);

	if (rc)
		fail("%s: %s", name, gai_strerror(rc));
	memset(address, 0, sizeof *address);
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

/* --- the two sides ----------------------------------------------------------- */

static void serve_client(void *arg)
{
	struct link *l = arg;

	link_accept(l);
	serve(l);
	link_disconnect(l);
}

/* A client that fails, or a peer that is no datperf, costs one line; the next one is served.
 * ready_fd: gets one byte when a client may connect, or -1. */
static void run_server(const struct options *o, int ready_fd)
{
	struct sockaddr_storage own;
	char address[ADDRESS_TEXT];
	struct link l;

	link_open(&l, o->device, o->memory);
	link_listen(&l, o->port);
	link_address(&l, &own);
	if (ready_fd >= 0) {
		if (write(ready_fd, "", 1) != 1)
			fail("the other process has gone");
	} else {
		printf("serving on %s, address %s, port %llu\n", o->device,
		       address_text((struct sockaddr *)&own, address),
		       (unsigned long long)o->port);
		fflush(stdout);
	}
	if (o->once)
		serve_client(&l);
	while (!o->once)
		if (!cli_attempt(serve_client, &l))
			link_drop(&l);
	link_close(&l);
}

/* --- the order of the measurements ------------------------------------------- */

static volatile sig_atomic_t interrupted;

/* The first signal ends the run after the present line, a second one at once. */
static void on_interrupt(int signal_number)
{
	interrupted = 1;
	signal(signal_number, SIG_DFL);
}

static const size_t bandwidth_sizes[] = {
	1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20
};
enum { BANDWIDTH_SIZES = sizeof bandwidth_sizes / sizeof *bandwidth_sizes };

static void check_all(struct link *l)
{
	check_data(l, 1);
	check_data(l, 777);
	for (int i = 0; i < BANDWIDTH_SIZES; i++)
		check_data(l, bandwidth_sizes[i]);
}

/* On a terminal, tells what takes its time. */
static void show_progress(const struct setting *s)
{
	if (isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO))
		fprintf(stderr, "\r%-12s %-10s", tests[s->test].name, size_text(s->size));
}

static void end_progress(void)
{
	if (isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO))
		fprintf(stderr, "\r%24s\r", "");
}

static struct comparison compare(const struct options *o, const struct setting *s)
{
	struct comparison c = { 0 };

	if (!o->compare || tests[s->test].kind == KIND_CONNECT)
		return c;
	if (tests[s->test].kind == KIND_LATENCY) {
		c.tcp_us = baseline_tcp_latency(s->size, o->seconds);
	} else {
		c.tcp_bytes = baseline_tcp_bandwidth(s->size, o->seconds);
		c.memcpy_bytes = baseline_memcpy_bandwidth(s->size, o->seconds);
	}
	return c;
}

static struct setting setting_of(const struct options *o, enum test test, size_t size)
{
	return (struct setting){ .test = test,
				 .size = size,
				 .seconds = o->seconds,
				 .rounds = o->rounds,
				 .wake = o->wake,
				 .port = o->port };
}

static void run_one(struct link *l, const struct options *o, struct setting s)
{
	struct comparison c = compare(o, &s);
	struct result r;

	show_progress(&s);
	r = measure(l, &s);
	report_result(&s, &r, &c);
	if (o->histogram && tests[s.test].kind != KIND_BANDWIDTH)
		report_histogram(&r);
}

/* One test, in each of its sizes. */
static void run_test(struct link *l, const struct options *o, enum test test,
		     const struct sockaddr *to)
{
	const struct test_info *info = &tests[test];
	const size_t one = info->fixed_size ? info->fixed_size : 8, *sizes = &one;
	int count = 1;

	if (test_missing(l, test)) {
		report_skipped(test, test_missing(l, test));
		return;
	}
	if (info->polls_memory && o->wake != WAKE_POLL) {
		report_skipped(test, "its target polls memory: there is nothing to wait for");
		return;
	}
	if (!info->fixed_size && o->size_count)
		sizes = o->sizes, count = o->size_count;
	else if (info->kind == KIND_BANDWIDTH)
		sizes = bandwidth_sizes, count = BANDWIDTH_SIZES;
	for (int i = 0; i < count && !interrupted; i++) {
		struct setting s = setting_of(o, test, sizes[i]);

		s.to = to;
		run_one(l, o, s);
	}
}

/* The overview, when no test is named: two latencies, and bandwidths side by side. */
static void print_overview(struct link *l, const struct options *o)
{
	static const enum test latencies[] = { TEST_SEND_LAT, TEST_WRITE_LAT };

	printf("data checked: send, RDMA write and RDMA read, 1 byte to 1 MiB\n\n");
	fflush(stdout);
	printf("latency of 8 bytes, polling      least    median      99 %%\n");
	for (int i = 0; i < 2 && !interrupted; i++) {
		struct setting s = setting_of(o, latencies[i], 8);
		struct stats t = measure(l, &s).latency;

		printf("  %-24s %8.2f  %8.2f  %8.2f  us\n", tests[s.test].title, t.min, t.median,
		       t.p99);
		fflush(stdout);
	}
	printf("\nbandwidth              RDMA write                  send\n");
	for (int i = 0; i < BANDWIDTH_SIZES && !interrupted; i++) {
		struct setting write = setting_of(o, TEST_WRITE_BW, bandwidth_sizes[i]);
		struct setting send = setting_of(o, TEST_SEND_BW, bandwidth_sizes[i]);
		struct result w = measure(l, &write), s = measure(l, &send);

		printf("  %8s  %8.1f MB/s %8.0f/s  %8.1f MB/s %8.0f/s\n", size_text(write.size),
		       w.bytes / 1e6, w.messages, s.bytes / 1e6, s.messages);
		fflush(stdout);
	}
	if (l->shared)
		printf("\nThe writes go to shared memory. Where the adapter maps it, they stay in the\n"
		       "writer's cache, and sends are copied. Compare with --private.\n");
}

static void run_tests(struct link *l, struct options o, const struct sockaddr *to)
{
	bool any = o.size_count || o.rounds || o.wake || o.histogram || o.compare ||
		   o.format != FORMAT_TABLE;

	for (int i = 0; i < TESTS; i++)
		any |= o.tests[i];
	check_all(l);
	if (!any) {
		print_overview(l, &o);
		return;
	}
	if (!memchr(o.tests, true, sizeof o.tests))
		o.tests[TEST_SEND_LAT] = o.tests[TEST_WRITE_LAT] = o.tests[TEST_SEND_BW] =
			o.tests[TEST_WRITE_BW] = true;
	for (int i = 0; i < TESTS && !interrupted; i++)
		if (o.tests[i])
			run_test(l, &o, i, to);
	end_progress();
}

static void run_client(const struct options *o)
{
	struct sockaddr_storage to;
	char address[ADDRESS_TEXT];
	struct link l;

	link_open(&l, o->device, o->memory);
	if (o->server)
		resolve(o->server, &to);
	else
		link_address(&l, &to);
	link_connect(&l, (struct sockaddr *)&to, o->port);
	signal(SIGINT, on_interrupt);
	report_begin(o->format, o->device, address_text((struct sockaddr *)&to, address),
		     o->compare);
	run_tests(&l, *o, (struct sockaddr *)&to);
	report_end(interrupted);
	end_service(&l);
	link_disconnect(&l);
	link_close(&l);
}

/* --- --fork ------------------------------------------------------------------ */

static pid_t server_pid;

static void end_server(void)
{
	if (server_pid > 0)
		kill(server_pid, SIGKILL);
}

/* Waits for the server; true if it failed. It has printed why then. */
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

/* When the server has failed already, the client's failure is its consequence: one line is enough. */
static bool server_failed_first(void)
{
	siginfo_t info = { .si_pid = 0 };

	if (server_pid <= 0 ||
	    waitid(P_PID, (id_t)server_pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return false;
	return server_failed();
}

static void run_both(struct options o)
{
	int ready[2];
	char byte;

	o.once = true;
	if (pipe(ready))
		fail("pipe: %m");
	server_pid = fork();
	if (server_pid < 0)
		fail("fork: %m");
	if (server_pid == 0) {
		signal(SIGINT, SIG_IGN); /* the client ends the run */
		close(ready[0]);
		run_server(&o, ready[1]);
		exit(0);
	}
	close(ready[1]);
	atexit(end_server);
	cli_on_failure(server_failed_first);
	if (read(ready[0], &byte, 1) == 1)
		run_client(&o);
	if (server_failed())
		exit(CLI_FAILURE);
}

int main(int argc, char **argv)
{
	struct options o;

	cli_init("datperf", usage_text);
	o = parse(argc, argv);
	if (o.both)
		run_both(o);
	else if (o.server)
		run_client(&o);
	else
		run_server(&o, -1);
	cli_finish();
}
