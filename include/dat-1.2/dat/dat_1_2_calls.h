/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_1_2_calls.h - the calls of DAT 1.2 that differ from those of DAT 2.0, as inline functions
 * that convert and call libdat2. udat.h includes it. They are functions, so that programs can take
 * their addresses. C89.
 *
 * Converted segments are on the stack: a provider must be done with them when the post returns
 * (iov_ownership_on_return is DAT_IOV_CONSUMER), as the providers of this package are. */
#ifndef _DAT_1_2_CALLS_H_
#define _DAT_1_2_CALLS_H_

#ifdef __cplusplus
extern "C" {
#endif

/* The renamed declarations of DAT 2.0 are the library's functions. libdat.so.1, which has functions
 * of the same names, defines the macro otherwise. */
#ifndef DAT_1_2_SYMBOL
#define DAT_1_2_SYMBOL(call) "dat_" #call
#endif
#define DAT_1_2_IS(call) \
	extern __typeof__(dat_v2_##call) dat_v2_##call __asm__(DAT_1_2_SYMBOL(call))
DAT_1_2_IS(ia_openv);
DAT_1_2_IS(lmr_create);
DAT_1_2_IS(lmr_free);
DAT_1_2_IS(lmr_sync_rdma_read);
DAT_1_2_IS(lmr_sync_rdma_write);
DAT_1_2_IS(rmr_bind);
DAT_1_2_IS(rmr_query);
DAT_1_2_IS(cr_reject);
DAT_1_2_IS(cno_query);
DAT_1_2_IS(evd_wait);
DAT_1_2_IS(evd_dequeue);
DAT_1_2_IS(evd_post_se);
DAT_1_2_IS(ep_create);
DAT_1_2_IS(ep_create_with_srq);
DAT_1_2_IS(ep_query);
DAT_1_2_IS(ep_modify);
DAT_1_2_IS(ep_post_send);
DAT_1_2_IS(ep_post_recv);
DAT_1_2_IS(ep_post_rdma_read);
DAT_1_2_IS(ep_post_rdma_write);
DAT_1_2_IS(srq_post_recv);
#undef DAT_1_2_IS
/* For dat_lmr_free: a call under its own name would keep libdat.so.1 from relabelling
 * dat_lmr_query. */
extern __typeof__(dat_lmr_query) dat_v2_lmr_query __asm__(DAT_1_2_SYMBOL(lmr_query));

/* libdat2's table of the LMRs of 1.2 programs: an LMR is found by its context. */
extern DAT_RETURN dats_lmr_add(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr);
extern void dats_lmr_remove(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr);
extern DAT_LMR_HANDLE dats_lmr_find(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context);

/* The inline functions have names of their own for the assembler: in it, dat_lmr_create is the
 * library's function. */
#define DAT_1_2_AS(call) __asm__("dat_1_2_" #call)
static __inline__ DAT_RETURN dat_ia_openv(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE *,
	DAT_IA_HANDLE *, DAT_UINT32, DAT_UINT32, DAT_BOOLEAN) DAT_1_2_AS(ia_openv);
static __inline__ DAT_RETURN dat_cr_reject(DAT_CR_HANDLE) DAT_1_2_AS(cr_reject);
static __inline__ DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE, DAT_TIMEOUT, DAT_COUNT,
	DAT_EVENT *, DAT_COUNT *) DAT_1_2_AS(evd_wait);
static __inline__ DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE,
	DAT_EVENT *) DAT_1_2_AS(evd_dequeue);
static __inline__ DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE,
	const DAT_EVENT *) DAT_1_2_AS(evd_post_se);
static __inline__ DAT_RETURN dat_cno_query(DAT_CNO_HANDLE, DAT_CNO_PARAM_MASK,
	DAT_CNO_PARAM *) DAT_1_2_AS(cno_query);
static __inline__ DAT_RETURN dat_lmr_create(DAT_IA_HANDLE, DAT_MEM_TYPE,
	DAT_REGION_DESCRIPTION, DAT_VLEN, DAT_PZ_HANDLE, DAT_MEM_PRIV_FLAGS,
	DAT_LMR_HANDLE *, DAT_LMR_CONTEXT *, DAT_RMR_CONTEXT *, DAT_VLEN *,
	DAT_VADDR *) DAT_1_2_AS(lmr_create);
static __inline__ DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE) DAT_1_2_AS(lmr_free);
static __inline__ DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *,
	DAT_VLEN) DAT_1_2_AS(lmr_sync_rdma_read);
static __inline__ DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *,
	DAT_VLEN) DAT_1_2_AS(lmr_sync_rdma_write);
static __inline__ DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE, const DAT_LMR_TRIPLET *,
	DAT_MEM_PRIV_FLAGS, DAT_EP_HANDLE, DAT_RMR_COOKIE, DAT_COMPLETION_FLAGS,
	DAT_RMR_CONTEXT *) DAT_1_2_AS(rmr_bind);
static __inline__ DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE, DAT_RMR_PARAM_MASK,
	DAT_RMR_PARAM *) DAT_1_2_AS(rmr_query);
static __inline__ DAT_RETURN dat_ep_create(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_EVD_HANDLE,
	DAT_EVD_HANDLE, DAT_EVD_HANDLE, const DAT_EP_ATTR *,
	DAT_EP_HANDLE *) DAT_1_2_AS(ep_create);
static __inline__ DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE, DAT_PZ_HANDLE,
	DAT_EVD_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE, DAT_SRQ_HANDLE, const DAT_EP_ATTR *,
	DAT_EP_HANDLE *) DAT_1_2_AS(ep_create_with_srq);
static __inline__ DAT_RETURN dat_ep_query(DAT_EP_HANDLE, DAT_EP_PARAM_MASK,
	DAT_EP_PARAM *) DAT_1_2_AS(ep_query);
static __inline__ DAT_RETURN dat_ep_modify(DAT_EP_HANDLE, DAT_EP_PARAM_MASK,
	const DAT_EP_PARAM *) DAT_1_2_AS(ep_modify);
static __inline__ DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET *,
	DAT_DTO_COOKIE, DAT_COMPLETION_FLAGS) DAT_1_2_AS(ep_post_send);
static __inline__ DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET *,
	DAT_DTO_COOKIE, DAT_COMPLETION_FLAGS) DAT_1_2_AS(ep_post_recv);
static __inline__ DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE, DAT_COUNT,
	DAT_LMR_TRIPLET *, DAT_DTO_COOKIE, const DAT_RMR_TRIPLET *,
	DAT_COMPLETION_FLAGS) DAT_1_2_AS(ep_post_rdma_read);
static __inline__ DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE, DAT_COUNT,
	DAT_LMR_TRIPLET *, DAT_DTO_COOKIE, const DAT_RMR_TRIPLET *,
	DAT_COMPLETION_FLAGS) DAT_1_2_AS(ep_post_rdma_write);
static __inline__ DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET *,
	DAT_DTO_COOKIE) DAT_1_2_AS(srq_post_recv);
#undef DAT_1_2_AS

/* --- interface adapters and connection requests ------------------------------ */

/* Version 1.2 is served by an adapter for 2.0. */
static __inline__ DAT_RETURN dat_ia_openv(IN const DAT_NAME_PTR name,
	IN DAT_COUNT async_evd_min_qlen, INOUT DAT_EVD_HANDLE *async_evd_handle,
	OUT DAT_IA_HANDLE *ia_handle, IN DAT_UINT32 major, IN DAT_UINT32 minor,
	IN DAT_BOOLEAN thread_safe)
{
	if (major == 1 && minor == 2) {
		major = 2;
		minor = 0;
	}
	return dat_v2_ia_openv(name, async_evd_min_qlen, async_evd_handle, ia_handle, major,
		minor, thread_safe);
}

/* Without private data, as in 1.2. */
static __inline__ DAT_RETURN dat_cr_reject(IN DAT_CR_HANDLE cr_handle)
{
	return dat_v2_cr_reject(cr_handle, 0, 0);
}

/* --- events ------------------------------------------------------------------ */

static __inline__ DAT_RETURN dat_evd_wait(IN DAT_EVD_HANDLE evd_handle,
	IN DAT_TIMEOUT timeout, IN DAT_COUNT threshold, OUT DAT_EVENT *event,
	OUT DAT_COUNT *n_more_events)
{
	DAT_RETURN ret = dat_v2_evd_wait(evd_handle, timeout, threshold,
		(struct dat_v2_event *)(void *)event, n_more_events);

	if (ret == DAT_SUCCESS)
		dat_1_2_event(event);
	return ret;
}

static __inline__ DAT_RETURN dat_evd_dequeue(IN DAT_EVD_HANDLE evd_handle, OUT DAT_EVENT *event)
{
	DAT_RETURN ret = dat_v2_evd_dequeue(evd_handle, (struct dat_v2_event *)(void *)event);

	if (ret == DAT_SUCCESS)
		dat_1_2_event(event);
	return ret;
}

/* A software event has the same members in both. */
static __inline__ DAT_RETURN dat_evd_post_se(IN DAT_EVD_HANDLE evd_handle,
	IN const DAT_EVENT *event)
{
	return dat_v2_evd_post_se(evd_handle, (const struct dat_v2_event *)(const void *)event);
}

static __inline__ DAT_RETURN dat_cno_query(IN DAT_CNO_HANDLE cno_handle,
	IN DAT_CNO_PARAM_MASK cno_param_mask, OUT DAT_CNO_PARAM *cno_param)
{
	DAT_V2_CNO_PARAM param;
	DAT_RETURN ret;

	if ((unsigned)cno_param_mask & ~(unsigned)DAT_CNO_FIELD_ALL)
		return DAT_1_2_BAD_ARGUMENT(2);
	__builtin_memset(&param, 0, sizeof(param));
	ret = dat_v2_cno_query(cno_handle, DAT_V2_CNO_FIELD_ALL, cno_param ? &param : 0);
	DAT_1_2_WRITES(cno_param);
	if (ret == DAT_SUCCESS && cno_param)
		dat_1_2_cno_param_back(cno_param, &param);
	return ret;
}

/* --- memory ------------------------------------------------------------------ */

static __inline__ DAT_RETURN dat_lmr_create(IN DAT_IA_HANDLE ia_handle,
	IN DAT_MEM_TYPE mem_type, IN DAT_REGION_DESCRIPTION region_description,
	IN DAT_VLEN length, IN DAT_PZ_HANDLE pz_handle, IN DAT_MEM_PRIV_FLAGS mem_priv,
	OUT DAT_LMR_HANDLE *lmr_handle, OUT DAT_LMR_CONTEXT *lmr_context,
	OUT DAT_RMR_CONTEXT *rmr_context, OUT DAT_VLEN *registered_length,
	OUT DAT_VADDR *registered_address)
{
	DAT_LMR_CONTEXT context;
	DAT_RETURN ret = dat_v2_lmr_create(ia_handle, mem_type, region_description, length,
		pz_handle, mem_priv, DAT_VA_TYPE_VA, lmr_handle, &context, rmr_context,
		registered_length, registered_address);

	DAT_1_2_WRITES(lmr_context);
	if (ret != DAT_SUCCESS)
		return dat_1_2_argument(ret, DAT_INVALID_ARG7, 1);
	ret = dats_lmr_add(ia_handle, context, *lmr_handle);
	if (ret != DAT_SUCCESS)
		dat_v2_lmr_free(*lmr_handle);
	if (ret == DAT_SUCCESS && lmr_context)
		*lmr_context = context;
	return ret;
}

static __inline__ DAT_RETURN dat_lmr_free(IN DAT_LMR_HANDLE lmr_handle)
{
	DAT_LMR_PARAM param;
	DAT_RETURN ret;

	__builtin_memset(&param, 0, sizeof(param));
	ret = dat_v2_lmr_query(lmr_handle, (DAT_LMR_PARAM_MASK)
		(DAT_LMR_FIELD_IA_HANDLE | DAT_LMR_FIELD_LMR_CONTEXT), &param);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = dat_v2_lmr_free(lmr_handle);
	if (ret == DAT_SUCCESS)
		dats_lmr_remove(param.ia_handle, param.lmr_context, lmr_handle);
	return ret;
}

/* The list of a synchronisation has no limit: it goes in pieces, in its order. */
static __inline__ DAT_RETURN dat_1_2_lmr_sync(
	DAT_RETURN (*sync)(DAT_IA_HANDLE, const DAT_V2_LMR_TRIPLET *, DAT_VLEN),
	DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments, DAT_VLEN num_segments)
{
	DAT_V2_LMR_TRIPLET piece[DAT_1_2_IOV_MAX];
	DAT_COUNT count;
	DAT_RETURN ret;

	if (!local_segments)
		return sync(ia_handle, 0, num_segments);
	do {
		count = num_segments < DAT_1_2_IOV_MAX ? (DAT_COUNT)num_segments : DAT_1_2_IOV_MAX;
		if (!dat_1_2_local_iov(piece, local_segments, count))
			return DAT_1_2_BAD_ARGUMENT(2);
		ret = sync(ia_handle, piece, (DAT_VLEN)count);
		local_segments += count;
		num_segments -= (DAT_VLEN)count;
	} while (ret == DAT_SUCCESS && num_segments);
	return ret;
}

static __inline__ DAT_RETURN dat_lmr_sync_rdma_read(IN DAT_IA_HANDLE ia_handle,
	IN const DAT_LMR_TRIPLET *local_segments, IN DAT_VLEN num_segments)
{
	return dat_1_2_lmr_sync(dat_v2_lmr_sync_rdma_read, ia_handle, local_segments,
		num_segments);
}

static __inline__ DAT_RETURN dat_lmr_sync_rdma_write(IN DAT_IA_HANDLE ia_handle,
	IN const DAT_LMR_TRIPLET *local_segments, IN DAT_VLEN num_segments)
{
	return dat_1_2_lmr_sync(dat_v2_lmr_sync_rdma_write, ia_handle, local_segments,
		num_segments);
}

/* The LMR is the one with the context of the triplet. A length of 0 unbinds. */
static __inline__ DAT_RETURN dat_rmr_bind(IN DAT_RMR_HANDLE rmr_handle,
	IN const DAT_LMR_TRIPLET *lmr_triplet, IN DAT_MEM_PRIV_FLAGS mem_priv,
	IN DAT_EP_HANDLE ep_handle, IN DAT_RMR_COOKIE user_cookie,
	IN DAT_COMPLETION_FLAGS completion_flags, OUT DAT_RMR_CONTEXT *context)
{
	DAT_LMR_HANDLE lmr_handle = DAT_HANDLE_NULL;
	DAT_V2_LMR_TRIPLET segment;
	DAT_V2_RMR_PARAM rmr;
	DAT_RETURN ret;

	__builtin_memset(&rmr, 0, sizeof(rmr));
	ret = dat_v2_rmr_query(rmr_handle, DAT_RMR_FIELD_IA_HANDLE, &rmr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!lmr_triplet || !dat_1_2_local_iov(&segment, lmr_triplet, 1))
		return DAT_1_2_BAD_ARGUMENT(2);
	if (segment.segment_length)
		lmr_handle = dats_lmr_find(rmr.ia_handle, segment.lmr_context);
	ret = dat_v2_rmr_bind(rmr_handle, lmr_handle, &segment, mem_priv, DAT_VA_TYPE_VA,
		ep_handle, user_cookie, completion_flags, context);
	return dat_1_2_argument(dat_1_2_argument(ret, DAT_INVALID_ARG5, 1), DAT_INVALID_ARG2, 1);
}

static __inline__ DAT_RETURN dat_rmr_query(IN DAT_RMR_HANDLE rmr_handle,
	IN DAT_RMR_PARAM_MASK rmr_param_mask, OUT DAT_RMR_PARAM *rmr_param)
{
	DAT_V2_RMR_PARAM param;
	DAT_RETURN ret;

	__builtin_memset(&param, 0, sizeof(param));
	ret = dat_v2_rmr_query(rmr_handle, rmr_param_mask, rmr_param ? &param : 0);
	DAT_1_2_WRITES(rmr_param);
	if (ret == DAT_SUCCESS && rmr_param)
		dat_1_2_rmr_param_back(rmr_param, &param);
	return ret;
}

/* --- endpoints --------------------------------------------------------------- */

static __inline__ DAT_RETURN dat_ep_create(IN DAT_IA_HANDLE ia_handle,
	IN DAT_PZ_HANDLE pz_handle, IN DAT_EVD_HANDLE recv_evd_handle,
	IN DAT_EVD_HANDLE request_evd_handle, IN DAT_EVD_HANDLE connect_evd_handle,
	IN const DAT_EP_ATTR *ep_attributes, OUT DAT_EP_HANDLE *ep_handle)
{
	DAT_V2_EP_ATTR attr;

	if (ep_attributes && !dat_1_2_ep_attr(&attr, ep_attributes, DAT_EP_FIELD_EP_ATTR_ALL))
		return DAT_1_2_BAD_ARGUMENT(6);
	return dat_v2_ep_create(ia_handle, pz_handle, recv_evd_handle, request_evd_handle,
		connect_evd_handle, ep_attributes ? &attr : 0, ep_handle);
}

static __inline__ DAT_RETURN dat_ep_create_with_srq(IN DAT_IA_HANDLE ia_handle,
	IN DAT_PZ_HANDLE pz_handle, IN DAT_EVD_HANDLE recv_evd_handle,
	IN DAT_EVD_HANDLE request_evd_handle, IN DAT_EVD_HANDLE connect_evd_handle,
	IN DAT_SRQ_HANDLE srq_handle, IN const DAT_EP_ATTR *ep_attributes,
	OUT DAT_EP_HANDLE *ep_handle)
{
	DAT_V2_EP_ATTR attr;

	if (ep_attributes && !dat_1_2_ep_attr(&attr, ep_attributes, DAT_EP_FIELD_EP_ATTR_ALL))
		return DAT_1_2_BAD_ARGUMENT(7);
	return dat_v2_ep_create_with_srq(ia_handle, pz_handle, recv_evd_handle,
		request_evd_handle, connect_evd_handle, srq_handle, ep_attributes ? &attr : 0,
		ep_handle);
}

static __inline__ DAT_RETURN dat_ep_query(IN DAT_EP_HANDLE ep_handle,
	IN DAT_EP_PARAM_MASK ep_param_mask, OUT DAT_EP_PARAM *ep_param)
{
	DAT_V2_EP_PARAM param;
	DAT_RETURN ret;

	__builtin_memset(&param, 0, sizeof(param));
	ret = dat_v2_ep_query(ep_handle, ep_param_mask, ep_param ? &param : 0);
	DAT_1_2_WRITES(ep_param);
	if (ret == DAT_SUCCESS && ep_param)
		dat_1_2_ep_param_back(ep_param, &param);
	return ret;
}

static __inline__ DAT_RETURN dat_ep_modify(IN DAT_EP_HANDLE ep_handle,
	IN DAT_EP_PARAM_MASK ep_param_mask, IN const DAT_EP_PARAM *ep_param)
{
	DAT_V2_EP_PARAM param;

	if (ep_param && !dat_1_2_ep_param(&param, ep_param, ep_param_mask))
		return DAT_1_2_BAD_ARGUMENT(3);
	return dat_v2_ep_modify(ep_handle, ep_param_mask, ep_param ? &param : 0);
}

/* --- data transfer ----------------------------------------------------------- */

static __inline__ DAT_RETURN dat_ep_post_send(IN DAT_EP_HANDLE ep_handle,
	IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET *local_iov,
	IN DAT_DTO_COOKIE user_cookie, IN DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_V2_LMR_TRIPLET iov[DAT_1_2_IOV_MAX];

	if (num_segments > DAT_1_2_IOV_MAX)
		return DAT_1_2_BAD_ARGUMENT(2);
	if (local_iov && !dat_1_2_local_iov(iov, local_iov, num_segments))
		return DAT_1_2_BAD_ARGUMENT(3);
	return dat_v2_ep_post_send(ep_handle, num_segments, local_iov ? iov : 0, user_cookie,
		completion_flags);
}

static __inline__ DAT_RETURN dat_ep_post_recv(IN DAT_EP_HANDLE ep_handle,
	IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET *local_iov,
	IN DAT_DTO_COOKIE user_cookie, IN DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_V2_LMR_TRIPLET iov[DAT_1_2_IOV_MAX];

	if (num_segments > DAT_1_2_IOV_MAX)
		return DAT_1_2_BAD_ARGUMENT(2);
	if (local_iov && !dat_1_2_local_iov(iov, local_iov, num_segments))
		return DAT_1_2_BAD_ARGUMENT(3);
	return dat_v2_ep_post_recv(ep_handle, num_segments, local_iov ? iov : 0, user_cookie,
		completion_flags);
}

static __inline__ DAT_RETURN dat_ep_post_rdma_read(IN DAT_EP_HANDLE ep_handle,
	IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET *local_iov,
	IN DAT_DTO_COOKIE user_cookie, IN const DAT_RMR_TRIPLET *remote_iov,
	IN DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_V2_LMR_TRIPLET iov[DAT_1_2_IOV_MAX];
	DAT_V2_RMR_TRIPLET remote;

	if (num_segments > DAT_1_2_IOV_MAX)
		return DAT_1_2_BAD_ARGUMENT(2);
	if (local_iov && !dat_1_2_local_iov(iov, local_iov, num_segments))
		return DAT_1_2_BAD_ARGUMENT(3);
	if (remote_iov && !dat_1_2_remote(&remote, remote_iov))
		return DAT_1_2_BAD_ARGUMENT(5);
	return dat_v2_ep_post_rdma_read(ep_handle, num_segments, local_iov ? iov : 0,
		user_cookie, remote_iov ? &remote : 0, completion_flags);
}

static __inline__ DAT_RETURN dat_ep_post_rdma_write(IN DAT_EP_HANDLE ep_handle,
	IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET *local_iov,
	IN DAT_DTO_COOKIE user_cookie, IN const DAT_RMR_TRIPLET *remote_iov,
	IN DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_V2_LMR_TRIPLET iov[DAT_1_2_IOV_MAX];
	DAT_V2_RMR_TRIPLET remote;

	if (num_segments > DAT_1_2_IOV_MAX)
		return DAT_1_2_BAD_ARGUMENT(2);
	if (local_iov && !dat_1_2_local_iov(iov, local_iov, num_segments))
		return DAT_1_2_BAD_ARGUMENT(3);
	if (remote_iov && !dat_1_2_remote(&remote, remote_iov))
		return DAT_1_2_BAD_ARGUMENT(5);
	return dat_v2_ep_post_rdma_write(ep_handle, num_segments, local_iov ? iov : 0,
		user_cookie, remote_iov ? &remote : 0, completion_flags);
}

static __inline__ DAT_RETURN dat_srq_post_recv(IN DAT_SRQ_HANDLE srq_handle,
	IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET *local_iov, IN DAT_DTO_COOKIE user_cookie)
{
	DAT_V2_LMR_TRIPLET iov[DAT_1_2_IOV_MAX];

	if (num_segments > DAT_1_2_IOV_MAX)
		return DAT_1_2_BAD_ARGUMENT(2);
	if (local_iov && !dat_1_2_local_iov(iov, local_iov, num_segments))
		return DAT_1_2_BAD_ARGUMENT(3);
	return dat_v2_srq_post_recv(srq_handle, num_segments, local_iov ? iov : 0, user_cookie);
}

#ifdef __cplusplus
}
#endif

#endif
