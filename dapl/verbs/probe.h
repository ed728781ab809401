/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.h - what a device is and can do (probe.c). No lock is held. */
#ifndef HW_PROBE_H
#define HW_PROBE_H
#include "dapl/core/device.h"

struct rdma_cm_id;

/* Fills dev->attr, pkey_index and qp_access, while no other thread knows the device. `bound` is an id on its address.
 * Returns an errno after one log line. */
int hw_probe(struct dapl_device *dev, struct rdma_cm_id *bound);
/* What may change while the device is open: state of the port, path MTU and longest message, in bytes. They are left
 * alone if the port cannot be queried. */
void hw_probe_port(struct dapl_device *dev, struct dapl_device_attr *attr);

#endif
