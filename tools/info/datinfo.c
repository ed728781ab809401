/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datinfo.c - the command line of datinfo, which shows what is configured on this machine and why something
 * does not work. See datinfo(1). */
#include "tools/info/adapters.h"
#include "tools/info/await.h"
#include "tools/info/conf_file.h"
#include "tools/info/device_views.h"
#include "tools/info/environment.h"
#include "tools/info/metrics.h"
#include "tools/info/network.h"
#include "tools/info/ports.h"
#include "tools/info/programs.h"
#include "tools/info/report.h"
#include "tools/info/timeline.h"
#include "tools/info/top.h"
#include "tools/cli.h"
#include "tools/version.h"
#include "tools/control/client.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
	"usage: datinfo [-v] [IA...]   adapters: whether each opens, how to fix it if not\n"
	"  --await IA [-w SECONDS]     wait (60 s at most) until it opens, for services\n"
	"  --env                       environment variables: default, value, meaning\n"
	"  --conf, --check FILE        a dat.conf for this machine; what is wrong in one\n"
	"  --devices                   as ibv_devices; with the software device\n"
	"  --devinfo [-l] [-d DEV] [-i PORT]    as ibv_devinfo; -l: names only\n"
	"  --stat [DEV[/PORT]] [--watch]        as ibstat, and the programs that use it\n"
	"  --route HOST                adapters that reach it, next hop, MTU; or why not\n"
	"  --neighbour ADDRESS         its link-layer address; asks the network\n"
	"  --nics                      network interfaces and their RDMA devices\n"
	"  --monitor [mtu,link,...]    a line for each change of the network\n"
	"  --ports                     which programs listen, on which qualifiers\n"
	"  --trace PID LEVEL, --dump PID        set the trace level; records, counters\n"
	"  --timeline FILE...          trace records of several processes, side by side\n"
	"  --top                       traffic of all programs of the user\n"
	"  --metrics [--listen [ADDRESS:]PORT]  the same for Prometheus; over HTTP\n"
	"  --report FILE [--anonymous]          all of it in one archive, for support\n"
	"\n"
	"  -v, --verbose; --json       all attributes; the same as JSON\n"
	"  -w, --wait SECONDS          for a provider (20), --neighbour (3) or --await\n"
	"  -n, --interval SECONDS; -c, --count N     of --top: pause (1), N tables\n"
	"  --by WHAT, --sort KEY, --filter TEXT      of --top: connections, users, ...\n"
	"  -h, --help, --version       this text; the version\n"
	"Exit status: 0; 1 failure; 2 wrong option; 3 --route over software device only\n";

enum mode { ADAPTERS, ENV, CONF, CHECK, DEVICES, DEVINFO, STAT, ROUTE, NEIGHBOUR, NICS, MONITOR,
	PORTS, TRACE, DUMP, TIMELINE, TOP, METRICS, AWAIT, REPORT };

struct options {
	enum mode mode;
	struct cli_mode chosen;		/* the option that selected the mode */
	bool verbose, json, watch, anonymous;
	bool names_only;		/* -l */
	const char *device;		/* -d, or DEV of --stat */
	unsigned port, seconds;
	unsigned level;			/* of --trace */
	const char *listen;		/* of --metrics */
	char *const *files;		/* of --timeline, after the first */
	int file_count;
	const char *by, *sort, *filter;	/* of --top */
	double interval;
	unsigned long count;		/* of tables; 0: no limit, on a terminal */
};

enum { JSON = 256, VERSION, WATCH, LISTEN, ANONYMOUS, BY, SORT, FILTER, MODE };	/* MODE + a mode */
static const struct option names[] = {
	{ "env", no_argument, NULL, MODE + ENV },
	{ "conf", no_argument, NULL, MODE + CONF },
	{ "check", required_argument, NULL, MODE + CHECK },
	{ "devices", no_argument, NULL, MODE + DEVICES },
	{ "devinfo", no_argument, NULL, MODE + DEVINFO },
	{ "stat", no_argument, NULL, MODE + STAT },
	{ "route", required_argument, NULL, MODE + ROUTE },
	{ "neighbour", required_argument, NULL, MODE + NEIGHBOUR },
	{ "neighbor", required_argument, NULL, MODE + NEIGHBOUR },
	{ "nics", no_argument, NULL, MODE + NICS },
	{ "monitor", no_argument, NULL, MODE + MONITOR },
	{ "ports", no_argument, NULL, MODE + PORTS },
	{ "trace", required_argument, NULL, MODE + TRACE },
	{ "dump", required_argument, NULL, MODE + DUMP },
	{ "timeline", required_argument, NULL, MODE + TIMELINE },
	{ "top", no_argument, NULL, MODE + TOP },
	{ "metrics", no_argument, NULL, MODE + METRICS },
	{ "await", required_argument, NULL, MODE + AWAIT },
	{ "report", required_argument, NULL, MODE + REPORT },
	{ "anonymous", no_argument, NULL, ANONYMOUS },
	{ "by", required_argument, NULL, BY },
	{ "sort", required_argument, NULL, SORT },
	{ "filter", required_argument, NULL, FILTER },
	{ "watch", no_argument, NULL, WATCH },
	{ "listen", required_argument, NULL, LISTEN },
	{ "count", required_argument, NULL, 'c' },
	{ "interval", required_argument, NULL, 'n' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "wait", required_argument, NULL, 'w' },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, VERSION },
	{ NULL, 0, NULL, 0 },
};

/* Parses DEV or DEV/PORT. */
static void parse_stat_operand(struct options *o, char *text)
{
	char *slash = strrchr(text, '/');

	if (slash) {
		*slash = '\0';
		o->port = (unsigned)cli_number("--stat DEV/PORT", slash + 1, 1, 255);
	}
	o->device = text;
}

static void parse_files(struct options *o, int argc, char **argv)
{
	o->file_count = argc - optind;
	o->files = argv + optind;
	optind = argc;
	if (!o->json && o->file_count + 1 > TIMELINE_FILES)
		usage_error("--timeline: %d files found, at most %d expected without --json",
			    o->file_count + 1, TIMELINE_FILES);
}

/* Parses the words that are not options, and checks options that belong to one mode. */
static void parse_operands(struct options *o, int argc, char **argv)
{
	if (o->mode == STAT && optind < argc)
		parse_stat_operand(o, argv[optind++]);
	if (o->mode == MONITOR && optind < argc)
		o->chosen.argument = argv[optind++];
	if (o->mode == TRACE && optind == argc)
		usage_error("--trace: a trace level from 0 to 10 expected after the PID");
	if (o->mode == TRACE)
		o->level = (unsigned)cli_number("--trace PID LEVEL", argv[optind++], 0, 10);
	if (o->mode == TIMELINE)
		parse_files(o, argc, argv);
	if (o->mode != ADAPTERS && optind != argc)
		usage_error("\"%s\" found after --%s, only options expected", argv[optind], o->chosen.name);
	if (o->watch && o->mode != STAT)
		usage_error("--watch is an option of --stat");
	if (o->anonymous && o->mode != REPORT)
		usage_error("--anonymous is an option of --report");
	if (o->json && (o->mode == AWAIT || o->mode == METRICS || o->mode == REPORT))
		usage_error("--%s has no form as JSON", o->chosen.name);
	if (o->listen && o->mode != METRICS)
		usage_error("--listen is an option of --metrics");
	if (o->count && o->mode != TOP)
		usage_error("--count is an option of --top");
	if (o->mode != TOP && (o->by || o->sort || o->filter))
		usage_error("--%s is an option of --top", o->by ? "by" : o->sort ? "sort" : "filter");
	if (o->mode != TOP && !o->watch && o->interval > 0)
		usage_error("--interval is an option of --top and --watch");
	if (o->interval <= 0)
		o->interval = 1;
	if (o->mode != DEVINFO && (o->names_only || (o->mode != STAT && (o->device || o->port))))
		usage_error("-%c is an option of --devinfo",
			    o->names_only ? 'l' : o->device ? 'd' : 'i');
}

static struct options parse(int argc, char **argv)
{
	struct options o = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, ":vw:ld:i:n:c:h", names, NULL)) != -1) {
		switch (c) {
		case 'v': o.verbose = true; break;
		case 'w': o.seconds = (unsigned)cli_number("--wait", optarg, 1, 3600); break;
		case 'l': o.names_only = true; break;
		case 'd': o.device = optarg; break;
		case 'i': o.port = (unsigned)cli_number("-i", optarg, 1, 255); break;
		case 'c': o.count = cli_number("--count", optarg, 1, 1 << 30); break;
		case 'n': o.interval = cli_positive("--interval", optarg, 3600); break;
		case WATCH: o.watch = true; break;
		case BY: o.by = optarg; break;
		case SORT: o.sort = optarg; break;
		case FILTER: o.filter = optarg; break;
		case ANONYMOUS: o.anonymous = true; break;
		case LISTEN: o.listen = optarg; break;
		case JSON: o.json = true; break;
		case 'h': cli_print_help(); break;
		case VERSION: version_print(); break;
		default:
			if (c < MODE)
				usage_error_option(argv, names, c);
			cli_set_mode(&o.chosen, names, c);
			o.mode = c - MODE;
		}
	}
	parse_operands(&o, argc, argv);
	if (!o.seconds)
		o.seconds = o.mode == NEIGHBOUR ? 3 : o.mode == AWAIT ? 60 : 20;
	return o;
}

static int show_adapters(const struct options *o, char *const *list, int count)
{
	struct adapters_options adapters = { list, count, o->verbose, o->json, o->seconds };

	return adapters_show(&adapters);
}

static int show_devices(const struct options *o)
{
	struct device_options devices = { o->device, o->port, o->names_only, o->verbose, o->json,
		o->watch ? o->interval : 0 };

	switch (o->mode) {
	case DEVICES: return device_views_list(&devices);
	case DEVINFO: return device_views_info(&devices);
	default: return device_views_stat(&devices);
	}
}

static int show_metrics(const struct options *o)
{
	if (!o->listen)
		return metrics_print();
#ifdef TOOLS_HTTP
	return metrics_serve(o->listen);
#else
	fail("--listen: this datinfo was built without libevent");
#endif
}

static int show_top(const struct options *o)
{
	struct top_options top = { .seconds = o->interval, .count = o->count, .json = o->json,
		.by = o->by ? top_parse_by("--by", o->by) : TOP_ADAPTERS, .filter = o->filter ? o->filter : "" };

	top.sort = o->sort ? top_parse_sort("--sort", o->sort) : TOP_BUSY;
	return top_show(&top);
}

static pid_t pid_of(const struct options *o)
{
	char option[32];

	snprintf(option, sizeof option, "--%s", o->chosen.name);
	return (pid_t)cli_number(option, o->chosen.argument, 1, 1 << 22);
}

int main(int argc, char **argv)
{
	struct options o;
	int status = 0;

	cli_init("datinfo", usage_text);
	o = parse(argc, argv);
	switch (o.mode) {
	case AWAIT: status = await_adapter(o.chosen.argument, o.seconds); break;
	case ENV: environment_show(o.json); break;
	case CONF: conf_file_print(o.json); break;
	case CHECK: status = conf_file_check(o.chosen.argument, o.json); break;
	case DEVICES: case DEVINFO: case STAT: status = show_devices(&o); break;
	case ROUTE: status = network_route(o.chosen.argument, o.json); break;
	case NEIGHBOUR: status = network_neighbour(o.chosen.argument, o.seconds, o.json); break;
	case MONITOR: status = network_monitor(o.chosen.argument, o.json); break;
	case NICS: status = network_nics(o.json); break;
	case PORTS: ports_show(o.json); break;
	case TRACE: status = programs_trace(pid_of(&o), o.level, o.json); break;
	case DUMP: status = programs_dump(pid_of(&o), o.json); break;
	case TIMELINE: timeline_show(o.chosen.argument, o.files, o.file_count, o.json); break;
	case REPORT: status = report_write(o.chosen.argument, o.anonymous); break;
	case METRICS: status = show_metrics(&o); break;
	case TOP: status = show_top(&o); break;
	default: status = show_adapters(&o, argv + optind, argc - optind);
	}
	cli_finish_with(status ? status : control_status());
}
