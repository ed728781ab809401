/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.h - the byte stream of a connection, whatever carries it: what read() and write() do on it. */
#ifndef SOCK_STREAM_H
#define SOCK_STREAM_H
#include "common/compiler.h"
#include "sock/conn_types.h"
#include "sock/service.h"

/* Results and errno as those of recvmsg() and sendmsg() without addresses and control data. */
ssize_t stream_receive(struct conn *c, int fd, const struct iovec *iov, int count, int flags);
ssize_t stream_send(struct conn *c, int fd, const struct iovec *iov, int count, int flags);
/* Bytes that can be read without waiting, by both carriers. -1: errno. */
int stream_readable_bytes(struct conn *c, int fd);

/* Asks for the move when there was enough traffic. No lock held. */
/* The connection has done as much over TCP as one that moves. Asks for the move if it was fast enough, too. */
void stream_shows_traffic(struct conn *c);

/* Whether a vector has room for no byte. */
bool stream_is_empty(const struct iovec *iov, int count);

static ALWAYS_INLINE void stream_count(struct conn *c)
{
	if (unlikely(c->reads >= c->ask_calls || c->writes >= c->ask_calls || c->tcp_in >= c->ask_bytes ||
		     c->tcp_out >= c->ask_bytes) &&
	    !c->asked && !c->never)
		stream_shows_traffic(c);
}

/* Whether the kernel may do a call that could sleep. If so the caller calls stream_leave_in() or _out() after it. */
static ALWAYS_INLINE bool stream_enter(struct conn *c, int *threads)
{
	if (likely(c->mode == CONN_PLAIN)) {
		__atomic_add_fetch(threads, 1, __ATOMIC_SEQ_CST);
		if (likely(__atomic_load_n(&c->mode, __ATOMIC_SEQ_CST) == CONN_PLAIN))
			return true;
		__atomic_sub_fetch(threads, 1, __ATOMIC_SEQ_CST);
	}
	return false;
}

/* The kernel has moved n bytes over TCP, or failed (-1), or looked at bytes (0). */
static ALWAYS_INLINE void stream_leave_in(struct conn *c, ssize_t n)
{
	if (n > 0) {
		__atomic_add_fetch(&c->tcp_in, n, __ATOMIC_RELAXED);
		c->reads++;
	}
	__atomic_sub_fetch(&c->kernel_in, 1, __ATOMIC_SEQ_CST);
	stream_count(c);
}

static ALWAYS_INLINE void stream_leave_out(struct conn *c, ssize_t n)
{
	if (n > 0) {
		__atomic_add_fetch(&c->tcp_out, n, __ATOMIC_RELAXED);
		c->writes++;
	}
	__atomic_sub_fetch(&c->kernel_out, 1, __ATOMIC_SEQ_CST);
	stream_count(c);
}

#endif
