/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* persist.c - sets a parameter of programs that start later, in a line of dapl.conf (ctl.h). The new file is
 * written under another name and renamed, so that a program reads either the old file or the new one.
 * Comments and other lines stay. */
#include "tools/cli.h"
#include "tools/ctl/ctl.h"
#include "tools/info/system.h"
#include "common/parameter_range.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A value that programs would ignore is refused. */
static void check(const char *name, const char *value)
{
	unsigned long min, max, number;

	if (!parameter_range(name, &min, &max))
		usage_error("--persist: \"%s\" found, the name of a parameter with a number expected "
			    "(datinfo --env)", name);
	if (*value && (strlen(value) >= PARAMETER_NUMBER || !parameter_number_in(value, min, max, &number)))
		usage_error("--persist %s: \"%s\" found, a number from %lu to %lu expected", name, value,
			    min, max);
}

static bool sets(const char *line, const char *name)
{
	size_t length = strlen(name);

	line += strspn(line, " \t");
	if (strncmp(line, name, length))
		return false;
	line += length;
	return line[strspn(line, " \t")] == '=';
}

/* Copies the lines; the first that sets the name is replaced, further ones are left out. Returns 0, or the
 * errno of a read that failed. */
static int copy_lines(FILE *from, FILE *to, const char *name, const char *value)
{
	bool done = !*value;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int err;

	while (from && (length = getline(&line, &room, from)) > 0) {
		if (!sets(line, name)) {
			fwrite(line, 1, (size_t)length, to);
			if (line[length - 1] != '\n')
				fputc('\n', to);
			continue;
		}
		if (!done)
			fprintf(to, "%s=%s\n", name, value);
		done = true;
	}
	err = from && ferror(from) ? errno : 0;
	free(line);
	if (!done)
		fprintf(to, "%s=%s\n", name, value);
	return err;
}

int ctl_persist(const char *name, const char *value)
{
	char path[PATH_MAX], fresh[PATH_MAX + 8];
	const char *verb;
	FILE *from, *to;
	int fd, err;

	check(name, value);
	system_path(path, "%s", SYSCONFDIR "/dapl.conf");
	snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
	from = fopen(path, "re");
	if (!from && errno != ENOENT)
		fail("%s cannot be read: %s", path, strerror(errno));
	fd = mkostemp(fresh, O_CLOEXEC);
	to = fd < 0 ? NULL : fdopen(fd, "w");
	if (!to) {
		err = errno;
		if (fd >= 0)
			unlink(fresh);
		fail("%s cannot be written: %s", path, strerror(err));
	}
	err = copy_lines(from, to, name, value);
	verb = err ? "read" : "written";
	if (!err && (fchmod(fd, 0644) || fflush(to) || ferror(to) || fsync(fd)))
		err = errno;
	if (fclose(to) && !err)
		err = errno;
	if (!err && rename(fresh, path))
		err = errno;
	if (from)
		fclose(from);
	if (!err)
		return 0;
	unlink(fresh);
	fail("%s cannot be %s: %s", path, verb, cli_write_error(err));
}
