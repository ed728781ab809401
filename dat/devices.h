/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* devices.h - generates entries from the devices present ("include auto"). Looks at sysfs
 * only: the provider finds out whether a device works. */
#ifndef DAT_DEVICES_H
#define DAT_DEVICES_H
#include "dat/conf.h"

#define SOFT_LIBRARY "libdaplsoft.so.2"

/* Appends to `conf` the entries of the devices under `sysfs` (usually "/sys"). The order is the
 * one in which programs are likely to look for names:
 *
 *   ofa-v2-<netdev>           "<netdev> 0"      every network device with RDMA below it
 *   ofa-v2-<device>-<port>    "<device> <port>" every port of every RDMA device
 *   ofa-v2-soft               "lo 0"            the software device, if `with_soft`
 *   ofa-v2-<device>-<port>s   and u: the names of OFA's other two providers
 *   ofa-v2-cma-roe-<netdev>   network devices with RoCE
 *
 * soft_entries.h has those of the software device on network devices. Returns 0, ENOMEM, EMFILE or ENFILE. */
int devices_make_entries(struct conf *conf, const char *sysfs, bool with_soft);

#endif
