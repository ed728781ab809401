/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_sealed_file.c - memory files whose size cannot change, and how a file of a peer is told from others. */
#include <sys/resource.h>
#include "dapl/soft/shm/sealed_file.h"
#include "test/unit/child.h"
#include "test/unit/descriptors.h"
#include "test/unit/unit.h"

enum { SIZE = 8192, SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

UNIT_TEST(size_of_a_sealed_file_is_fixed)
{
	int fd = sealed_file_new(SIZE, SEALS);

	assert_true(fd >= 0);
	assert_true(sealed_file_check(fd, SIZE));
	assert_false(sealed_file_check(fd, SIZE - 1));
	assert_false(sealed_file_check(fd, SIZE + 1));
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 2 * SIZE), -1);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

/* A peer that could shrink the file would make this process fault. */
UNIT_TEST(file_without_its_seals_is_refused)
{
	static const int some[] = { 0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE };

	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		int fd = sealed_file_new(SIZE, some[i]);

		assert_true(fd >= 0);
		assert_false(sealed_file_check(fd, SIZE));
		close(fd);
	}
}

UNIT_TEST(descriptor_of_something_else_is_refused)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_false(sealed_file_check(ends[0], 0));
	assert_false(sealed_file_check(-1, SIZE));
	close(ends[0]);
	close(ends[1]);
}

/* ftruncate() beyond the limit would end the process by a signal. */
UNIT_TEST(limit_of_file_sizes_is_an_error)
{
	struct rlimit before, limit;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = SIZE;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(sealed_file_limit(), SIZE);
	assert_int_equal(sealed_file_new(SIZE + 1, SEALS), -1);
	assert_int_equal(errno, EFBIG);
	fd = sealed_file_new(SIZE, SEALS);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* A file without its size or its seals is none. */
UNIT_TEST(file_that_cannot_be_sealed_is_an_error)
{
	unsigned before = open_descriptors();

	assert_int_equal(sealed_file_new(SIZE, 1 << 20), -1);	/* no seal */
	assert_int_equal(errno, EINVAL);
	assert_int_equal(sealed_file_new(UINT64_MAX, SEALS), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(open_descriptors(), before);
}

UNIT_TEST(memory_that_cannot_be_mapped_is_an_error)
{
	assert_null(sealed_file_map(-1, 0, PROT_READ));
	assert_int_equal(errno, EINVAL);
}

UNIT_MAIN(NULL, NULL)
