/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* relaxed.h - loads and stores of what other threads or processes may touch at the same time:
 * each in one piece, once, and in no order. Who needs an order says so with a fence or an atomic
 * operation of its own. */
#ifndef SOFT_RELAXED_H
#define SOFT_RELAXED_H

#define ONCE(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

#endif
