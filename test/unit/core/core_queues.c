/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_queues.c - see core_queues.h. No object does anything; each names what it was made with, and is
 * counted in core_device. */
#include <errno.h>
#include <stdlib.h>
#include "test/unit/core/core_device.h"
#include "test/unit/core/core_queues.h"

int core_alloc_pd(struct dapl_device *dev, struct ibv_pd **pd)
{
	(void)dev;
	if (core_device.alloc_pd_error)
		return core_device.alloc_pd_error;
	*pd = calloc(1, sizeof **pd);
	(*pd)->context = core_context();
	core_device.pds++;
	return 0;
}

int core_dealloc_pd(struct ibv_pd *pd)
{
	if (core_device.pd_busy && core_device.pd_busy())
		return EBUSY;
	free(pd);
	core_device.pds--;
	return 0;
}

int core_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name, struct ibv_mr **mr)
{
	static uint32_t last_number;
	int err = core_device.reg_mr ? core_device.reg_mr(addr, length, access, name) : 0;

	if (err)
		return err;
	*mr = calloc(1, sizeof **mr);
	last_number++;
	**mr = (struct ibv_mr){ .context = core_context(), .pd = pd, .addr = addr, .length = length,
		.lkey = last_number, .rkey = last_number | CORE_REMOTE };
	core_device.mrs++;
	return 0;
}

int core_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	core_device.mrs--;
	return 0;
}

int core_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
{
	static uint32_t last_number = 100;
	int err = core_device.create_qp ? core_device.create_qp(attr) : 0;

	(void)dev;
	if (err)
		return err;
	*qp = calloc(1, sizeof **qp);
	**qp = (struct ibv_qp){ .context = core_context(), .qp_context = attr->qp_context, .pd = pd,
		.send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq, .qp_num = ++last_number,
		.qp_type = attr->qp_type };
	core_device.qps++;
	return 0;
}

int core_create_delayed_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			   struct ibv_qp **qp)
{
	core_device.delayed_qps++;
	return core_create_qp(dev, pd, attr, qp);
}

int core_destroy_qp(struct ibv_qp *qp)
{
	if (core_device.destroy_qp)
		core_device.destroy_qp(qp);
	free(qp);
	core_device.qps--;
	return 0;
}

int core_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
{
	int err = core_device.create_srq ? core_device.create_srq(attr) : 0;

	if (err)
		return err;
	*srq = calloc(1, sizeof **srq);
	**srq = (struct ibv_srq){ .context = core_context(), .srq_context = attr->srq_context, .pd = pd };
	core_device.srqs++;
	return 0;
}

int core_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	(void)srq;
	return core_device.modify_srq ? core_device.modify_srq(attr, mask) : 0;
}

int core_destroy_srq(struct ibv_srq *srq)
{
	free(srq);
	core_device.srqs--;
	return 0;
}
