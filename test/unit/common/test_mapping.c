/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_mapping.c - the mappings of this process: bounds, rights, file and offset of each. */
#include <sys/stat.h>
#include "common/mapping.h"
#include "test/unit/unit.h"

/* The mapping that holds an address. False: none does. */
static bool look_up(const void *address, struct mapping *found)
{
	FILE *list = mapping_open();
	bool is_found = false;

	assert_non_null(list);
	while (!is_found && mapping_next(list, found))
		is_found = (uintptr_t)address >= found->from && (uintptr_t)address < found->to;
	fclose(list);
	return is_found;
}

UNIT_TEST(rights_are_told)
{
	static const struct {
		int protection;
		bool readable, writable;
	} rows[] = { { PROT_NONE, false, false }, { PROT_READ, true, false }, { PROT_READ | PROT_WRITE, true, true } };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mapping m;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		void *at = mmap(NULL, page, rows[i].protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_true(at != MAP_FAILED && look_up(at, &m));
		assert_int_equal(m.readable, rows[i].readable);
		assert_int_equal(m.writable, rows[i].writable);
		assert_false(m.shared);
		assert_int_equal(m.inode, 0);
		munmap(at, page);
	}
}

UNIT_TEST(shared_file_has_its_inode_and_offset)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("a name of some length", MFD_CLOEXEC);
	struct stat file;
	struct mapping m;
	char *at;

	assert_true(fd >= 0 && !ftruncate(fd, (off_t)(4 * page)) && !fstat(fd, &file));
	at = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	assert_true(at != MAP_FAILED && look_up(at + page, &m));
	assert_int_equal(m.from, (uintptr_t)at);
	assert_int_equal(m.to, (uintptr_t)at + 2 * page);
	assert_int_equal(m.offset, page);
	assert_int_equal(m.inode, file.st_ino);
	assert_int_equal(m.device, file.st_dev);
	assert_true(m.shared);
	munmap(at, 2 * page);
	close(fd);
}

UNIT_TEST(unmapped_address_is_in_none)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mapping m;

	assert_true(at != MAP_FAILED);
	munmap(at, page);
	assert_false(look_up(at, &m));
}

UNIT_MAIN(NULL, NULL)
