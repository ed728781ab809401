/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapter.c - opens, queries and closes the interface adapter (adapter.h). */
#include "adapter.h"
#include "../call.h"
#include <dat/dat_dm_extensions.h>
#include <dat/dat_ib_extensions.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 64 }; /* connection requests that may wait; more are refused */

static DAT_COUNT least(DAT_COUNT a, DAT_COUNT b)
{
	return a < b ? a : b;
}

/* What the IA has beyond DAT itself, and its limits. */
static void find_features(struct adapter *a)
{
	DAT_IA_ATTR ia;
	DAT_PROVIDER_ATTR provider;

	good(dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL, &provider),
	     "dat_ia_query");
	a->reads = least(ADAPTER_READS,
			 least(ia.max_rdma_read_per_ep_out, ia.max_rdma_read_per_ep_in));
	a->max_endpoints = ia.max_eps;
	a->max_dtos = ia.max_dto_per_ep;
	a->max_events = ia.max_evd_qlen;
	a->max_srqs = ia.max_srqs;
	a->max_srq_receives = ia.max_recv_per_srq;
	for (int i = 0; i < provider.num_provider_specific_attr; i++) {
		const char *name = provider.provider_specific_attr[i].name;
		const char *value = provider.provider_specific_attr[i].value;

		if (!strcmp(name, "DAT_IB_DEVICE_NAME"))
			snprintf(a->device, sizeof a->device, "%s", value);
		else if (!strcmp(name, "DAT_IB_GID"))
			snprintf(a->gid, sizeof a->gid, "%s", value);
		else if (!strcmp(name, "DAT_IB_PORT_NUMBER"))
			a->port = (unsigned)strtoul(value, NULL, 10);
		else if (!strcmp(name, "DAT_IB_TRANSPORT_MTU"))
			a->mtu = (unsigned)strtoul(value, NULL, 10);
		else if (!strcmp(name, "DAT_IB_PROVIDER_NAME"))
			a->is_rdma = strcmp(value, "soft");
		else if (!strcmp(name, DAT_DM_ATTR_SIZE))
			a->dm_size = strtoull(value, NULL, 10);
		a->dm_maps |= !strcmp(name, DAT_DM_ATTR_MAP) && !strcmp(value, "TRUE");
		a->atomics |= !strcmp(name, DAT_IB_ATTR_FETCH_AND_ADD);
		a->immediate |= !strcmp(name, DAT_IB_ATTR_IMMED_DATA);
		a->datagrams |= !strcmp(name, DAT_IB_ATTR_UD);
	}
}

void adapter_open(struct adapter *a, const char *name)
{
	*a = (struct adapter){ .name = name };
	open_ia(name, &a->async, &a->ia);
	find_features(a);
	good_call(dat_pz_create(a->ia, &a->pz), "dat_pz_create");
	good_call(dat_evd_create(a->ia, REQUESTS, DAT_HANDLE_NULL,
				 (DAT_EVD_FLAGS)(DAT_EVD_CR_FLAG | (a->datagrams ? DAT_IB_EVD_EXTENSION_FLAG : 0)),
				 &a->requests),
		  "dat_evd_create");
}

DAT_CONN_QUAL adapter_listen(struct adapter *a, DAT_CONN_QUAL port)
{
	if (port)
		good_listener(dat_psp_create(a->ia, port, a->requests, DAT_PSP_CONSUMER_FLAG, &a->psp), port, "-p N");
	else
		good_call(dat_psp_create_any(a->ia, &port, a->requests, DAT_PSP_CONSUMER_FLAG, &a->psp),
			  "dat_psp_create_any");
	return port;
}

void adapter_address(const struct adapter *a, struct sockaddr_storage *address)
{
	DAT_IA_ATTR attr;
	const struct sockaddr *own;

	good(dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), "dat_ia_query");
	own = (const struct sockaddr *)attr.ia_address_ptr;
	memset(address, 0, sizeof *address);
	memcpy(address, own,
	       own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in));
}

void adapter_close(struct adapter *a)
{
	if (a->psp)
		good(dat_psp_free(a->psp), "dat_psp_free");
	good(dat_evd_free(a->requests), "dat_evd_free");
	good(dat_pz_free(a->pz), "dat_pz_free");
	good(dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
}
