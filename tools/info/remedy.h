/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remedy.h - why an entry of the registry cannot be used, and how to fix it. */
#ifndef TOOLS_INFO_REMEDY_H
#define TOOLS_INFO_REMEDY_H
#include <dat/dat_entries.h>
#include <jansson.h>
#include <stdbool.h>

struct remedy {
	char cause[1024], fix[512];
};

/* `probe` is the result of probe_ia(). Returns false if there is nothing to fix. */
bool remedy_find(struct remedy *remedy, const DAT_ENTRY *entry, const json_t *probe);
/* Like remedy_find(), for an RDMA device that is there: checks its nodes in /dev, their access rights, and
 * its driver of libibverbs. */
bool remedy_device(struct remedy *remedy, const char *device);

#endif
