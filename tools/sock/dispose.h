/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dispose.h - closes descriptors that other users have influence on. A close() may wait as long as such a user likes: a
 * TCP socket may linger, and a Unix socket may hold messages with one. Each user with something to close has a thread,
 * so that users wait for their own descriptors only. */
#ifndef SOCK_DISPOSE_H
#define SOCK_DISPOSE_H
#include <stdbool.h>
#include <sys/types.h>

/* Whether one more descriptor of the user can be taken. */
bool dispose_has_room(uid_t user);
/* Takes a descriptor, after dispose_has_room(). Returns at once. */
void dispose_take(int fd, uid_t user);

#endif
