/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hnd.c - handles: their types, consumer contexts, NULL and closed handles, and the IA
 * handle that queries tell. Freed and wrong-type handles are in rob.c. */
#include "pair.h"

/* Fails unless the call succeeded on an object of kind i. */
static void expect_ok(DAT_RETURN ret, const char *call, int i)
{
	if (ret != DAT_SUCCESS)
		fail("expected DAT_SUCCESS of %s on a %s, found %s", call, handle_type_name(zoo_type(i)),
		     return_name(ret));
}

TEST("HND-1", every_kind_of_object_has_its_handle_type)
{
	struct zoo zoo = a_zoo();
	DAT_HANDLE_TYPE type;

	for (int i = 0; i < ZOO_SIZE; i++) {
		if (!zoo_handle(&zoo, i))
			continue;
		type = (DAT_HANDLE_TYPE)99;
		expect_ok(dat_get_handle_type(zoo_handle(&zoo, i), &type), "dat_get_handle_type", i);
		if (type != zoo_type(i))
			fail("expected %s, found %s", handle_type_name(zoo_type(i)),
			     handle_type_name(type));
	}
}

TEST("HND-2", an_ia_handle_has_type_ia)
{
	DAT_HANDLE_TYPE type;

	OK(dat_get_handle_type(ia(), &type));
	EQUAL(type, DAT_HANDLE_TYPE_IA);
}

TEST("HND-3", null_has_no_handle_type)
{
	DAT_HANDLE_TYPE type;

	ia();
	FAILS(dat_get_handle_type(DAT_HANDLE_NULL, &type), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1);
}

TEST("HND-4", handle_type_wants_room_for_its_answer)
{
	FAILS(dat_get_handle_type(a_pz(), NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_get_handle_type(ia(), NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("HND-5", a_consumer_context_is_kept)
{
	struct zoo zoo = a_zoo();
	DAT_CONTEXT context;

	for (int i = 0; i < ZOO_SIZE; i++)
		if (zoo_handle(&zoo, i))
			expect_ok(dat_set_consumer_context(zoo_handle(&zoo, i), COOKIE(0xa11ce000beefull + i)),
				  "dat_set_consumer_context", i);
	for (int i = 0; i < ZOO_SIZE; i++) {
		if (!zoo_handle(&zoo, i))
			continue;
		expect_ok(dat_get_consumer_context(zoo_handle(&zoo, i), &context),
			  "dat_get_consumer_context", i);
		EQUAL(context.as_64, 0xa11ce000beefull + i);
	}
}

TEST("HND-6", a_second_consumer_context_replaces_the_first)
{
	DAT_PZ_HANDLE pz = a_pz();
	DAT_CONTEXT context;

	OK(dat_set_consumer_context(pz, COOKIE(1)));
	OK(dat_set_consumer_context(pz, COOKIE(2)));
	OK(dat_get_consumer_context(pz, &context));
	EQUAL(context.as_64, 2);
}

TEST("HND-7", a_consumer_context_never_set_is_zero)
{
	struct zoo zoo = a_zoo();

	for (int i = 0; i < ZOO_SIZE; i++) {
		DAT_CONTEXT context = { .as_64 = 77 };
		if (!zoo_handle(&zoo, i))
			continue;
		expect_ok(dat_get_consumer_context(zoo_handle(&zoo, i), &context),
			  "dat_get_consumer_context", i);
		EQUAL(context.as_64, 0);
	}
}

TEST("HND-8", null_has_no_consumer_context)
{
	DAT_CONTEXT context;

	ia();
	FAILS(dat_set_consumer_context(DAT_HANDLE_NULL, COOKIE(1)),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1);
	FAILS(dat_get_consumer_context(DAT_HANDLE_NULL, &context),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1);
}

TEST("HND-9", a_small_number_that_is_no_open_ia_is_an_invalid_handle)
{
	DAT_HANDLE none = (DAT_HANDLE)60000;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;

	ia();
	FAILS(dat_get_handle_type(none, &type), DAT_INVALID_HANDLE);
	FAILS(dat_set_consumer_context(none, COOKIE(1)), DAT_INVALID_HANDLE);
	FAILS(dat_get_consumer_context(none, &context), DAT_INVALID_HANDLE);
}

#define NULL_IS(call, subtype) FAILS(call, DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_##subtype)

TEST("HND-10", null_handles_are_invalid_handles_of_their_kind)
{
	DAT_HANDLE handle, none = DAT_HANDLE_NULL;
	DAT_REGION_DESCRIPTION region = { .for_va = &handle };
	DAT_LMR_TRIPLET iov = { 0 };
	DAT_RMR_TRIPLET remote = { 0 };
	DAT_RMR_CONTEXT rmr_context;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;
	DAT_COUNT n;
	DAT_FD fd;
	union {
		DAT_EVD_PARAM evd; DAT_EP_PARAM ep; DAT_LMR_PARAM lmr; DAT_RMR_PARAM rmr;
		DAT_PZ_PARAM pz; DAT_PSP_PARAM psp; DAT_RSP_PARAM rsp; DAT_CR_PARAM cr;
		DAT_CNO_PARAM cno; DAT_SRQ_PARAM srq; DAT_CSP_PARAM csp;
	} param;
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };

	ia();
	NULL_IS(dat_ia_query(none, NULL, 0, NULL, 0, NULL), IA);
	NULL_IS(dat_ia_close(none, DAT_CLOSE_ABRUPT_FLAG), IA);
	NULL_IS(dat_pz_create(none, &handle), IA);
	NULL_IS(dat_cno_create(none, DAT_OS_WAIT_PROXY_AGENT_NULL, &handle), IA);
	NULL_IS(dat_evd_create(none, 8, none, DAT_EVD_DTO_FLAG, &handle), IA);
	NULL_IS(dat_ep_create(none, none, none, none, none, NULL, &handle), IA);
	NULL_IS(dat_ep_create_with_srq(none, none, none, none, none, none, NULL, &handle), IA);
	NULL_IS(dat_lmr_create(none, DAT_MEM_TYPE_VIRTUAL, region, 8, none, LOCAL_RIGHTS,
			       DAT_VA_TYPE_VA, &handle, NULL, NULL, NULL, NULL), IA);
	NULL_IS(dat_lmr_sync_rdma_read(none, &iov, 1), IA);
	NULL_IS(dat_lmr_sync_rdma_write(none, &iov, 1), IA);
	NULL_IS(dat_psp_create(none, 10000, none, DAT_PSP_CONSUMER_FLAG, &handle), IA);
	NULL_IS(dat_psp_create_any(none, &qual, none, DAT_PSP_CONSUMER_FLAG, &handle), IA);
	NULL_IS(dat_rsp_create(none, 10000, none, none, &handle), IA);
	NULL_IS(dat_srq_create(none, none, &srq_attr, &handle), IA);

	NULL_IS(dat_ep_query(none, DAT_EP_FIELD_ALL, &param.ep), EP);
	NULL_IS(dat_ep_modify(none, 0, &param.ep), EP);
	NULL_IS(dat_ep_connect(none, address(), 10000, 1000, 0, NULL, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_DEFAULT_FLAG), EP);
	NULL_IS(dat_ep_dup_connect(none, none, 1000, 0, NULL, DAT_QOS_BEST_EFFORT), EP);
	NULL_IS(dat_ep_disconnect(none, DAT_CLOSE_ABRUPT_FLAG), EP);
	NULL_IS(dat_ep_reset(none), EP);
	NULL_IS(dat_ep_free(none), EP);
	NULL_IS(dat_ep_get_status(none, NULL, NULL, NULL), EP);
	NULL_IS(dat_ep_recv_query(none, &n, &n), EP);
	NULL_IS(dat_ep_set_watermark(none, 1, 1), EP);
	NULL_IS(dat_ep_post_send(none, 1, &iov, COOKIE(0), DAT_COMPLETION_DEFAULT_FLAG), EP);
	NULL_IS(dat_ep_post_recv(none, 1, &iov, COOKIE(0), DAT_COMPLETION_DEFAULT_FLAG), EP);
	NULL_IS(dat_ep_post_rdma_read(none, 1, &iov, COOKIE(0), &remote, DAT_COMPLETION_DEFAULT_FLAG), EP);
	NULL_IS(dat_ep_post_rdma_write(none, 1, &iov, COOKIE(0), &remote, DAT_COMPLETION_DEFAULT_FLAG), EP);

	NULL_IS(dat_lmr_query(none, DAT_LMR_FIELD_ALL, &param.lmr), LMR);
	NULL_IS(dat_lmr_free(none), LMR);
	NULL_IS(dat_rmr_query(none, DAT_RMR_FIELD_ALL, &param.rmr), RMR);
	NULL_IS(dat_rmr_bind(none, none, &iov, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, none,
			     COOKIE(0), DAT_COMPLETION_DEFAULT_FLAG, &rmr_context), RMR);
	NULL_IS(dat_rmr_free(none), RMR);
	NULL_IS(dat_pz_query(none, DAT_PZ_FIELD_ALL, &param.pz), PZ);
	NULL_IS(dat_pz_free(none), PZ);
	NULL_IS(dat_rmr_create(none, &handle), PZ);
	NULL_IS(dat_psp_query(none, DAT_PSP_FIELD_ALL, &param.psp), PSP);
	NULL_IS(dat_psp_free(none), PSP);
	NULL_IS(dat_rsp_query(none, DAT_RSP_FIELD_ALL, &param.rsp), RSP);
	NULL_IS(dat_rsp_free(none), RSP);
	NULL_IS(dat_cr_query(none, DAT_CR_FIELD_ALL, &param.cr), CR);
	NULL_IS(dat_cr_accept(none, none, 0, NULL), CR);
	NULL_IS(dat_cr_reject(none, 0, NULL), CR);
	NULL_IS(dat_cr_handoff(none, 10000), CR);
	NULL_IS(dat_cno_query(none, DAT_CNO_FIELD_ALL, &param.cno), CNO);
	NULL_IS(dat_cno_modify_agent(none, DAT_OS_WAIT_PROXY_AGENT_NULL), CNO);
	NULL_IS(dat_cno_wait(none, 0, &handle), CNO);
	NULL_IS(dat_cno_free(none), CNO);

	NULL_IS(dat_evd_query(none, DAT_EVD_FIELD_ALL, &param.evd), EVD_REQUEST);
	NULL_IS(dat_evd_modify_cno(none, none), EVD_REQUEST);
	NULL_IS(dat_evd_enable(none), EVD_REQUEST);
	NULL_IS(dat_evd_disable(none), EVD_REQUEST);
	NULL_IS(dat_evd_set_unwaitable(none), EVD_REQUEST);
	NULL_IS(dat_evd_clear_unwaitable(none), EVD_REQUEST);
	NULL_IS(dat_evd_wait(none, 0, 1, &event, &n), EVD_REQUEST);
	NULL_IS(dat_evd_dequeue(none, &event), EVD_REQUEST);
	NULL_IS(dat_evd_resize(none, 8), EVD_REQUEST);
	NULL_IS(dat_evd_post_se(none, &event), EVD_REQUEST);
	NULL_IS(dat_evd_free(none), EVD_REQUEST);

	NULL_IS(dat_srq_query(none, DAT_SRQ_FIELD_ALL, &param.srq), SRQ);
	NULL_IS(dat_srq_post_recv(none, 1, &iov, COOKIE(0)), SRQ);
	NULL_IS(dat_srq_resize(none, 8), SRQ);
	NULL_IS(dat_srq_set_lw(none, 1), SRQ);
	NULL_IS(dat_srq_free(none), SRQ);

	if (!FIND(dat_csp_query))
		return;
	NULL_IS(FIND(dat_csp_create)(none, NULL, address(), none, &handle), IA);
	NULL_IS(FIND(dat_csp_query)(none, DAT_CSP_FIELD_ALL, &param.csp), CSP);
	NULL_IS(FIND(dat_csp_free)(none), CSP);
	NULL_IS(FIND(dat_cno_fd_create)(none, &fd, &handle), IA);
	NULL_IS(FIND(dat_cno_trigger)(none, &handle), CNO);
	NULL_IS(FIND(dat_rmr_create_for_ep)(none, &handle), PZ);
	NULL_IS(FIND(dat_ep_common_connect)(none, address(), 1000, 0, NULL), EP);
	NULL_IS(FIND(dat_ep_post_send_with_invalidate)(none, 1, &iov, COOKIE(0),
						       DAT_COMPLETION_DEFAULT_FLAG, DAT_FALSE, 0), EP);
	NULL_IS(FIND(dat_ep_post_rdma_read_to_rmr)(none, &remote, COOKIE(0), &remote,
						   DAT_COMPLETION_DEFAULT_FLAG), EP);
}

TEST("HND-11", queries_tell_the_ia_handle_that_the_consumer_knows)
{
	struct zoo zoo = a_zoo();
	DAT_PZ_PARAM pz;
	DAT_LMR_PARAM lmr;
	DAT_RMR_PARAM rmr;
	DAT_SRQ_PARAM srq;
	DAT_CNO_PARAM cno;
	DAT_PSP_PARAM psp;
	DAT_RSP_PARAM rsp;
	DAT_CSP_PARAM csp;

	OK(dat_pz_query(zoo.pz, DAT_PZ_FIELD_IA_HANDLE, &pz));
	EQUAL(pz.ia_handle, ia());
	OK(dat_lmr_query(zoo.lmr, DAT_LMR_FIELD_IA_HANDLE, &lmr));
	EQUAL(lmr.ia_handle, ia());
	OK(dat_cno_query(zoo.cno, DAT_CNO_FIELD_IA_HANDLE, &cno));
	EQUAL(cno.ia_handle, ia());
	EQUAL(evd_param(zoo.evd).ia_handle, ia());
	EQUAL(evd_param(async_evd()).ia_handle, ia());
	EQUAL(ep_param(zoo.ep).ia_handle, ia());
	OK(dat_psp_query(zoo.psp, DAT_PSP_FIELD_IA_HANDLE, &psp));
	EQUAL(psp.ia_handle, ia());
	OK(dat_rsp_query(zoo.rsp, DAT_RSP_FIELD_IA_HANDLE, &rsp));
	EQUAL(rsp.ia_handle, ia());
	if (zoo.rmr) {
		OK(dat_rmr_query(zoo.rmr, DAT_RMR_FIELD_IA_HANDLE, &rmr));
		EQUAL(rmr.ia_handle, ia());
	}
	if (zoo.srq) {
		OK(dat_srq_query(zoo.srq, DAT_SRQ_FIELD_IA_HANDLE, &srq));
		EQUAL(srq.ia_handle, ia());
	}
	if (zoo.csp) {
		OK(FIND(dat_csp_query)(zoo.csp, DAT_CSP_FIELD_IA_HANDLE, &csp));
		EQUAL(csp.ia_handle, ia());
	}
}
