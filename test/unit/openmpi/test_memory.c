/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_memory.c - registered memory of the component: what is mapped and registered, the privileges of peers, and that
 * nothing remains after a failure. */
#include "test/unit/openmpi/btl.h"
#include <sys/resource.h>
#include "contrib/openmpi/memory.h"
#include "test/unit/unit.h"

enum { SIZE = 64 << 10 };
enum { LOCAL = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG };

static struct udapl_memory memory;
static int lmrs_before;

/* Steps that fail from now on. */
static bool no_file, no_size, no_map;
static int files, mappings;	/* files that are open, mappings that exist */
static int seals;		/* of the last file */
static size_t file_size;

EXTEND(memfd_create, ftruncate, mmap, munmap, close)

int __wrap_memfd_create(const char *name, unsigned flags)
{
	int fd;

	if (no_file) {
		errno = EMFILE;
		return -1;
	}
	fd = __real_memfd_create(name, flags);
	assert_true(fd >= 0);
	files++;
	return fd;
}

int __wrap_ftruncate(int fd, off_t size)
{
	if (no_size) {
		errno = ENOSPC;
		return -1;
	}
	return __real_ftruncate(fd, size);
}

void *__wrap_mmap(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
	if (no_map) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (fd >= 0) {
		seals = fcntl(fd, F_GET_SEALS);
		file_size = (size_t)lseek(fd, 0, SEEK_END);
	}
	mappings++;
	return __real_mmap(at, size, access, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
	mappings--;
	return __real_munmap(at, size);
}

int __wrap_close(int fd)
{
	files--;
	return __real_close(fd);
}

UNIT_FIXTURE(begin)
{
	btl_begin(state);
	no_file = no_size = no_map = false;
	files = mappings = seals = 0;
	file_size = 0;
	memset(&memory, 0, sizeof memory);
	lmrs_before = lmrs;
}

static bool alloc(bool remote) { return udapl_memory_alloc(&module, &memory, SIZE, remote); }

static void free_all(void)
{
	udapl_memory_free(&memory);
	assert_null(memory.base);
	assert_int_equal(lmrs, lmrs_before);
	assert_int_equal(mappings, 0);
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

/* --- what is made ------------------------------------------------------------------------------ */

CASE(memory_for_peers_is_shared_and_writable)
{
	assert_true(alloc(true));
	assert_int_equal(lmr_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
	assert_int_equal(lmr_privileges, LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	assert_int_equal(memory.size, SIZE);
	assert_int_equal(lmr_length, SIZE);
	assert_ptr_equal(lmr_region.for_shared_memory.virtual_address, memory.base);
	assert_int_not_equal(memory.lmr_context, memory.rmr_context);
	memset(memory.base, 1, SIZE);
	free_all();
}

CASE(own_memory_is_closed_to_peers)
{
	assert_true(alloc(false));
	assert_int_equal(lmr_type, DAT_MEM_TYPE_VIRTUAL);
	assert_int_equal(lmr_privileges, LOCAL);
	assert_ptr_equal(lmr_region.for_va, memory.base);
	assert_int_equal(seals, 0);	/* no file */
	memset(memory.base, 1, SIZE);
	free_all();
}

/* A peer that maps it would get SIGBUS beyond the end of a file that was shortened. */
CASE(size_of_shared_memory_is_sealed)
{
	assert_true(alloc(true));
	assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(file_size, SIZE);
	free_all();
}

CASE(file_is_closed_when_it_is_mapped)
{
	assert_true(alloc(true));
	assert_int_equal(files, 0);
	assert_int_equal(mappings, 1);
	free_all();
}

/* The provider finds the region of another process by it. */
CASE(every_region_has_a_name_of_its_own)
{
	char names[2][DAT_LMR_COOKIE_SIZE], own[32];
	struct udapl_memory first;

	assert_true(alloc(true));
	memcpy(names[0], lmr_name, sizeof lmr_name);
	first = memory;
	assert_true(alloc(true));
	memcpy(names[1], lmr_name, sizeof lmr_name);
	assert_memory_not_equal(names[0], names[1], DAT_LMR_COOKIE_SIZE);
	snprintf(own, sizeof own, "btl-udapl %lx ", (long)getpid());
	for (int i = 0; i < 2; i++) {
		assert_non_null(memchr(names[i], 0, DAT_LMR_COOKIE_SIZE));
		assert_memory_equal(names[i], own, strlen(own));	/* no other process has it */
	}
	udapl_memory_free(&first);
	free_all();
}

/* --- failures ---------------------------------------------------------------------------------- */

CASE(memory_that_cannot_be_shared_is_registered_all_the_same)
{
	bool *const steps[] = { &no_file, &no_size };

	for (int i = 0; i < 2; i++) {
		*steps[i] = true;
		assert_true(alloc(true));
		*steps[i] = false;
		assert_int_equal(lmr_type, DAT_MEM_TYPE_VIRTUAL);
		assert_int_equal(lmr_privileges, LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
		assert_int_equal(files, 0);
		memset(memory.base, 1, SIZE);
		free_all();
	}
}

/* The program goes on, without a signal. */
CASE(memory_beyond_the_limit_of_files_is_registered_all_the_same)
{
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ SIZE - 1, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_true(alloc(true));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(lmr_type, DAT_MEM_TYPE_VIRTUAL);
	assert_int_equal(files, 0);
	memset(memory.base, 1, SIZE);
	free_all();
}

CASE(device_without_shared_memory_gets_ordinary_memory)
{
	lmr_refused_type = DAT_MEM_TYPE_SHARED_VIRTUAL;
	assert_true(alloc(true));
	assert_int_equal(lmr_type, DAT_MEM_TYPE_VIRTUAL);
	assert_int_equal(lmr_privileges, LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	assert_ptr_equal(lmr_region.for_va, memory.base);
	free_all();
}

CASE(failure_leaves_nothing)
{
	for (int i = 0; i < 4; i++) {
		no_map = i / 2 == 0;
		lmr_create_result = i / 2 ? UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE) : DAT_SUCCESS;
		memory.base = (char *)1;
		assert_false(alloc(i % 2));
		assert_null(memory.base);
		assert_int_equal(files, 0);
		free_all();
	}
}

static void memory_is_still_mapped(void) { assert_int_equal(mappings, 1); }

/* The peer may not write to what is mapped there next. */
CASE(region_is_freed_before_its_memory)
{
	assert_true(alloc(true));
	during_lmr_free = memory_is_still_mapped;
	udapl_memory_free(&memory);
	during_lmr_free = NULL;
	assert_int_equal(mappings, 0);
}

CASE(memory_is_freed_once)
{
	udapl_memory_free(&memory);	/* none */
	assert_true(alloc(false));
	free_all();
	free_all();
}

UNIT_MAIN(NULL, NULL)
