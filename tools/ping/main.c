/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - datping: the command line. Its option letters are those of rping. See datping(1). */
#include "options.h"
#include "../call.h"
#include "../cli.h"
#include "../version.h"
#include "../messages.h"
#include "message.h"
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

static const char usage_text[] =
	"usage: datping -s [-a ADDRESS] [-p PORT] [-P] [OPTIONS]\n"
	"       datping -c -a ADDRESS [-p PORT] [-C COUNT] [-S SIZE] [OPTIONS]\n"
	"\n"
	"  -s, --server           wait for a client: a datping or rping -c\n"
	"  -c, --client           connect to a server: a datping or rping -s\n"
	"  -D, --device IA        adapter in dat.conf, or a network device like eth0\n"
	"  -a, --address ADDRESS  of the server, or ADDRESS:PORT\n"
	"  -p, --port PORT        of the server (default 7174)\n"
	"  -P, --persistent       serve many clients, at the same time too\n"
	"  -C, --count COUNT      rounds (default: endless)\n"
	"  -S, --size SIZE        bytes of data, 23 to 65535 (default 100)\n"
	"  -V, --verify           compare every byte that comes back\n"
	"  -v, --verbose          print the data\n"
	"  -d, --debug            print each step on standard error\n"
	"  -w, --deadline SECONDS end after so long\n"
	"      --max-rtt TIME     fail (3) if the mean round trip is above it, like 50us\n"
	"      --json             results for programs\n"
	"  -h, --help             this text\n"
	"      --version          the version\n";

void debug(const struct options *o, const char *fmt, ...)
{
	va_list args;

	if (!o->debug)
		return;
	va_start(args, fmt);
	fprintf(stderr, "%.6f ", now());
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

static void check(const struct options *o)
{
	if (o->client == o->server)
		usage_error("either -s, a server, or -c, a client, expected");
	if (o->show && o->json)
		usage_error("-v and --json exclude each other: the data would stand among the results");
	if (o->client && !o->address)
		usage_error("-a, the address of the server, is missing");
	if (o->client && o->persistent)
		usage_error("-P found, which is for servers");
	if (o->server && o->max_rtt > 0)
		usage_error("--max-rtt found, which is for clients");
}

static struct options parse(int argc, char **argv)
{
	enum { JSON = 256, MAX_RTT, VERSION, MAX_PORT = 65535 };
	static const struct option names[] = {
		{ "server", no_argument, NULL, 's' },
		{ "client", no_argument, NULL, 'c' },
		{ "device", required_argument, NULL, 'D' },
		{ "address", required_argument, NULL, 'a' },
		{ "port", required_argument, NULL, 'p' },
		{ "persistent", no_argument, NULL, 'P' },
		{ "count", required_argument, NULL, 'C' },
		{ "size", required_argument, NULL, 'S' },
		{ "verify", no_argument, NULL, 'V' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "debug", no_argument, NULL, 'd' },
		{ "deadline", required_argument, NULL, 'w' },
		{ "max-rtt", required_argument, NULL, MAX_RTT },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, VERSION },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .size = DATA_USUAL };
	struct cli_server server = { .host = NULL };
	unsigned long port = 0;
	int c;

	while ((c = getopt_long(argc, argv, ":scD:a:p:PC:S:Vvdw:h", names, NULL)) != -1) {
		switch (c) {
		case 's': o.server = true; break;
		case 'c': o.client = true; break;
		case 'D': o.device = optarg; break;
		case 'a': server = cli_server("--address", optarg, MAX_PORT); break;
		case 'p': port = cli_number("--port", optarg, 1, MAX_PORT); break;
		case 'P': o.persistent = true; break;
		case 'C': o.count = cli_number("--count", optarg, 1, ULONG_MAX); break;
		case 'S': o.size = cli_number("--size", optarg, DATA_MIN, DATA_MAX); break;
		case 'V': o.verify = true; break;
		case 'v': o.show = true; break;
		case 'd': o.debug = true; break;
		case 'w': o.seconds = cli_positive("--deadline", optarg, 1e6); break;
		case MAX_RTT: o.max_rtt = cli_microseconds("--max-rtt", optarg); break;
		case JSON: o.json = true; break;
		case 'h': cli_print_help(); break;
		case VERSION: version_print(); break;
		default: usage_error_option(argv, names, c);
		}
	}
	if (optind != argc)
		usage_error("\"%s\" found, only options expected", argv[optind]);
	o.address = server.host;
	o.port = cli_server_port(&server, "-p", port, RPING_PORT);
	check(&o);
	return o;
}

int main(int argc, char **argv)
{
	struct options o;

	cli_init("datping", usage_text);
	messages_init();
	o = parse(argc, argv);
	cli_finish_with(o.client ? run_client(&o) : run_server(&o));
}
