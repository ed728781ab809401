/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* whole_file.c - see whole_file.h. */
#include "whole_file.h"
#include "../cli.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void find_place(struct whole_file *f, const char *option)
{
	struct stat status;
	mode_t mask = umask(0);
	char *target = realpath(f->name, NULL);

	umask(mask);
	f->mode = 0666 & ~mask;
	if (snprintf(f->path, sizeof f->path, "%s", target ? target : f->name) >= (int)sizeof f->path)
		fail("%s: %s: %s", option, f->name, strerror(ENAMETOOLONG));
	if (target && !stat(target, &status)) {
		if (S_ISDIR(status.st_mode))
			fail("%s: %s: %s", option, f->name, strerror(EISDIR));
		if (!S_ISREG(status.st_mode))
			fail("%s: %s is not a regular file", option, f->name);
		if (access(target, W_OK))
			fail("%s: %s: %m", option, f->name);
		f->mode = status.st_mode & 07777;
	}
	free(target);
}

void whole_file_find(struct whole_file *f, const char *option, const char *name)
{
	*f = (struct whole_file){ .name = name };
	find_place(f, option);
	if (!whole_file_begin(f))
		fail("%s: %s: %m", option, name);
	whole_file_drop(f);
}

bool whole_file_begin(struct whole_file *f)
{
	int fd;

	snprintf(f->beside, sizeof f->beside, "%s.XXXXXX", f->path);
	fd = mkostemp(f->beside, O_CLOEXEC);
	if (fd < 0)
		return false;
	f->file = fdopen(fd, "w");
	if (f->file && !fchmod(fd, f->mode)) {
		errno = 0;
		return true;
	}
	if (!f->file)
		close(fd);
	whole_file_drop(f);
	return false;
}

bool whole_file_end(struct whole_file *f)
{
	bool written = !fflush(f->file) && !ferror(f->file);

	if (!written && !errno)
		errno = EIO;
	if (!written) {
		whole_file_drop(f);
		return false;
	}
	written = !fclose(f->file);
	f->file = NULL;
	if (written && !rename(f->beside, f->path))
		return true;
	whole_file_drop(f);
	return false;
}

void whole_file_drop(struct whole_file *f)
{
	int err = errno;

	if (f->file)
		fclose(f->file);
	f->file = NULL;
	unlink(f->beside);
	errno = err;
}
