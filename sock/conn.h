/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - the table of the program's descriptors: which of them is a TCP socket or an epoll instance. */
#ifndef SOCK_CONN_H
#define SOCK_CONN_H
#include "common/compiler.h"
#include "sock/conn_types.h"

enum { SLOTS = 1024, SLOT_CHUNKS = 1024 }; /* descriptors up to 2^20 */

struct slot {
	struct conn *conn;
	struct epoll *epoll;
	bool own; /* the library's: the program cannot close it */
	bool dat; /* a DAT library made the socket, or one of this number that was closed */
};
extern struct slot *conn_chunks[SLOT_CHUNKS];
extern struct dapl_mutex sock_lock;
extern struct conn *conn_list; /* of all tracked connections, by `next`, the oldest first; guarded by sock_lock */
extern bool conn_vforked;      /* a child that shares the memory may have been made */
extern int conn_process;       /* the process that the state belongs to: a child of vfork() must not change it */

static ALWAYS_INLINE struct slot *slot_of(int fd)
{
	struct slot *chunk = (unsigned)fd < SLOTS * SLOT_CHUNKS
				     ? __atomic_load_n(&conn_chunks[(unsigned)fd / SLOTS], __ATOMIC_ACQUIRE)
				     : NULL;

	return chunk ? &chunk[(unsigned)fd % SLOTS] : NULL;
}

static ALWAYS_INLINE struct conn *conn_of(int fd)
{
	struct slot *slot = slot_of(fd);

	return slot ? __atomic_load_n(&slot->conn, __ATOMIC_ACQUIRE) : NULL;
}

static inline struct epoll *epoll_of(int fd)
{
	struct slot *slot = slot_of(fd);

	return slot ? __atomic_load_n(&slot->epoll, __ATOMIC_ACQUIRE) : NULL;
}

/* The error of the socket that the library has seen, for the one call of the program that reports it. 0: none. */
static inline int conn_take_error(struct conn *c)
{
	return __atomic_exchange_n(&c->pending_error, 0, __ATOMIC_RELAXED);
}

/* Returns the slot of a descriptor; NULL if it is too large or memory lacks. */
struct slot *conn_slot(int fd);
/* Begins to track a new TCP socket. Returns NULL without memory: the socket is then the kernel's alone. */
struct conn *conn_track(int fd, bool nonblock);
/* Adds `fd` as another descriptor of what `from` is. */
void conn_share(int from, int fd);
/* Takes a descriptor out of the table. Returns the connection if that was its last one. */
struct conn *conn_forget(int fd);
/* Gives the object back for reuse, when nothing refers to it. */
void conn_recycle(struct conn *c);
bool conn_is_vfork_child(void);

/* Returns false if this thread holds the lock: a signal handler interrupted it. */
bool conn_lock_in(struct conn *c);
void conn_unlock_in(struct conn *c);
/* Also false if another thread holds it. */
bool conn_try_lock_in(struct conn *c);
bool conn_lock_out(struct conn *c);
void conn_unlock_out(struct conn *c);
/* For threads of the library and slow paths, which hold no lock. */
bool conn_lock(struct conn *c);
void conn_unlock(struct conn *c);

/* Moves a descriptor of the library out of the way of the program's, and marks it. Closes `fd`. Returns -1 and closes
 * `fd` if there is no room. */
int own_fd(int fd);
/* Marks one that came by a message. */
void own_fd_close(int fd);

void conn_wake(struct conn *c); /* threads of this process that sleep on it */
void conn_wake_peer(struct conn *c);

/* Whether the ring has bytes for a reader, or room for half of it. Locks held as for reading `segment`. */
bool conn_ring_readable(struct conn *c);
bool conn_ring_writable(struct conn *c);

/* Whether the program has set TCP_USER_TIMEOUT. */
bool conn_has_user_timeout(const struct conn *c);

/* Bytes sent and received over TCP as the kernel counts them. False if they do not hold still, or it cannot tell. */
bool conn_kernel_sent(struct conn *c, uint64_t *bytes);
bool conn_kernel_received(struct conn *c, uint64_t *bytes);

void conn_after_fork(void); /* in the child */

#endif
