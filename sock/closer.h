/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closer.h - closes descriptors that processes of other users have influence on, in a thread of its own. A close() may
 * wait as long as such a process likes: a Unix socket may hold a message with a TCP socket that lingers. The thread
 * starts with the first descriptor. */
#ifndef SOCK_CLOSER_H
#define SOCK_CLOSER_H
#include <stdbool.h>

/* Takes a descriptor; -1: nothing happens. Only the service thread calls it. */
void closer_take(int fd);
/* Whether so many descriptors wait that no more are to be taken from other users. */
bool closer_is_behind(void);
/* The child has no such thread, and closes the library's descriptors by itself. */
void closer_after_fork(void);

#endif
