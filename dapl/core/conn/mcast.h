/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.h - multicast groups of datagram endpoints (dat_mcast_extensions.h). */
#ifndef DAPL_MCAST_H
#define DAPL_MCAST_H
#include "dapl/core/dapl.h"

struct sockaddr;

/* dat_mcast_join, dat_mcast_leave; no lock held. */
DAT_RETURN dapl_mcast_join(struct dapl_ep *ep, const struct sockaddr *group, DAT_UINT32 flags,
			   DAT_CONTEXT context);
DAT_RETURN dapl_mcast_leave(struct dapl_ep *ep, const struct sockaddr *group);
/* ep->lock held by the caller of each. Leaves every group. */
void dapl_mcast_end(struct dapl_ep *ep);
/* The group whose address handle this is, or NULL. */
const struct dapl_ud_peer *dapl_mcast_by_ah(const struct dapl_ep *ep, const struct ibv_ah *ah);

#endif
