/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_clock.h - the device's clock, which stamps frames, and CLOCK_REALTIME (eth_clock.c). */
#ifndef VERBS_ETH_CLOCK_H
#define VERBS_ETH_CLOCK_H
#include "eth_types.h"

/* eth->lock held: the clock is what probing has found. */
void hw_eth_clock_init(struct hw_eth_device *eth);
/* Whether the device has one. It is constant once probed. */
bool hw_eth_clock_works(const struct hw_eth_device *eth);
/* Cycles of a time stamp as ns of CLOCK_REALTIME; 0: not known. Takes eth->lock; reads both clocks once a second. */
uint64_t hw_eth_clock_convert(struct hw_eth_device *eth, uint64_t cycles);
/* Operation of struct dapl_eth_ops: both clocks at one instant, and how far they may be off, in ns. No lock is needed.
 * EOPNOTSUPP: the device has no such clock. */
int hw_eth_clock_read(struct dapl_device *dev, uint64_t *device_ns, uint64_t *system_ns, uint64_t *error_ns);

#endif
