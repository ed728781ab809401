/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datperf.c - latency and bandwidth between two processes over DAT: options, the
 * two processes of --fork, the tables. See datperf(1). */
#include "cli.h"
#include "measure.h"
#include "names.h"
#include <getopt.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
	const char *device, *server;
	unsigned port;
	double seconds;		/* a line of a table takes about so long */
	bool both, once, json, private;
};

static const char usage_text[] =
	"usage: datperf -D IA                     serve, until interrupted\n"
	"       datperf -D IA -s ADDRESS          measure, against a datperf that serves\n"
	"       datperf -D IA --fork              both, on this host\n"
	"\n"
	"  -D, --device IA        interface adapter, a name in dat.conf\n"
	"  -s, --server ADDRESS   where the other datperf serves; with --fork: the\n"
	"                         address to use instead of the adapter's own\n"
	"  -p, --port N           connection qualifier (default 45290)\n"
	"  -t, --time SECONDS     for each line of the tables (default 0.5)\n"
	"      --once             serve one client, then end\n"
	"      --private          memory of this process alone (see datperf(1))\n"
	"      --json             the results as JSON\n"
	"  -h, --help             this text\n"
	"      --version          the version\n";

static struct options parse(int argc, char **argv)
{
	enum { FORK = 256, ONCE, JSON, PRIVATE, VERSION };
	static const struct option names[] = {
		{ "device", required_argument, NULL, 'D' }, { "server", required_argument, NULL, 's' },
		{ "port", required_argument, NULL, 'p' },   { "time", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },	    { "fork", no_argument, NULL, FORK },
		{ "once", no_argument, NULL, ONCE },	    { "json", no_argument, NULL, JSON },
		{ "private", no_argument, NULL, PRIVATE }, { "version", no_argument, NULL, VERSION },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .port = 45290, .seconds = 0.5 };
	int c;

	while ((c = getopt_long(argc, argv, ":D:s:p:t:h", names, NULL)) != -1) {
		switch (c) {
		case 'D': o.device = optarg; break;
		case 's': o.server = optarg; break;
		case 'p': o.port = (unsigned)cli_number("--port", optarg, 1, 65535); break;
		case 't': o.seconds = cli_positive("--time", optarg, 3600); break;
		case FORK: o.both = true; break;
		case ONCE: o.once = true; break;
		case JSON: o.json = true; break;
		case PRIVATE: o.private = true; break;
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

	link_open(&l, o->device, o->private);
	link_listen(&l, o->port);
	link_address(&l, &own);
	if (ready_fd >= 0) {
		if (write(ready_fd, "", 1) != 1)
			fail("the other process has gone");
	} else {
		printf("serving on %s, address %s, port %u\n", o->device,
		       address_text((struct sockaddr *)&own, address), o->port);
		fflush(stdout);
	}
	if (o->once)
		serve_client(&l);
	while (!o->once)
		if (!cli_attempt(serve_client, &l))
			link_drop(&l);
	link_close(&l);
}

static const size_t sizes[] = { 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20 };
enum { SIZES = sizeof sizes / sizeof *sizes };

static void check_all(struct link *l)
{
	check_data(l, 1);
	check_data(l, 777);
	for (int i = 0; i < SIZES; i++)
		check_data(l, sizes[i]);
}

static const char *size_text(size_t size)
{
	static char text[32];

	if (size >= 1 << 20)
		snprintf(text, sizeof text, "%zu MiB", size >> 20);
	else
		snprintf(text, sizeof text, "%zu KiB", size >> 10);
	return text;
}

static void print_tables(struct link *l, double seconds)
{
	static const char *const names[] = { "send and receive", "RDMA write" };

	check_all(l);
	printf("data checked: send, RDMA write and RDMA read, 1 byte to 1 MiB\n\n");
	printf("latency of 8 bytes, polling      least    median      99 %%\n");
	for (int way = WAY_SEND; way <= WAY_WRITE; way++) {
		struct latency t = measure_latency(l, way, seconds);
		printf("  %-24s %8.2f  %8.2f  %8.2f  us\n", names[way], t.min, t.median, t.most);
		fflush(stdout);
	}
	printf("\nbandwidth              RDMA write                  send\n");
	for (int i = 0; i < SIZES; i++) {
		struct bandwidth w = measure_bandwidth(l, WAY_WRITE, sizes[i], seconds);
		struct bandwidth s = measure_bandwidth(l, WAY_SEND, sizes[i], seconds);
		printf("  %8s  %8.1f MB/s %8.0f/s  %8.1f MB/s %8.0f/s\n", size_text(sizes[i]),
		       w.bytes / 1e6, w.messages, s.bytes / 1e6, s.messages);
		fflush(stdout);
	}
}

static void print_json(struct link *l, double seconds)
{
	static const char *const names[] = { "send", "rdma_write" };

	check_all(l);
	printf("{ \"device\": \"%s\", \"data_checked\": true,\n  \"latency_us\": {", l->name);
	for (int way = WAY_SEND; way <= WAY_WRITE; way++) {
		struct latency t = measure_latency(l, way, seconds);
		printf("%s\n    \"%s\": { \"bytes\": 8, \"min\": %.3f, \"median\": %.3f, \"p99\": %.3f, \"rounds\": %u }",
		       way ? "," : "", names[way], t.min, t.median, t.most, t.rounds);
	}
	printf(" },\n  \"bandwidth\": [");
	for (int i = 0; i < 2 * SIZES; i++) {
		enum way way = i % 2 ? WAY_WRITE : WAY_SEND;
		struct bandwidth b = measure_bandwidth(l, way, sizes[i / 2], seconds);
		printf("%s\n    { \"operation\": \"%s\", \"bytes\": %zu, \"bytes_per_second\": %.0f, \"messages_per_second\": %.1f }",
		       i ? "," : "", names[way], sizes[i / 2], b.bytes, b.messages);
	}
	printf(" ] }\n");
}

static void run_client(const struct options *o)
{
	struct sockaddr_storage to;
	char address[ADDRESS_TEXT];
	struct link l;

	link_open(&l, o->device, o->private);
	if (o->server)
		resolve(o->server, &to);
	else
		link_address(&l, &to);
	link_connect(&l, (struct sockaddr *)&to, o->port);
	if (o->json) {
		print_json(&l, o->seconds);
	} else {
		printf("datperf: %s, connected to %s\n", o->device,
		       address_text((struct sockaddr *)&to, address));
		print_tables(&l, o->seconds);
	}
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
		fprintf(stderr, "datperf: the serving process was ended by signal %d\n", WTERMSIG(status));
	return status != 0;
}

/* When the server has failed already, the client's failure is its consequence: one line is enough. */
static bool server_failed_first(void)
{
	siginfo_t info = { .si_pid = 0 };

	if (server_pid <= 0 || waitid(P_PID, (id_t)server_pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	    !info.si_pid)
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
