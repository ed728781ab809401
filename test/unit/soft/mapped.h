/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.h - memory of ends[1] that ends[0] can map: a sealed memory file, registered under a name (mapped.c). */
#ifndef TEST_SOFT_MAPPED_H
#define TEST_SOFT_MAPPED_H
#include <fcntl.h>
#include "test/unit/soft/ends.h"

enum {
	PAGE = 4096, SIZE = 64 * PAGE, SEALS = F_SEAL_SHRINK | F_SEAL_GROW,
	WRITABLE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	ALL = WRITABLE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};
extern const char region_name[40];	/* of LMR cookies' length */

struct shared {
	int fd;
	char *at;
	struct ibv_mr *mr;
};

/* A memory file of SIZE bytes with these seals, mapped, not registered. */
struct shared shared_memory(int seals);
struct ibv_mr *registered(const struct end *e, void *at, size_t length, int access, const void *as);
void free_shared(struct shared *s);
/* Opens two ends; the second has such memory. */
struct shared open_shared(void);
void close_shared(struct shared *s);
/* Posts a write from ends[0] to it. */
void write_there(const struct shared *s, uint32_t length, uint32_t offset);
/* The number of requests of ends[0] that were executed on mapped memory. */
unsigned mapped(void);
/* Returns whether a write to the region works and is executed by this process. */
bool is_mapped_here(struct ibv_mr *mr, const char *at);

#endif
