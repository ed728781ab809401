/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.h - what a device is and can do (probe.c). No lock is held. */
#ifndef HW_PROBE_H
#define HW_PROBE_H
#include "dapl/core/device.h"

struct rdma_cm_id;

/* Fills dev->attr, pkey_index and qp_access, before another thread uses the device. `bound` is an id that
 * is bound to its address. Returns 0, or an errno after one log line. */
int hw_probe(struct dapl_device *dev, struct rdma_cm_id *bound);
/* Fills in what may change while the device is open: state of the port, path MTU and longest message, in
 * bytes. Leaves them as they are if the port cannot be queried. */
void hw_probe_port(struct dapl_device *dev, struct dapl_device_attr *attr);

#endif
