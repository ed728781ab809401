/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_populate.c - which memory the software device registers, with MADV_POPULATE and on
 * a kernel without it. */
#include <sys/uio.h>
#include "dapl/soft/obj/populate.h"
#include "test/unit/unit.h"

enum { PAGE = 4096, PAGES = 200, SIZE = PAGES * PAGE };

static bool old_kernel;
static int failure;			/* errno of madvise(), or 0 */
static unsigned refused;
static struct {
	char *at;
	size_t length;
	unsigned count;
} huge;				/* the last advice to use huge pages */

EXTEND(madvise)
int __wrap_madvise(void *at, size_t length, int advice)
{
	if (advice == MADV_HUGEPAGE) {
		huge.at = at;
		huge.length = length;
		huge.count++;
	}
	if (advice != 22 && advice != 23)
		return __real_madvise(at, length, advice);
	if (old_kernel || (failure && length)) {
		refused++;
		errno = old_kernel ? EINVAL : failure;
		return -1;
	}
	return __real_madvise(at, length, advice);
}

/* A read that is only shorter does not set errno, which an earlier call may have left. */
EXTEND(process_vm_readv)
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long count, const struct iovec *there,
				unsigned long pieces, unsigned long flags)
{
	errno = EPERM;
	return __real_process_vm_readv(pid, here, count, there, pieces, flags);
}

static char *some_memory(int protection)
{
	char *at = mmap(NULL, SIZE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

/* Maps a file, shared, that has only the first `size` bytes. */
static char *file_memory(int protection, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	char *at;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	at = mmap(NULL, SIZE, protection, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

/* Checks the whole mapping, and unmaps it. */
static void expect(char *at, int read, int write)
{
	assert_int_equal(soft_populate(at + 10, SIZE - 20, false), read);
	assert_int_equal(soft_populate(at + 10, SIZE - 20, true), write);
	munmap(at, SIZE);
}

static void memory_with_the_rights_is_accepted(void **state)
{
	expect(some_memory(PROT_READ | PROT_WRITE), 0, 0);
	expect(file_memory(PROT_READ | PROT_WRITE, SIZE), 0, 0);
	assert_int_equal(soft_populate(NULL, 0, true), 0);
}

static void read_only_memory_is_not_accepted_for_writing(void **state)
{
	char *at = some_memory(PROT_READ | PROT_WRITE);

	expect(some_memory(PROT_READ), 0, EFAULT);
	expect(file_memory(PROT_READ, SIZE), 0, EFAULT);
	assert_int_equal(mprotect(at + 150 * PAGE, PAGE, PROT_READ), 0);
	expect(at, 0, EFAULT);
}

static void memory_that_does_not_exist_is_not_accepted(void **state)
{
	char *hole = some_memory(PROT_READ | PROT_WRITE), *end = some_memory(PROT_READ | PROT_WRITE);

	munmap(hole + 100 * PAGE, PAGE);
	expect(hole, EFAULT, EFAULT);
	munmap(end + SIZE - PAGE, PAGE);
	expect(end, EFAULT, EFAULT);
	expect(some_memory(PROT_NONE), EFAULT, EFAULT);
	assert_int_equal(soft_populate((char *)UINTPTR_MAX - 100, 100, false), EFAULT);
	assert_int_equal(soft_populate((char *)UINTPTR_MAX - 100, 200, false), EFAULT);
}

static void pages_behind_the_end_of_a_file_are_not_accepted(void **state)
{
	expect(file_memory(PROT_READ | PROT_WRITE, SIZE - PAGE), EFAULT, EFAULT);
	expect(file_memory(PROT_READ | PROT_WRITE, 0), EFAULT, EFAULT);
}

static void populating_keeps_the_contents(void **state)
{
	char *at = some_memory(PROT_READ | PROT_WRITE);

	memset(at, 0x5a, SIZE);
	assert_int_equal(soft_populate(at, SIZE, true), 0);
	for (int i = 0; i < SIZE; i++)
		assert_int_equal(at[i], 0x5a);
	munmap(at, SIZE);
}

static bool is_present(char *page)
{
	unsigned char present = 0;

	assert_int_equal(mincore(page, PAGE, &present), 0);
	return present & 1;
}

/* One TiB of address space that is reserved only; 32 bits have not as much. */
static void a_huge_region_is_not_touched(void **state)
{
	size_t size = sizeof size == 8 ? (size_t)(1ull << 40) : 0;
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED) /* 0 bytes, too */
		skip();
	assert_int_equal(soft_populate(at, size, true), 0);
	assert_false(is_present(at));
	assert_false(is_present(at + size / 2));
	assert_int_equal(mprotect(at + size / 2, PAGE, PROT_READ), 0);
	assert_int_equal(soft_populate(at, size, true), EFAULT);
	assert_int_equal(soft_populate(at, size, false), 0);
	munmap(at + size / 2, PAGE);
	assert_int_equal(soft_populate(at, size, false), EFAULT);
	munmap(at, size);
}

static void pages_become_present(void **state)
{
	char *at = some_memory(PROT_READ | PROT_WRITE);

	assert_int_equal(soft_populate(at, SIZE, true), 0);
	for (int i = 0; i < PAGES; i++)
		assert_true(is_present(at + i * PAGE));
	munmap(at, SIZE);
}

/* Only whole huge pages, since a larger range would make memory of the program present that it has not registered. */
static void whole_huge_pages_are_advised(void **state)
{
	char *at = mmap(NULL, 5 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *first = at + HUGE_PAGE - (uintptr_t)at % HUGE_PAGE;

	assert_true(at != MAP_FAILED);
	huge.count = 0;
	soft_populate_advise_huge(first + 1, 3 * HUGE_PAGE);
	assert_int_equal(huge.count, 1);
	assert_ptr_equal(huge.at, first + HUGE_PAGE);
	assert_int_equal(huge.length, 2 * HUGE_PAGE);
	soft_populate_advise_huge(first, HUGE_PAGE);
	assert_int_equal(huge.count, 2);
	assert_ptr_equal(huge.at, first);
	assert_int_equal(huge.length, HUGE_PAGE);
	assert_false(is_present(first));
	munmap(at, 5 * HUGE_PAGE);
}

static void a_region_without_a_whole_huge_page_gets_no_advice(void **state)
{
	char *at = (char *)(uintptr_t)(64 * HUGE_PAGE);

	huge.count = 0;
	soft_populate_advise_huge(at, HUGE_PAGE - 1);
	soft_populate_advise_huge(at + 1, 2 * HUGE_PAGE - 2);
	soft_populate_advise_huge(at, 0);
	soft_populate_advise_huge(NULL, 0);
	soft_populate_advise_huge((char *)UINTPTR_MAX - 100, 100);
	assert_int_equal(huge.count, 0);
}

/* It is a reservation. */
static void a_region_that_is_not_populated_gets_no_advice(void **state)
{
	huge.count = 0;
	soft_populate_advise_huge((char *)(uintptr_t)HUGE_PAGE, SIZE_MAX / 2);
	assert_int_equal(huge.count, 0);
}

/* The kernel reports ENOMEM for both. */
static void missing_memory_differs_from_missing_pages(void **state)
{
	char *at = some_memory(PROT_READ | PROT_WRITE);

	failure = ENOMEM;
	assert_int_equal(soft_populate(at, SIZE, true), ENOMEM);
	munmap(at + PAGE, PAGE);
	assert_int_equal(soft_populate(at, SIZE, true), EFAULT);
	failure = 0;
	munmap(at, SIZE);
}

UNIT_FIXTURE(begin_old_kernel)
{
	old_kernel = true;
	refused = 0;
}

static int end_old_kernel(void **state)
{
	old_kernel = false;
	return refused ? 0 : -1;
}

static int needs_populating(void **state)
{
	*state = NULL;
	return __real_madvise(some_memory(PROT_READ), 0, 22) ? -1 : 0;
}

#define OLD(test) { #test " (old kernel)", test, begin_old_kernel, end_old_kernel, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_with_the_rights_is_accepted),
		cmocka_unit_test(read_only_memory_is_not_accepted_for_writing),
		cmocka_unit_test(memory_that_does_not_exist_is_not_accepted),
		cmocka_unit_test(pages_behind_the_end_of_a_file_are_not_accepted),
		cmocka_unit_test(populating_keeps_the_contents),
		cmocka_unit_test(a_huge_region_is_not_touched),
		cmocka_unit_test(whole_huge_pages_are_advised),
		cmocka_unit_test(a_region_without_a_whole_huge_page_gets_no_advice),
		cmocka_unit_test(a_region_that_is_not_populated_gets_no_advice),
		OLD(memory_with_the_rights_is_accepted),
		OLD(read_only_memory_is_not_accepted_for_writing),
		OLD(memory_that_does_not_exist_is_not_accepted),
		OLD(pages_behind_the_end_of_a_file_are_not_accepted),
		OLD(populating_keeps_the_contents),
	};
	const struct CMUnitTest with_populating[] = {
		cmocka_unit_test(pages_become_present),
		cmocka_unit_test(missing_memory_differs_from_missing_pages),
	};
	void *none = NULL;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (needs_populating(&none))
		return failed;
	return failed + cmocka_run_group_tests(with_populating, NULL, NULL);
}
