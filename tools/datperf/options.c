/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.c - reads the command line (options.h). */
#include "options.h"
#include "../cli.h"
#include "../version.h"
#include "../ia_choice.h"
#include "common/nearest.h"
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_PORT = 45290 };
enum { MAX_ROUNDS = 100000000 }; /* of all threads: 800 MB of times */

const char options_usage[] =
	"usage: datperf [-D IA]              serve, until interrupted\n"
	"       datperf [-D IA] -s ADDRESS   measure, against a datperf that serves\n"
	"       datperf [-D IA] --fork       both, on this host\n"
	"       datperf [-D IA] --hosts A,B,C [--launcher ssh]   each pair of hosts\n"
	"  -D, --device IA        adapter in dat.conf, or a network device like eth0\n"
	"  -s, --server ADDRESS   where the other datperf serves, or ADDRESS:PORT\n"
	"  -p, --port N           connection qualifier (45290; with --fork a free one)\n"
	"  -T, --test LIST        send-lat write-lat immed-lat read-lat atomic-lat\n"
	"                         send-bw write-bw read-bw connect ud-lat ud-bw;\n"
	"                         or lat, bw, ud (datagrams), all\n"
	"  -S, --size LIST        bytes of a transfer: 8,4K,1M or 1K-8M (up to 256M)\n"
	"  -t, --time SECONDS     for each line (0.5); -n, --rounds N instead of a time\n"
	"  -q, --endpoints N      connections of each of --threads N (1, 1)\n"
	"  -d, --depth N          requests in flight (32); -b, --both-ways at a time\n"
	"      --srq              one SRQ for the endpoints of a thread\n"
	"  -w, --wake HOW         poll, wait or cno (poll); -c, --cpus LIST: use 0-3,8\n"
	"      --histogram        the distribution of latencies, too; not --csv\n"
	"      --compare          TCP to the server, memcpy and raw verbs here, too\n"
	"      --csv, --json      output for programs; --gbit: tables in Gbit/s\n"
	"      --plot FILE        draw latency and bandwidth over size, as SVG\n"
	"      --every SECONDS    again and again, with the time, until interrupted\n"
	"      --max-lat 5us, --min-bw 10G (bits/s)   exit status 3 beyond these limits\n"
	"      --once, --private, --dm   serve one client; not shared, device memory\n"
	"  -h, --help, --version\n";

/* Returns whether a word of --test selects this test. */
static bool stands_for(const char *word, enum test test)
{
	if (!strcmp(word, "all") || !strcmp(word, tests[test].name))
		return true;
	if (tests[test].datagrams)
		return !strcmp(word, "ud");
	return (!strcmp(word, "lat") && tests[test].kind == KIND_LATENCY) ||
	       (!strcmp(word, "bw") && tests[test].kind == KIND_BANDWIDTH);
}

/* Ends the program with the words of --test, and the one that may be meant. */
static void fail_test(const char *word) __attribute__((noreturn));
static void fail_test(const char *word)
{
	const char *words[TESTS + 4] = { "lat", "bw", "ud", "all" }, *near;
	char list[256] = "";

	for (int i = 0; i < TESTS; i++) {
		words[4 + i] = tests[i].name;
		strcat(strcat(list, tests[i].name), ", ");
	}
	near = nearest_name(word, words, TESTS + 4);
	usage_error("--test: \"%s\" found, %slat, bw, ud or all expected%s%s%s", word, list, near ? "; is " : "",
		    near ? near : "", near ? " meant?" : "");
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
			fail_test(word);
	}
	free(words);
}

static void fail_sizes(const char *list) __attribute__((noreturn));
static void fail_sizes(const char *list)
{
	usage_error("--size: \"%s\" found, sizes from 1 to 256M expected, like 8,4K,1M or 1K-1M", list);
}

/* Reads a number of bytes, perhaps with K or M. Stores the end of the number in *end. */
static size_t read_size(const char *list, const char *text, char **end)
{
	unsigned long n = *text >= '0' && *text <= '9' ? strtoul(text, end, 10) : 0;
	unsigned shift = 0;

	if (n && (**end == 'K' || **end == 'k'))
		shift = 10;
	else if (n && (**end == 'M' || **end == 'm'))
		shift = 20;
	if (!n || n > LINK_BLOCK_MAX || n << shift > LINK_BLOCK_MAX)
		fail_sizes(list);
	*end += shift != 0;
	return n << shift;
}

static void add_size(struct options *o, size_t size)
{
	if (o->size_count == OPTIONS_SIZES)
		usage_error("--size: more than %d sizes", OPTIONS_SIZES);
	o->sizes[o->size_count++] = size;
}

static void read_sizes(struct options *o, const char *list)
{
	char *at = (char *)list;

	for (;; at++) {
		size_t from = read_size(list, at, &at), to = from;

		if (*at == '-')
			to = read_size(list, at + 1, &at);
		if (to < from)
			usage_error("--size: \"%s\" found, the smaller size first expected", list);
		for (; from <= to; from *= 2)
			add_size(o, from);
		if (!*at)
			return;
		if (*at != ',')
			fail_sizes(list);
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

/* Returns whether tests are given, and none of this kind is among them. */
static bool lacks(const struct options *o, enum kind kind)
{
	bool any = false;

	for (int i = 0; i < TESTS; i++) {
		if (o->tests[i] && tests[i].kind == kind)
			return false;
		any |= o->tests[i];
	}
	return any;
}

/* Values of options that have no letter. */
enum {
	FORK = 256,
	ONCE,
	JSON,
	CSV,
	PRIVATE,
	DEVICE_MEMORY,
	HISTOGRAM,
	COMPARE,
	THREADS,
	SRQ,
	PLOT,
	MAX_LATENCY,
	MIN_BANDWIDTH,
	EVERY,
	GIGABITS,
	HOSTS,
	LAUNCHER,
	VERSION
};

static const struct option names[] = {
	{ "device", required_argument, NULL, 'D' },
	{ "server", required_argument, NULL, 's' },
	{ "port", required_argument, NULL, 'p' },
	{ "time", required_argument, NULL, 't' },
	{ "test", required_argument, NULL, 'T' },
	{ "size", required_argument, NULL, 'S' },
	{ "rounds", required_argument, NULL, 'n' },
	{ "endpoints", required_argument, NULL, 'q' },
	{ "depth", required_argument, NULL, 'd' },
	{ "both-ways", no_argument, NULL, 'b' },
	{ "cpus", required_argument, NULL, 'c' },
	{ "every", required_argument, NULL, EVERY },
	{ "hosts", required_argument, NULL, HOSTS },
	{ "launcher", required_argument, NULL, LAUNCHER },
	{ "gbit", no_argument, NULL, GIGABITS },
	{ "threads", required_argument, NULL, THREADS },
	{ "srq", no_argument, NULL, SRQ },
	{ "wake", required_argument, NULL, 'w' },
	{ "help", no_argument, NULL, 'h' },
	{ "fork", no_argument, NULL, FORK },
	{ "once", optional_argument, NULL, ONCE },
	{ "json", no_argument, NULL, JSON },
	{ "csv", no_argument, NULL, CSV },
	{ "private", no_argument, NULL, PRIVATE },
	{ "dm", no_argument, NULL, DEVICE_MEMORY },
	{ "histogram", no_argument, NULL, HISTOGRAM },
	{ "compare", no_argument, NULL, COMPARE },
	{ "plot", required_argument, NULL, PLOT },
	{ "max-lat", required_argument, NULL, MAX_LATENCY },
	{ "min-bw", required_argument, NULL, MIN_BANDWIDTH },
	{ "version", no_argument, NULL, VERSION },
	{ NULL, 0, NULL, 0 },
};

static unsigned read_count(const char *option, const char *text, unsigned long max)
{
	return (unsigned)cli_number(option, text, 1, max);
}

static void set_format(struct options *o, enum format format)
{
	if (o->format != FORMAT_TABLE && o->format != format)
		usage_error("--csv and --json exclude each other");
	o->format = format;
}

static void set_memory(struct options *o, enum memory_kind memory)
{
	if (o->memory && o->memory != memory)
		usage_error("--private and --dm exclude each other");
	o->memory = memory;
}

/* Takes an option that getopt_long() has found, and its value. Returns false if there is no such option. */
static bool take_option(struct options *o, int c, const char *value)
{
	switch (c) {
	case 'D': o->device = value; break;
	case 's': o->server = cli_server("--server", value, ULONG_MAX); break;
	case 'p': o->port = cli_number("--port", value, 1, ULONG_MAX); break;
	case 't': o->seconds = cli_positive("--time", value, 3600); break;
	case 'T': read_tests(o, value); break;
	case 'S': read_sizes(o, value); break;
	case 'n': o->rounds = read_count("--rounds", value, MAX_ROUNDS); break;
	case 'q': o->endpoints = read_count("--endpoints", value, LINK_ENDPOINTS); break;
	case 'd': o->depth = read_count("--depth", value, LINK_DEPTH_MAX); break;
	case 'b': o->both_ways = true; break;
	case 'c': side_use_processors("--cpus", value); break;
	case EVERY: o->every = cli_positive("--every", value, 86400); break;
	case HOSTS: hosts_read(&o->hosts, value); break;
	case LAUNCHER: o->hosts.launcher = value; break;
	case GIGABITS: o->gigabits = true; break;
	case THREADS: o->threads = read_count("--threads", value, GROUP_THREADS); break;
	case PLOT: o->plot = value; break;
	case MAX_LATENCY: o->limits.latency = cli_microseconds("--max-lat", value); break;
	case MIN_BANDWIDTH: o->limits.bandwidth = cli_bit_rate("--min-bw", value); break;
	case SRQ: o->srq = true; break;
	case 'w': o->wake = read_wake(value); break;
	case FORK: o->both = true; break;
	case ONCE:
		o->once = true;
		o->once_seconds = value ? read_count("--once", value, 3600) : 0;
		break;
	case JSON: set_format(o, FORMAT_JSON); break;
	case CSV: set_format(o, FORMAT_CSV); break;
	case PRIVATE: set_memory(o, MEMORY_PRIVATE); break;
	case DEVICE_MEMORY: set_memory(o, MEMORY_DEVICE); break;
	case HISTOGRAM: o->histogram = true; break;
	case COMPARE: o->compare = true; break;
	case 'h': cli_print_help(); break;
	case VERSION: version_print(); break;
	default: return false;
	}
	return true;
}

/* Returns the long name of an option that a server has no use for, or NULL. */
static const char *name_for_client(int c)
{
	static const int client_options[] = { 't', 'T', 'S', 'n', 'w', 'd', 'b', EVERY, GIGABITS, HISTOGRAM, COMPARE,
					      JSON, CSV, PLOT, MAX_LATENCY, MIN_BANDWIDTH };

	for (size_t i = 0; i < sizeof client_options / sizeof *client_options; i++)
		for (const struct option *at = names; at->name && c == client_options[i]; at++)
			if (at->val == c)
				return at->name;
	return NULL;
}

/* Returns the smallest power of two that is neither below `least` nor below `wanted`. */
static size_t power_for(size_t least, size_t wanted)
{
	while (least < wanted)
		least *= 2;
	return least;
}

/* What both sides have room for: the largest size, and the requests in flight. */
static void set_shape(struct options *o)
{
	size_t largest = 0;

	for (int i = 0; i < o->size_count; i++)
		largest = o->sizes[i] > largest ? o->sizes[i] : largest;
	o->block = power_for(LINK_BLOCK, largest);
	o->most = (unsigned)power_for(LINK_DEPTH, o->depth);
}

/* Checks options that depend on each other. `for_client` is one that only the client uses, or NULL. */
static void check_together(const struct options *o, const char *for_client)
{
	if (o->threads && o->rounds > MAX_ROUNDS / o->threads)
		usage_error("--rounds: %u found, up to %u for each of %u threads expected",
			    o->rounds, MAX_ROUNDS / o->threads, o->threads);
	if (o->plot && lacks(o, KIND_LATENCY) && lacks(o, KIND_BANDWIDTH))
		usage_error("--plot: the test connect has no sizes to draw");
	if (o->limits.latency > 0 && lacks(o, KIND_LATENCY))
		usage_error("--max-lat: --test names no test of latency");
	if (o->limits.bandwidth > 0 && lacks(o, KIND_BANDWIDTH))
		usage_error("--min-bw: --test names no test of bandwidth");
	if (o->both_ways && lacks(o, KIND_BANDWIDTH))
		usage_error("--both-ways: --test names no test of bandwidth");
	if (o->every > 0 && o->plot)
		usage_error("--every and --plot exclude each other");
	if (o->histogram && o->format == FORMAT_CSV)
		usage_error("--histogram and --csv exclude each other; --json has the distribution");
	if (o->hosts.count && (o->server.host || o->both || o->once))
		usage_error("--hosts, -s, --fork and --once exclude each other");
	hosts_check_launcher(&o->hosts);
	if (for_client && !o->server.host && !o->both && !o->hosts.count)
		usage_error("--%s is an option of the client, which -s or --fork selects", for_client);
}

struct options options_read(int argc, char **argv)
{
	struct options o = { .seconds = 0.5, .depth = LINK_DEPTH, .hosts = { .launcher = "ssh" } };
	const char *for_client = NULL;
	int c;

	while ((c = getopt_long(argc, argv, ":D:s:p:t:T:S:n:q:d:bc:w:h", names, NULL)) != -1) {
		if (!take_option(&o, c, optarg))
			usage_error_option(argv, names, c);
		if (!for_client)
			for_client = name_for_client(c);
	}
	if (optind != argc)
		usage_error("\"%s\" found, only options expected", argv[optind]);
	o.port = cli_server_port(&o.server, "-p", o.port, o.both ? 0 : USUAL_PORT);
	check_together(&o, for_client);
	set_shape(&o);
	if (!o.hosts.count)	/* each host has adapters of its own */
		o.device = ia_choose("-D", o.device);
	return o;
}
