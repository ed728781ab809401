/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api_ia.c - the calls on an IA, which are those that create its objects, except dat_ia_open() and
 * dat_ia_close(). The consumer's integer becomes the provider's pointer. REG-48. */
#include "dat/api.h"

EXPORT DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd,
			       DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			       DAT_PROVIDER_ATTR_MASK provider_mask,
			       DAT_PROVIDER_ATTR *provider_attr)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->ia_query_func(own, async_evd, ia_mask, ia_attr,
					       provider_mask, provider_attr);
}

EXPORT DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent,
				 DAT_CNO_HANDLE *cno)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->cno_create_func(own, agent, cno);
}

EXPORT DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *cno)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	if (!provider_of(own)->cno_fd_create_func)
		return NOT_IMPLEMENTED;
	return provider_of(own)->cno_fd_create_func(own, fd, cno);
}

EXPORT DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno,
				 DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->evd_create_func(own, min_qlen, cno, flags, evd);
}

EXPORT DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz,
				DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
				DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR *attr,
				DAT_EP_HANDLE *ep)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->ep_create_func(own, pz, recv_evd, request_evd,
						connect_evd, attr, ep);
}

EXPORT DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz,
					 DAT_EVD_HANDLE recv_evd,
					 DAT_EVD_HANDLE request_evd,
					 DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq,
					 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->ep_create_with_srq_func(own, pz, recv_evd, request_evd,
							 connect_evd, srq, attr, ep);
}

/* REG-46 */
EXPORT DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type,
				 DAT_REGION_DESCRIPTION region, DAT_VLEN length,
				 DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
				 DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr,
				 DAT_LMR_CONTEXT *lmr_context,
				 DAT_RMR_CONTEXT *rmr_context,
				 DAT_VLEN *registered_length,
				 DAT_VADDR *registered_address)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->lmr_create_func(own, type, region, length, pz,
						 privileges, va_type, lmr, lmr_context,
						 rmr_context, registered_length,
						 registered_address);
}

EXPORT DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia,
					 const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->lmr_sync_rdma_read_func(own, segments, count);
}

EXPORT DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia,
					  const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->lmr_sync_rdma_write_func(own, segments, count);
}

EXPORT DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual,
				 DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				 DAT_PSP_HANDLE *psp)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->psp_create_func(own, conn_qual, evd, flags, psp);
}

EXPORT DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *conn_qual,
				     DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				     DAT_PSP_HANDLE *psp)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->psp_create_any_func(own, conn_qual, evd, flags, psp);
}

EXPORT DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual,
				 DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
				 DAT_RSP_HANDLE *rsp)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->rsp_create_func(own, conn_qual, ep, evd, rsp);
}

EXPORT DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm,
				 DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd,
				 DAT_CSP_HANDLE *csp)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	if (!provider_of(own)->csp_create_func)
		return NOT_IMPLEMENTED;
	return provider_of(own)->csp_create_func(own, comm, address, evd, csp);
}

EXPORT DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->pz_create_func(own, pz);
}

EXPORT DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
				 DAT_SRQ_HANDLE *srq)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->srq_create_func(own, pz, attr, srq);
}
