/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.h - multicast groups of datagram endpoints (dat_mcast_extensions.h). */
#ifndef DAPL_MCAST_H
#define DAPL_MCAST_H
#include "dapl/core/dapl.h"

struct sockaddr;

/* dat_mcast_join and dat_mcast_leave. Called with no lock held. */
DAT_RETURN dapl_mcast_join(struct dapl_ep *ep, const struct sockaddr *group, DAT_UINT32 flags,
			   DAT_CONTEXT context);
DAT_RETURN dapl_mcast_leave(struct dapl_ep *ep, const struct sockaddr *group);
/* Leaves all groups. Called with ep->lock held. */
void dapl_mcast_end(struct dapl_ep *ep);
/* Returns the group with this address handle, or NULL. Called with ep->lock held. */
const struct dapl_ud_peer *dapl_mcast_by_ah(const struct dapl_ep *ep, const struct ibv_ah *ah);

#endif
