/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_objects.c - see core_objects.h. */
#include "dapl/core/conn/conn.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/mem/pz.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

struct dapl_ia *core_ia;
struct dapl_pz *core_pz;
struct dapl_evd *core_dto_evd, *core_conn_evd;

static void set_limits(struct dapl_ia *ia)
{
	DAT_IA_ATTR *attr = &ia->ia_attr;

	attr->max_dto_per_ep = 64;
	attr->max_iov_segments_per_dto = attr->max_iov_segments_per_rdma_read = 4;
	attr->max_iov_segments_per_rdma_write = 6;
	attr->max_rdma_read_per_ep_in = attr->max_rdma_read_per_ep_out = 4;
	attr->max_message_size = attr->max_rdma_size = 4096;
	attr->max_srqs = 4;
	attr->max_recv_per_srq = 1000;
	ia->attr.max_inline = 96;
	ia->attr.mtu = 1500;
	ia->attr.pdata_connect = ia->attr.pdata_accept = ia->attr.pdata_reject = 64;
	((struct sockaddr_in *)&ia->attr.address)->sin_family = AF_INET;
}

int core_objects_open(void **state)
{
	DAT_PZ_HANDLE pz;

	core_device = (struct core_device){ .polling = NULL };
	dapl_ep_conn_start();
	if (dapl_service_get())
		return -1;
	core_ia = core_ia_new();
	set_limits(core_ia);
	if (dapl_pz_create((DAT_IA_HANDLE)core_ia, &pz) != DAT_SUCCESS)
		return -1;
	core_pz = (struct dapl_pz *)pz;
	core_dto_evd = core_evd_new(core_ia, 64, DAT_EVD_DTO_FLAG);
	core_conn_evd = core_evd_new(core_ia, 8, DAT_EVD_CONNECTION_FLAG);
	return 0;
}

int core_objects_close(void **state)
{
	dapl_service_flush();
	assert_false(dapl_in_use(&core_dto_evd->obj) || dapl_in_use(&core_conn_evd->obj));
	core_evd_free(core_conn_evd);
	core_evd_free(core_dto_evd);
	assert_int_equal(dapl_pz_free((DAT_PZ_HANDLE)core_pz), DAT_SUCCESS);
	core_ia_free(core_ia);
	dapl_service_put();
	assert_int_equal(core_device.cqs, 0);
	assert_int_equal(core_device.qps, 0);
	assert_int_equal(core_device.srqs, 0);
	assert_int_equal(core_device.pds, 0);
	return 0;
}

struct dapl_ep *core_objects_ep(struct dapl_srq *srq, const DAT_EP_ATTR *attr)
{
	struct dapl_ep *ep;

	if (dapl_ep_make(core_ia, core_pz, core_dto_evd, core_dto_evd, core_conn_evd, srq, attr, 7, &ep) !=
	    DAT_SUCCESS)
		abort();
	dapl_object_publish(&ep->obj);
	return ep;
}

int core_next_event(struct dapl_evd *evd, DAT_EVENT *event)
{
	return dapl_evd_dequeue((DAT_EVD_HANDLE)evd, event) == DAT_SUCCESS ? (int)event->event_number : 0;
}
