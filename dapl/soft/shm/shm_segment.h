/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_segment.h - the memory that both sides of a connection share (ring.h says what is in it), and the
 * processes on its two sides. */
#ifndef SOFT_SHM_SEGMENT_H
#define SOFT_SHM_SEGMENT_H
#include <stdbool.h>
#include "dapl/soft/shm/revoke.h"

struct ring_memory;
struct shm_process;

struct shm_segment {
	unsigned refs;			/* atomic */
	struct ring_memory *memory;
	bool here;			/* both sides are in this process */
	struct shm_process *process[2];	/* the initiator's, the acceptor's */
	struct shm_access access[2];	/* to the memory of the initiator, of the acceptor */
};

/* `fd` is a sealed file with the memory; -1: the segment is within this process. Takes over the
 * references to the processes, also when it fails. NULL: no memory. */
struct shm_segment *shm_segment_new(int fd, struct shm_process *initiator,
				    struct shm_process *acceptor);
struct shm_segment *shm_segment_get(struct shm_segment *segment);
void shm_segment_put(struct shm_segment *segment);	/* may be NULL */
/* Frees the spare memory. */
void shm_segment_drop_spares(void);
void shm_segment_fork_prepare(void);
void shm_segment_fork_done(void);
void shm_segment_fork_child(void);

#endif
