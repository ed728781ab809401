/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copies.h - the copies that the kernel makes between the memories of processes (copies.c): counted, recorded,
 * refused, or with something that happens just before. For programs that are linked with --wrap of
 * process_vm_writev, process_vm_readv and access_copy. */
#ifndef TEST_SOFT_COPIES_H
#define TEST_SOFT_COPIES_H
#include <stdbool.h>
#include <sys/uio.h>
#include "test/unit/soft/ends.h"

/* Called just before copy number `meanwhile_at` that this thread asks the kernel for. `copies` counts them. */
extern void (*meanwhile)(void);
extern unsigned meanwhile_at, copies;
extern bool copies_refused, copies_cut;	/* copies fail with EPERM; copies end after one byte */
extern struct iovec stored[8];		/* where the kernel stored, in this order */
extern unsigned stores;

/* Connects two ends, of which ends[1] sleeps, and begins to count. Skips the test where the kernel does not copy. */
void open_sleeper(void);
/* The memory of ends[1] is gone. */
void deregister(void);
/* Registers the memory again, for close_end(). The STag is another one. */
void register_anew(void);

#endif
