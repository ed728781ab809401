/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fence.h - full fences in other processes. A process that stores to a peer's memory need not fence each
 * store: the target, which revokes access seldom, makes the fence in its place. */
#ifndef SOFT_FENCE_H
#define SOFT_FENCE_H
#include <stdbool.h>

/* True: fence_peers() works. */
bool fence_is_possible(void);
/* A full fence in every process that has called fence_joined(). */
void fence_peers(void);
/* Registers this process for the fences of others, at the first call. False: that is not possible. */
bool fence_joined(void);
void fence_fork_child(void);

#endif
