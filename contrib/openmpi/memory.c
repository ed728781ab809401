/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.c - registered memory of the component, to which peers write. It is registered as
 * shared memory, from an anonymous file, so that a provider may let peers on this host map it
 * (libdaplsoft does). Providers without shared memory register it as ordinary memory. */
#include "memory.h"
#include "common/file_size.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#define MFD_ALLOW_SEALING 2u
#endif

/* Returns a file whose size is sealed, or -1. */
static int create_memfd(size_t size)
{
	int fd = memfd_create("btl-udapl", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !file_set_size(fd, size) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void *map(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The cookie is unique on this host. */
static DAT_REGION_DESCRIPTION shared(const struct udapl_memory *memory, char (*name)[DAT_LMR_COOKIE_SIZE])
{
	static volatile int32_t last;

	memset(*name, 0, sizeof *name);
	snprintf(*name, sizeof *name, "btl-udapl %lx %x", (long)getpid(),
		 (unsigned)udapl_add(&last, 1));
	return (DAT_REGION_DESCRIPTION){ .for_shared_memory = { memory->base, name } };
}

static bool register_as(mca_btl_udapl_module_t *m, struct udapl_memory *memory, DAT_MEM_TYPE type,
			DAT_REGION_DESCRIPTION region, bool remote)
{
	unsigned may = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	DAT_VLEN length;
	DAT_VADDR at;

	if (remote)
		may |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	return dat_lmr_create(m->ia, type, region, memory->size, m->pz, (DAT_MEM_PRIV_FLAGS)may,
			      DAT_VA_TYPE_VA, &memory->lmr, &memory->lmr_context,
			      &memory->rmr_context, &length, &at) == DAT_SUCCESS;
}

bool udapl_memory_alloc(mca_btl_udapl_module_t *m, struct udapl_memory *memory, size_t size, bool remote)
{
	int fd = remote ? create_memfd(size) : -1;
	char name[DAT_LMR_COOKIE_SIZE];
	DAT_REGION_DESCRIPTION region;
	bool done = false;

	memory->size = size;
	memory->shared = false;
	memory->base = map(fd, size);
	region.for_va = memory->base;
	if (memory->base && fd >= 0)
		done = memory->shared = register_as(m, memory, DAT_MEM_TYPE_SHARED_VIRTUAL, shared(memory, &name),
						    remote);
	if (memory->base && !done)
		done = register_as(m, memory, DAT_MEM_TYPE_VIRTUAL, region, remote);
	if (memory->base && !done) {
		munmap(memory->base, size);
		memory->base = NULL;
	}
	if (fd >= 0)
		close(fd);
	return done;
}

void udapl_memory_free(struct udapl_memory *memory)
{
	if (!memory->base)
		return;
	dat_lmr_free(memory->lmr);
	munmap(memory->base, memory->size);
	memory->base = NULL;
}
