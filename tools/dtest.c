/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dtest.c - a smoke test of two processes over DAT: options, and the two sides from the first call to
 * the last. See dtest(1). */
#include "call.h"
#include "cli.h"
#include "version.h"
#include "messages.h"
#include "dtest/phases.h"
#include "dtest/rendezvous.h"
#include "dtest/tester.h"
#include "ia_choice.h"
#include "names.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PORT = 65535 };
enum { NEXT_CLIENT_MS = 100 };	/* between two checks for a new client, while a request is awaited */

static const char usage_text[] =
	"usage: dtest [-P IA] [OPTIONS]                 serve one client\n"
	"       dtest [-P IA] -h HOST [OPTIONS]         test against the server on HOST\n"
	"\n"
	"  -P IA     interface adapter in dat.conf: the server's; of a server the only one\n"
	"  -h HOST   name or address of the server\n"
	"  -s        serve (the default without -h)\n"
	"  -b SIZE   bytes of an operation (4194304); with -a and -i the largest\n"
	"  -B COUNT  operations of a burst (1000)\n"
	"  -S COUNT  each COUNT-th RDMA write is signaled (10)\n"
	"  -u        the client alone writes\n"
	"  -w        RDMA writes only, the last one with immediate data if the IA has it\n"
	"  -W        RDMA writes to and fro only, at least 1000\n"
	"  -D        with -W: check the data\n"
	"  -a        -W with all sizes around powers of two\n"
	"  -i STEP   -W with all sizes around multiples of STEP\n"
	"  -c        wait for completions with a CNO\n"
	"  -p        poll for completions\n"
	"  -d SEC    wait so long before the server accepts\n"
	"  -t        print how long setting up and taking down takes\n"
	"  -v        print more\n"
	"  -U, --help, --version\n"
	"Both sides need the same -b, -B, -u, -w, -W, -D, -a and -i.\n";

static struct dtest_options parse(int argc, char **argv)
{
	enum { HELP = 256, VERSION };
	static const struct option names[] = {
		{ "help", no_argument, NULL, HELP },
		{ "version", no_argument, NULL, VERSION },
		{ NULL, 0, NULL, 0 },
	};
	struct dtest_options o = { .length = 4 << 20, .burst = 1000, .signal_rate = 10 };
	struct cli_server server = { .host = NULL };
	bool serve = false;
	int c;

	while ((c = getopt_long(argc, argv, ":P:h:sb:B:S:uwWDai:cpd:tvU", names, NULL)) != -1) {
		switch (c) {
		case 'P': o.ia = optarg; break;
		case 'h': server = cli_server("-h", optarg, MAX_PORT); break;
		case 's': serve = true; break;
		case 'b': o.length = cli_number("-b", optarg, 1, 1 << 30); break;
		case 'B': o.burst = (unsigned)cli_number("-B", optarg, 1, 1000000000); break;
		case 'S': o.signal_rate = (unsigned)cli_number("-S", optarg, 1, 10000); break;
		case 'u': o.one_way = true; break;
		case 'w': o.write_only = true; break;
		case 'W': o.write_pingpong = true; break;
		case 'D': o.validate = true; break;
		case 'a': o.write_pingpong = o.all_sizes = true; break;
		case 'i': o.step = (unsigned)cli_number("-i", optarg, 1, 1 << 30);
			  o.write_pingpong = o.all_sizes = true; break;
		case 'c': o.cno = true; break;
		case 'p': o.poll = true; break;
		case 'd': o.delay = (unsigned)cli_number("-d", optarg, 0, 3600); break;
		case 't': o.times = true; break;
		case 'v': o.verbose = true; break;
		case 'U': case HELP: cli_print_help(); break;
		case VERSION: version_print(); break;
		default: usage_error_option(argv, names, c);
		}
	}
	if (optind != argc && o.validate)
		usage_error("\"%s\" found, only options expected: -P names the adapter, -D checks the data of -W",
			    argv[optind]);
	if (optind != argc)
		usage_error("\"%s\" found, only options expected", argv[optind]);
	o.host = server.host;
	if (server.port && server.port != RENDEZVOUS_PORT && server.port != DTEST_QUALIFIER)
		usage_error("-h: port %lu found, but a dtest server has the ports %d and %d: a host alone expected",
			    server.port, RENDEZVOUS_PORT, DTEST_QUALIFIER);
	if (serve && o.host)
		usage_error("-s and -h: a server or a client, not both");
	if (o.write_only && o.write_pingpong)
		usage_error("-w and -W: one of the two");
	if (o.ia || !o.host)
		o.ia = ia_choose("-P", o.ia);
	if (o.validate && !o.write_pingpong)
		cli_warn("-D has no effect without -W, -a or -i");
	return o;
}

/* Leaves out the last row for a server: it waits for the client, so it does not measure how long connecting
 * takes. */
static void print_times(const struct dtest_times *times, bool serves)
{
	const struct { const char *name; double seconds; } rows[] = {
		{ "open", times->open }, { "close", times->close },
		{ "PZ create", times->pz_create }, { "PZ free", times->pz_free },
		{ "LMR create", times->lmr_create }, { "LMR free", times->lmr_free },
		{ "EVD create", times->evd_create }, { "EVD free", times->evd_free },
		{ "EP create", times->ep_create }, { "EP free", times->ep_free },
		{ "connect", times->connect },
	};
	size_t count = sizeof rows / sizeof *rows - serves;

	for (size_t i = 0; i < count; i++)
		printf("%ld: %-12s %10.2f usec\n", (long)getpid(), rows[i].name, rows[i].seconds * 1e6);
}

static void serve(struct tester *t, const struct dtest_options *o)
{
	struct sockaddr_storage own;
	char address[ADDRESS_TEXT];
	int listener;

	tester_open(t, o);
	tester_listen(t);
	tester_address(t, &own);
	listener = rendezvous_listen();
	printf("%ld Running as server - %s, address %s, port %d\n", (long)getpid(), o->ia,
	       address_text((struct sockaddr *)&own, address), DTEST_QUALIFIER);
	fflush(stdout);
	rendezvous_serve(listener, -1, o->ia, (struct sockaddr *)&own);
	while (!tester_requested(t, NEXT_CLIENT_MS))	/* the first may have ended before it connects */
		rendezvous_serve(listener, 0, o->ia, (struct sockaddr *)&own);
	close(listener);
	tester_accept(t);
}

static void connect_to_server(struct tester *t, struct dtest_options *o)
{
	static char ia[RENDEZVOUS_TEXT];
	struct sockaddr_storage to;

	resolve(o->host, &to);
	rendezvous_ask((struct sockaddr *)&to, o->host, ia);
	if (!o->ia)
		o->ia = ia;
	printf("%ld Running as client - %s, server %s, port %d\n", (long)getpid(), o->ia, o->host, DTEST_QUALIFIER);
	fflush(stdout);
	tester_open(t, o);
	resolve_for(t->ia, o->host, &to);
	tester_connect(t, (struct sockaddr *)&to);
}

/* Scripts look for this line. A failure before the connection is established prints only its own line, since
 * this hook is not set yet. */
static bool print_failed(void)
{
	printf("\n%ld: DAPL Test Complete. FAILED\n\n", (long)getpid());
	fflush(stdout);
	return false;
}

int main(int argc, char **argv)
{
	struct dtest_options o;
	struct tester t;

	cli_init("dtest", usage_text);
	messages_init();
	o = parse(argc, argv);
	if (o.host)
		connect_to_server(&t, &o);
	else
		serve(&t, &o);
	cli_on_failure(print_failed);
	printf("%ld CONNECTED!\n", (long)getpid());
	phases_run(&t);
	tester_disconnect(&t);
	tester_close(&t);
	if (o.times)
		print_times(&t.times, !o.host);
	printf("\n%ld: DAPL Test Complete. PASSED\n\n", (long)getpid());
	cli_finish();
}
