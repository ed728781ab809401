/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote.h - a connection whose rings lie in two processes that share no memory. What is written goes into a ring in
 * this process (staging), whose bytes are written by RDMA into a ring of the same size in the peer's process. Both
 * rings are those of ring.h: these files are the other side of each. Not responsible for: how the processes find each
 * other (service.h), the DAT connection (link.h).
 *
 * An epoch begins by messages: MOVE (my bytes from position N of TCP on are in the ring), and AGREE when the receiver
 * has read TCP up to N. It ends by a frame of 32 bytes in TCP, which says at which position of the ring TCP goes on. A
 * receiver that has taken more drops so many bytes of TCP.
 *
 * remote.c takes what links tell. The rest: remote_open (a stream begins), remote_out (the sending direction),
 * remote_in (the receiving one), remote_back (the way back to TCP), remote_chores (what time does), remote_stream (the
 * object), remote_frame. */
#ifndef SOCK_REMOTE_H
#define SOCK_REMOTE_H
#include "sock/conn_types.h"

/* The service thread: from now on what links tell comes to the streams. */
void remote_serve_links(void);
/* Any thread, no lock held. The link of the stream, for link_take(), until link_give_back(). NULL: there is none, or
 * the program waits for the connection in epoll_wait() as well. */
struct link *remote_borrow(struct conn *c);
/* in_lock held: the same for a connection that has a stream. */
struct link *remote_link(struct conn *c);
/* in_lock held, of one that has a stream: a thread will sleep for it elsewhere than in link_take(). */
void remote_return(struct conn *c);
/* out_lock held, or the service thread. The adapter that carries the stream; "": none. */
const char *remote_ia(const struct conn *c);
void remote_after_fork(void);

#endif
