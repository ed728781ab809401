/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_socket.h - TCP sockets whose data moves to shared memory (libdatsock). See libdatsock(7) and dat_socket(3).
 *
 * Programs need not call any of this: `datsock run PROGRAM` moves connections by itself. A program that links with
 * -ldatsock has the library's read(), write(), poll() ... as if it were preloaded. */
#ifndef DAT_SOCKET_H
#define DAT_SOCKET_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What carries a direction of a connection. */
enum dat_socket_carrier {
	DAT_SOCKET_TCP,
	DAT_SOCKET_MEMORY,	/* a ring in shared memory, on one host */
	DAT_SOCKET_RDMA		/* rings that RDMA writes fill; read[] and written[] count them with MEMORY */
};

/* Why a connection is on TCP. */
enum dat_socket_why {
	DAT_SOCKET_WHY_NONE,		/* it has moved, or nothing is against it */
	DAT_SOCKET_WHY_TRAFFIC,		/* too little traffic yet */
	DAT_SOCKET_WHY_SETTING,		/* enabled, ip_addr_list or port_range_list */
	DAT_SOCKET_WHY_HOST,		/* the peer is on another host or in another network namespace */
	DAT_SOCKET_WHY_USER,		/* the peer's user is not in user_list, or the peer is not its process */
	DAT_SOCKET_WHY_PEER,		/* the peer does not use this library, or has not answered */
	DAT_SOCKET_WHY_MEMORY,		/* max_memory, or no memory or descriptors */
	DAT_SOCKET_WHY_BUSY,		/* a thread was in a call of the kernel */
	DAT_SOCKET_WHY_EXCLUDED,	/* dat_socket_exclude() */
	DAT_SOCKET_WHY_FORK,		/* shared with a child process */
	DAT_SOCKET_WHY_EXEC,		/* inherited by another program */
	DAT_SOCKET_WHY_OPTION,		/* a socket option that only TCP has */
	DAT_SOCKET_WHY_CALL,		/* a call that only TCP has: splice, MSG_OOB, SCM_RIGHTS, fdopen ... */
	DAT_SOCKET_WHY_EPOLL,		/* nested epoll, EPOLLEXCLUSIVE, or an epoll descriptor of unknown origin */
	DAT_SOCKET_WHY_UNSEEN,		/* bytes went past the library */
	DAT_SOCKET_WHY_DRAIN,		/* datsock drain, or dat_socket_back() */
	DAT_SOCKET_WHY_IDLE,		/* it was idle while memory or descriptors were short */
	DAT_SOCKET_WHY_OWNER,		/* the process has changed its user since the socket was made */
	DAT_SOCKET_WHY_ADAPTER		/* a call of DAT has failed, or a DAT connection has broken */
};

struct dat_socket_info {
	uint32_t size;			/* in: sizeof(struct dat_socket_info) as the caller knows it */
	uint8_t in, out;		/* enum dat_socket_carrier */
	uint16_t why_not;		/* enum dat_socket_why */
	uint64_t read[2], written[2];	/* bytes by carrier */
	uint64_t wakeups;		/* of the peer */
	uint64_t moves, backs;		/* of this end's direction to the ring, and back */
	uint32_t ring_in, ring_out;	/* bytes; 0: none */
};

/* Each returns 0 or a positive errno: EBADF, ENOTSOCK (no TCP socket that the library has seen from its beginning). */

/* Asks to move now, without waiting for traffic. EAGAIN: asked, and not answered yet. ENOTCONN; EPERM: settings or the
 * history of the connection forbid it, dat_socket_info() tells why; ECONNREFUSED: the peer has refused, or does not use
 * the library. 0: it has moved, or does with the next write. */
int dat_socket_move(int fd, unsigned flags);
/* Takes both directions back to TCP. ETIMEDOUT: still under way. */
int dat_socket_back(int fd, int timeout_ms);
int dat_socket_info(int fd, struct dat_socket_info *info);
/* Never moves this connection. Takes it back if it has moved. */
int dat_socket_exclude(int fd);

#ifdef __cplusplus
}
#endif
#endif
