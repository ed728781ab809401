/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rings.h - the rings of shared-memory connections that a device looks at. The caller of each function
 * holds the progress lock. */
#ifndef SOFT_PROGRESS_RINGS_H
#define SOFT_PROGRESS_RINGS_H
#include <stdbool.h>

struct dapl_device;
struct shm_conn;

/* Adds a ring. It may hold a message already, for which no thread was woken: then this wakes the
 * service thread. */
void soft_rings_add(struct shm_conn *shm);
void soft_rings_del(struct shm_conn *shm);

/* Looks at the rings, and executes their messages. `polling`: the caller is a polling thread, which
 * comes back soon. If there are many rings, such a thread looks only at some. Returns true if there was
 * something. */
bool soft_rings_poll(struct dapl_device *dev, bool polling);
/* Returns true if at least one ring holds a message or an acknowledgement. */
bool soft_rings_ready(struct dapl_device *dev);

#endif
