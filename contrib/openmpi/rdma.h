/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma.h - put, get, atomic operations and flush. */
#ifndef BTL_UDAPL_RDMA_H
#define BTL_UDAPL_RDMA_H

#include "udapl.h"

int udapl_put(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
	      uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
	      mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	      int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_get(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
	      uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
	      mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	      int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_atomic_op(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, uint64_t remote,
		    mca_btl_base_registration_handle_t *remote_handle,
		    mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		    mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_atomic_fop(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		     uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
		     mca_btl_base_registration_handle_t *remote_handle,
		     mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		     mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_atomic_cswap(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		       uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
		       uint64_t value, int flags, int order,
		       mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_flush(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e);

#endif
