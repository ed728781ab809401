/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.h - sends of raw Ethernet endpoints with offloads, and their rate (send.c). The endpoint is raw and
 * entered. Called with no lock held. */
#ifndef DAPL_ETH_SEND_H
#define DAPL_ETH_SEND_H
#include "dapl/core/dapl.h"

/* dat_eth_post_send(). BAD_PARAM(5): `how` is invalid, or the frame lacks the headers that `how` needs. */
DAT_RETURN dapl_eth_post_send(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			      const DAT_ETH_SEND *how, DAT_COMPLETION_FLAGS flags);
/* dat_eth_pace(): sets the rate in bits per second, 0 for no limit. Fails unless the endpoint is
 * CONNECTED. */
DAT_RETURN dapl_eth_pace(struct dapl_ep *ep, const DAT_ETH_PACE *pace);

#endif
