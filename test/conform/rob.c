/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rob.c - robustness: every call with handles that are freed, of another kind or of
 * another IA, and with masks, flags, lengths and counts out of range. None may crash, none
 * may succeed. NULL handles are in hnd.c. */
#include "pair.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG

/* --- the things that calls are made with ------------------------------------------------------ */

/* Live objects for the other arguments. prepare() makes them once in each test. */
static struct {
	struct zoo zoo;
	struct end end;
	DAT_EVD_HANDLE cr_evd, soft_evd;
	struct listener listener;
} live;

static void prepare(void)
{
	live.zoo = a_zoo();
	live.end = AN_END();
	live.cr_evd = an_evd(DAT_EVD_CR_FLAG);
	live.soft_evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	live.listener = a_listener();
}

/* A handle of each kind whose object is freed. */
static DAT_HANDLE freed(DAT_HANDLE_TYPE type)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	struct sockaddr_storage where;
	DAT_COMM comm;
	DAT_HANDLE h = DAT_HANDLE_NULL;

	switch (type) {
	case DAT_HANDLE_TYPE_CR: OK(dat_cr_reject(h = live.zoo.cr, 0, NULL)); break;
	case DAT_HANDLE_TYPE_EP: OK(dat_ep_free(h = AN_END().ep)); break;
	case DAT_HANDLE_TYPE_EVD: OK(dat_evd_free(h = an_evd(DAT_EVD_DTO_FLAG))); break;
	case DAT_HANDLE_TYPE_LMR: OK(dat_lmr_free(h = a_region(a_pz(), 4096, ALL_RIGHTS).lmr)); break;
	case DAT_HANDLE_TYPE_PSP: OK(dat_psp_free(h = a_listener().psp)); break;
	case DAT_HANDLE_TYPE_PZ: OK(dat_pz_free(h = a_pz())); break;
	case DAT_HANDLE_TYPE_RSP: OK(dat_rsp_free(h = a_reservation(AN_END().ep).rsp)); break;
	case DAT_HANDLE_TYPE_CNO: OK(dat_cno_free(h = a_cno())); break;
	case DAT_HANDLE_TYPE_RMR:
		OK(dat_rmr_create(a_pz(), &h));
		OK(dat_rmr_free(h));
		break;
	case DAT_HANDLE_TYPE_SRQ:
		OK(dat_srq_create(ia(), a_pz(), &srq_attr, &h));
		OK(dat_srq_free(h));
		break;
	case DAT_HANDLE_TYPE_CSP:
		OK(FIND(dat_csp_create)(ia(), csp_comm(&comm), csp_address(&where, new_qual()),
					an_evd(DAT_EVD_CR_FLAG), &h));
		OK(FIND(dat_csp_free)(h));
		break;
	default: fail("no handle of that kind");
	}
	return h;
}

/* --- calls, by the handle that is bad ------------------------------------------------------------- */

#define CALL(name) static DAT_RETURN name(DAT_HANDLE h)
#define SIMPLE(name, expression) CALL(name) { return expression; }
#define QUERY(name, type, function, all) \
	CALL(name) { type param; return function(h, all, &param); }

#define DATA 1, SEGMENT(&live.end.mem, 0, 64), COOKIE(1)
#define THERE TARGET(&live.end.mem, 0, 64)

QUERY(q_pz, DAT_PZ_PARAM, dat_pz_query, DAT_PZ_FIELD_ALL)
QUERY(q_lmr, DAT_LMR_PARAM, dat_lmr_query, DAT_LMR_FIELD_ALL)
QUERY(q_rmr, DAT_RMR_PARAM, dat_rmr_query, DAT_RMR_FIELD_ALL)
QUERY(q_srq, DAT_SRQ_PARAM, dat_srq_query, DAT_SRQ_FIELD_ALL)
QUERY(q_cno, DAT_CNO_PARAM, dat_cno_query, DAT_CNO_FIELD_ALL)
QUERY(q_evd, DAT_EVD_PARAM, dat_evd_query, DAT_EVD_FIELD_ALL)
QUERY(q_ep, DAT_EP_PARAM, dat_ep_query, DAT_EP_FIELD_ALL)
QUERY(q_psp, DAT_PSP_PARAM, dat_psp_query, DAT_PSP_FIELD_ALL)
QUERY(q_rsp, DAT_RSP_PARAM, dat_rsp_query, DAT_RSP_FIELD_ALL)
QUERY(q_cr, DAT_CR_PARAM, dat_cr_query, DAT_CR_FIELD_ALL)
QUERY(q_csp, DAT_CSP_PARAM, LATE(dat_csp_query), DAT_CSP_FIELD_ALL)

SIMPLE(f_pz, dat_pz_free(h))
SIMPLE(f_lmr, dat_lmr_free(h))
SIMPLE(f_rmr, dat_rmr_free(h))
SIMPLE(f_srq, dat_srq_free(h))
SIMPLE(f_cno, dat_cno_free(h))
SIMPLE(f_evd, dat_evd_free(h))
SIMPLE(f_ep, dat_ep_free(h))
SIMPLE(f_psp, dat_psp_free(h))
SIMPLE(f_rsp, dat_rsp_free(h))
SIMPLE(f_csp, LATE(dat_csp_free)(h))

CALL(cno_wait) { DAT_EVD_HANDLE evd; return dat_cno_wait(h, 0, &evd); }
CALL(cno_trigger) { DAT_EVD_HANDLE evd; return LATE(dat_cno_trigger)(h, &evd); }
SIMPLE(cno_modify_agent, dat_cno_modify_agent(h, DAT_OS_WAIT_PROXY_AGENT_NULL))
CALL(evd_dequeue) { DAT_EVENT event; return dat_evd_dequeue(h, &event); }
CALL(evd_wait) { DAT_EVENT event; DAT_COUNT n; return dat_evd_wait(h, 0, 1, &event, &n); }
SIMPLE(evd_post_se, post_number(h, 1))
SIMPLE(evd_resize, dat_evd_resize(h, 32))
SIMPLE(evd_enable, dat_evd_enable(h))
SIMPLE(evd_disable, dat_evd_disable(h))
SIMPLE(evd_set_unwaitable, dat_evd_set_unwaitable(h))
SIMPLE(evd_clear_unwaitable, dat_evd_clear_unwaitable(h))
SIMPLE(evd_modify_cno, dat_evd_modify_cno(h, DAT_HANDLE_NULL))
SIMPLE(evd_modify_cno_to, dat_evd_modify_cno(live.soft_evd, h))
SIMPLE(ep_get_status, dat_ep_get_status(h, NULL, NULL, NULL))
SIMPLE(ep_modify, dat_ep_modify(h, DAT_EP_FIELD_PZ_HANDLE, &(DAT_EP_PARAM){ .pz_handle = live.end.pz }))
SIMPLE(ep_connect, try_dial(h, live.listener.qual))
SIMPLE(ep_dup_connect, dat_ep_dup_connect(h, live.end.ep, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT))
SIMPLE(ep_dup_connect_of, dat_ep_dup_connect(live.end.ep, h, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT))
SIMPLE(ep_disconnect, dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG))
SIMPLE(ep_reset, dat_ep_reset(h))
SIMPLE(ep_post_send, dat_ep_post_send(h, DATA, DEFAULT))
SIMPLE(ep_post_recv, dat_ep_post_recv(h, DATA, DEFAULT))
SIMPLE(ep_post_rdma_read, dat_ep_post_rdma_read(h, DATA, THERE, DEFAULT))
SIMPLE(ep_post_rdma_write, dat_ep_post_rdma_write(h, DATA, THERE, DEFAULT))
CALL(ep_recv_query) { DAT_COUNT n, span; return dat_ep_recv_query(h, &n, &span); }
SIMPLE(ep_set_watermark, dat_ep_set_watermark(h, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE))
SIMPLE(cr_accept, dat_cr_accept(h, live.end.ep, 0, NULL))
SIMPLE(cr_accept_on, dat_cr_accept(live.zoo.cr, h, 0, NULL))
SIMPLE(cr_reject, dat_cr_reject(h, 0, NULL))
SIMPLE(cr_handoff, dat_cr_handoff(h, live.listener.qual))
SIMPLE(srq_post_recv, dat_srq_post_recv(h, DATA))
SIMPLE(srq_resize, dat_srq_resize(h, 16))
SIMPLE(srq_set_lw, dat_srq_set_lw(h, 1))

static DAT_HANDLE made;		/* what none of these makes */
CALL(evd_create_cno) { return dat_evd_create(ia(), 8, h, DAT_EVD_SOFTWARE_FLAG, &made); }
CALL(lmr_create_pz) { return register_memory(live.end.mem.at, 4096, h, LOCAL_RIGHTS, &made); }
CALL(lmr_create_lmr)
{
	return dat_lmr_create(ia(), DAT_MEM_TYPE_LMR, (DAT_REGION_DESCRIPTION){ .for_lmr_handle = h }, 4096,
			      live.end.pz, LOCAL_RIGHTS, DAT_VA_TYPE_VA, &made, NULL, NULL, NULL, NULL);
}
CALL(rmr_create_pz) { return dat_rmr_create(h, &made); }
CALL(srq_create_pz)
{
	return dat_srq_create(ia(), h, &(DAT_SRQ_ATTR){ .max_recv_dtos = 8, .max_recv_iov = 1 }, &made);
}
CALL(psp_create_evd) { return dat_psp_create(ia(), new_qual(), h, DAT_PSP_CONSUMER_FLAG, &made); }
CALL(rsp_create_evd) { return dat_rsp_create(ia(), new_qual(), live.end.ep, h, &made); }
CALL(rsp_create_ep) { return dat_rsp_create(ia(), new_qual(), h, live.cr_evd, &made); }

static DAT_RETURN make_ep(DAT_HANDLE pz, DAT_HANDLE recv, DAT_HANDLE request, DAT_HANDLE conn)
{
	DAT_EP_ATTR attr = ep_attr();

	return dat_ep_create(ia(), pz, recv, request, conn, &attr, &made);
}
CALL(ep_create_pz) { return make_ep(h, live.end.recv, live.end.request, live.end.conn); }
CALL(ep_create_recv) { return make_ep(live.end.pz, h, live.end.request, live.end.conn); }
CALL(ep_create_request) { return make_ep(live.end.pz, live.end.recv, h, live.end.conn); }
CALL(ep_create_conn) { return make_ep(live.end.pz, live.end.recv, live.end.request, h); }
CALL(ep_create_srq)
{
	DAT_EP_ATTR attr = ep_attr();

	return dat_ep_create_with_srq(ia(), live.end.pz, live.end.recv, live.end.request, live.end.conn, h,
				      &attr, &made);
}
CALL(ep_modify_pz)
{
	return dat_ep_modify(live.end.ep, DAT_EP_FIELD_PZ_HANDLE, &(DAT_EP_PARAM){ .pz_handle = h });
}
CALL(ep_modify_recv)
{
	DAT_EP_PARAM param = { .recv_evd_handle = h };

	return dat_ep_modify(live.end.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param);
}
static DAT_RETURN bind_rmr(DAT_HANDLE rmr, DAT_HANDLE lmr, DAT_HANDLE ep)
{
	DAT_RMR_CONTEXT context;

	return dat_rmr_bind(rmr, lmr, SEGMENT(&live.end.mem, 0, 64), DAT_MEM_PRIV_REMOTE_READ_FLAG,
			    DAT_VA_TYPE_VA, ep, COOKIE(1), DEFAULT, &context);
}
CALL(rmr_bind) { return bind_rmr(h, live.end.mem.lmr, live.end.ep); }
CALL(rmr_bind_lmr) { return bind_rmr(live.zoo.rmr, h, live.end.ep); }
CALL(rmr_bind_ep) { return bind_rmr(live.zoo.rmr, live.end.mem.lmr, h); }

static const struct victim {
	const char *name;
	DAT_RETURN (*call)(DAT_HANDLE h);
	DAT_HANDLE_TYPE type;	/* of the handle it wants */
} victims[] = {
#define V(name, type) { #name, name, DAT_HANDLE_TYPE_##type }
	{ "pz_query", q_pz, DAT_HANDLE_TYPE_PZ }, { "pz_free", f_pz, DAT_HANDLE_TYPE_PZ },
	{ "lmr_query", q_lmr, DAT_HANDLE_TYPE_LMR }, { "lmr_free", f_lmr, DAT_HANDLE_TYPE_LMR },
	{ "rmr_query", q_rmr, DAT_HANDLE_TYPE_RMR }, { "rmr_free", f_rmr, DAT_HANDLE_TYPE_RMR },
	{ "srq_query", q_srq, DAT_HANDLE_TYPE_SRQ }, { "srq_free", f_srq, DAT_HANDLE_TYPE_SRQ },
	{ "cno_query", q_cno, DAT_HANDLE_TYPE_CNO }, { "cno_free", f_cno, DAT_HANDLE_TYPE_CNO },
	{ "evd_query", q_evd, DAT_HANDLE_TYPE_EVD }, { "evd_free", f_evd, DAT_HANDLE_TYPE_EVD },
	{ "ep_query", q_ep, DAT_HANDLE_TYPE_EP }, { "ep_free", f_ep, DAT_HANDLE_TYPE_EP },
	{ "psp_query", q_psp, DAT_HANDLE_TYPE_PSP }, { "psp_free", f_psp, DAT_HANDLE_TYPE_PSP },
	{ "rsp_query", q_rsp, DAT_HANDLE_TYPE_RSP }, { "rsp_free", f_rsp, DAT_HANDLE_TYPE_RSP },
	{ "csp_query", q_csp, DAT_HANDLE_TYPE_CSP }, { "csp_free", f_csp, DAT_HANDLE_TYPE_CSP },
	{ "cr_query", q_cr, DAT_HANDLE_TYPE_CR },
	V(cno_wait, CNO), V(cno_trigger, CNO), V(cno_modify_agent, CNO),
	V(evd_dequeue, EVD), V(evd_wait, EVD), V(evd_post_se, EVD), V(evd_resize, EVD),
	V(evd_enable, EVD), V(evd_disable, EVD), V(evd_set_unwaitable, EVD),
	V(evd_clear_unwaitable, EVD), V(evd_modify_cno, EVD), V(evd_modify_cno_to, CNO),
	V(ep_get_status, EP), V(ep_modify, EP), V(ep_connect, EP), V(ep_dup_connect, EP),
	V(ep_dup_connect_of, EP), V(ep_disconnect, EP), V(ep_reset, EP), V(ep_post_send, EP),
	V(ep_post_recv, EP), V(ep_post_rdma_read, EP), V(ep_post_rdma_write, EP),
	V(ep_recv_query, EP), V(ep_set_watermark, EP),
	V(cr_accept, CR), V(cr_accept_on, EP), V(cr_reject, CR), V(cr_handoff, CR),
	V(srq_post_recv, SRQ), V(srq_resize, SRQ), V(srq_set_lw, SRQ),
	V(evd_create_cno, CNO), V(lmr_create_pz, PZ), V(lmr_create_lmr, LMR), V(rmr_create_pz, PZ),
	V(srq_create_pz, PZ), V(psp_create_evd, EVD), V(rsp_create_evd, EVD), V(rsp_create_ep, EP),
	V(ep_create_pz, PZ), V(ep_create_recv, EVD), V(ep_create_request, EVD),
	V(ep_create_conn, EVD), V(ep_create_srq, SRQ), V(ep_modify_pz, PZ), V(ep_modify_recv, EVD),
	V(rmr_bind, RMR), V(rmr_bind_lmr, LMR), V(rmr_bind_ep, EP),
};

/* The device may lack the kind of object, or the call. */
static void needs_kind(DAT_HANDLE_TYPE type)
{
	if (type == DAT_HANDLE_TYPE_SRQ)
		needs_srq();
	if (type == DAT_HANDLE_TYPE_CSP && !live.zoo.csp)
		skip("there are no common service points");
}

static void expect_bad_handle(const struct victim *v, DAT_HANDLE h)
{
	AT(v->name);
	DAT_RETURN ret = v->call(h);
	AT(v->name);
	if (DAT_GET_TYPE(ret) == DAT_NOT_IMPLEMENTED)
		skip("dat_%s answers %s", v->name, return_name(ret));
	expect_return(ret, 1, (const DAT_RETURN[]){ DAT_INVALID_HANDLE });
}

static void prepare_for(const struct victim *v)
{
	/* Before: siw's kernel waits 10 s for a connection that is left half open. */
	if (v->type == DAT_HANDLE_TYPE_RMR || v->call == rmr_bind_lmr || v->call == rmr_bind_ep ||
	    v->call == rmr_create_pz)
		needs_rmr();
	prepare();
	needs_kind(v->type);
	if (v->call == srq_create_pz)
		needs_srq();
}

static void with_freed(const void *arg)
{
	const struct victim *v = arg;

	prepare_for(v);
	expect_bad_handle(v, freed(v->type));
}

static void with_other_kinds(const void *arg)
{
	const struct victim *v = arg;

	prepare_for(v);
	for (int i = 1; i < ZOO_SIZE; i++)	/* not the IA: its handle is a number */
		if (zoo_handle(&live.zoo, i) && zoo_type(i) != v->type)
			expect_bad_handle(v, zoo_handle(&live.zoo, i));
}

/* Arguments of a call belong to one IA, or the call fails. */
static void with_another_ia(const void *arg)
{
	const struct victim *v = arg;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	prepare_for(v);
	DAT_IA_HANDLE first = work_on(open_ia(&async));
	struct zoo other = a_zoo();
	DAT_EVD_HANDLE evd = an_evd((DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG));
	DAT_EP_HANDLE ep = AN_END().ep;
	work_on(first);
	for (int i = 1; i < ZOO_SIZE; i++)
		if (zoo_handle(&other, i) && zoo_type(i) == v->type)
			expect_bad_handle(v, v->type == DAT_HANDLE_TYPE_EVD ? evd :
					     v->type == DAT_HANDLE_TYPE_EP ? ep : zoo_handle(&other, i));
}

static void add(const char *kind, const struct victim *v, void (*run)(const void *arg))
{
	struct test *test = calloc(1, sizeof(*test));
	char id[80], name[100];

	snprintf(id, sizeof(id), "ROB-%s-%s", v->name, kind);
	snprintf(name, sizeof(name), "%s_with_%s_handle", v->name, kind);
	*test = (struct test){ strdup(id), strdup(name), run, v, __FILE__, __LINE__ };
	test_register(test);
}

/* Calls whose other arguments are objects of the IA. */
static bool is_secondary(const struct victim *v)
{
	static DAT_RETURN (*const calls[])(DAT_HANDLE h) = {
		evd_modify_cno_to, cr_accept_on, evd_create_cno, lmr_create_pz,
		lmr_create_lmr, srq_create_pz, psp_create_evd, rsp_create_evd, rsp_create_ep,
		ep_create_pz, ep_create_recv, ep_create_request, ep_create_conn, ep_create_srq,
		ep_modify_pz, ep_modify_recv, rmr_bind_lmr, rmr_bind_ep,
	};
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (v->call == calls[i])
			return true;
	return false;
}

__attribute__((constructor)) static void register_victims(void)
{
	for (size_t i = 0; i < sizeof(victims) / sizeof(*victims); i++) {
		add("freed", &victims[i], with_freed);
		add("wrong", &victims[i], with_other_kinds);
		/* a connect EVD may be foreign: see DOUBTS.md */
		if (is_secondary(&victims[i]) && strcmp(victims[i].name, "ep_create_conn"))
			add("foreign", &victims[i], with_another_ia);
	}
}

/* --- the helpers that take any handle --------------------------------------------------------------- */

TEST("ROB-1", freed_objects_have_no_type_and_no_context)
{
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;

	live.zoo = a_zoo();
	for (int i = 1; i < ZOO_SIZE; i++) {
		if (!zoo_handle(&live.zoo, i))
			continue;
		DAT_HANDLE h = freed(zoo_type(i));
		FAILS(dat_get_handle_type(h, &type), DAT_INVALID_HANDLE);
		FAILS(dat_set_consumer_context(h, COOKIE(1)), DAT_INVALID_HANDLE);
		FAILS(dat_get_consumer_context(h, &context), DAT_INVALID_HANDLE);
	}
}

TEST("ROB-2", objects_of_a_closed_ia_are_gone)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE first = ia(), second = open_ia(&async);	/* keeps the provider loaded */
	struct zoo zoo = a_zoo();
	DAT_PZ_PARAM pz;
	DAT_EVENT event;

	OK(dat_ia_close(first, DAT_CLOSE_ABRUPT_FLAG));
	ia_is_gone();
	FAILS(dat_pz_query(zoo.pz, DAT_PZ_FIELD_ALL, &pz), DAT_INVALID_HANDLE);
	FAILS(dat_evd_dequeue(zoo.evd, &event), DAT_INVALID_HANDLE);
	FAILS(dat_ep_get_status(zoo.ep, NULL, NULL, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_ep_free(zoo.ep), DAT_INVALID_HANDLE);
	FAILS(dat_cr_reject(zoo.cr, 0, NULL), DAT_INVALID_HANDLE);
	OK(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- values out of range -------------------------------------------------------------------------------- */

#define REFUSED(call) FAILS(call, DAT_INVALID_PARAMETER, DAT_INSUFFICIENT_RESOURCES, \
			    DAT_MODEL_NOT_SUPPORTED, DAT_LENGTH_ERROR)

TEST("ROB-3", masks_out_of_range_are_refused)
{
	prepare();
	FAILS(dat_pz_query(live.zoo.pz, (DAT_PZ_PARAM_MASK)-1, &(DAT_PZ_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	FAILS(dat_lmr_query(live.zoo.lmr, (DAT_LMR_PARAM_MASK)-1, &(DAT_LMR_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	FAILS(dat_cno_query(live.zoo.cno, (DAT_CNO_PARAM_MASK)-1, &(DAT_CNO_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	FAILS(dat_evd_query(live.zoo.evd, (DAT_EVD_PARAM_MASK)-1, &(DAT_EVD_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	FAILS(dat_ep_query(live.zoo.ep, ~(DAT_EP_PARAM_MASK)0, &(DAT_EP_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	FAILS(dat_psp_query(live.zoo.psp, (DAT_PSP_PARAM_MASK)-1, &(DAT_PSP_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	FAILS(dat_rsp_query(live.zoo.rsp, (DAT_RSP_PARAM_MASK)-1, &(DAT_RSP_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_query(live.zoo.cr, (DAT_CR_PARAM_MASK)-1, &(DAT_CR_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	FAILS(dat_ep_modify(live.zoo.ep, ~(DAT_EP_PARAM_MASK)0, &(DAT_EP_PARAM){ 0 }), DAT_INVALID_PARAMETER);
	if (live.zoo.rmr)
		FAILS(dat_rmr_query(live.zoo.rmr, (DAT_RMR_PARAM_MASK)-1, &(DAT_RMR_PARAM){ 0 }),
		      DAT_INVALID_PARAMETER);
	if (live.zoo.srq)
		FAILS(dat_srq_query(live.zoo.srq, (DAT_SRQ_PARAM_MASK)-1, &(DAT_SRQ_PARAM){ 0 }),
		      DAT_INVALID_PARAMETER);
}

TEST("ROB-4", attributes_of_an_ep_out_of_range_are_refused)
{
	prepare();
	static const DAT_COUNT values[] = { -1, INT_MIN, INT_MAX };

	for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++)
		for (int field = 0; field < 8; field++) {
			DAT_EP_ATTR attr = ep_attr();
			DAT_COUNT *fields[] = {
				&attr.max_recv_dtos, &attr.max_request_dtos, &attr.max_recv_iov,
				&attr.max_request_iov, &attr.max_rdma_read_in, &attr.max_rdma_read_out,
				&attr.max_rdma_read_iov, &attr.max_rdma_write_iov,
			};
			*fields[field] = values[v];
			REFUSED(dat_ep_create(ia(), live.end.pz, live.end.recv, live.end.request,
					      live.end.conn, &attr, &made));
		}
	for (int field = 0; field < 3; field++) {
		DAT_EP_ATTR attr = ep_attr();
		if (field == 0)
			attr.qos = (DAT_QOS)0x4000;
		else if (field == 1)
			attr.recv_completion_flags = (DAT_COMPLETION_FLAGS)0x4000;
		else
			attr.request_completion_flags = (DAT_COMPLETION_FLAGS)0x4000;
		REFUSED(dat_ep_create(ia(), live.end.pz, live.end.recv, live.end.request, live.end.conn,
				      &attr, &made));
	}
}

TEST("ROB-5", lengths_of_queues_out_of_range_are_refused)
{
	prepare();
	REFUSED(dat_evd_create(ia(), INT_MIN, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &made));
	REFUSED(dat_evd_create(ia(), INT_MAX, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &made));
	REFUSED(dat_evd_create(ia(), INT_MAX, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &made));
	REFUSED(dat_evd_resize(live.soft_evd, INT_MIN));
	REFUSED(dat_evd_resize(live.soft_evd, INT_MAX));
	OK(post_number(live.soft_evd, 1));
	EVENT(live.soft_evd, DAT_SOFTWARE_EVENT);
	if (!live.zoo.srq)
		return;
	DAT_SRQ_ATTR attr = { .max_recv_dtos = INT_MAX, .max_recv_iov = 1 };
	REFUSED(dat_srq_create(ia(), live.zoo.pz, &attr, &made));
	attr = (DAT_SRQ_ATTR){ .max_recv_dtos = 8, .max_recv_iov = INT_MAX };
	REFUSED(dat_srq_create(ia(), live.zoo.pz, &attr, &made));
	REFUSED(dat_srq_resize(live.zoo.srq, INT_MAX));
	REFUSED(dat_srq_resize(live.zoo.srq, INT_MIN));
	REFUSED(dat_srq_set_lw(live.zoo.srq, INT_MIN));
	REFUSED(dat_srq_set_lw(live.zoo.srq, INT_MAX));
}

TEST("ROB-6", memory_that_does_not_exist_is_not_registered)
{
	DAT_PZ_HANDLE pz = a_pz();
	DAT_LMR_HANDLE lmr;
#define NO_MEMORY DAT_INVALID_PARAMETER, DAT_INSUFFICIENT_RESOURCES, DAT_PRIVILEGES_VIOLATION, \
		  DAT_LENGTH_ERROR, DAT_INVALID_STATE

	FAILS(register_memory(NULL, 4096, pz, LOCAL_RIGHTS, &lmr), NO_MEMORY);
	FAILS(register_memory((void *)0x10000, 1 << 20, pz, LOCAL_RIGHTS, &lmr), NO_MEMORY);
	FAILS(register_memory((void *)0xffff800000000000ull, 4096, pz, LOCAL_RIGHTS, &lmr), NO_MEMORY);
	FAILS(register_memory((void *)-4096, 8192, pz, LOCAL_RIGHTS, &lmr), NO_MEMORY);
	FAILS(register_memory(some_memory(4096), ~(DAT_VLEN)0, pz, LOCAL_RIGHTS, &lmr), NO_MEMORY);
	FAILS(register_memory(some_memory(4096), (DAT_VLEN)1 << 63, pz, LOCAL_RIGHTS, &lmr), NO_MEMORY);
	OK(dat_pz_free(pz));
}

TEST("ROB-7", rights_and_kinds_of_addresses_that_do_not_exist_are_refused)
{
	DAT_PZ_HANDLE pz = a_pz();
	DAT_LMR_HANDLE lmr;
	DAT_REGION_DESCRIPTION region = { .for_va = some_memory(4096) };

	FAILS(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL, region, 4096, pz, (DAT_MEM_PRIV_FLAGS)0x10004,
			     DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG6);
	FAILS(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL, region, 4096, pz, LOCAL_RIGHTS, (DAT_VA_TYPE)7, &lmr,
			     NULL, NULL, NULL, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG7,
			     DAT_MODEL_NOT_SUPPORTED);
}

TEST("ROB-8", counts_of_segments_out_of_range_are_refused)
{
	struct pair p = CONNECTED_PAIR();
	DAT_LMR_TRIPLET iov[2] = { segment(&p.a.mem, 0, 8), segment(&p.a.mem, 8, 8) };
	DAT_RMR_TRIPLET to = target(&p.b.mem, 0, 64);
	static const DAT_COUNT counts[] = { -1, INT_MIN, INT_MAX };

	for (int i = 0; i < 3; i++) {
		FAILS(dat_ep_post_send(p.a.ep, counts[i], iov, COOKIE(1), DEFAULT),
		      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
		FAILS(dat_ep_post_recv(p.a.ep, counts[i], iov, COOKIE(1), DEFAULT),
		      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
		FAILS(dat_ep_post_rdma_read(p.a.ep, counts[i], iov, COOKIE(1), &to, DEFAULT),
		      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
		FAILS(dat_ep_post_rdma_write(p.a.ep, counts[i], iov, COOKIE(1), &to, DEFAULT),
		      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	}
	FAILS(dat_ep_post_rdma_read(p.a.ep, 1, iov, COOKIE(1), NULL, DEFAULT),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(dat_ep_post_rdma_write(p.a.ep, 1, iov, COOKIE(1), NULL, DEFAULT),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	WORKS(p.a, p.b);
}

TEST("ROB-9", lengths_that_overflow_are_refused)
{
	struct pair p = CONNECTED_PAIR();
	DAT_COUNT n = ep_param(p.a.ep).ep_attr.max_request_iov;
	DAT_LMR_TRIPLET iov[16];
	DAT_RMR_TRIPLET to = target(&p.b.mem, 0, 64);

	if (n < 2 || n > 16)
		n = 2;
	/* Together 2^32 bytes and a few: a sum of 32 bits would be a few. */
	for (int i = 0; i < n; i++)
		iov[i] = segment(&p.a.mem, 0, 0x80000000u + (i ? 0 : 16));
	FAILS(dat_ep_post_send(p.a.ep, 2, iov, COOKIE(1), DEFAULT), DAT_LENGTH_ERROR, DAT_INVALID_PARAMETER);
	FAILS(dat_ep_post_rdma_write(p.a.ep, 2, iov, COOKIE(1), &to, DEFAULT), DAT_LENGTH_ERROR, DAT_INVALID_PARAMETER);
	WORKS(p.a, p.b);
}

TEST("ROB-10", flags_of_posts_out_of_range_are_refused)
{
	struct pair p = CONNECTED_PAIR();
	DAT_COMPLETION_FLAGS wild = (DAT_COMPLETION_FLAGS)0x4000;

	FAILS(dat_ep_post_send(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 8), COOKIE(1), wild),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(dat_ep_post_recv(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 8), COOKIE(1), wild),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(dat_ep_post_recv(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 8), COOKIE(1), DAT_COMPLETION_SUPPRESS_FLAG),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(dat_ep_post_recv(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 8), COOKIE(1), DAT_COMPLETION_BARRIER_FENCE_FLAG),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 8), COOKIE(1), TARGET(&p.b.mem, 0, 8), wild),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG6);
	FAILS(dat_ep_post_rdma_read(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 8), COOKIE(1), TARGET(&p.b.mem, 0, 8), wild),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG6);
	WORKS(p.a, p.b);
}

TEST("ROB-11", arguments_of_connecting_out_of_range_are_refused)
{
	struct end a = AN_END(), b = AN_END();
	struct listener listener = a_listener();
	char data[8] = { 0 };
#define CONNECT(qual, size, qos, flags) dat_ep_connect(a.ep, address(), qual, AMPLE_TIME, size, data, \
						       (DAT_QOS)(qos), (DAT_CONNECT_FLAGS)(flags))

	FAILS(CONNECT(listener.qual, -1, 0, 0), DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(CONNECT(listener.qual, INT_MIN, 0, 0), DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(CONNECT(listener.qual, INT_MAX, 0, 0), DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(CONNECT(listener.qual, 0, 0x4000, 0), DAT_INVALID_PARAMETER | DAT_INVALID_ARG7, DAT_MODEL_NOT_SUPPORTED);
	FAILS(CONNECT(listener.qual, 0, 0, 0x4000), DAT_INVALID_PARAMETER | DAT_INVALID_ARG8, DAT_MODEL_NOT_SUPPORTED);
	STATE(a.ep, DAT_EP_STATE_UNCONNECTED);
	connect_ends(&a, &b);
}

TEST("ROB-12", qualifiers_out_of_range_are_refused)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_CR_FLAG);
	struct end end = AN_END();

	FAILS(dat_psp_create(ia(), 0, evd, DAT_PSP_CONSUMER_FLAG, &made), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_rsp_create(ia(), 0, end.ep, evd, &made), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(try_dial(end.ep, 0), DAT_INVALID_ADDRESS | DAT_INVALID_ADDRESS_MALFORMED, DAT_INVALID_PARAMETER);
	STATE(end.ep, DAT_EP_STATE_UNCONNECTED);
	FAILS(dat_psp_create(ia(), new_qual(), evd, DAT_PSP_CONSUMER_FLAG, NULL),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	FAILS(dat_rsp_create(ia(), new_qual(), end.ep, evd, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	STATE(end.ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("ROB-13", addresses_of_no_known_family_are_refused)
{
	struct end a = AN_END();
	struct sockaddr_storage strange;
	static const int families[] = { 0, AF_UNIX, 12345 };

	for (int i = 0; i < 3; i++) {
		memset(&strange, 0, sizeof(strange));
		strange.ss_family = families[i];
		AT("dat_ep_connect to an address of no known family");
		DAT_RETURN ret = dat_ep_connect(a.ep, (DAT_IA_ADDRESS_PTR)&strange, new_qual(), 1000000, 0,
						NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS) {
			FAILS(ret, DAT_INVALID_ADDRESS, DAT_INVALID_PARAMETER);
			continue;
		}
		EVENT(a.conn, DAT_CONNECTION_EVENT_UNREACHABLE);
		OK(dat_ep_reset(a.ep));
	}
}

/* --- at random ------------------------------------------------------------------------------------------ */

/* Returns any handle: live, freed meanwhile, NULL, of any kind. */
static DAT_HANDLE pool[24];

static DAT_HANDLE any_handle(void)
{
	return pool[chance(24)];
}

TEST("ROB-R1", calls_at_random_do_not_crash)
{
	enum { N = sizeof(victims) / sizeof(*victims) };

	prepare();
	for (int i = 0; i < ZOO_SIZE - 1; i++)
		pool[i] = zoo_handle(&live.zoo, i + 1);
	for (int i = ZOO_SIZE; i < 24; i++)
		pool[i] = i % 2 ? DAT_HANDLE_NULL : an_evd(DAT_EVD_SOFTWARE_FLAG);
	for (int i = 0; i < 3000; i++) {
		const struct victim *v = &victims[chance(N)];
		if (v->type == DAT_HANDLE_TYPE_CSP && !FIND(dat_csp_create))
			continue;
		if (v->call == cno_trigger && !FIND(dat_cno_trigger))
			continue;
		AT(v->name);
		v->call(any_handle());
		/* Objects that were made or freed are added to the pool. */
		if (made && !chance(4))
			pool[chance(24)] = made;
	}
}
