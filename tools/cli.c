/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cli.c - see cli.h. */
#include "cli.h"
#include "config.h"
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *program_name = "?", *usage_text = "", *command_name;
static _Thread_local jmp_buf *recovery;
static bool (*failure_hook)(void);

static void end_by_signal(int number)
{
	_exit(128 + number);
}

/* The kernel ignores signals to the first process of a container that have no handler there. */
static void end_as_others_do(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM };

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (signal(signals[i], end_by_signal) == SIG_IGN)
			signal(signals[i], SIG_IGN);
}

void cli_init(const char *program, const char *usage)
{
	program_name = program;
	usage_text = usage;
	opterr = 0;
	signal(SIGCHLD, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN);
	if (getpid() == 1)
		end_as_others_do();
}

void cli_set_command(const char *command, const char *usage)
{
	command_name = command;
	usage_text = usage;
}

static void print_line(const char *fmt, va_list args)
{
	char line[1024];
	int head = snprintf(line, sizeof line, "%s: ", program_name);

	vsnprintf(line + head, sizeof line - head, fmt, args);
	fprintf(stderr, "%s\n", line);
}

void fail(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	if (!failure_hook || !failure_hook()) {
		va_start(args, fmt);
		print_line(fmt, args);
		va_end(args);
	}
	fail_reported();
}

void cli_warn(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, fmt);
	print_line(fmt, args);
	va_end(args);
}

void fail_reported(void)
{
	if (recovery)
		longjmp(*recovery, 1);
	fflush(stdout);
	exit(CLI_FAILURE);
}

void usage_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_line(fmt, args);
	va_end(args);
	fprintf(stderr, "Try '%s%s%s --help'.\n", program_name, command_name ? " " : "",
		command_name ? command_name : "");
	exit(CLI_USAGE);
}

static bool has_option(const struct option *names, int value)
{
	while (names->name && names->val != value)
		names++;
	return names->name;
}

/* getopt_long() sets optopt to the value of a known long option, to a letter, or to 0 for an unknown long
 * option. After an unknown letter inside a word such as -ab, argv[optind - 1] is still the word before,
 * which may be a long option; but then optopt is not a value in `names`. */
void usage_error_option(char *const *argv, const struct option *names, int c)
{
	const char *word = argv[optind - 1];
	bool is_long = !strncmp(word, "--", 2) && has_option(names, optopt);

	if (!optopt)
		usage_error("unknown or ambiguous option %s", word);
	if (is_long && c == ':')
		usage_error("option %s needs a value", word);
	if (is_long)
		usage_error("option %.*s takes no value", (int)strcspn(word, "="), word);
	if (!isprint((unsigned char)optopt))
		usage_error("unknown option -\\x%02x", (unsigned char)optopt);
	usage_error(c == ':' ? "option -%c needs a value" : "unknown option -%c", optopt);
}

void cli_set_mode(struct cli_mode *mode, const struct option *names, int value)
{
	while (names->val != value)
		names++;
	if (mode->name)
		usage_error("--%s and --%s exclude each other", mode->name, names->name);
	*mode = (struct cli_mode){ names->name, value, optarg };
}

bool cli_attempt(void (*work)(void *arg), void *arg)
{
	jmp_buf here;
	bool good = false;

	recovery = &here;
	if (!setjmp(here)) {
		work(arg);
		good = true;
	}
	recovery = NULL;
	return good;
}

void cli_on_failure(bool (*hook)(void))
{
	failure_hook = hook;
}

unsigned long cli_number(const char *option, const char *text, unsigned long min, unsigned long max)
{
	char *end = NULL;
	unsigned long value;

	errno = 0;
	value = isdigit((unsigned char)text[0]) ? strtoul(text, &end, 10) : 0;
	if (!end || *end || errno || value < min || value > max)
		usage_error("%s: \"%s\" found, a number from %lu to %lu expected", option, text, min, max);
	return value;
}

double cli_positive(const char *option, const char *text, double max)
{
	char *end;
	double value = strtod(text, &end);

	/* the comparison is false for nan, too */
	if (end == text || *end || !(value > 0 && value <= max))
		usage_error("%s: \"%s\" found, a number above 0 and up to %.10g expected", option, text, max);
	return value;
}

double cli_microseconds(const char *option, const char *text)
{
	static const struct {
		const char *name;
		double microseconds;
	} units[] = { { "us", 1 }, { "ms", 1e3 }, { "s", 1e6 } };
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (value > 0 && value <= 1e9 && !strcmp(end, units[i].name))
			return value * units[i].microseconds;
	usage_error("%s: \"%s\" found, a time like 5us, 1.5ms or 2s expected", option, text);
}

enum cli_rate cli_rate(const char *text, enum cli_rate unitless, double *value)
{
	static const char prefixes[] = "KMGT";
	const char *prefix;
	char *end;
	double n = strtod(text, &end);

	if (end == text || !(n > 0))
		return CLI_NO_RATE;
	prefix = *end ? strchr(prefixes, toupper((unsigned char)*end)) : NULL;
	for (const char *at = prefixes; prefix && at <= prefix; at++)
		n *= 1e3;
	end += prefix != NULL;
	if (n > 1e15)
		return CLI_NO_RATE;
	*value = n;
	if (!strcmp(end, "b/s") || !strcmp(end, "bit/s"))
		return CLI_BITS;
	if (!strcmp(end, "/s"))
		return CLI_EVENTS;
	return *end || !prefix ? CLI_NO_RATE : unitless;
}

double cli_bit_rate(const char *option, const char *text)
{
	double value;

	if (cli_rate(text, CLI_BITS, &value) != CLI_BITS)
		usage_error("%s: \"%s\" found, bits a second like 100M, 10G or 2.5Gbit/s expected", option, text);
	return value;
}

struct cli_server cli_server(const char *option, const char *text, unsigned long max)
{
	struct cli_server server = { .host = text };
	const char *end = strrchr(text, ']'), *colon = strchr(text, ':');
	size_t length = strlen(text);

	if (text[0] == '[' && end && (!end[1] || end[1] == ':')) {
		text++;
		length = (size_t)(end - text);
		colon = end[1] ? end + 1 : NULL;
	} else if (colon && !strchr(colon + 1, ':')) {
		length = (size_t)(colon - text);
	} else {
		return server;	/* a name, or an IPv6 address without a port */
	}
	server.host = strndup(text, length);
	if (!server.host)
		fail("no memory for %s", text);
	if (colon)
		server.port = cli_number(option, colon + 1, 1, max);
	return server;
}

unsigned long cli_server_port(const struct cli_server *server, const char *option, unsigned long given,
			      unsigned long usual)
{
	if (server->port && given && server->port != given)
		usage_error("%s %lu and %s:%lu found, one port expected", option, given, server->host, server->port);
	return given ? given : server->port ? server->port : usual;
}

void cli_print_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text < ' ')
			printf("\\u%04x", (unsigned char)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

const char *cli_write_error(int err)
{
	static char text[100];
	struct rlimit limit;

	if (err != EFBIG || getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return strerror(err);
	snprintf(text, sizeof text, "%s (RLIMIT_FSIZE, \"ulimit -f\", is %llu bytes)", strerror(err),
		 (unsigned long long)limit.rlim_cur);
	return text;
}

void cli_print_help(void)
{
	fputs(usage_text, stdout);
	cli_finish();
}

const char *cli_program_name(void)
{
	return program_name;
}

void cli_finish_with(int status)
{
	if (fflush(stdout) || ferror(stdout) || (close(STDOUT_FILENO) && errno != EBADF)) {
		fprintf(stderr, "%s: the output could not be written: %s\n", program_name, cli_write_error(errno));
		exit(CLI_FAILURE);
	}
	exit(status);
}

void cli_finish(void)
{
	cli_finish_with(0);
}
