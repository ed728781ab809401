/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* share.h - counts the processes that hold a connection after a fork. A word in memory that parent and child share has
 * the number of those that have the socket open. The last one may move the connection: no other can read or write.
 *
 * A process that keeps its descriptor, or ends without a word, stays counted, and the connection then stays on TCP.
 * What happens to the descriptor where this library does not see it (passed on, inherited by another program) spoils
 * the word for good. */
#ifndef SOCK_SHARE_H
#define SOCK_SHARE_H
#include <stdbool.h>
#include <stdint.h>

/* A process is about to fork that has the socket open; *word is NULL before its first fork. Counts the child in.
 * Returns false without memory: then *word is still NULL. */
bool share_fork(uint32_t **word);
/* This process has closed its last descriptor of the socket. */
void share_leave(uint32_t **word);
/* Others may have the socket from now on that are not counted. */
void share_spoil(uint32_t *word);
/* Whether no other process has the socket. */
bool share_is_sole(const uint32_t *word);

#endif
