/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_objects.h - reads from the kernel, over NETLINK_RDMA, which objects programs have on its RDMA
 * devices. Objects of the kernel itself are left out. */
#ifndef TOOLS_CONTROL_RDMA_OBJECTS_H
#define TOOLS_CONTROL_RDMA_OBJECTS_H
#include <jansson.h>

/* A context is a device that a program has opened; older kernels do not report it. */
enum rdma_kind { RDMA_CONTEXT, RDMA_PD, RDMA_MR, RDMA_CQ, RDMA_QP, RDMA_CM_ID, RDMA_KINDS };

#ifdef TOOLS_NET
/* Returns the objects of a kind on a device, in the order of the kernel. Each has "pid" and "program"; a QP
 * also has "qp" (its number), "type" and "state"; a CM_ID "service" (RC, UD), "state", "address" and "port".
 * The array is empty if the kernel does not report them, or has no such device. */
json_t *rdma_objects(enum rdma_kind kind, const char *device);

/* For a test: adds the objects of one answer to `list`. Ignores an answer with malformed attributes,
 * and leaves out objects that lack an attribute they need. */
struct nlmsghdr;
void rdma_objects_parse(enum rdma_kind kind, struct nlmsghdr *head, json_t *list);
#else
static inline json_t *rdma_objects(enum rdma_kind kind, const char *device)
{
	(void)kind;
	(void)device;
	return json_array();
}
#endif

#endif
