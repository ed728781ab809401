/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.h - what a fork does to the open devices. It happens while no thread drives their progress. The child must
 * not use them: its copies are dead, and their descriptors closed. */
#ifndef SOFT_FORK_H
#define SOFT_FORK_H

struct dapl_device;

/* For a device whose locks are initialised. No progress lock is held. */
void soft_fork_add_device(struct dapl_device *dev);
void soft_fork_remove_device(struct dapl_device *dev);

#endif
