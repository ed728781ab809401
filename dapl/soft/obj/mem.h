/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem.h - protection domains and memory regions; says whether an access to a region or a window is allowed and where
 * the memory is. */
#ifndef SOFT_OBJ_MEM_H
#define SOFT_OBJ_MEM_H
#include "common/lock.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* The rights of peers that a region may give. */
enum {
	SOFT_REMOTE_ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_ATOMIC,
};

struct dapl_device;
struct shm_process;
struct soft_qp;
struct soft_swqe;

struct soft_pd {
	struct ibv_pd pd;
	uint64_t id;			/* never 0, never reused */
	unsigned refs;			/* atomic: objects made in it */
};

static inline struct soft_pd *soft_pd(struct ibv_pd *pd)
{
	return (struct soft_pd *)pd;
}

enum soft_region_kind { SOFT_MR, SOFT_WINDOW_1, SOFT_WINDOW_2 };

/* The memory that an STag names. An MR's does not change; a window's is guarded by lock. */
struct soft_region {
	enum soft_region_kind kind;
	struct soft_pd *pd;
	struct dapl_mutex lock;		/* windows: held during an access */
	bool valid;
	uint32_t stag;
	uint64_t first;			/* address of the first byte as peers count it */
	uint64_t length;
	char *base;			/* local address of the first byte */
	int file;			/* MR: descriptor of the file that it maps, if peers may map it, too;
					 * else -1 */
	uint64_t offset;		/* of the region in the file */
	int access;			/* IBV_ACCESS_* */
	struct soft_qp *qp;		/* type 2: bound to this QP only */
	struct soft_region *parent;	/* windows: the MR bound to */
	unsigned windows;		/* MR, atomic: windows bound to it */
};

struct soft_mr {
	struct ibv_mr mr;
	struct soft_region region;
};

/* The MR that a request of a QP named last. Deregistration clears the whole structure, so that it
 * matches 0 bytes only, also if a request names lkey 0. */
struct soft_local {
	uint32_t lkey;
	uint64_t first, length;		/* as in soft_region */
	char *base;
};

/* Sets *at to the memory of a segment that lies in the remembered region. */
static inline bool soft_local_find(const struct soft_local *local, const struct ibv_sge *sge, char **at)
{
	uint64_t offset = sge->addr - local->first;

	if (sge->lkey != local->lkey || offset > local->length || sge->length > local->length - offset)
		return false;
	*at = local->base + offset;
	return true;
}

/* Outcome of a check: codes of RDMAP Terminate type 1, so that they can be sent. */
enum soft_check {
	SOFT_BAD_STAG = 0, SOFT_BOUNDS = 1, SOFT_ACCESS = 2, SOFT_OTHER_STREAM = 3,
	SOFT_WRAP = 4, SOFT_FINE = 100,
};

int soft_pd_alloc(struct dapl_device *dev, struct ibv_pd **pd);
int soft_pd_dealloc(struct ibv_pd *pd);
/* The memory of a region that is to be registered. */
struct soft_memory {
	char *at;
	uint64_t length;
	int file;		/* descriptor of the file that it maps, if peers may map it, too; else -1 */
	uint64_t offset;	/* of the memory in the file */
};
/* Registers memory whose pages are present. Takes over the descriptor, also when it fails. */
int soft_mr_add(struct ibv_pd *pd, const struct soft_memory *memory, int access,
		struct ibv_mr **mr);
int soft_mr_dereg(struct ibv_mr *mr);

/* The functions from here on are called with the lock of a QP held. The memory that they find stays
 * registered until that lock is released. */
/* Checks local memory. Sets *at to its address. */
enum soft_check soft_mem_local(const struct dapl_device *dev, const struct ibv_pd *pd,
			       const struct ibv_sge *sge, int access, char **at);
/* The same check for data that a request of this QP sends; remembers the region in qp->local. */
enum soft_check soft_mem_to_send(struct soft_qp *qp, const struct ibv_sge *sge, char **at);
/* Checks memory that the peer of `qp` names. Sets *at to its address, and *held to the window, locked, or to
 * NULL for a region. The caller passes *held to soft_mem_done(). */
enum soft_check soft_mem_remote(struct soft_qp *qp, uint32_t stag, uint64_t addr,
				uint64_t length, int access, char **at,
				struct soft_region **held);
static inline void soft_mem_done(struct soft_region *held)
{
	if (held)
		dapl_mutex_unlock(&held->lock);
}
/* With DAPL_SOFT_GUARD, returns false if the memory is unmapped or cannot be written. */
bool soft_mem_guard(const struct dapl_device *dev, uint32_t stag, const char *at, uint64_t length);
/* Finds bytes [offset, offset + length) of a segment list, as at most `max` iovecs. Returns the number of
 * iovecs, or -1 if the memory is not registered for this access. */
int soft_mem_slice(const struct dapl_device *dev, const struct ibv_pd *pd,
		   const struct ibv_sge *sge, uint32_t sges, uint64_t offset, uint32_t length,
		   int access, struct iovec *iov, int max);
/* Returns true if all segments of the list are registered for this access. */
bool soft_mem_check_all(const struct dapl_device *dev, const struct ibv_pd *pd,
			const struct ibv_sge *sge, uint32_t sges, int access);

#endif
