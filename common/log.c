/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.c - prints messages for people, and reads the variables that say which and where.
 * What is worth a message is the caller's decision. */
#include "common/log.h"
#include "common/env.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

unsigned log_mask = 1;	/* errors, until log_init() has read the variables */

static const char *log_prefix = "dat";
static unsigned log_dest = LOG_TO_STDERR;

static const char *prefix(void)
{
	return __atomic_load_n(&log_prefix, __ATOMIC_RELAXED);
}

/* One write a line, so that lines of several threads and processes do not mix. */
static void write_line(int fd, const char *line, size_t length)
{
	while (length) {
		ssize_t n = write(fd, line, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;	/* nobody listens: there is no one to tell */
		line += n;
		length -= n;
	}
}

void log_line(unsigned bits, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	int saved_errno = errno, head, n;
	unsigned dest = __atomic_load_n(&log_dest, __ATOMIC_RELAXED);
	size_t length;
	va_list args;

	if (!log_on(bits))
		return;
	head = snprintf(line, sizeof(line), "%s: ", prefix());
	errno = saved_errno;	/* for %m */
	va_start(args, fmt);
	n = vsnprintf(line + head, sizeof(line) - head, fmt, args);
	va_end(args);
	length = head + (n > 0 ? n : 0);
	if (length > sizeof(line) - 2) {
		memcpy(line + sizeof(line) - 5, "...", 3);
		length = sizeof(line) - 2;
	}
	line[length] = '\0';
	if (dest & LOG_TO_SYSLOG)
		syslog(LOG_USER | LOG_NOTICE, "%s", line);
	line[length++] = '\n';
	if (dest == LOG_TO_STDERR)
		write_line(STDERR_FILENO, line, length);
	if (dest & LOG_TO_STDOUT)
		write_line(STDOUT_FILENO, line, length);
	errno = saved_errno;
}

/* strtoul takes signs, blanks and octal; none of them is meant here. */
static bool parse_number(const char *text, unsigned long *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	if (hex ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoul(text, &end, hex ? 16 : 10);
	return !errno && !*end;
}

bool log_env_number(const char *name, unsigned long min, unsigned long max,
		    unsigned long *value)
{
	const char *text = env_get(name);
	unsigned long number;
	int saved_errno = errno;
	bool good;

	if (!text)
		return false;
	good = parse_number(text, &number) && number >= min && number <= max;
	errno = saved_errno;
	if (good)
		*value = number;
	else
		log_line(~0u, "%s is \"%s\"; expected a number from %lu to %lu; ignored",
			 name, text, min, max);
	return good;
}

/* A level is the short form of a mask: 0 the default, 1 errors, 2 warnings too, 3 all. */
static unsigned mask_of_level(unsigned long level, unsigned default_mask)
{
	switch (level) {
	case 0:  return default_mask;
	case 1:  return default_mask | 1;
	case 2:  return default_mask | 3;
	default: return ~0u;
	}
}

void log_init(const char *name, const char *type_var, const char *level_var,
	      const char *dest_var, unsigned default_mask)
{
	unsigned long mask = default_mask, dest = LOG_TO_STDERR, level = 0;

	__atomic_store_n(&log_prefix, name, __ATOMIC_RELAXED);
	__atomic_store_n(&log_mask, default_mask, __ATOMIC_RELAXED);
	__atomic_store_n(&log_dest, LOG_TO_STDERR, __ATOMIC_RELAXED);
	if (dest_var && log_env_number(dest_var, LOG_TO_STDERR, LOG_TO_BOTH, &dest))
		__atomic_store_n(&log_dest, dest, __ATOMIC_RELAXED);
	if (level_var && log_env_number(level_var, 0, UINT_MAX, &level))
		mask = mask_of_level(level, default_mask);
	if (type_var)
		log_env_number(type_var, 0, UINT_MAX, &mask);
	__atomic_store_n(&log_mask, (unsigned)mask, __ATOMIC_RELAXED);
}
