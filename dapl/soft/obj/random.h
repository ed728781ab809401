/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* random.h - numbers that a peer cannot guess: STags, QP numbers, tokens. */
#ifndef SOFT_OBJ_RANDOM_H
#define SOFT_OBJ_RANDOM_H
#include <stdint.h>

uint32_t soft_random(void);
uint64_t soft_random_64(void);
/* Discards the buffered numbers. Called in a forked child, which would otherwise use the same numbers as
 * its parent. */
void soft_random_fork_child(void);

#endif
