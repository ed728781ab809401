/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owner.h - selects the thread that drives progress: a polling thread, a thread blocked in
 * dat_evd_wait(), or the service thread. doc/design/soft-progress.md argues why data never waits
 * without such a thread. */
#ifndef SOFT_OWNER_H
#define SOFT_OWNER_H
#include <stdbool.h>

struct dapl_device;

/* 0 or an errno value. The service thread drives progress from now on. */
int soft_owner_open(struct dapl_device *dev);
void soft_owner_close(struct dapl_device *dev);
/* The caller polled and may block from now on: the service thread takes over. */
void soft_owner_sleep(struct dapl_device *dev);
/* The caller is about to block. Returns a descriptor if the caller drives progress meanwhile, in place
 * of the service thread: it watches the descriptor, calls soft_owner_work() when that is readable, and
 * calls soft_owner_awake() afterwards, unless soft_owner_work() returned false. Returns -1 if another
 * thread drives progress, or if the caller does not wait for completions (`for_data` is false). */
int soft_owner_block(struct dapl_device *dev, bool for_data);
/* Returns false if the caller does not drive progress any more; other threads do. */
bool soft_owner_work(struct dapl_device *dev);
/* The caller no longer blocks: the service thread takes over. */
void soft_owner_awake(struct dapl_device *dev);

#endif
