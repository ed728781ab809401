/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.c - memory that a consumer shares between processes anyway is mapped by peers, who
 * store what they write there, and load what they read: no message, no system call, and the
 * target has nothing to do. Whether a peer may is checked as for every direct access (direct.c).
 *
 * Who writes, or executes an atomic, says that it is within that, and the target waits for it (gate.c). The fence
 * between that and the look at the permission is in the way of every write, and of those
 * before it; so, where both can, the target has the kernel make it (membarrier). */
#include "dapl/soft/soft.h"
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
#include "common/mapping.h"

enum {
	VIEWS = 4,			/* regions of the peer's, a connection; more are not mapped */
};

/* A region of the peer's, mapped. */
struct soft_view {
	struct soft_permit permit;
	struct dapl_mapping in;		/* .at: its first byte; NULL: the place is free. .pages: NULL:
					 * the region is of this process */
	bool fenced;			/* the target fences for us */
};

/* --- the target: which memory ---------------------------------------------------------------- */

/* The mapping that all of it is in. */
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

/* Its size stays, and no page of it can fail to be there: hugetlbfs may run out of them. */
static bool is_lasting(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC;
}

static bool is_of(const struct stat *st, const struct mapping *m)
{
	return st->st_dev == m->device && st->st_ino == m->inode;
}

/* A descriptor of our own; another thread may have put something else in its place meanwhile. */
static int take(int fd, const struct mapping *m)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	if (own < 0 || (!fstat(own, &st) && is_of(&st, m) && is_lasting(own)))
		return own;
	close(own);
	return -1;
}

/* Any descriptor of this file that the process has, once more; -1: it has none. */
static int find_descriptor(const struct mapping *m)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *each;
	struct stat st;
	int fd = -1;

	while (all && fd < 0 && (each = readdir(all)) != NULL)
		if (each->d_name[0] != '.' && !fstatat(dirfd(all), each->d_name, &st, 0) &&
		    is_of(&st, m))
			fd = take(atoi(each->d_name), m);
	if (all)
		closedir(all);
	return fd;
}

int soft_mapped_file(const void *memory, size_t length, uint64_t *offset)
{
	uintptr_t start = (uintptr_t)memory;
	struct mapping m;

	if (!find_mapping(start, length, &m) || !m.shared || !m.inode)
		return -1;
	*offset = m.offset + (start - m.from);
	return find_descriptor(&m);
}

/* --- the initiator: a view of a region --------------------------------------------------------- */

static void drop(struct soft_view *view)
{
	if (view->in.pages)
		munmap(view->in.pages, view->in.size);
	view->in.at = view->in.pages = NULL;
}

void soft_mapped_free(struct soft_pair *pair)
{
	for (int i = 0; pair->views && i < VIEWS; i++)
		drop(&pair->views[i]);
	free(pair->views);
}

/* Does the file have what the peer says? */
static bool has_region(int fd, const struct board_entry *is)
{
	struct stat st;

	return is_lasting(fd) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       is->offset <= (uint64_t)st.st_size &&
	       is->length <= (uint64_t)st.st_size - is->offset;
}

static int map_file(int fd, const struct board_entry *is, struct dapl_mapping *in)
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

/* All of the region, in whole pages. */
static int map_region(const struct soft_station *peer, const struct board_entry *is,
		      struct dapl_mapping *in)
{
	int fd = soft_direct_open(peer->pid, is->file);
	int err;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : EOPNOTSUPP;
	err = has_region(fd, is) ? map_file(fd, is, in) : EOPNOTSUPP;
	close(fd);
	return err;
}

static bool fill_view(struct soft_view *view, const struct soft_station *peer)
{
	if (peer->file < 0)
		return !map_region(peer, &view->permit.is, &view->in);
	view->in.at = (char *)(uintptr_t)view->permit.is.base;	/* this process's */
	return true;
}

/* Of a region that is gone, the place can be used again. */
static struct soft_view *free_place(struct soft_pair *pair)
{
	if (!pair->views)
		pair->views = calloc(VIEWS, sizeof *pair->views);
	for (int i = 0; pair->views && i < VIEWS; i++) {
		struct soft_view *view = &pair->views[i];

		if (view->in.at && !soft_permit_holds(&view->permit))
			drop(view);
		if (!view->in.at)
			return view;
	}
	return NULL;
}

/* What does not become a view is remembered, and not tried again before another was. */
static __attribute__((noinline)) struct soft_view *make_view(struct dapl_conn *conn, uint32_t stag)
{
	struct soft_pair *pair = conn->pair;
	struct soft_permit permit;
	struct soft_view *view = NULL;

	if (!conn->dev->want_direct ||
	    !soft_permit_find(conn, stag, SOFT_REMOTE_ACCESS, &permit))
		return NULL;
	if (permit.is.file >= 0) {
		STORE(soft_own_writer(conn)->maps, 1);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!soft_permit_is_there(&permit))
			return NULL;
		view = soft_direct_reaches(pair->peer) ? free_place(pair) : NULL;
	}
	if (view) {
		view->permit = permit;
		view->fenced = pair->peer->board->fences && soft_gate_is_fenced();
		if (fill_view(view, pair->peer))
			return view;
	}
	pair->unmapped = stag;
	return NULL;
}

static inline struct soft_view *find_view(const struct soft_pair *pair, uint32_t stag)
{
	for (int i = 0; pair->views && i < VIEWS; i++)
		if (pair->views[i].in.at && pair->views[i].permit.is.stag == stag)
			return &pair->views[i];
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
		ring_copy((uint8_t *)at, (const uint8_t *)from, body);
	else
		memcpy(at, from, body);
	soft_store_tail(at + body, from + body, tail);
}

/* The region that all of this lies in and that this may be done to, as far as is known. */
static inline struct soft_view *view_of(struct dapl_conn *conn, uint32_t stag, uint32_t needed,
					uint64_t remote, uint32_t length)
{
	struct soft_view *view = find_view(conn->pair, stag);

	if (unlikely(!view))
		view = make_view(conn, stag);
	if (!view || !length || unlikely(!soft_permit_covers(&view->permit, remote, length)) ||
	    unlikely(!(view->permit.is.access & needed)))
		return NULL;
	return view;
}

static inline char *place_of(const struct soft_view *view, uint64_t remote)
{
	return view->in.at + (remote - view->permit.is.first);
}

/* What was to be done has been, if it still might. */
static inline bool done_with(struct soft_pair *pair, struct soft_view *view, bool might)
{
	if (unlikely(!might))
		drop(view);
	else
		pair->mapped++;
	return might;
}

bool soft_mapped_write(struct dapl_conn *conn, uint32_t stag, uint64_t remote, const char *from,
		       uint32_t length)
{
	struct soft_view *view = view_of(conn, stag, IBV_ACCESS_REMOTE_WRITE, remote, length);
	struct ring_writer *own = soft_own_writer(conn);
	bool may;

	if (!view)
		return false;
	soft_gate_enter(own, view->fenced);
	may = soft_permit_is_there(&view->permit);
	if (likely(may))
		store(place_of(view, remote), from, length);
	soft_gate_leave(own);
	return done_with(conn->pair, view, may);
}

/* Nobody has to wait for who reads: what was read is thrown away if the permission is gone. */
bool soft_mapped_read(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to,
		      uint32_t length)
{
	struct soft_view *view = view_of(conn, stag, IBV_ACCESS_REMOTE_READ, remote, length);

	if (!view)
		return false;
	memcpy(to, place_of(view, remote), length);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return done_with(conn->pair, view, soft_permit_is_there(&view->permit));
}

bool soft_mapped_atomic(struct dapl_conn *conn, const struct ibv_send_wr *wr, char *to)
{
	bool swap = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP, may;
	uint64_t remote = wr->wr.atomic.remote_addr, data = wr->wr.atomic.compare_add, before = 0;
	struct ring_writer *own = soft_own_writer(conn);
	struct soft_view *view;

	view = view_of(conn, wr->wr.atomic.rkey, IBV_ACCESS_REMOTE_ATOMIC, remote, sizeof before);
	if (!view || (uintptr_t)place_of(view, remote) % sizeof before)
		return false;
	soft_gate_enter(own, view->fenced);
	may = soft_permit_is_there(&view->permit);
	if (likely(may))
		before = soft_execute_atomic(place_of(view, remote), swap,
					     swap ? wr->wr.atomic.swap : data, data);
	soft_gate_leave(own);
	if (likely(may))
		memcpy(to, &before, sizeof before);
	return done_with(conn->pair, view, may);
}

/* --- for the consumer himself -------------------------------------------------------------------- */

int soft_mapped_for_consumer(const struct dapl_conn *conn, uint32_t stag, uint64_t remote,
			     uint64_t length, struct dapl_mapping *mapping)
{
	struct soft_permit permit;
	int err;

	if (!conn->dev->want_direct || !conn->pair || !soft_direct_reaches(conn->pair->peer) ||
	    !soft_permit_find(conn, stag, SOFT_REMOTE_ACCESS, &permit) || permit.is.file < 0)
		return EOPNOTSUPP;
	if (!(permit.is.access & IBV_ACCESS_REMOTE_WRITE) ||
	    !soft_permit_covers(&permit, remote, length))
		return EACCES;
	err = map_region(conn->pair->peer, &permit.is, mapping);
	if (!err)
		mapping->at += remote - permit.is.first;
	return err;
}
