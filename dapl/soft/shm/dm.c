/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.c - device memory of the software device: memory that peers on the host read, write and
 * execute atomics in themselves, as they do in mapped memory (rmem_map.c), while its owner sleeps.
 *
 * Each allocation is a file of its own, in whole pages: a peer that keeps an old mapping must not
 * see what a later owner stores (DM-4, 21). The file is sealed, so that no peer can shorten it, and its
 * pages are there from the start. Peers of other hosts, and over TCP, reach it as they reach any memory. */
#include "dapl/soft/shm/dm.h"
#include "common/trace.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/populate.h"
#include "dapl/soft/shm/sealed_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct soft_dm {
	struct ibv_dm dm;
	char *at;
	uint64_t size;		/* bytes, whole pages */
	int file;
};

/* Returns false if less is left. */
static bool reserve(struct dapl_device *dev, uint64_t size)
{
	uint64_t used = __atomic_load_n(&dev->shm.dm_used, __ATOMIC_RELAXED);

	do
		if (size > dev->shm.dm_size || used > dev->shm.dm_size - size)
			return false;
	while (!__atomic_compare_exchange_n(&dev->shm.dm_used, &used, used + size, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

static void give_back(struct dapl_device *dev, uint64_t size)
{
	__atomic_sub_fetch(&dev->shm.dm_used, size, __ATOMIC_RELAXED);
}

static int make_file(struct soft_dm *dm)
{
	int err;

	dm->file = sealed_file_new(dm->size, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (dm->file < 0)
		return errno == EFBIG ? ENOMEM : errno;
	dm->at = sealed_file_map(dm->file, dm->size, PROT_READ | PROT_WRITE);
	err = dm->at ? soft_populate(dm->at, dm->size, true) : errno;
	if (!err)
		return 0;
	if (dm->at)
		munmap(dm->at, dm->size);
	close(dm->file);
	return ENOMEM;
}

int soft_dm_alloc(struct dapl_device *dev, uint64_t length, unsigned log_align, struct ibv_dm **dm)
{
	uint64_t page = sysconf(_SC_PAGESIZE), size = (length + page - 1) & ~(page - 1);
	struct soft_dm *new;
	int err;

	if (1ull << log_align > page)
		return EINVAL;
	if (!reserve(dev, size))
		return ENOMEM;
	new = calloc(1, sizeof *new);
	if (new)
		new->size = size;
	err = new ? make_file(new) : ENOMEM;
	if (err) {
		give_back(dev, size);
		free(new);
		return err;
	}
	new->dm.context = &dev->verbs;
	*dm = &new->dm;
	return 0;
}

int soft_dm_free(struct ibv_dm *ibdm)
{
	struct soft_dm *dm = (struct soft_dm *)ibdm;

	munmap(dm->at, dm->size);
	close(dm->file);
	give_back(soft_device(ibdm->context), dm->size);
	free(dm);
	return 0;
}

/* A region that gets no descriptor is not mapped by peers: its owner executes their requests. DM-15,
 * 16, 17. */
int soft_dm_reg(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset, uint64_t length, int access,
		struct ibv_mr **mr)
{
	struct soft_dm *dm = (struct soft_dm *)ibdm;
	struct soft_memory memory = {
		.at = dm->at + offset, .length = length, .file = -1, .offset = offset,
	};

	if ((access & SOFT_REMOTE_ACCESS) && soft_device(pd->context)->want_map)
		memory.file = fcntl(dm->file, F_DUPFD_CLOEXEC, 0);
	return soft_mr_add(pd, &memory, access | IBV_ACCESS_ZERO_BASED, mr);
}

int soft_dm_copy(struct ibv_dm *ibdm, uint64_t offset, void *host, uint64_t length, bool to_device)
{
	char *at = ((struct soft_dm *)ibdm)->at + offset;

	if (to_device)
		memcpy(at, host, length);
	else
		memcpy(host, at, length);
	return 0;
}

int soft_dm_map(struct ibv_dm *ibdm, void **at)
{
	*at = ((struct soft_dm *)ibdm)->at;
	return 0;
}
