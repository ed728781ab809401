/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_attr.h - what the software RNIC reports of itself: its limits, address and abilities, and the present MTU
 * and state of its interface. */
#ifndef SOFT_DEVICE_ATTR_H
#define SOFT_DEVICE_ATTR_H

struct dapl_device;
struct dapl_device_attr;

/* An operation of the device's table. */
int soft_device_query(struct dapl_device *dev, struct dapl_device_attr *attr);

#endif
