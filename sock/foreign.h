/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign.h - what this process gives to and takes from a process of another user, but for the rings: a proof that it
 * has its TCP socket, and a descriptor that wakes it; and how much of that may be under way.
 *
 * The proof is a descriptor of the socket that was opened with O_PATH. Only a process that has the socket, or may trace
 * one that has it, can open it. It shows the socket's inode, and is good for nothing else.
 *
 * The wake-up is a timer descriptor. Both processes share its open file, so the peer may change O_NONBLOCK. It is fired
 * and cleared by calls that never wait, whatever that flag is; a write to an eventfd would wait. */
#ifndef SOCK_FOREIGN_H
#define SOCK_FOREIGN_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether different users may have this id here, since the user namespace does not map it: it then proves nothing. */
bool foreign_is_ambiguous(uid_t uid);

/* Returns a proof for the peer, -1: errno. */
int foreign_prove(int socket);
/* Whether a received descriptor proves that its sender has the socket of that inode. Never waits. */
bool foreign_is_proof(int fd, uint32_t inode);

/* Makes the file of descriptor `efd` a new timer; threads that poll the old file are woken. False: no descriptor. */
bool foreign_renew_wake(int efd);
/* Whether a received descriptor is a timer. Never waits. */
bool foreign_is_wake(int fd);
void foreign_fire(int fd);
void foreign_clear(int fd);

/* The kernel counts descriptors in messages that were not received against the limit of their sender's user. These
 * bound how many messages with descriptors users let lie. Only the service thread calls them. */

/* Whether another message with descriptors may go to a process of this user now. */
bool foreign_may_send(uid_t uid);
/* Such a message was sent by the Unix socket `control`. */
void foreign_sent(int control, uid_t uid);
/* Closes the Unix socket, as late as its messages count. */
void foreign_close(int control);
void foreign_after_fork(void);

#endif
