/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.h - the table of the operations for raw Ethernet endpoints (eth.c). */
#ifndef VERBS_ETH_H
#define VERBS_ETH_H
#include "dapl/core/eth_device.h"

extern const struct dapl_eth_ops hw_eth_ops;

#endif
