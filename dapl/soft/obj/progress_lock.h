/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress_lock.h - the lock under which progress is made, and connections are managed. */
#ifndef SOFT_OBJ_PROGRESS_LOCK_H
#define SOFT_OBJ_PROGRESS_LOCK_H
#include <stdbool.h>

struct dapl_device;

void soft_progress_lock(struct dapl_device *dev);
/* Before a fork, which takes the locks of all devices. */
void soft_progress_lock_another(struct dapl_device *dev);
void soft_progress_unlock(struct dapl_device *dev);
/* Takes the progress lock, unless another thread holds it or waits for it. */
bool soft_progress_try(struct dapl_device *dev);

#endif
