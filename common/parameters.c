/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parameters.c - finds the value of a parameter, and reads dapl.conf (parameters.h): lines NAME=VALUE, and
 * comments with '#'. */
#include "common/parameters.h"
#include "common/env.h"
#include "common/variables.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILE_MAX = 65536,	/* bytes; a file of this size has no parameters: it is a mistake */
};

static const char *const names[] = {
#define X(name, library, min, max, by_default, meaning) #name,
	ENVIRONMENT_VARIABLES(X)
#undef X
};
enum { COUNT = sizeof names / sizeof *names };

static int64_t values_set[COUNT];	/* atomic; value + 1, 0: not set */
static char values_of_file[COUNT][PARAMETER_NUMBER];	/* "": none. Constant after parameters_read_file */

static int index_of(const char *name)
{
	for (int i = 0; i < COUNT; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

const char *parameter_text(const char *name, char buffer[PARAMETER_NUMBER],
			   enum parameter_origin *origin)
{
	int i = index_of(name);
	int64_t set = i < 0 ? 0 : __atomic_load_n(&values_set[i], __ATOMIC_RELAXED);
	const char *text = env_get(name);

	if (set) {
		*origin = PARAMETER_SET;
		snprintf(buffer, PARAMETER_NUMBER, "%lld", (long long)set - 1);
		return buffer;
	}
	if (text) {
		*origin = PARAMETER_ENVIRONMENT;
		return text;
	}
	if (i >= 0 && values_of_file[i][0]) {
		*origin = PARAMETER_FILE;
		return values_of_file[i];
	}
	*origin = PARAMETER_DEFAULT;
	return NULL;
}

bool parameter_set(const char *name, unsigned long value)
{
	int i = index_of(name);

	if (i < 0 || value > UINT32_MAX)
		return false;
	__atomic_store_n(&values_set[i], (int64_t)value + 1, __ATOMIC_RELAXED);
	return true;
}

void parameter_unset(const char *name)
{
	int i = index_of(name);

	if (i >= 0)
		__atomic_store_n(&values_set[i], 0, __ATOMIC_RELAXED);
}

/* --- dapl.conf ---------------------------------------------------------------------- */

const char *parameters_file(void)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof path, "%s%s/dapl.conf", test_root(), SYSCONFDIR);
	return path;
}

/* Only root decides for the programs of all users; below DAT_TEST_ROOT the user, too. */
static bool is_trusted(const struct stat *file)
{
	bool own = *test_root() && file->st_uid == geteuid();

	return (file->st_uid == 0 || own) && !(file->st_mode & S_IWOTH) &&
	       (!(file->st_mode & S_IWGRP) || file->st_gid == 0);
}

/* Paths and switches for tests are no defaults for all programs. */
static bool may_be_in_file(const char *name)
{
	unsigned long min, max;

	return parameter_range(name, &min, &max);
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

static void tell(parameters_report *report, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void tell(parameters_report *report, const char *fmt, ...)
{
	char message[PATH_MAX + 256];
	va_list args;

	if (!report)
		return;
	va_start(args, fmt);
	vsnprintf(message, sizeof message, fmt, args);
	va_end(args);
	report(message);
}

/* Takes the parameter of a line. Returns false if the line has a fault, with the reason in `why`. */
static bool take_line(char *line, char *why, size_t size)
{
	char *comment = strchr(line, '#'), *name, *value;

	if (comment)
		*comment = '\0';
	name = trim(line);
	if (!*name)
		return true;
	value = strchr(name, '=');
	if (!value) {
		snprintf(why, size, "\"%.40s\" found, NAME=VALUE expected", name);
		return false;
	}
	*value++ = '\0';
	name = trim(name);
	value = trim(value);
	if (!may_be_in_file(name)) {
		snprintf(why, size, "\"%.40s\" found, the name of a parameter with a number expected (dapl.conf(5))",
			 name);
		return false;
	}
	if (!*value || strlen(value) >= PARAMETER_NUMBER) {
		snprintf(why, size, "%s: \"%.40s\" found, a number expected", name, value);
		return false;
	}
	strcpy(values_of_file[index_of(name)], value);
	return true;
}

static void take_text(char *text, parameters_report *report)
{
	unsigned line = 0;
	char *end;

	for (; text && *text; text = end) {
		char why[160];

		end = strchr(text, '\n');
		if (end)
			*end++ = '\0';
		line++;
		if (!take_line(text, why, sizeof why))
			tell(report, "%s:%u: %s; the line is ignored", parameters_file(), line, why);
	}
}

static void report_unreadable(parameters_report *report, int err)
{
	tell(report, "%s cannot be read: %s", parameters_file(), strerror(err));
}

static void take_file(int fd, parameters_report *report)
{
	static char text[FILE_MAX];
	struct stat file = { .st_mode = 0 };
	ssize_t n;

	if (fstat(fd, &file) || !S_ISREG(file.st_mode) || !is_trusted(&file)) {
		tell(report, "%s is ignored: it is %s of user %u with mode %04o, expected a file that only root "
		     "can write", parameters_file(), S_ISREG(file.st_mode) ? "a file" : "no regular file",
		     (unsigned)file.st_uid, (unsigned)file.st_mode & 07777);
		return;
	}
	n = read(fd, text, sizeof text);
	if (n < 0) {
		report_unreadable(report, errno);
	} else if (n == FILE_MAX) {
		tell(report, "%s is ignored: it has %lld bytes, expected less than %d", parameters_file(),
		     (long long)file.st_size, FILE_MAX);
	} else if (memchr(text, '\0', (size_t)n)) {
		tell(report, "%s is ignored: it has a NUL byte, expected a text file", parameters_file());
	} else {
		text[n] = '\0';
		take_text(text, report);
	}
}

void parameters_read_file(parameters_report *report)
{
	int saved_errno = errno, fd = open(parameters_file(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	memset(values_of_file, 0, sizeof values_of_file);
	if (fd >= 0) {
		take_file(fd, report);
		close(fd);
	} else if (errno != ENOENT && errno != ENOTDIR) {
		report_unreadable(report, errno);
	}
	errno = saved_errno;
}

void parameters_fini(void)
{
	memset(values_set, 0, sizeof values_set);
	memset(values_of_file, 0, sizeof values_of_file);
}
