/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c - see mr.h. Memory that several processes map is opened as a file, so that peers can map it,
 * too; obj/mem.c keeps the regions. */
#include "dapl/soft/verbs/mr.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/populate.h"
#include "dapl/soft/obj/stags.h"
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/rmem_map.h"
#include <errno.h>

const struct soft_directory soft_mr_directory = {
	.publish = mr_dir_publish, .withdraw = mr_dir_withdraw,
	.wait_for_writers = revoke_wait_for_writers,
};

int soft_mr_reg(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name,
		struct ibv_mr **mr)
{
	struct soft_memory memory = { .at = addr, .length = length, .file = -1 };
	int err;

	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (!name)
		soft_populate_advise_huge(addr, length);
	err = soft_populate(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	/* Processes map shared memory at different addresses; the same name identifies it as the same memory. */
	if (name && (access & SOFT_REMOTE_ACCESS) && soft_device(pd->context)->want_map)
		memory.file = rmem_map_file(addr, length, &memory.offset);
	return soft_mr_add(pd, &memory, access, mr);
}
