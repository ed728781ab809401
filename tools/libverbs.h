/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libverbs.h - the functions of libibverbs, which the tools load only when they need it. */
#ifndef TOOLS_LIBVERBS_H
#define TOOLS_LIBVERBS_H
#include <infiniband/verbs.h>

/* verbs.h has macros of these names, but the exported functions are needed here. The function
 * ibv_query_port() fills in only the first members of struct ibv_port_attr. */
#undef ibv_query_port
#undef ibv_reg_mr

#define LIBVERBS_FUNCTIONS(X) \
	X(struct ibv_device **, ibv_get_device_list, (int *)) \
	X(void, ibv_free_device_list, (struct ibv_device **)) \
	X(const char *, ibv_get_device_name, (struct ibv_device *)) \
	X(struct ibv_context *, ibv_open_device, (struct ibv_device *)) \
	X(int, ibv_close_device, (struct ibv_context *)) \
	X(int, ibv_query_device, (struct ibv_context *, struct ibv_device_attr *)) \
	X(int, ibv_query_port, (struct ibv_context *, uint8_t, struct ibv_port_attr *)) \
	X(int, ibv_query_gid, (struct ibv_context *, uint8_t, int, union ibv_gid *)) \
	X(struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *)) \
	X(int, ibv_dealloc_pd, (struct ibv_pd *)) \
	X(struct ibv_mr *, ibv_reg_mr, (struct ibv_pd *, void *, size_t, int)) \
	X(int, ibv_dereg_mr, (struct ibv_mr *)) \
	X(struct ibv_cq *, ibv_create_cq, \
	  (struct ibv_context *, int, void *, struct ibv_comp_channel *, int)) \
	X(int, ibv_destroy_cq, (struct ibv_cq *)) \
	X(struct ibv_qp *, ibv_create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *)) \
	X(int, ibv_modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int)) \
	X(int, ibv_destroy_qp, (struct ibv_qp *))

/* The functions under their own names, after libverbs_load(). */
struct libverbs {
#define X(type, name, arguments) type(*name) arguments;
	LIBVERBS_FUNCTIONS(X)
#undef X
};
extern struct libverbs lib;

/* Loads the library, which stays loaded. Returns NULL on success, otherwise the reason, which is valid until
 * the next call. */
const char *libverbs_load(void);

#endif
