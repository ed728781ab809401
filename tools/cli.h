/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cli.h - what every tool does on its command line: numbers of options, the one line that a
 * failure prints, exit statuses, and the check that the output was written.
 * The exit status is 0 on success, CLI_FAILURE, CLI_USAGE or CLI_OUTSIDE. Names of DAT events and
 * statuses are names.h's job. */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	CLI_FAILURE = 1,
	CLI_USAGE = 2,
	CLI_OUTSIDE = 3,	/* all was measured, but a limit that an option gave is not kept */
};

/* Call it first. `program` and `usage` must stay valid. Restores the default action of SIGCHLD: waitpid()
 * fails in a program that inherits SIG_IGN. Ignores SIGXFSZ, so that a file that reaches RLIMIT_FSIZE is an error of
 * its write. As the first process of a container, the program ends by SIGHUP, SIGINT and SIGTERM, with status 128 + the
 * number. */
void cli_init(const char *program, const char *usage);
/* `usage` is that of a command of the program: usage errors refer to "PROGRAM COMMAND --help". */
void cli_set_command(const char *command, const char *usage);

/* Prints "PROGRAM: text" on stderr. Without a recovery point (cli_attempt) the program exits with
 * CLI_FAILURE, else the attempt ends. */
void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Prints "PROGRAM: text" on stderr; the program goes on. */
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program, or the attempt, after the caller has printed the line. */
void fail_reported(void) __attribute__((noreturn));
/* Prints the line and a hint to --help; exits with CLI_USAGE. */
void usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* For '?' and ':' of getopt_long(), whose own message is off (opterr 0): names the option. `names` are the
 * long options. */
void usage_error_option(char *const *argv, const struct option *names, int c) __attribute__((noreturn));

/* Calls work(arg). Returns false when fail() ended it; its line has been printed then. Each thread has
 * a recovery point of its own. */
bool cli_attempt(void (*work)(void *arg), void *arg);
/* fail() prints nothing when `hook` returns true. */
void cli_on_failure(bool (*hook)(void));

/* The option that selects what the program does, among options that exclude each other. All zero until
 * cli_set_mode(). */
struct cli_mode {
	const char *name;	/* its long name */
	int value;		/* the value of getopt_long() for it */
	char *argument;
};
/* Records the option that getopt_long() returned as `value`. A second one of this kind is a usage error. */
void cli_set_mode(struct cli_mode *mode, const struct option *names, int value);

/* Returns the value `text` of `option` as a number. If it is no number from `min` to `max`, a usage error
 * shows `text` and the range. */
unsigned long cli_number(const char *option, const char *text, unsigned long min, unsigned long max);
/* Like cli_number(), for a number greater than 0 and at most `max`. "nan" is a usage error, too. */
double cli_positive(const char *option, const char *text, double max);

/* Parses a time, as 5us, 1.5ms or 2s: a number above 0 and its unit. Returns microseconds. */
double cli_microseconds(const char *option, const char *text);
enum cli_rate { CLI_NO_RATE, CLI_BITS, CLI_EVENTS };
/* Parses a rate: a number above 0, perhaps K, M, G or T for powers of 1000 (in any case), and perhaps a unit: "b/s" or
 * "bit/s" for bits, "/s" for frames and the like. Stores the value. `unitless` is what a rate without a unit is of,
 * which needs a prefix; CLI_NO_RATE: the unit is required. Returns CLI_NO_RATE for other text. */
enum cli_rate cli_rate(const char *text, enum cli_rate unitless, double *value);
/* Parses a rate of bits, as 10G, 100M, 10Gb/s or 2.5Gbit/s. Returns bits a second. */
double cli_bit_rate(const char *option, const char *text);

/* The server that an option names, as HOST, HOST:PORT, [V6] or [V6]:PORT. */
struct cli_server {
	const char *host;
	unsigned long port;	/* 0: the text has none */
};
/* Parses the value `text` of `option`. A port that is not from 1 to `max` is a usage error. The host stays valid. */
struct cli_server cli_server(const char *option, const char *text, unsigned long max);
/* Returns the port of the server: `given`, the value of `option`, or 0 if there is none; else that of the text; else
 * `usual`. Two ports that differ are a usage error. */
unsigned long cli_server_port(const struct cli_server *server, const char *option, unsigned long given,
			      unsigned long usual);

/* Prints `text` on stdout as a string of JSON, with its quotes. */
void cli_print_json_string(const char *text);

/* Returns the text of the errno value of a write that failed. If it is because of RLIMIT_FSIZE, the text has the
 * limit, and is valid until the next call. */
const char *cli_write_error(int err);

void cli_print_help(void);	/* exits */
const char *cli_program_name(void);	/* as cli_init() got it */
/* Ends the program with status 0; with CLI_FAILURE if stdout could not be written. */
void cli_finish(void) __attribute__((noreturn));
/* Like cli_finish(), but with `status` instead of 0. */
void cli_finish_with(int status) __attribute__((noreturn));

#endif
