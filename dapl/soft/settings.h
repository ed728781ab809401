/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.h - the environment variables DAPL_SOFT_*, which are read when a device is opened, and their description
 * for programs that change parameters. */
#ifndef SOFT_SETTINGS_H
#define SOFT_SETTINGS_H
#include "dapl/core/base/parameter.h"

struct dapl_device;

extern const struct dapl_parameter soft_parameters[];	/* the last one has no name */

/* A bad value gives one line and the default. */
void soft_settings_read(struct dapl_device *dev);

#endif
