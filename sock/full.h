/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* full.h - full rings in shared memory whose peer takes nothing. TCP_USER_TIMEOUT bounds for how long that may be, and
 * only the kernel counts that time: if the program has set it, TCP gets the bytes. A thread that waits in a blocking
 * write leaves such a ring itself; this is for programs that poll. Streams over DAT: remote_chores.h. */
#ifndef SOCK_FULL_H
#define SOCK_FULL_H
#include "sock/conn_types.h"

/* out_lock or the lock of an epoll instance held: the program wants to write, and the ring has little room. The service
 * thread looks at it each second from now on, while that is so. */
void full_note(struct conn *c);
/* The service thread: does what is due, and returns the time until it must be called again in ms, -1: never. */
int full_run(void);
void full_after_fork(void);

#endif
