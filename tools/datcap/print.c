/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* print.c - see print.h. Keeps the errno of the first failed write: stdio keeps only that there was an
 * error. */
#include "print.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cli.h"

static int first_error;

bool print(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (vprintf(fmt, args) < 0 && !first_error)
		first_error = errno;
	va_end(args);
	return !first_error;
}

bool print_json(json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	bool good;

	if (!text)
		fail("no memory");
	good = print("%s\n", text);
	free(text);
	json_decref(object);
	return good;
}

bool pipe_has_no_reader(int fd)
{
	struct pollfd is = { .fd = fd };

	return poll(&is, 1, 0) == 1 && (is.revents & POLLERR);
}

bool print_flush(void)
{
	if (!first_error && fflush(stdout))
		first_error = errno;
	if (!first_error && pipe_has_no_reader(STDOUT_FILENO))
		first_error = EPIPE;
	if (first_error && first_error != EPIPE)
		fail("the output could not be written: %s", strerror(first_error));
	return !first_error;
}

void print_finish(int status)
{
	if (!print_flush())
		exit(status);
	cli_finish_with(status);
}
