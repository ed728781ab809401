/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - copies of the messages of a device for a capturing program (core/base/tap.h). */
#ifndef SOFT_VERBS_TAP_H
#define SOFT_VERBS_TAP_H
#include <stdbool.h>

struct dapl_device;

/* Messages that are posted, or completed, from now on are recorded, or no more. No lock held. */
void soft_tap(struct dapl_device *dev, bool on);

#endif
