/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach_socket.h - the Unix sockets by which a peer process fetches shared memory. A process
 * listens on two under one random name, which its peers get in the MPA exchange:
 * - a file in the runtime directory of the user ($XDG_RUNTIME_DIR, or /run/user/UID), where there
 *   is one: other users cannot reach it, so they cannot fill its backlog;
 * - an abstract name, for peers of older versions and for those with another mount namespace. */
#ifndef DAPL_SOFT_ATTACH_SOCKET_H
#define DAPL_SOFT_ATTACH_SOCKET_H
#include <stdbool.h>
#include <stdint.h>

/* A listening socket, or -1 and errno. A file needs a usable directory. */
int attach_socket_listen(uint64_t name, bool file);
/* Removes the file. */
void attach_socket_remove(uint64_t name);
/* A socket connected to a process of this user, or -1 and errno: EAGAIN if its backlog is full,
 * ECONNREFUSED if nothing listens, EPERM if another user listens. */
int attach_socket_connect(uint64_t name);
/* Returns true if the peer process of the connected socket has the effective user of this process. */
bool attach_socket_is_of_this_user(int fd);

#endif
