/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sealed_file.c - memory files with seals (sealed_file.h). */
#include "dapl/soft/shm/sealed_file.h"
#include "common/file_size.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t sealed_file_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) ? 0 : limit.rlim_cur;
}

int sealed_file_new(uint64_t size, int seals)
{
	int fd, err;

	fd = memfd_create("dapl-soft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || (!file_set_size(fd, size) && !fcntl(fd, F_ADD_SEALS, seals)))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

bool sealed_file_check(int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS), must = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;

	return seals >= 0 && (seals & must) == must && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       st.st_size == (off_t)size;
}

void *sealed_file_map(int fd, size_t size, int protection)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(NULL, size, protection, flags, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_DONTFORK);
	return p;
}
