/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unknown.h - reports a number of an event or a status that this provider does not know: the kernel or rdma-core is
 * newer than it. */
#ifndef DAPL_UNKNOWN_H
#define DAPL_UNKNOWN_H

/* `device` is its name, or NULL where it is not known; `what` is "asynchronous event" and the like; `done` says what
 * the provider makes of it. May be called with locks held. */
void dapl_unknown_report(const char *device, const char *what, int number, const char *done);

#endif
