/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* print.h - standard output of datcap's commands, whose reader may leave: the command ends then, without a message. */
#ifndef DATCAP_PRINT_H
#define DATCAP_PRINT_H
#include <jansson.h>
#include <stdbool.h>

/* False: the line could not be written, now or earlier; print_flush() tells why. */
bool print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Writes what was printed. False: its reader has gone. Any other failure ends the program with CLI_FAILURE. */
bool print_flush(void);
/* Prints an object on a line of its own, and frees it. NULL: there was no memory for it, which ends the program. */
bool print_json(json_t *object);
/* Ends the program with this status, also if the reader of standard output has gone. */
void print_finish(int status) __attribute__((noreturn));

/* Whether this is a pipe without a reader. A write would tell, too, but only once there is something to write. */
bool pipe_has_no_reader(int fd);

#endif
