/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_segment.c - segments (shm_segment.h). Memory of segments within this process is cleaned and kept
 * for the next one: mapping new memory, with its page faults and the TLB misses of other processors, takes
 * longer than any other step of connecting except TCP. */
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/tunables.h"
#include <stdlib.h>
#include <sys/mman.h>

/* Guards the spare memory; innermost. */
static struct dapl_mutex spares_lock = DAPL_MUTEX_INIT(RANK_SOFT_SPARES);
static struct ring_memory *spare[SPARES_MAX];
static unsigned spares;

static struct ring_memory *spare_take(void)
{
	struct ring_memory *memory = NULL;

	dapl_mutex_lock(&spares_lock);
	if (spares)
		memory = spare[--spares];
	dapl_mutex_unlock(&spares_lock);
	return memory;
}

/* Returns false if there are enough spare segments. */
static bool spare_give(struct ring_memory *memory)
{
	bool room;

	if (ring_memory_clean(memory))
		madvise(memory->bulk, sizeof memory->bulk, MADV_DONTNEED);
	dapl_mutex_lock(&spares_lock);
	room = spares < SPARES_MAX;
	if (room)
		spare[spares++] = memory;
	dapl_mutex_unlock(&spares_lock);
	return room;
}

void shm_segment_drop_spares(void)
{
	struct ring_memory *memory;

	while ((memory = spare_take()))
		munmap(memory, sizeof *memory);
}

struct shm_segment *shm_segment_new(int fd, struct shm_process *initiator,
				    struct shm_process *acceptor)
{
	struct shm_segment *segment = calloc(1, sizeof *segment);

	if (segment && fd < 0)
		segment->memory = spare_take();
	if (segment && !segment->memory)
		segment->memory = sealed_file_map(fd, sizeof(struct ring_memory), PROT_READ | PROT_WRITE);
	if (!segment || !segment->memory) {
		free(segment);
		shm_process_put(initiator);
		shm_process_put(acceptor);
		return NULL;
	}
	segment->refs = 1;
	segment->here = fd < 0;
	segment->process[0] = initiator;
	segment->process[1] = acceptor;
	return segment;
}

struct shm_segment *shm_segment_get(struct shm_segment *segment)
{
	__atomic_add_fetch(&segment->refs, 1, __ATOMIC_RELAXED);
	return segment;
}

void shm_segment_put(struct shm_segment *segment)
{
	if (!segment || __atomic_sub_fetch(&segment->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (!segment->here || !spare_give(segment->memory))
		munmap(segment->memory, sizeof *segment->memory);
	shm_process_put(segment->process[0]);
	shm_process_put(segment->process[1]);
	free(segment);
}

void shm_segment_fork_prepare(void)
{
	dapl_mutex_lock(&spares_lock);
}

void shm_segment_fork_done(void)
{
	dapl_mutex_unlock(&spares_lock);
}

/* The child has none of the memory. */
void shm_segment_fork_child(void)
{
	spares = 0;
}
