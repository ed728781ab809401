/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_conf.h - a dat.conf of the test's own, in memory: a test that fails or is killed leaves no file. */
#ifndef TEST_DAT_CONF_H
#define TEST_DAT_CONF_H
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* From now on these are the lines of dat.conf, in this process and in children that execute no program.
 * Returns an errno. */
static inline int set_dat_conf(const char *text)
{
	static int fd = -1;
	char path[40];

	if (fd >= 0)
		close(fd);
	fd = memfd_create("dat.conf", MFD_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return errno ? errno : EIO;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return setenv("DAT_OVERRIDE", path, 1) ? errno : 0;
}

#endif
