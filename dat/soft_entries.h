/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soft_entries.h - generates entries of the software device for the network devices of this host ("include auto").
 * devices.h has those of RDMA devices, and ofa-v2-soft. */
#ifndef DAT_SOFT_ENTRIES_H
#define DAT_SOFT_ENTRIES_H
#include "dat/conf.h"

/* Appends to `conf` an entry ofa-v2-soft-<netdev> with "<netdev> 0" for each network device but loopback that is
 * in `sysfs`, is up and has an address other than a link-local one, in the kernel's order. They are openable by
 * name and unlisted: a program that opens all adapters it can list would otherwise have the software device
 * several times. Returns 0, or ENOMEM, EMFILE or ENFILE. */
int soft_entries_make(struct conf *conf, const char *sysfs);

#endif
