/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep.h - the life of raw Ethernet endpoints (ep.c): entries of the provider table. For an endpoint that is
 * not raw each calls the function of ep/ or conn/. Called with no lock held. */
#ifndef DAPL_ETH_EP_H
#define DAPL_ETH_EP_H
#include "dapl/core/dapl.h"

/* dat_ep_create() and dat_ep_create_with_srq(): a raw endpoint is CONNECTED when they return. After an
 * error there is no endpoint. Errors: INVALID_PARAMETER for attributes, NOT_SUPPORTED for capabilities that
 * the device lacks, INSUFFICIENT_RESOURCES. */
DAT_RETURN dapl_eth_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			      DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *handle);
DAT_RETURN dapl_eth_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
				       DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
				       DAT_EP_HANDLE *handle);
/* dat_ep_disconnect() and dat_ep_free(), with their errors. After success the endpoint's rules have
 * ended, too. */
DAT_RETURN dapl_eth_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags);
DAT_RETURN dapl_eth_ep_free(DAT_EP_HANDLE handle);

#endif
