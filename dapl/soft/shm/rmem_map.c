/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmem_map.c - memory that an application shares between processes anyway is mapped by peers, which
 * store what they write there and load what they read: no message, no system call, and the target
 * has nothing to do. The permission is checked as for every direct access (mr_dir.c).
 *
 * An initiator that writes, or executes an atomic, says that it is within a write, and the target
 * waits for it (revoke.c). Between that and the check of the permission a full fence is needed,
 * which would delay every write, and those before it. So where both processes support it, the
 * target has the kernel make the fence (membarrier). */
#include "dapl/soft/shm/rmem_map.h"
#include "common/compiler.h"
#include "common/mapping.h"
#include "common/once.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/obj/store.h"
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/reach.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* A mapped region of the peer. */
struct rmem_view {
	struct mr_permit permit;
	struct dapl_mapping in;		/* .at: its first byte; NULL: the place is free. .pages:
					 * NULL if the region is of this process */
	bool fenced;			/* the target makes the fence */
};

/* --- the target: which memory can be mapped --------------------------------------------------- */

/* Finds the mapping that contains all of the memory. */
static bool find_mapping(uintptr_t start, size_t length, struct mapping *m)
{
	FILE *list = mapping_open();
	bool found = false;

	while (list && !found && mapping_next(list, m))
		found = m->from <= start && start < m->to;
	if (list)
		fclose(list);
	return found && length <= m->to - start;
}

/* Returns true if the size of the file stays, and each of its pages can be had. hugetlbfs may run out of
 * pages. */
static bool is_lasting(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC;
}

static bool is_file_of(const struct stat *st, const struct mapping *m)
{
	return st->st_dev == m->device && st->st_ino == m->inode;
}

/* Duplicates the descriptor, then checks it: another thread may have put another file in its place
 * meanwhile. */
static int duplicate_if_file(int fd, const struct mapping *m)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	if (own < 0 || (!fstat(own, &st) && is_file_of(&st, m) && is_lasting(own)))
		return own;
	close(own);
	return -1;
}

/* Duplicates any descriptor of this file that the process has; -1: it has none. */
static int find_descriptor(const struct mapping *m)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *each;
	struct stat st;
	int fd = -1;

	while (all && fd < 0 && (each = readdir(all)) != NULL)
		if (each->d_name[0] != '.' && !fstatat(dirfd(all), each->d_name, &st, 0) &&
		    is_file_of(&st, m))
			fd = duplicate_if_file(atoi(each->d_name), m);
	if (all)
		closedir(all);
	return fd;
}

int rmem_map_file(const void *memory, size_t length, uint64_t *offset)
{
	uintptr_t start = (uintptr_t)memory;
	struct mapping m;

	if (!find_mapping(start, length, &m) || !m.shared || !m.inode)
		return -1;
	*offset = m.offset + (start - m.from);
	return find_descriptor(&m);
}

/* --- the initiator: a view of a region --------------------------------------------------------- */

static void drop(struct rmem_view *view)
{
	if (view->in.pages)
		munmap(view->in.pages, view->in.size);
	view->in.at = view->in.pages = NULL;
}

void rmem_map_free(struct shm_conn *shm)
{
	for (int i = 0; shm->views && i < RMEM_VIEWS; i++)
		drop(&shm->views[i]);
	free(shm->views);
}

/* Returns true if the file has the region that the peer describes. */
static bool has_region(int fd, const struct mr_dir_entry *is)
{
	struct stat st;

	return is_lasting(fd) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       is->offset <= (uint64_t)st.st_size &&
	       is->length <= (uint64_t)st.st_size - is->offset;
}

static int map_file(int fd, const struct mr_dir_entry *is, struct dapl_mapping *in)
{
	uint64_t before = is->offset % sysconf(_SC_PAGESIZE);
	void *pages = mmap(NULL, before + is->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   is->offset - before);

	if (pages == MAP_FAILED)
		return ENOMEM;
	in->pages = pages;
	in->size = before + is->length;
	in->at = (char *)pages + before;
	madvise(pages, in->size, MADV_DONTFORK);
	return 0;
}

/* Maps all of the region, in whole pages. */
static int map_region(const struct shm_process *peer, const struct mr_dir_entry *is,
		      struct dapl_mapping *in)
{
	int fd = reach_open_file(peer->pid, is->file);
	int err;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : EOPNOTSUPP;
	err = has_region(fd, is) ? map_file(fd, is, in) : EOPNOTSUPP;
	close(fd);
	return err;
}

static bool fill_view(struct rmem_view *view, const struct shm_process *peer)
{
	if (peer->file < 0)
		return !map_region(peer, &view->permit.is, &view->in);
	view->in.at = (char *)(uintptr_t)view->permit.is.base;	/* of this process */
	return true;
}

/* Returns a free place. The place of a region whose permission was revoked is free again. */
static struct rmem_view *free_place(struct shm_conn *shm)
{
	if (!shm->views)
		shm->views = calloc(RMEM_VIEWS, sizeof *shm->views);
	for (int i = 0; shm->views && i < RMEM_VIEWS; i++) {
		struct rmem_view *view = &shm->views[i];

		if (view->in.at && !mr_permit_still_valid(&view->permit))
			drop(view);
		if (!view->in.at)
			return view;
	}
	return NULL;
}

/* Maps a region. One that cannot be mapped is remembered (proto.h), and not tried again
 * until another one failed. */
static NOINLINE struct rmem_view *make_view(struct dapl_conn *conn, uint32_t stag)
{
	struct shm_conn *shm = conn->shm;
	struct mr_permit permit;
	struct rmem_view *view = NULL;

	if (!conn->dev->want_map ||
	    !mr_permit_find(conn, stag, SOFT_REMOTE_ACCESS, &permit))
		return NULL;
	if (permit.is.file >= 0 && !((soft_detours(conn->dev) & SOFT_GUARDED) && shm->peer->file >= 0)) {
		WRITE_ONCE(shm_own_writer(conn)->maps, 1);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!mr_permit_is_valid(&permit))
			return NULL;
		view = reach_memory(shm->peer) ? free_place(shm) : NULL;
	}
	if (view) {
		view->permit = permit;
		view->fenced = shm->peer->mr_dir->fences && reach_fence_joined();
		if (fill_view(view, shm->peer))
			return view;
	}
	proto_cannot_map(shm, stag);
	return NULL;
}

static inline struct rmem_view *find_view(const struct shm_conn *shm, uint32_t stag)
{
	for (int i = 0; shm->views && i < RMEM_VIEWS; i++)
		if (shm->views[i].in.at && shm->views[i].permit.is.stag == stag)
			return &shm->views[i];
	return NULL;
}

/* --- the initiator: access --------------------------------------------------------------------- */

/* The last aligned 8 bytes become visible last. */
static void store(char *at, const char *from, uint32_t length)
{
	uint32_t tail = (uintptr_t)(at + length - 1) % 8 + 1, body;

	if (tail > length)
		tail = length;
	body = length - tail;
	if (likely(body <= RING_INLINE))
		copy_short((uint8_t *)at, (const uint8_t *)from, body);
	else
		memcpy(at, from, body);
	soft_store_tail(at + body, from + body, tail);
}

/* Returns a view of the region, made now or before, that contains these bytes and permitted the access
 * when it was made; else NULL. */
static inline struct rmem_view *view_of(struct dapl_conn *conn, uint32_t stag, uint32_t needed,
					uint64_t remote, uint32_t length)
{
	struct rmem_view *view = find_view(conn->shm, stag);

	if (unlikely(!view))
		view = make_view(conn, stag);
	if (!view || !length || unlikely(!mr_permit_covers(&view->permit, remote, length)) ||
	    unlikely(!(view->permit.is.access & needed)))
		return NULL;
	return view;
}

static inline char *place_of(const struct rmem_view *view, uint64_t remote)
{
	return view->in.at + (remote - view->permit.is.first);
}

/* Ends an access. `might`: it was still permitted. Otherwise the view is dropped. */
static inline bool done_with(struct shm_conn *shm, struct rmem_view *view, bool might)
{
	if (unlikely(!might))
		drop(view);
	else
		shm->mapped++;
	return might;
}

bool rmem_map_write(struct dapl_conn *conn, uint32_t stag, uint64_t remote, const char *from, uint32_t length)
{
	struct rmem_view *view = view_of(conn, stag, IBV_ACCESS_REMOTE_WRITE, remote, length);
	struct ring_writer *own = shm_own_writer(conn);
	bool may;

	if (!view)
		return false;
	access_begin(own, view->fenced);
	may = mr_permit_is_valid(&view->permit);
	if (likely(may))
		store(place_of(view, remote), from, length);
	access_end(own);
	return done_with(conn->shm, view, may);
}

/* The target need not wait for a reader: what was read is discarded if the permission was revoked. */
bool rmem_map_read(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to, uint32_t length)
{
	struct rmem_view *view = view_of(conn, stag, IBV_ACCESS_REMOTE_READ, remote, length);

	if (!view)
		return false;
	memcpy(to, place_of(view, remote), length);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return done_with(conn->shm, view, mr_permit_is_valid(&view->permit));
}

bool rmem_map_atomic(struct dapl_conn *conn, const struct ibv_send_wr *wr, char *to)
{
	bool swap = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP, may;
	uint64_t remote = wr->wr.atomic.remote_addr, data = wr->wr.atomic.compare_add, before = 0;
	struct ring_writer *own = shm_own_writer(conn);
	struct rmem_view *view;

	view = view_of(conn, wr->wr.atomic.rkey, IBV_ACCESS_REMOTE_ATOMIC, remote, sizeof before);
	if (!view || (uintptr_t)place_of(view, remote) % sizeof before)
		return false;
	access_begin(own, view->fenced);
	may = mr_permit_is_valid(&view->permit);
	if (likely(may))
		before = soft_execute_atomic(place_of(view, remote), swap,
					     swap ? wr->wr.atomic.swap : data, data);
	access_end(own);
	if (likely(may))
		memcpy(to, &before, sizeof before);
	return done_with(conn->shm, view, may);
}

/* --- for the application ---------------------------------------------------------------------- */

int rmem_map_for_consumer(const struct dapl_conn *conn, uint32_t stag, uint64_t remote, uint64_t length,
			  struct dapl_mapping *mapping)
{
	struct mr_permit permit;
	int err;

	if (!conn->dev->want_map || !conn->shm || !reach_memory(conn->shm->peer) ||
	    !mr_permit_find(conn, stag, SOFT_REMOTE_ACCESS, &permit) || permit.is.file < 0)
		return EOPNOTSUPP;
	if (!(permit.is.access & IBV_ACCESS_REMOTE_WRITE) ||
	    !mr_permit_covers(&permit, remote, length))
		return EACCES;
	err = map_region(conn->shm->peer, &permit.is, mapping);
	if (!err)
		mapping->at += remote - permit.is.first;
	return err;
}
