/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* print.h - the standard output of datcap's commands. If it is a pipe whose reader has closed it, the
 * command ends without a message. */
#ifndef DATCAP_PRINT_H
#define DATCAP_PRINT_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Prints a line. Returns false if this or an earlier write has failed; print_flush() handles the error. */
bool print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Flushes standard output. Returns false if the pipe has no reader. Any other error ends the program with
 * CLI_FAILURE. */
bool print_flush(void);
/* Prints an object on a line of its own, and frees it. NULL means that there was no memory for the object,
 * and ends the program. Returns what print() returns. */
bool print_json(json_t *object);
/* Flushes standard output, and ends the program with this status, also if the pipe has no reader. */
void print_finish(int status) __attribute__((noreturn));

/* Returns the number with its digits in groups, like "1 234 567". Each call uses the next one of four static
 * buffers. */
const char *grouped(uint64_t n);
/* Each returns a text in a static buffer, valid until its next call. Like "1 frame" or "2 000 frames": */
const char *counted(uint64_t n, const char *what);
/* A time of CLOCK_REALTIME in ns, like "12:34:56.000000789": */
const char *time_text(uint64_t time);
/* Like "3.5 MB", or "60 bytes" below 0.1 MB: */
const char *size_text(uint64_t bytes);

/* Returns whether this is a pipe without a reader. Finds out before there is data to write, unlike EPIPE of
 * a write. */
bool pipe_has_no_reader(int fd);

#endif
