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
#include <time.h>
#include <unistd.h>
#include "tools/cli.h"

enum { DIGITS = 12 };	/* of a number: a double has 15, of which the last are noise */

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
	char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
	bool good;

	if (!text)
		fail("no memory");
	good = print("%s\n", text);
	free(text);
	json_decref(object);
	return good;
}

const char *grouped(uint64_t n)
{
	static char texts[4][32];
	static unsigned turn;
	char digits[24], *to = texts[turn++ % 4], *begin = to;
	int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ' ';
		*to++ = digits[i];
	}
	*to = 0;
	return begin;
}

const char *counted(uint64_t n, const char *what)
{
	static char text[64];

	snprintf(text, sizeof text, "%s %s%s", grouped(n), what, n == 1 ? "" : "s");
	return text;
}

const char *time_text(uint64_t time)
{
	static char text[32];
	const time_t seconds = (time_t)(time / 1000000000);
	struct tm local;
	size_t used = strftime(text, sizeof text, "%H:%M:%S", localtime_r(&seconds, &local));

	snprintf(text + used, sizeof text - used, ".%09u", (unsigned)(time % 1000000000));
	return text;
}

const char *size_text(uint64_t bytes)
{
	static char text[64];

	if (bytes < 100000)
		snprintf(text, sizeof text, "%s byte%s", grouped(bytes), bytes == 1 ? "" : "s");
	else
		snprintf(text, sizeof text, "%.1f MB", (double)bytes / 1e6);
	return text;
}

bool pipe_has_no_reader(int fd)
{
	struct pollfd is = { .fd = fd };

	return poll(&is, 1, 0) == 1 && (is.revents & (POLLERR | POLLHUP));	/* POLLHUP: of a socket */
}

bool print_flush(void)
{
	if (!first_error && fflush(stdout))
		first_error = errno;
	if (!first_error && pipe_has_no_reader(STDOUT_FILENO))
		first_error = EPIPE;
	if (first_error && first_error != EPIPE)
		fail("the output could not be written: %s", cli_write_error(first_error));
	return !first_error;
}

void print_finish(int status)
{
	if (!print_flush())
		exit(status);
	cli_finish_with(status);
}
