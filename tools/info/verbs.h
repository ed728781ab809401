/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs.h - the limits of a device that libibverbs reports. The library is loaded at the first call, so
 * that datinfo works on a machine without it. */
#ifndef TOOLS_INFO_VERBS_H
#define TOOLS_INFO_VERBS_H
#include <jansson.h>

/* Adds "limits" to `device`, and to each of its "ports" the numbers that sysfs does not have. The member
 * "name" selects the device. Returns NULL, or the reason for a failure: text that is valid until the next
 * call. */
const char *verbs_describe(json_t *device);

#endif
