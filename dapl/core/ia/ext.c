/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ext.c - dat_extension_op: atomics, RDMA write with immediate, UD, counters, open-query
 * (doc/spec/extensions.md), mapped memory (dat_map_extensions.h), device memory (dat_dm_extensions.h),
 * sends with immediate data (dat_send_extensions.h), multicast (dat_mcast_extensions.h), the last error of
 * an endpoint (dat_diag_extensions.h). This file reads the arguments; ep/, conn/, mem/ and eth/ do the
 * operations. BAD_PARAM counts the arguments of the macro; only device memory counts those of
 * dat_extension_op. An operation of endpoints is in two switches: dapl_extension_op() selects the kind of
 * its handle, ep_op() calls it. The collective operations (6 to 25) are NOT_IMPLEMENTED. */
#include <stdarg.h>
#include <string.h>
#include <dat/dat_mcast_extensions.h>
#include <dat/dat_net_extensions.h>
#include <dat/dat_send_extensions.h>
#include "dapl/core/conn/failure.h"
#include "dapl/core/conn/mcast.h"
#include "dapl/core/conn/ud.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/eth/ops.h"
#include "dapl/core/ia/attr.h"
#include "dapl/core/ia/counters.h"
#include "dapl/core/ia/ext.h"
#include "dapl/core/ia/ia.h"
#include "dapl/core/ia/net_watch.h"
#include "dapl/core/ia/provider.h"
#include "dapl/core/mem/dm.h"
#include "dapl/core/mem/rmr_map.h"

#define NOT_IMPLEMENTED DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE)

/* --- atomics --------------------------------------------------------------------------- */

static DAT_RETURN post_atomic(struct dapl_ep *ep, struct ibv_send_wr *wr,
			      const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
			      const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags,
			      const struct dapl_post_kind *kind)
{
	bool swaps = kind->op == DAT_IB_DTO_CMP_SWAP;	/* its local segment is argument 4, not 3 */

	if (!ep->obj.ia->attr.atomics)
		return NOT_IMPLEMENTED;
	if (READ_ONCE(ep->is_raw))
		return NOT_SUPPORTED;
	if (READ_ONCE(ep->is_ud))
		return BAD_PARAM(1);
	if (!local)
		return swaps ? BAD_PARAM(4) : BAD_PARAM(3);
	if (!remote)
		return swaps ? BAD_PARAM(6) : BAD_PARAM(5);
	if (local->segment_length != sizeof(uint64_t) ||
	    remote->segment_length < sizeof(uint64_t))
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	wr->sg_list = (struct ibv_sge *)(uintptr_t)local;
	wr->num_sge = 1;
	wr->wr.atomic.remote_addr = remote->virtual_address;
	wr->wr.atomic.rkey = remote->rmr_context;
	return dapl_ep_post_request(ep, wr, sizeof(uint64_t), cookie, flags, kind);
}

/* EXT-4 */
static DAT_RETURN fetch_and_add(struct dapl_ep *ep, va_list args)
{
	static const struct dapl_post_kind kind = { DAT_IB_DTO_FETCH_ADD, REQ_EXTENSION, DCNT_EP_POST_FETCH_ADD };
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };
	const DAT_LMR_TRIPLET *local;
	const DAT_RMR_TRIPLET *remote;
	DAT_DTO_COOKIE cookie;

	wr.wr.atomic.compare_add = va_arg(args, DAT_UINT64);
	local = va_arg(args, const DAT_LMR_TRIPLET *);
	cookie = va_arg(args, DAT_DTO_COOKIE);
	remote = va_arg(args, const DAT_RMR_TRIPLET *);
	return post_atomic(ep, &wr, local, cookie, remote, (DAT_COMPLETION_FLAGS)va_arg(args, int), &kind);
}

/* EXT-5, 6 */
static DAT_RETURN cmp_and_swap(struct dapl_ep *ep, va_list args)
{
	static const struct dapl_post_kind kind = { DAT_IB_DTO_CMP_SWAP, REQ_EXTENSION, DCNT_EP_POST_CMP_SWAP };
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP };
	const DAT_LMR_TRIPLET *local;
	const DAT_RMR_TRIPLET *remote;
	DAT_DTO_COOKIE cookie;

	wr.wr.atomic.compare_add = va_arg(args, DAT_UINT64);
	wr.wr.atomic.swap = va_arg(args, DAT_UINT64);
	local = va_arg(args, const DAT_LMR_TRIPLET *);
	cookie = va_arg(args, DAT_DTO_COOKIE);
	remote = va_arg(args, const DAT_RMR_TRIPLET *);
	return post_atomic(ep, &wr, local, cookie, remote, (DAT_COMPLETION_FLAGS)va_arg(args, int), &kind);
}

/* --- other operations on endpoints --------------------------------------------------------- */

static DAT_RETURN write_immed(struct dapl_ep *ep, va_list args)
{
	DAT_COUNT n = va_arg(args, DAT_COUNT);
	DAT_LMR_TRIPLET *iov = va_arg(args, DAT_LMR_TRIPLET *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	const DAT_RMR_TRIPLET *remote = va_arg(args, const DAT_RMR_TRIPLET *);
	DAT_UINT32 immediate = va_arg(args, DAT_UINT32);
	DAT_COMPLETION_FLAGS flags = (DAT_COMPLETION_FLAGS)va_arg(args, int);

	if (!ep->obj.ia->attr.write_immediate)
		return NOT_IMPLEMENTED;
	return dapl_ep_post_write_immed(ep, n, iov, cookie, remote, immediate, flags);
}

/* EXT-29, 30, 31 */
static DAT_RETURN send_immed(struct dapl_ep *ep, va_list args)
{
	DAT_COUNT n = va_arg(args, DAT_COUNT);
	const DAT_LMR_TRIPLET *iov = va_arg(args, const DAT_LMR_TRIPLET *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	DAT_UINT32 immediate = va_arg(args, DAT_UINT32);
	DAT_COMPLETION_FLAGS flags = (DAT_COMPLETION_FLAGS)va_arg(args, int);

	if (!ep->obj.ia->attr.write_immediate)
		return NOT_IMPLEMENTED;
	if (READ_ONCE(ep->is_raw))
		return NOT_SUPPORTED;
	if (READ_ONCE(ep->is_ud))
		return BAD_PARAM(1);
	return dapl_ep_post_send_immed(ep, n, iov, cookie, immediate, flags);
}

static DAT_RETURN send_ud(struct dapl_ep *ep, va_list args)
{
	DAT_COUNT n = va_arg(args, DAT_COUNT);
	DAT_LMR_TRIPLET *iov = va_arg(args, DAT_LMR_TRIPLET *);
	const DAT_IB_ADDR_HANDLE *to = va_arg(args, const DAT_IB_ADDR_HANDLE *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);

	return dapl_ud_send(ep, n, iov, to, cookie, (DAT_COMPLETION_FLAGS)va_arg(args, int));
}

static DAT_RETURN mcast_op(struct dapl_ep *ep, DAT_EXTENDED_OP op, va_list args)
{
	const struct sockaddr *group = va_arg(args, const struct sockaddr *);
	DAT_UINT32 flags;

	if ((int)op == DAT_MCAST_LEAVE_OP)
		return dapl_mcast_leave(ep, group);
	flags = va_arg(args, DAT_UINT32);
	return dapl_mcast_join(ep, group, flags, va_arg(args, DAT_CONTEXT));
}

static DAT_RETURN ep_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);

	if (!ep)
		return BAD_HANDLE(EP);
	switch ((int)op) {
	case DAT_IB_FETCH_AND_ADD_OP:	return fetch_and_add(ep, args);
	case DAT_IB_CMP_AND_SWAP_OP:	return cmp_and_swap(ep, args);
	case DAT_IB_RDMA_WRITE_IMMED_OP: return write_immed(ep, args);
	case DAT_SEND_IMMED_OP:		return send_immed(ep, args);
	case DAT_IB_UD_SEND_OP:		return send_ud(ep, args);
	case DAT_MCAST_JOIN_OP: case DAT_MCAST_LEAVE_OP: return mcast_op(ep, op, args);
	case DAT_IB_UD_CM_FREE_OP:	return dapl_ud_cm_free(ep, va_arg(args, DAT_CONTEXT));
	default:			return dapl_ud_ah_free(ep, va_arg(args,
							       DAT_IB_ADDR_HANDLE *));
	}
}

static DAT_RETURN map_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	const DAT_RMR_TRIPLET *rmr;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!dapl_device_ops.map_remote)
		return NOT_IMPLEMENTED;
	if ((int)op == DAT_MAP_UNMAP_OP)
		return dapl_map_unmap(ep, va_arg(args, DAT_PVOID));
	rmr = va_arg(args, const DAT_RMR_TRIPLET *);
	return dapl_map_rmr(ep, rmr, va_arg(args, DAT_PVOID *));
}

static DAT_RETURN dm_alloc(DAT_HANDLE handle, va_list args)
{
	DAT_VLEN length = va_arg(args, DAT_VLEN);
	DAT_UINT32 log2_alignment = va_arg(args, DAT_UINT32);

	return dapl_dm_alloc(handle, length, log2_alignment, va_arg(args, DAT_DM_HANDLE *));
}

static DAT_RETURN dm_lmr_create(DAT_HANDLE handle, va_list args)
{
	DAT_VLEN offset = va_arg(args, DAT_VLEN);
	DAT_VLEN length = va_arg(args, DAT_VLEN);
	DAT_PZ_HANDLE pz = va_arg(args, DAT_PZ_HANDLE);
	DAT_MEM_PRIV_FLAGS priv = (DAT_MEM_PRIV_FLAGS)va_arg(args, int);
	DAT_LMR_HANDLE *lmr = va_arg(args, DAT_LMR_HANDLE *);
	DAT_LMR_CONTEXT *lmr_context = va_arg(args, DAT_LMR_CONTEXT *);

	return dapl_dm_lmr_create(handle, offset, length, pz, priv, lmr, lmr_context,
				  va_arg(args, DAT_RMR_CONTEXT *));
}

static DAT_RETURN dm_copy(DAT_HANDLE handle, bool to_device, va_list args)
{
	DAT_VLEN offset = va_arg(args, DAT_VLEN);
	void *host = va_arg(args, void *);

	return dapl_dm_copy(handle, offset, host, va_arg(args, DAT_VLEN), to_device);
}

static DAT_RETURN dm_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	switch ((int)op) {
	case DAT_DM_ALLOC_OP:		return dm_alloc(handle, args);
	case DAT_DM_FREE_OP:		return dapl_dm_free(handle);
	case DAT_DM_LMR_CREATE_OP:	return dm_lmr_create(handle, args);
	case DAT_DM_COPY_TO_OP:		return dm_copy(handle, true, args);
	case DAT_DM_COPY_FROM_OP:	return dm_copy(handle, false, args);
	default:			return dapl_dm_map(handle, va_arg(args, DAT_PVOID *));
	}
}

static DAT_RETURN last_error(DAT_HANDLE handle, va_list args)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	DAT_LAST_ERROR *error = va_arg(args, DAT_LAST_ERROR *);

	if (!ep)
		return BAD_HANDLE(EP);
	return dapl_failure_get(ep, error, va_arg(args, DAT_COUNT));
}

static DAT_RETURN net_watch(DAT_HANDLE handle, va_list args)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(handle);

	return ia ? dapl_net_watch(ia, va_arg(args, DAT_UINT32)) : BAD_HANDLE(IA);
}

static DAT_RETURN counter_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAPL_ENTERED struct dapl_object *obj = dapl_object_enter_any(handle);
	int which = va_arg(args, int);
	DAT_UINT64 *out;

	if (!obj)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	switch ((int)op) {
	case DAT_IB_QUERY_COUNTERS_OP:
		out = va_arg(args, DAT_UINT64 *);
		return dapl_counters_query(obj, which, out, va_arg(args, int));
	case DAT_IB_PRINT_COUNTERS_OP:
		return dapl_counters_print(obj, which, va_arg(args, int));
	case DAT_IB_START_COUNTERS_OP:
		return dapl_counters_start(obj, which);
	default:
		return dapl_counters_stop(obj, which);
	}
}

/* --- open-query (doc/spec/registry.md 9): attributes without an open ------------------------ */

static void end_query(struct dapl_object *obj)
{
	dapl_attr_free((struct dapl_ia *)obj);
}

static DAT_RETURN fill_query(struct dapl_ia *query, const struct dapl_entry *entry)
{
	DAT_RETURN ret;
	int err;

	if ((err = dapl_service_get()))
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	err = dapl_ia_open_device(query, entry);
	if (!err) {
		err = dapl_device_ops.query(query->dev, &query->attr);
		dapl_device_ops.close(query->dev);
	}
	dapl_service_put();
	ret = dapl_ia_open_status(err);
	return ret == DAT_SUCCESS ? dapl_attr_prepare(query, entry) : ret;
}

/* dat_ib_open_query: the handle is the ia_name. */
static DAT_RETURN open_query(const char *name, va_list args)
{
	struct dapl_entry *entry = dapl_entry_find(name);
	DAT_HANDLE *handle = va_arg(args, DAT_HANDLE *);
	DAT_IA_ATTR_MASK ia_mask = va_arg(args, DAT_IA_ATTR_MASK);
	DAT_IA_ATTR *ia_attr = va_arg(args, DAT_IA_ATTR *);
	DAT_PROVIDER_ATTR_MASK provider_mask = va_arg(args, DAT_PROVIDER_ATTR_MASK);
	DAT_PROVIDER_ATTR *provider_attr = va_arg(args, DAT_PROVIDER_ATTR *);
	struct dapl_ia *query;
	DAT_RETURN ret;

	if (!entry)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (!handle)
		return BAD_PARAM(2);
	query = dapl_object_new(DAPL_QUERY, sizeof *query, NULL, end_query);
	if (!query)
		return NO_RESOURCE(MEMORY);
	query->obj.provider = &entry->table;
	ret = fill_query(query, entry);
	if (ret == DAT_SUCCESS)
		ret = dapl_attr_fill(query, ia_mask, ia_attr, provider_mask, provider_attr);
	if (ret != DAT_SUCCESS) {
		dapl_object_put(&query->obj);
		return ret;
	}
	dapl_object_publish(&query->obj);
	*handle = (DAT_HANDLE)query;
	return DAT_SUCCESS;
}

static DAT_RETURN close_query(DAT_HANDLE handle)
{
	DAPL_ENTERED struct dapl_object *query = dapl_object_enter(handle, DAPL_QUERY);

	if (!query || !dapl_object_kill(query))
		return BAD_HANDLE(IA);
	dapl_object_wait_calls(query, 1);
	dapl_object_put(query);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	switch ((int)op) {
	case DAT_IB_FETCH_AND_ADD_OP: case DAT_IB_CMP_AND_SWAP_OP:
	case DAT_IB_RDMA_WRITE_IMMED_OP: case DAT_SEND_IMMED_OP: case DAT_IB_UD_SEND_OP:
	case DAT_IB_UD_CM_FREE_OP: case DAT_IB_UD_AH_FREE_OP:
	case DAT_MCAST_JOIN_OP: case DAT_MCAST_LEAVE_OP:
		return ep_op(handle, op, args);
	case DAT_MAP_RMR_OP: case DAT_MAP_UNMAP_OP:
		return map_op(handle, op, args);
	case DAT_DM_ALLOC_OP: case DAT_DM_FREE_OP: case DAT_DM_LMR_CREATE_OP:
	case DAT_DM_COPY_TO_OP: case DAT_DM_COPY_FROM_OP: case DAT_DM_MAP_OP:
		return dm_op(handle, op, args);
	case DAT_DIAG_LAST_ERROR_OP:
		return last_error(handle, args);
	case DAT_NET_WATCH_OP:
		return net_watch(handle, args);
	case DAT_IB_QUERY_COUNTERS_OP: case DAT_IB_PRINT_COUNTERS_OP:
	case DAT_IB_START_COUNTERS_OP: case DAT_IB_STOP_COUNTERS_OP:
		return counter_op(handle, op, args);
	case DAT_ETH_QUERY_OP ... DAT_ETH_MODERATE_OP:
		return dapl_eth_op(handle, op, args);
	case DAT_IB_OPEN_QUERY_OP:
		return open_query((const char *)handle, args);
	case DAT_IB_CLOSE_QUERY_OP:
		return close_query(handle);
	default:
		return NOT_IMPLEMENTED;	/* EXT-12 */
	}
}
