/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapters.c - see adapters.h. */
#include "test/unit/openmpi/adapters.h"
#include <arpa/inet.h>
#include <stdio.h>

struct adapter_results adapter_results;
DAT_IA_ATTR adapter_attr;
DAT_PROVIDER_ATTR adapter_provider;
int adapters_open, psps, srqs;
char adapter_name[DAT_NAME_MAX_LENGTH];
DAT_SRQ_ATTR srq_attr;

static struct sockaddr_in6 address;	/* room for both families */
static char psp, pz;			/* their addresses are handles */
static DAT_SRQ_HANDLE srq;
static DAT_EVD_HANDLE dto_evd, conn_evd, async_evd;

void adapters_begin(void)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address;

	memset(&adapter_results, 0, sizeof adapter_results);
	memset(&adapter_attr, 0, sizeof adapter_attr);
	memset(&adapter_provider, 0, sizeof adapter_provider);
	memset(&address, 0, sizeof address);
	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(0x0a000001);
	adapter_attr.ia_address_ptr = (DAT_IA_ADDRESS_PTR)&address;
	adapter_attr.max_rdma_size = 1 << 20;
	adapter_attr.max_evd_qlen = 10000;
	adapter_attr.max_srqs = 1;
	adapter_attr.max_recv_per_srq = 1000;
	adapter_provider.srq_supported = DAT_TRUE;
	adapters_open = psps = srqs = 0;
	srq = module.srq;
	dto_evd = module.dto_evd;
	conn_evd = module.conn_evd;
	async_evd = module.async_evd;
}

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT length, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia,
			DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe)
{
	(void)length, (void)major, (void)minor, (void)thread_safe;
	*ia = (DAT_IA_HANDLE)&address;	/* a failed call may write it */
	if (adapter_results.open != DAT_SUCCESS)
		return adapter_results.open;
	snprintf(adapter_name, sizeof adapter_name, "%s", name);
	adapters_open++;
	*async = async_evd;
	return DAT_SUCCESS;
}

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async, DAT_IA_ATTR_MASK mask, DAT_IA_ATTR *attr,
			DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider)
{
	(void)ia, (void)async, (void)mask, (void)provider_mask;
	*attr = adapter_attr;
	memcpy(provider, &adapter_provider, sizeof *provider);	/* it has constant fields */
	return adapter_results.query;
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	assert_non_null(ia);
	assert_int_equal(flags, DAT_CLOSE_ABRUPT_FLAG);
	assert_int_equal(psps, 0);
	assert_int_equal(srqs, 0);
	adapters_open--;
	return DAT_SUCCESS;
}

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *made)
{
	(void)ia;
	*made = (DAT_PZ_HANDLE)&pz;
	return adapter_results.pz;
}

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT length, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
			  DAT_EVD_HANDLE *evd)
{
	(void)ia;
	assert_null(cno);
	if (flags & DAT_EVD_DTO_FLAG) {
		assert_int_equal(length, UDAPL_DTO_EVD_LENGTH);
		*evd = dto_evd;
		return adapter_results.dto_evd;
	}
	assert_int_equal(flags, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG);
	*evd = conn_evd;
	return adapter_results.conn_evd;
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qualifier, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
			      DAT_PSP_HANDLE *made)
{
	(void)ia;
	assert_ptr_equal(evd, conn_evd);
	assert_int_equal(flags, DAT_PSP_CONSUMER_FLAG);
	if (adapter_results.psp != DAT_SUCCESS)
		return adapter_results.psp;
	*qualifier = ADAPTER_QUALIFIER;
	*made = (DAT_PSP_HANDLE)&psp;
	psps++;
	return DAT_SUCCESS;
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE which)
{
	assert_ptr_equal(which, &psp);
	psps--;
	return DAT_SUCCESS;
}

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE of, DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *made)
{
	(void)ia;
	assert_ptr_equal(of, &pz);
	srq_attr = *attr;
	*made = srq;			/* a failed call may write it */
	srqs += adapter_results.srq == DAT_SUCCESS;
	return adapter_results.srq;
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE which)
{
	assert_ptr_equal(which, srq);
	srqs--;
	return DAT_SUCCESS;
}
