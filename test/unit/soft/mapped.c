/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.c - see mapped.h. */
#include "test/unit/soft/mapped.h"
#include <string.h>
#include <sys/mman.h>

const char region_name[40] = "a name";

struct shared shared_memory(int seals)
{
	struct shared s = { .fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING) };

	assert_true(s.fd >= 0);
	OK(ftruncate(s.fd, SIZE));
	if (seals)
		OK(fcntl(s.fd, F_ADD_SEALS, seals));
	s.at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
	assert_true(s.at != MAP_FAILED);
	return s;
}

struct ibv_mr *registered(const struct end *e, void *at, size_t length, int access, const void *as)
{
	struct ibv_mr *mr;

	OK(ops->reg_mr(e->pd, at, length, access, as, &mr));
	return mr;
}

void free_shared(struct shared *s)
{
	if (s->mr)
		OK(ops->dereg_mr(s->mr));
	munmap(s->at, SIZE);
	close(s->fd);
}

struct shared open_shared(void)
{
	struct shared s = shared_memory(SEALS);

	if (!cma_works())
		skip();
	open_two(0);
	s.mr = registered(&ends[1], s.at, SIZE, ALL, region_name);
	return s;
}

void close_shared(struct shared *s)
{
	free_shared(s);
	close_two();
}

void write_there(const struct shared *s, uint32_t length, uint32_t offset)
{
	post(&ends[0], IBV_WR_RDMA_WRITE, length, (uintptr_t)s->at + offset, s->mr->rkey);
}

unsigned mapped(void) { return ends[0].conn->shm->mapped; }

bool is_mapped_here(struct ibv_mr *mr, const char *at)
{
	unsigned before = mapped();

	pattern(ends[0].buf, 100, 5);
	post(&ends[0], IBV_WR_RDMA_WRITE, 100, (uintptr_t)at, mr->rkey);
	done(&ends[0]);
	settle(&ends[1]);
	assert_true(has_pattern(at, 100, 5));
	return mapped() != before;
}
