/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datctl.c - the command line of datctl, which changes running programs and this machine's RDMA. See
 * datctl(1). */
#include "tools/cli.h"
#include "tools/version.h"
#include "tools/ctl/ctl.h"
#include "tools/messages.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
	"usage: datctl -q                      which parts of RDMA are there; users\n"
	"       datctl -p [NAME[=VALUE]] [PID|all]   show, set parameters of programs\n"
	"       datctl --persist NAME=VALUE    the same for later programs, in dapl.conf\n"
	"       datctl -c [PID|all]            running programs read dat.conf again\n"
	"       datctl -l [soft|rxe:IF|siw:IF] load modules; make a software RDMA device\n"
	"       datctl -u NAME                 remove that device\n"
	"\n"
	"  -q, --query       exit status 0: all there; 1: something is missing\n"
	"  -p, --parameter   without VALUE show it, without NAME show all; without PID\n"
	"                    of all programs of the user. VALUE needs PID or the word\n"
	"                    all, and lasts until the program closes its last IA\n"
	"      --persist     NAME= removes the line; root\n"
	"  -c, --reread      without PID all programs of the user\n"
	"  -l, --load        IF is a network interface; without one modules only; root\n"
	"  -u, --unload      refused while a program uses the device; root\n"
	"      --json        output for programs, of -q, -p and -c\n"
	"  -h, --help        this text\n"
	"      --version     the version\n"
	"\n"
	"Exit status: 0; 1 if something failed or is missing; 2 for a wrong option.\n";

enum { JSON = 256, VERSION, PERSIST };

static const struct option names[] = {
	{ "query", no_argument, NULL, 'q' },
	{ "parameter", no_argument, NULL, 'p' },
	{ "persist", required_argument, NULL, PERSIST },
	{ "reread", no_argument, NULL, 'c' },
	{ "load", no_argument, NULL, 'l' },
	{ "unload", required_argument, NULL, 'u' },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, VERSION },
	{ NULL, 0, NULL, 0 },
};

struct options {
	struct cli_mode mode;
	bool json;
};

static struct options parse(int argc, char **argv)
{
	struct options o = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, ":qpclu:h", names, NULL)) != -1) {
		switch (c) {
		case 'q': case 'p': case 'c': case 'l': case 'u': case PERSIST: cli_set_mode(&o.mode, names, c); break;
		case JSON: o.json = true; break;
		case 'h': cli_print_help(); break;
		case VERSION: version_print(); break;
		default: usage_error_option(argv, names, c);
		}
	}
	if (!o.mode.name)
		usage_error("one of -q, -p, -c, -l, -u and --persist expected");
	if (o.json && (o.mode.value == 'l' || o.mode.value == 'u' || o.mode.value == PERSIST))
		usage_error("--json has no meaning with --%s", o.mode.name);
	return o;
}

static void expect_only_options(const struct options *o, int argc, char **argv)
{
	if (optind < argc)
		usage_error("\"%s\" found after --%s, only options expected", argv[optind], o->mode.name);
}

/* Returns the word `index` after the options, or NULL if there is none. More than `max` words, at least 1,
 * are a usage error. */
static char *operand(const struct options *o, int argc, char **argv, int index, int max)
{
	if (optind + max < argc)
		usage_error("\"%s\" found after --%s, at most %d word%s expected", argv[optind + max],
			    o->mode.name, max, max == 1 ? "" : "s");
	return optind + index < argc ? argv[optind + index] : NULL;
}

static pid_t pid_of(const char *option, const char *text)
{
	return text && strcmp(text, "all") ? (pid_t)cli_number(option, text, 1, 1 << 22) : 0;
}

/* Whether a word is a PID or "all": no parameter has a name of digits or of small letters. */
static bool is_pid(const char *text)
{
	return text && *text && (!text[strspn(text, "0123456789")] || !strcmp(text, "all"));
}

/* Splits NAME=VALUE at the first "=". Returns VALUE, or NULL if there is no "=". */
static char *value_of(char *text)
{
	char *equals = strchr(text, '=');

	if (equals)
		*equals++ = '\0';
	return equals;
}

static int parameter(const struct options *o, int argc, char **argv)
{
	bool has_name = !is_pid(operand(o, argc, argv, 0, 2));
	char *name = has_name ? operand(o, argc, argv, 0, 2) : NULL, *value = name ? value_of(name) : NULL;
	pid_t pid;

	if (!has_name && operand(o, argc, argv, 1, 2))
		usage_error("\"%s\" found after PID \"%s\", which comes last", argv[optind + 1], argv[optind]);
	pid = pid_of("--parameter", operand(o, argc, argv, has_name, 2));
	if (value && !*value)
		usage_error("--parameter: a value expected after \"%s=\"", name);
	if (value)
		ctl_check_parameter(name, value);
	if (value && !operand(o, argc, argv, 1, 2))
		usage_error("--parameter: a PID, or the word \"all\", expected after \"%s=%s\"", name, value);
	return value ? ctl_set_parameter(pid, name, value, o->json) :
		ctl_list_parameters(pid, name, o->json);
}

static int persist(const struct options *o)
{
	char *name = o->mode.argument, *value = value_of(name);

	if (!value)
		usage_error("--persist: \"%s\" found, NAME=VALUE expected", name);
	return ctl_persist(name, value);
}

int main(int argc, char **argv)
{
	struct options o;
	int status = 0;

	cli_init("datctl", usage_text);
	messages_init();
	o = parse(argc, argv);
	switch (o.mode.value) {
	case 'p': status = parameter(&o, argc, argv); break;
	case 'c': status = ctl_reread(pid_of("--reread", operand(&o, argc, argv, 0, 1)), o.json); break;
	case 'l': status = ctl_load(operand(&o, argc, argv, 0, 1)); break;
	case 'q': expect_only_options(&o, argc, argv); status = ctl_query(o.json); break;
	case 'u': expect_only_options(&o, argc, argv); status = ctl_unload(o.mode.argument); break;
	default: expect_only_options(&o, argc, argv); status = persist(&o);
	}
	cli_finish_with(status);
}
