/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cli.h - what every tool does on its command line: numbers of options, the one line that a
 * failure prints, exit statuses, --version, and the check that the output was written.
 * The exit status is 0 on success, CLI_FAILURE or CLI_USAGE. Names of DAT events and
 * statuses are names.h's job. */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

enum { CLI_FAILURE = 1, CLI_USAGE = 2 };

/* Call it first. `program` and `usage` must stay valid. Restores the default action of SIGCHLD: waitpid()
 * fails in a program that inherits SIG_IGN. */
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

/* Prints `text` on stdout as a string of JSON, with its quotes. */
void cli_print_json_string(const char *text);

void cli_print_help(void);	/* exits */
void cli_print_version(void);	/* exits */
/* Ends the program with status 0; with CLI_FAILURE if stdout could not be written. */
void cli_finish(void) __attribute__((noreturn));
/* Like cli_finish(), but with `status` instead of 0. */
void cli_finish_with(int status) __attribute__((noreturn));

#endif
