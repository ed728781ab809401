/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* devices.h - entries made up from the devices present ("include auto").
 * Looks at sysfs only: whether a device works is its provider's to find out. */
#ifndef DAT_DEVICES_H
#define DAT_DEVICES_H
#include "dat/conf.h"

#define SOFT_LIBRARY "libdaplsoft.so.2"

/* Appends to `conf` the entries of the devices under `sysfs` (usually "/sys"), the names
 * that programs are most likely to want first:
 *
 *   ofa-v2-<netdev>           "<netdev> 0"      every network device with RDMA below it
 *   ofa-v2-<device>-<port>    "<device> <port>" every port of every RDMA device
 *   ofa-v2-soft               "lo 0"            the software device, when `with_soft`
 *   ofa-v2-<device>-<port>s   and u: the names of OFA's other two providers
 *   ofa-v2-cma-roe-<netdev>   network devices with RoCE
 *
 * 0, or ENOMEM, EMFILE, ENFILE. */
int devices_make_entries(struct conf *conf, const char *sysfs, bool with_soft);

#endif
