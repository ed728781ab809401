/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock_check.h - checks of the lock order (lock_rank.h) and of the locks that a function needs.
 * Active in builds with DAPL_LOCK_CHECK: ./configure --enable-lock-check, or any sanitizer. A
 * violation prints one line that names both locks, and aborts. Costs nothing in other builds.
 *
 * Each thread has a list of the locks that it holds. lock.h maintains it. */
#ifndef COMMON_LOCK_CHECK_H
#define COMMON_LOCK_CHECK_H
#include "config.h"
#include "common/lock_rank.h"

#ifdef DAPL_LOCK_CHECK

/* `name` is the lock as the source names it, `where` the function. Called before the lock is taken. */
void lock_check_order(const void *lock, unsigned rank, const char *name, const char *where);
/* Called before one more lock of a rank is taken. */
void lock_check_another(const void *lock, unsigned rank, const char *name, const char *where);
/* Called after the lock was taken, by waiting or by trying. */
void lock_check_taken(const void *lock, unsigned rank, const char *name, const char *where);
void lock_check_another_taken(const void *lock, unsigned rank, const char *name, const char *where);
void lock_check_release(const void *lock, unsigned rank, const char *name, const char *where);
void lock_check_held(const void *lock, const char *name, const char *where);
void lock_check_none_held(const char *where);

/* At the head of a function that needs the lock. */
#define assert_held(lock) lock_check_held(lock, #lock, __func__)
/* At the head of a function that may block for long, or that runs code of another party. */
#define assert_no_lock_held() lock_check_none_held(__func__)

#else

#define lock_check_order(lock, rank, name, where) ((void)0)
#define lock_check_another(lock, rank, name, where) ((void)0)
#define lock_check_taken(lock, rank, name, where) ((void)0)
#define lock_check_another_taken(lock, rank, name, where) ((void)0)
#define lock_check_release(lock, rank, name, where) ((void)0)
#define assert_held(lock) ((void)sizeof(lock))
#define assert_no_lock_held() ((void)0)

#endif
#endif
