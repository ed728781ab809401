/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.h - groups of raw Ethernet endpoints (group.c). Called with no lock held. */
#ifndef DAPL_ETH_GROUP_H
#define DAPL_ETH_GROUP_H
#include "dapl/core/dapl.h"

struct dapl_group;

/* dat_eth_group_create(), dat_eth_group_set() and dat_eth_group_free(), with their errors. */
DAT_RETURN dapl_eth_group_create(DAT_HANDLE ia, DAT_COUNT n, const DAT_EP_HANDLE *eps, const DAT_ETH_RSS *rss,
				 DAT_ETH_GROUP_HANDLE *handle);
DAT_RETURN dapl_eth_group_set(DAT_HANDLE handle, const uint16_t *table);
DAT_RETURN dapl_eth_group_free(DAT_HANDLE handle);
/* Frees a group that was killed. No call is inside it. */
void dapl_eth_group_end(struct dapl_group *group);

#endif
