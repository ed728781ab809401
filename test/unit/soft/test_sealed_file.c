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

UNIT_TEST(file_without_a_descriptor_is_an_error)
{
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(sealed_file_new(SIZE, SEALS), -1);
	assert_int_equal(errno, EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

UNIT_TEST(mappings_of_a_file_share_its_memory)
{
	int fd = sealed_file_new(SIZE, SEALS);
	char *one = sealed_file_map(fd, SIZE, PROT_READ | PROT_WRITE), *two = sealed_file_map(fd, SIZE, PROT_READ);

	assert_true(one && two && one != two);
	one[SIZE - 1] = 'x';
	assert_int_equal(two[SIZE - 1], 'x');
	munmap(one, SIZE);
	munmap(two, SIZE);
	close(fd);
}

UNIT_TEST(memory_without_a_file_is_zeroed)
{
	char *memory = sealed_file_map(-1, SIZE, PROT_READ | PROT_WRITE);

	assert_non_null(memory);
	assert_int_equal(memory[0], 0);
	memory[SIZE - 1] = 'x';
	munmap(memory, SIZE);
}

UNIT_TEST(memory_that_cannot_be_mapped_is_an_error)
{
	assert_null(sealed_file_map(-1, 0, PROT_READ));
	assert_int_equal(errno, EINVAL);
}

UNIT_TEST(child_has_none_of_the_memory)
{
	char *memory = sealed_file_map(-1, SIZE, PROT_READ | PROT_WRITE);
	unsigned char here;
	pid_t child;

	assert_non_null(memory);
	assert_int_equal(mincore(memory, 1, &here), 0);
	child = fork_child();
	if (!child)
		_exit(mincore(memory, 1, &here) && errno == ENOMEM ? 0 : 1);
	expect_success(child);
	munmap(memory, SIZE);
}

UNIT_MAIN(NULL, NULL)
