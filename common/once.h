/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* once.h - loads and stores of what other threads or processes may touch at the same time:
 * each in one piece, once, and in no order. A caller that needs an order uses a fence or an atomic
 * operation of its own. */
#ifndef COMMON_ONCE_H
#define COMMON_ONCE_H

#define READ_ONCE(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define WRITE_ONCE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

#endif
