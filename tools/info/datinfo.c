/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datinfo.c - shows what is configured on this machine and why something does not work: the command line.
 * See datinfo(1). */
#include "tools/info/adapters.h"
#include "tools/cli.h"
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage_text[] =
	"usage: datinfo [-v] [IA...]   interface adapters: where each comes from,\n"
	"                              whether it opens, and what to mend if not\n"
	"\n"
	"  -v, --verbose          all attributes\n"
	"  -w, --wait SECONDS     that a provider may take to open an IA (default 20)\n"
	"      --json             the same as JSON\n"
	"  -h, --help             this text\n"
	"      --version          the version\n"
	"\n"
	"Exit status: 0; 1 if something failed or was not found; 2 for a wrong option.\n";

struct options {
	bool verbose, json;
	unsigned seconds;
};

static struct options parse(int argc, char **argv)
{
	enum { JSON = 256, VERSION };
	static const struct option names[] = {
		{ "verbose", no_argument, NULL, 'v' },	{ "json", no_argument, NULL, JSON },
		{ "wait", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },	{ "version", no_argument, NULL, VERSION },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .seconds = 20 };
	int c;

	while ((c = getopt_long(argc, argv, ":vw:h", names, NULL)) != -1) {
		switch (c) {
		case 'v': o.verbose = true; break;
		case 'w': o.seconds = (unsigned)cli_number("--wait", optarg, 1, 3600); break;
		case JSON: o.json = true; break;
		case 'h': cli_print_help(); break;
		case VERSION: cli_print_version(); break;
		default: usage_error_option(argv, c);
		}
	}
	return o;
}

int main(int argc, char **argv)
{
	struct adapters_options adapters;
	struct options o;
	int status;

	cli_init("datinfo", usage_text);
	o = parse(argc, argv);
	adapters = (struct adapters_options){ argv + optind, argc - optind, o.verbose, o.json, o.seconds };
	status = adapters_show(&adapters);
	cli_finish_with(status);
}
