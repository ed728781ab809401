/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm_segment.c - which memory a segment gets, what is kept of it for the next one, and when its references
 * end. */
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

enum { USERS = 100 };

static struct shm_process initiator, acceptor;
static unsigned maps, unmaps;	/* of memory for segments */
static unsigned given_back;	/* calls that return pages to the system */
static bool no_memory;

EXTEND(mmap64, munmap, madvise)

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (size == sizeof(struct ring_memory)) {
		assert_int_equal(protection, PROT_READ | PROT_WRITE);
		if (no_memory)
			return MAP_FAILED;
		maps++;
	}
	return __real_mmap64(at, size, protection, flags, fd, offset);
}

/* References to a process that were dropped: the test has USERS of each. */
static int puts_of(const struct shm_process *process) { return USERS - (int)process->refs; }

int __wrap_munmap(void *at, size_t length)
{
	unmaps += length == sizeof(struct ring_memory);
	return __real_munmap(at, length);
}

int __wrap_madvise(void *at, size_t length, int advice)
{
	given_back += advice == MADV_DONTNEED;
	return __real_madvise(at, length, advice);
}

UNIT_FIXTURE(set_up)
{
	initiator.refs = acceptor.refs = USERS;
	maps = unmaps = given_back = 0;
	no_memory = false;
}

UNIT_FIXTURE(tear_down) { shm_segment_drop_spares(); }

static struct shm_segment *within(void)
{
	struct shm_segment *segment = shm_segment_new(-1, &initiator, &acceptor);

	assert_non_null(segment);
	return segment;
}

UNIT_CASE(segment_lives_until_its_last_reference)
{
	struct shm_segment *segment = within();

	assert_true(segment->here);
	assert_ptr_equal(segment->process[0], &initiator);
	assert_ptr_equal(segment->process[1], &acceptor);
	assert_ptr_equal(shm_segment_get(segment), segment);
	shm_segment_put(segment);
	assert_int_equal(puts_of(&initiator) + puts_of(&acceptor), 0);
	shm_segment_put(segment);
	assert_int_equal(puts_of(&initiator), 1);
	assert_int_equal(puts_of(&acceptor), 1);
	shm_segment_put(NULL);
	assert_int_equal(puts_of(&initiator), 1);
}

UNIT_CASE(pages_are_given_back_if_they_were_used)
{
	struct shm_segment *segment = within();

	shm_segment_put(segment);
	assert_int_equal(given_back, 0);
	segment = within();
	segment->memory->slot[0][0].seq = 1;
	segment->memory->slot[0][0].length = RING_INLINE + 1;
	segment->memory->bulk[0][0] = segment->memory->bulk[1][RING_BULK - 1] = 'x';
	shm_segment_put(segment);
	assert_int_equal(given_back, 1);
	segment = within();
	assert_int_equal(segment->memory->bulk[0][0], 0);
	assert_int_equal(segment->memory->bulk[1][RING_BULK - 1], 0);
	shm_segment_put(segment);
}

UNIT_CASE(spare_memory_is_limited)
{
	struct shm_segment *segment[SPARES_MAX + 2];

	for (int i = 0; i < SPARES_MAX + 2; i++)
		segment[i] = within();
	for (int i = 0; i < SPARES_MAX + 2; i++) {
		shm_segment_put(segment[i]);
		assert_int_equal(unmaps, i < SPARES_MAX ? 0 : i - SPARES_MAX + 1);
	}
	shm_segment_drop_spares();
	assert_int_equal(unmaps, SPARES_MAX + 2);
	shm_segment_put(within());
	assert_int_equal(maps, SPARES_MAX + 3);
}

/* Another process may still write to the memory of a file. */
UNIT_CASE(memory_of_a_file_is_not_kept)
{
	int fd = sealed_file_new(sizeof(struct ring_memory), F_SEAL_SHRINK | F_SEAL_GROW);
	struct shm_segment *segment, *again;

	shm_segment_put(within());	/* a spare one, which is of no use here */
	segment = shm_segment_new(fd, &initiator, &acceptor);
	again = shm_segment_new(fd, &initiator, &acceptor);
	assert_non_null(segment);
	assert_non_null(again);
	assert_false(segment->here);
	assert_int_equal(maps, 3);
	segment->memory->bulk[0][5] = 'x';
	assert_int_equal(again->memory->bulk[0][5], 'x');
	shm_segment_put(segment);
	shm_segment_put(again);
	assert_int_equal(unmaps, 2);
	close(fd);
}

UNIT_CASE(segment_without_memory_drops_its_processes)
{
	no_memory = true;
	assert_null(shm_segment_new(-1, &initiator, &acceptor));
	assert_int_equal(puts_of(&initiator), 1);
	assert_int_equal(puts_of(&acceptor), 1);
}

/* The child has none of its parent's memory (MADV_DONTFORK). */
UNIT_CASE(child_maps_memory_of_its_own)
{
	struct shm_segment *segment = within();
	struct ring_memory *memory = segment->memory;

	shm_segment_put(segment);
	shm_segment_fork_prepare();
	shm_segment_fork_done();
	shm_segment_fork_child();
	segment = within();
	assert_int_equal(maps, 2);
	assert_ptr_not_equal(segment->memory, memory);
	shm_segment_put(segment);
	assert_int_equal(__real_munmap(memory, sizeof *memory), 0);
}

UNIT_MAIN(NULL, NULL)
