/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf.c - the lines NAME = VALUE of datsock.conf. See conf.h and datsock.conf(5). */
#include "sock/conf.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/env.h"
#include "sock/real.h"

enum { FILE_MAX = 16 << 10 }; /* bytes; eight settings, of which two are lists of 1 KiB */

static char path[PATH_MAX];

/* Only root decides for the programs of all users; below DAT_TEST_ROOT the user, too. */
static bool is_trusted(const struct stat *file)
{
	bool own = *test_root() && file->st_uid == geteuid();

	return S_ISREG(file->st_mode) && (file->st_uid == 0 || own) && !(file->st_mode & S_IWOTH) &&
	       (!(file->st_mode & S_IWGRP) || file->st_gid == 0);
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	return text;
}

static bool take_line(char *line, unsigned number, conf_take *take)
{
	char *name, *value;
	const char *wrong;

	line[strcspn(line, "#")] = 0;
	name = trim(line);
	if (!*name)
		return true;
	value = strchr(name, '=');
	if (!value) {
		fprintf(stderr, "datsock: %s:%u: \"%.40s\" found, NAME = VALUE expected; no connection moves\n", path,
			number, name);
		return false;
	}
	*value++ = 0;
	name = trim(name), value = trim(value);
	wrong = take(name, value);
	if (wrong)
		fprintf(stderr, "datsock: %s:%u: %.40s: %s; no connection moves\n", path, number, name, wrong);
	return !wrong;
}

static bool take_file(int fd, conf_take *take)
{
	char text[FILE_MAX], *rest = text, *line;
	struct stat file = { 0 };
	bool good = true;
	ssize_t n;

	if (fstat(fd, &file) || !is_trusted(&file)) {
		fprintf(stderr,
			"datsock: %s: %s of user %u with mode %04o found, a file that only root can write expected; "
			"no connection moves\n",
			path, S_ISREG(file.st_mode) ? "a file" : "no regular file", (unsigned)file.st_uid,
			(unsigned)file.st_mode & 07777);
		return false;
	}
	n = REAL(read)(fd, text, sizeof text);
	if (n < 0 || n == sizeof text || memchr(text, 0, n)) {
		fprintf(stderr, "datsock: %s: %s; no connection moves\n", path,
			n < 0		   ? strerror(errno) :
			n == sizeof text ? "16384 bytes or more found, less expected" :
						   "a NUL byte found, a text file expected");
		return false;
	}
	text[n] = 0;
	for (unsigned number = 1; (line = strsep(&rest, "\n")); number++)
		good &= take_line(line, number, take);
	return good;
}

bool conf_read(conf_take *take)
{
	bool good;
	int fd;

	snprintf(path, sizeof path, "%s%s/datsock.conf", test_root(), SYSCONFDIR);
	/* A FIFO must not keep the program from starting. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return true;
	if (fd < 0) {
		fprintf(stderr, "datsock: %s: %s; no connection moves\n", path, strerror(errno));
		return false;
	}
	good = take_file(fd, take);
	REAL(close)(fd);
	return good;
}
