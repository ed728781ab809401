/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* compiler.h - hints to the compiler about branches and functions. */
#ifndef COMMON_COMPILER_H
#define COMMON_COMPILER_H

#define unlikely(x) __builtin_expect(!!(x), 0)
#define likely(x) __builtin_expect(!!(x), 1)

#define ALWAYS_INLINE inline __attribute__((always_inline))	/* after `static` */
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((noinline, cold))	/* out of the way of the code that is executed often */

#endif
