/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shortage.h - reports that the process or the system is out of descriptors or of memory. */
#ifndef DAPL_SOFT_SHORTAGE_H
#define DAPL_SOFT_SHORTAGE_H
#include "common/descriptors.h"

struct dapl_device;

/* Reports that `what` failed, in one line, if `err` is an errno value of a shortage. */
void soft_report_shortage(const struct dapl_device *dev, int err, const char *what);

#endif
