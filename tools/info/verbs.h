/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs.h - what libibverbs tells of a device. The library is loaded when it is asked for, so that datinfo
 * works on a machine without it. */
#ifndef TOOLS_INFO_VERBS_H
#define TOOLS_INFO_VERBS_H
#include <jansson.h>

/* Adds "limits", and to each of "ports" the numbers that sysfs does not have, of the device that
 * `device`'s "name" names. Returns NULL, or why not: text that is valid until the next call. */
const char *verbs_describe(json_t *device);

#endif
