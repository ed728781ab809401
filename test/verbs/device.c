/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.c - opening of RDMA devices whose operations are replaced, and the query of their attributes (device.h).
 * What is replaced besides is the matter of dm.c and eth.c. */
#include "device.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*real_query)(struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *,
			 size_t);

void *fake_find_real(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "replaced operations: libibverbs has no %s\n", name);
		abort();
	}
	return found;
}

static int query(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		 struct ibv_device_attr_ex *attr, size_t size)
{
	int err = EOPNOTSUPP;

	memset(attr, 0, size);
	if (real_query)
		err = real_query(context, input, attr, size);
	if (err == EOPNOTSUPP || err == ENOSYS)
		err = ibv_query_device(context, &attr->orig_attr);
	fake_describe(attr);
	return err;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = REAL(ibv_open_device)(device);
	struct verbs_context *verbs = context ? verbs_get_ctx(context) : NULL;

	if (!context)
		return NULL;
	if (!verbs) {
		fprintf(stderr, "replaced operations: the device has no extended operations\n");
		abort();
	}
	if (verbs->query_device_ex == query)
		return context;
	real_query = verbs->query_device_ex;
	verbs->query_device_ex = query;
	fake_replace(context, verbs);
	return context;
}
