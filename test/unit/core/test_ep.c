/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep.c - dat_ep_create and dat_ep_create_with_srq: what they refuse, and that a refused endpoint uses nothing; and
 * what the queries tell (ep.c). Limits of attributes are in test_ep_attr.c. */
#include "dapl/core/conn/connect.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/ep/srq.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/mem/pz.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { BUFFERS = 4 };

static char untouched, handle_of_ia;	/* their addresses are handles */
static DAT_EP_HANDLE handle;		/* that the last create gave */
static struct dapl_srq *srq;
static uint64_t records[BUFFERS];	/* wr_id of each buffer of the SRQ */
static unsigned buffers;
static int create_error;

#define IA ((DAT_IA_HANDLE)core_ia)
#define PZ ((DAT_PZ_HANDLE)core_pz)
#define DTO ((DAT_EVD_HANDLE)core_dto_evd)
#define CONN ((DAT_EVD_HANDLE)core_conn_evd)
#define SRQ ((DAT_SRQ_HANDLE)srq)

/* The registry's handle of the IA. */
/* In place of the registry's. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE of, DAT_IA_HANDLE *handle)
{
	assert_ptr_equal(of, core_ia);
	*handle = (DAT_IA_HANDLE)&handle_of_ia;
	return DAT_SUCCESS;
}

static int note_create(const struct ibv_qp_init_attr *attr) { return create_error; }

static int note_buffer(const struct ibv_recv_wr *wr)
{
	records[buffers++ % BUFFERS] = wr->wr_id;
	return 0;
}

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_objects_open(state), 0);
	core_device.create_qp = note_create;
	core_device.post_srq_recv = note_buffer;
	handle = (DAT_EP_HANDLE)&untouched;
	srq = NULL;
	buffers = 0;
	create_error = 0;
}

static int set_up_srq(void **state)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = BUFFERS, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_SRQ_HANDLE made;

	if (set_up(state) || dapl_srq_create(IA, PZ, &attr, &made) != DAT_SUCCESS)
		return -1;
	srq = (struct dapl_srq *)made;
	return 0;
}

/* core_objects_close finds what is still in use. */
static int tear_down(void **state)
{
	if (srq)
		assert_int_equal(dapl_srq_free(SRQ), DAT_SUCCESS);
	assert_int_equal(core_pz->obj.calls + core_dto_evd->obj.calls + core_conn_evd->obj.calls + core_ia->obj.calls,
			 0);
	return core_objects_close(state);
}

static DAT_RETURN create(const DAT_EP_ATTR *attr) { return dapl_ep_create(IA, PZ, DTO, DTO, CONN, attr, &handle); }

static DAT_RETURN create_with_srq(const DAT_EP_ATTR *attr)
{
	return dapl_ep_create_with_srq(IA, PZ, DTO, DTO, CONN, SRQ, attr, &handle);
}

static struct dapl_ep *made(void)
{
	assert_ptr_not_equal(handle, &untouched);
	return (struct dapl_ep *)handle;
}

static void free_made(void) { assert_int_equal(dapl_ep_free(handle), DAT_SUCCESS); }

/* Neither an endpoint nor a QP is there. */
static void check_nothing_made(void)
{
	assert_ptr_equal(handle, &untouched);
	assert_int_equal(core_device.qps, 0);
	assert_int_equal(core_ia->counters[DCNT_IA_EP_CREATE], 0);
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), 0);
}

#define SRQ_CASE(name) UNIT_TEST_WITH(name, set_up_srq, tear_down)

/* --- creation -------------------------------------------------------------------------- */

UNIT_CASE(post_that_waits_for_another_sleeps_if_the_device_says_that_posts_may)
{
	assert_int_equal(create(NULL), DAT_SUCCESS);
	assert_true(made()->sq.lock.may_sleep);
	assert_true(made()->rq.lock.may_sleep);
	free_made();
}

/* They can be set later. */
UNIT_CASE(pz_and_evds_may_be_missing)
{
	const struct {
		DAT_PZ_HANDLE pz;
		DAT_EVD_HANDLE recv, request;
	} rows[] = { { NULL, NULL, NULL }, { PZ, NULL, DTO }, { PZ, DTO, NULL }, { NULL, DTO, DTO } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(dapl_ep_create(IA, rows[i].pz, rows[i].recv, rows[i].request, NULL, NULL, &handle),
				 DAT_SUCCESS);
		assert_int_equal(core_device.qps, 0);
		assert_int_equal(made()->state, DAT_EP_STATE_UNCONNECTED);
		free_made();
	}
}

SRQ_CASE(create_needs_a_place_for_the_handle)
{
	DAT_EP_ATTR attr = { .max_rdma_size = 0 };

	assert_int_equal(dapl_ep_create(IA, PZ, DTO, DTO, CONN, NULL, NULL), BAD_PARAM(7));
	assert_int_equal(dapl_ep_create_with_srq(IA, PZ, DTO, DTO, CONN, SRQ, &attr, NULL), BAD_PARAM(8));
	check_nothing_made();
}

SRQ_CASE(srq_must_be_of_the_ia_and_of_the_pz)
{
	const DAT_EP_ATTR attr = { .max_rdma_size = 0 };
	struct dapl_ia *stranger = core_ia_new();
	DAT_PZ_HANDLE second;

	assert_int_equal(dapl_pz_create(IA, &second), DAT_SUCCESS);
	assert_int_equal(dapl_ep_create_with_srq(IA, PZ, DTO, DTO, CONN, NULL, &attr, &handle), BAD_HANDLE(SRQ));
	assert_int_equal(dapl_ep_create_with_srq(IA, PZ, DTO, DTO, CONN, (DAT_SRQ_HANDLE)core_pz, &attr, &handle),
			 BAD_HANDLE(SRQ));
	assert_int_equal(dapl_ep_create_with_srq((DAT_IA_HANDLE)stranger, NULL, NULL, NULL, NULL, SRQ, &attr, &handle),
			 BAD_HANDLE(SRQ));
	assert_int_equal(dapl_ep_create_with_srq(NULL, PZ, DTO, DTO, CONN, SRQ, &attr, &handle), BAD_HANDLE(IA));
	assert_int_equal(dapl_ep_create_with_srq(IA, second, DTO, DTO, CONN, SRQ, &attr, &handle), BAD_PARAM(2));
	assert_int_equal(dapl_ep_create_with_srq(IA, NULL, DTO, DTO, CONN, SRQ, &attr, &handle), BAD_PARAM(2));
	check_nothing_made();
	assert_int_equal(srq->obj.calls, 0);
	assert_int_equal(dapl_pz_free(second), DAT_SUCCESS);
	core_ia_free(stranger);
}

/* --- what is undone -------------------------------------------------------------------- */

SRQ_CASE(refused_qp_leaves_nothing_in_use)
{
	const DAT_EP_ATTR attr = { .max_rdma_size = 0 };

	create_error = ENOMEM;
	assert_int_equal(create_with_srq(&attr), NO_RESOURCE(TEP));
	check_nothing_made();
	assert_false(dapl_in_use(&srq->obj) || dapl_in_use(&core_dto_evd->obj) || dapl_in_use(&core_conn_evd->obj));
	assert_int_equal(core_pz->obj.users, 1);	/* the SRQ */
	assert_int_equal(core_dto_evd->feeds.all, 0);
	assert_int_equal(core_conn_evd->pins, 0);
	create_error = 0;
	assert_int_equal(create_with_srq(&attr), DAT_SUCCESS);
	free_made();
}

/* Another thread has freed it after the call looked at the handle. */
static DAT_RETURN make(struct dapl_pz *pz, struct dapl_evd *connect, struct dapl_srq *of)
{
	const DAT_EP_ATTR attr = { .max_rdma_size = 0 };
	struct dapl_ep *ep;

	return dapl_ep_make(core_ia, pz, core_dto_evd, core_dto_evd, connect, of, &attr, 7, &ep);
}

SRQ_CASE(object_that_is_freed_meanwhile_leaves_nothing_in_use)
{
	struct dapl_evd *evd = core_evd_new(core_ia, 8, DAT_EVD_CONNECTION_FLAG);
	DAT_PZ_HANDLE second;
	struct dapl_pz *pz;

	assert_int_equal(dapl_pz_create(IA, &second), DAT_SUCCESS);
	pz = (struct dapl_pz *)second;
	assert_true(dapl_object_kill(&pz->obj) && dapl_object_kill(&evd->obj) && dapl_object_kill(&srq->obj));
	assert_int_equal(make(core_pz, evd, NULL), BAD_HANDLE(EVD_CONN));
	assert_int_equal(make(pz, core_conn_evd, NULL), BAD_HANDLE(PZ));
	dapl_object_bury(&pz->obj);
	dapl_evd_destroy(evd);
	assert_int_equal(make(core_pz, core_conn_evd, srq), BAD_HANDLE(SRQ));
	check_nothing_made();
	assert_int_equal(core_dto_evd->feeds.all, 0);
	assert_false(dapl_in_use(&core_conn_evd->obj));
	dapl_srq_destroy(srq);
	srq = NULL;
	assert_false(dapl_in_use(&core_pz->obj));
}

static int refuse_connect(const struct dapl_conn_params *params, struct dapl_conn **conn)
{
	assert_int_equal(((const struct sockaddr_in *)params->remote)->sin_port, htons(7));
	return ENOMEM;
}

/* The endpoint never had a connection. */
UNIT_CASE(refused_connect_leaves_no_address)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	DAT_EP_PARAM param;

	assert_int_equal(create(NULL), DAT_SUCCESS);
	core_device.connect = refuse_connect;
	assert_int_equal(dapl_ep_connect(handle, (DAT_IA_ADDRESS_PTR)&to, 7, DAT_TIMEOUT_INFINITE, 0, NULL,
					 DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), NO_RESOURCE(MEMORY));
	assert_int_equal(dapl_ep_query(handle, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	assert_null(param.remote_ia_address_ptr);
	assert_int_equal(param.remote_port_qual, 0);
	free_made();
}

UNIT_CASE(arguments_of_queries_are_checked)
{
	DAT_BOOLEAN idle;
	DAT_EP_STATE ep_state;
	DAT_EP_PARAM param;
	DAT_COUNT n;

	assert_int_equal(create(NULL), DAT_SUCCESS);
	assert_int_equal(dapl_ep_query(handle, (DAT_EP_PARAM_MASK)0x80000000, &param), BAD_PARAM(2));
	assert_int_equal(dapl_ep_query(handle, DAT_EP_FIELD_ALL, NULL), BAD_PARAM(3));
	assert_int_equal(dapl_ep_recv_query(handle, NULL, NULL), BAD_PARAM(2));
	assert_int_equal(dapl_ep_get_status(handle, NULL, NULL, NULL), DAT_SUCCESS);
	free_made();
	assert_int_equal(dapl_ep_query(handle, DAT_EP_FIELD_ALL, &param), BAD_HANDLE(EP));
	assert_int_equal(dapl_ep_get_status(handle, &ep_state, &idle, &idle), BAD_HANDLE(EP));
	assert_int_equal(dapl_ep_recv_query(handle, &n, &n), BAD_HANDLE(EP));
	assert_int_equal(((struct dapl_ep *)handle)->obj.calls, 0);
}

SRQ_CASE(watermark_follows_the_evd_of_receives)
{
	struct dapl_evd *next = core_evd_new(core_ia, 8, DAT_EVD_DTO_FLAG);
	DAT_EP_PARAM param = { .recv_evd_handle = (DAT_EVD_HANDLE)next };
	const DAT_EP_ATTR without = { .max_rdma_size = 0 }, with = { .srq_soft_hw = 2 };

	assert_int_equal(create_with_srq(&without), DAT_SUCCESS);
	assert_int_equal(dapl_ep_modify(handle, DAT_EP_FIELD_RECV_EVD_HANDLE, &param), DAT_SUCCESS);
	assert_false(next->inspect || next->watched);	/* which costs time */
	free_made();
	assert_int_equal(create_with_srq(&with), DAT_SUCCESS);
	assert_true(core_dto_evd->inspect && core_dto_evd->watched);
	assert_int_equal(dapl_ep_modify(handle, DAT_EP_FIELD_RECV_EVD_HANDLE, &param), DAT_SUCCESS);
	assert_true(next->inspect && next->watched);
	free_made();
	core_evd_free(next);
}

SRQ_CASE(soft_watermark_of_the_attributes_is_the_first)
{
	DAT_EP_ATTR attr = { .srq_soft_hw = 2 };

	assert_int_equal(create_with_srq(&attr), DAT_SUCCESS);
	assert_int_equal(made()->soft_hw, 2);
	assert_int_equal(made()->hard_hw, DAT_WATERMARK_INFINITE);
	free_made();
	attr.srq_soft_hw = 0;
	assert_int_equal(create_with_srq(&attr), DAT_SUCCESS);
	assert_int_equal(made()->soft_hw, DAT_WATERMARK_INFINITE);
	free_made();
	attr.srq_soft_hw = 2;
	assert_int_equal(create(&attr), DAT_SUCCESS);	/* it has no SRQ */
	assert_int_equal(made()->soft_hw, DAT_WATERMARK_INFINITE);
	free_made();
}

UNIT_MAIN(NULL, NULL)
